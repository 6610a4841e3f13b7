"""What a rollout service answers, as protocol 1 has it. Fields that are not named here are ignored, so that a service may add some."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import httpx
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

PROTOCOL = 1
FAULT_OF_A_PROXY = frozenset({502, 503, 504})
"""Without an error of the service in the body: it is a proxy that does not reach it."""


class RolloutError(RuntimeError):
    """A rollout without a reward, or a request that a service refuses."""


class ServiceLost(RolloutError):
    """The service of a rollout ended or cannot be reached. The engine begins the rollout again, in a new trace."""


class Health(BaseModel):
    """``GET /health``."""

    status: Literal["ok", "draining"]
    protocol: int
    identity: dict[str, str]
    """The class, its package and a hash of its source."""
    running: int = Field(ge=0)
    waiting: int = Field(ge=0)
    concurrency: int = Field(ge=1)


class Task(BaseModel):
    """An item, with its prompts."""

    item: Any
    prompt: Any
    system_prompt: str | None


class Tasks(BaseModel):
    """``GET /tasks``."""

    tasks: list[Task]


class Rollout(BaseModel):
    """``POST /rollout``."""

    reward: FiniteFloat
    end: str
    metrics: dict[str, FiniteFloat]


Reply = TypeVar("Reply", bound=BaseModel)


def code_of(answer: httpx.Response) -> str | None:
    """Return the code of a service's error; None for anything else."""
    try:
        return str(answer.json()["error"]["code"])
    except (ValueError, LookupError, TypeError):
        return None


def read(answer: httpx.Response, kind: type[Reply]) -> Reply:
    """Return the body of a response. Raises: RolloutError with the service's error, or with what is wrong with its reply."""
    url = answer.request.url
    code = code_of(answer)
    if code is None and answer.status_code in FAULT_OF_A_PROXY:
        raise ServiceLost(f"{url}: {answer.status_code} {answer.reason_phrase}, which is not the service's own answer")
    if not answer.is_success:
        text = answer.json()["error"].get("message") if code else answer.text[:500]
        raise RolloutError(f"{code or answer.status_code}: {text or answer.reason_phrase} ({url})")
    try:
        return kind.model_validate_json(answer.content)
    except ValidationError as error:
        rows = [
            f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in error.errors(include_input=False, include_url=False)
        ]
        raise RolloutError(
            f"{url}: the reply is not one of a rollout service of protocol {PROTOCOL}: {'; '.join(rows)}"
        ) from None


def described(error: BaseException) -> str:
    """Return an error's text, and its type; a connection that breaks has no text of its own, and perhaps its cause has one."""
    text, cause = str(error), error.__cause__ or error.__context__
    while not text and cause is not None:
        text, cause = str(cause), cause.__cause__ or cause.__context__
    return f"{text or 'the connection broke'} ({type(error).__name__})"
