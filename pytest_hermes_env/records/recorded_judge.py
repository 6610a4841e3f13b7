"""The judge of a record: it answers as it did then.

Place in the flow: `rescoring` gives it to the environment as its server.
"""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from hermes_env_shared.rollout_record import Record
from pytest_hermes_env.errors import shorten
from pytest_hermes_env.records.live_judge import LiveJudge
from pytest_hermes_env.records.unstored import Unstored


class NotStored(Exception):
    """The reward asked for something that the record does not have."""


class RecordedJudge:
    """Answers what the reward asks a model as it was answered then, each answer once; what was not asked then, ``live`` answers.

    ``asked``: what it answered already on this rollout, whose reward is computed twice.
    """

    def __init__(self, record: Record, unstored: Unstored, live: LiveJudge | None, asked: list[Any]) -> None:
        self._left = [*record.judges, *asked]
        self._unstored, self._live, self._asked = unstored, live, asked

    @property
    def servers(self) -> list[Any]:
        """None are there."""
        self._unstored.note("model server", "self.server.servers, whose settings are not stored")
        return []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        async def ask(*args: Any, **kwargs: Any) -> Any:
            request = json.loads(json.dumps({"args": args, **kwargs}, default=str))
            for call in self._left:
                if call.method == name and call.request == request and call.answer is not None:
                    self._left.remove(call)
                    return _answer(name, call.answer)
            how = "was asked something else than it was then" if self._left else "was not asked then"
            told = f"self.server.{name}, which {how}: its answer is not stored"
            if self._live is not None and name in {"chat_completion", "completion"}:
                try:
                    answer = await asyncio.to_thread(self._unstored.unwatched, self._live.answer, name, request)
                    self._asked.append(SimpleNamespace(method=name, request=request, answer=answer))
                    return _answer(name, answer)
                except Exception as error:  # noqa: BLE001 - the reward may catch it, and would pay something else then
                    told = f"self.server.{name}: {shorten(str(error).splitlines()[0])}"
            self._unstored.note("judge", told)
            raise NotStored(f"the judge {how}")

        return ask


def _answer(method: str, answer: Any) -> Any:
    from openai.types import Completion  # noqa: PLC0415 - heavy
    from openai.types.chat import ChatCompletion  # noqa: PLC0415

    return (ChatCompletion if method == "chat_completion" else Completion).model_validate(answer)
