"""Asks a model server what it is, and which logprobs it returns; the caller sends the requests, in a thread or in an event loop.

Place in the flow: `environments.tokens.server_check` drives `questions` before ``serve``, `pytest_hermes_env.live.token_check` before tests.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from hermes_env_shared.logprob_check import QUESTION, QUESTIONS, TOPS, Finding, judged
from hermes_env_shared.token_servers import BadAnswer, Completion, Wire, message_of, root_of, wires_to_try

Asked = tuple[str, str, Any]
"""(method, address, JSON or None) of a request."""
Answered = tuple[int, Any]
"""(status, JSON or None) of its answer."""
SHOWN_MODELS = 8


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a server is: its kind, its version if it says so, and its logprobs."""

    wire: Wire
    version: str
    finding: Finding

    def __str__(self) -> str:
        """Return the line for the user, without the address."""
        return f"{self.wire.name}{self.version and f' {self.version}'}, {self.wire.path}; {self.finding}"


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
        answers: list[list[Completion]] = []
        try:
            for question in QUESTIONS:
                for top in TOPS:
                    status, body = yield "POST", wire.url(base_url), wire.body(model, list(QUESTION), question, top)
                    if status != HTTPStatus.BAD_REQUEST:  # which a server with fewer logprobs answers
                        break
                statuses.add(status)
                answers.append(_read(wire, status, body))
            finding = judged(*answers)
        except BadAnswer as error:
            seen.append(f"POST {wire.path} as of {wire.name}: {error}")
        else:
            told = version.get("version") if isinstance(version, dict) else ""
            return Identity(wire=wire, version=told if isinstance(told, str) else "", finding=finding)
    _, listed = yield "GET", f"{root}/v1/models", None
    rows = listed.get("data") if isinstance(listed, dict) else None
    models = [str(row["id"]) for row in rows or [] if isinstance(row, dict) and "id" in row][:SHOWN_MODELS]
    return Unusable(seen=seen, refuses_key=bool(statuses & {401, 403}), models=models)


def _read(wire: Wire, status: int, body: Any) -> list[Completion]:
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
        if (
            one.prompt is not None
            and one.prompt != len(QUESTION)
            and (isinstance(one.prompt, int) or list(one.prompt) != [*QUESTION])
        ):
            raise BadAnswer("an answer to another prompt than it was sent")
    return read
