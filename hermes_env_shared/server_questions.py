"""Asks a model server what it is, and which logprobs it returns; the caller sends the requests, in a thread or in an event loop.

Place in the flow: `environments.tokens.server_check` drives `questions` before ``serve``, `pytest_hermes_env.live.token_check` before tests.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from hermes_env_shared.logprob_check import PROBES, TOPS, Finding, judged
from hermes_env_shared.token_servers import BadAnswer, Completion, Wire, message_of, root_of, wires_to_try

Asked = tuple[str, str, Any]
"""(method, address, JSON or None) of a request."""
Answered = tuple[int, Any]
"""(status, JSON or None) of its answer."""
SHOWN_MODELS = 8
TOO_MANY = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR})
"""How servers with fewer logprobs refuse a number of them; 500 is Atropos' server."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a server is: its kind, its version if it says so, and its logprobs."""

    wire: Wire
    version: str
    finding: Finding

    def __str__(self) -> str:
        """Return the line for the user, without the address."""
        is_open = self.finding.mode == "unknown" and not self.finding.problem
        sure = f". To be sure, {self.wire.processed}, or let it return {TOPS[0]} logprobs for each token" if is_open else ""
        return f"{self.wire.name}{self.version and f' {self.version}'}, {self.wire.path}; {self.finding}{sure}"


@dataclass(frozen=True, kw_only=True)
class Unusable:
    """Why a server returns no exact tokens: ``seen`` has a line for each way to ask; ``models`` are those that it lists."""

    seen: Sequence[str]
    refuses_key: bool
    models: Sequence[str]


def questions(base_url: str, server_type: str, model: str) -> Generator[Asked, Answered, Identity | Unusable]:
    """Yield requests, take their answers, and return what the server is."""
    root = root_of(base_url)
    _, version = yield "GET", f"{root}/version", None
    _, info = yield "GET", f"{root}/model_info", None
    seen, statuses = [], set()
    for wire in wires_to_try(server_type, version, info):
        tops = list(TOPS)
        try:
            for probe in PROBES:
                answers: list[list[Completion]] = []
                for question in probe.questions:
                    status, body = yield "POST", wire.url(base_url), wire.body(model, list(probe.prompt), question, tops[0])
                    while status in TOO_MANY and len(tops) > 1:
                        del tops[0]
                        status, body = yield "POST", wire.url(base_url), wire.body(model, list(probe.prompt), question, tops[0])
                    statuses.add(status)
                    answers.append(_read(wire, status, body, probe.prompt))
                finding = judged(probe, *answers)
                if finding.problem or finding.mode != "unknown":
                    break
        except BadAnswer as error:
            seen.append(f"POST {wire.path} as of {wire.name}: {error}")
        else:
            told = version.get("version") if isinstance(version, dict) else ""
            return Identity(wire=wire, version=told if isinstance(told, str) else "", finding=finding)
    _, listed = yield "GET", f"{root}/v1/models", None
    rows = listed.get("data") if isinstance(listed, dict) else None
    models = [str(row["id"]) for row in rows or [] if isinstance(row, dict) and "id" in row][:SHOWN_MODELS]
    return Unusable(seen=seen, refuses_key=bool(statuses & {401, 403}), models=models)


def _read(wire: Wire, status: int, body: Any, prompt: Sequence[int]) -> list[Completion]:
    """Return the completions of an answer. Raises: BadAnswer, unless each has tokens with logprobs and is of the question."""
    if status >= HTTPStatus.BAD_REQUEST:
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
        raise BadAnswer(f"{status} {(message_of(body).splitlines() or [phrase])[0][:200]}")
    try:
        read = wire.read(body)
        whole = [one.tokens and len(one.logprobs) == len(one.tokens) and all(own <= 1 for own in one.logprobs) for one in read]
    except (LookupError, TypeError, AttributeError, ValueError, StopIteration) as error:
        raise (
            error
            if isinstance(error, BadAnswer)
            else BadAnswer(f"an answer that cannot be read: {type(error).__name__}: {error}")
        ) from None
    if not read or not all(whole):
        raise BadAnswer("not a logprob for each sampled token")
    for one in read:
        seen = one.prompt
        if seen is not None and (seen != len(prompt) if isinstance(seen, int) else list(seen) != list(prompt)):
            raise BadAnswer("an answer to another prompt than it was sent")
    return read
