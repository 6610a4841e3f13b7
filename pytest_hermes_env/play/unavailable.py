"""Why something did not happen in a scenario, as values. Text is made from them where it is shown."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from pytest_hermes_env.play.journal import Place
from pytest_hermes_env.play.raised import NeverEnded


class Cause(enum.Enum):
    """Why a scenario was not played. The value is the text; ``{}`` is replaced by the detail."""

    CANNOT_BUILD = "the environment could not be built: {}"
    SETUP_FAILED = "setup failed: {}"
    SETUP_NOT_ASYNC = "setup is not async: {}"
    EARLIER_FAILURE = "an earlier scenario failed: {}"
    NOTHING_TO_TRAIN = "there is nothing to train on: {}"
    NO_ITEM = "there was no training item: {}"
    CHAT_MODE = "chat mode has no sampled tokens"
    OTHER_LAYER = "the configuration has no {}"
    NO_JUDGE = "no judge was called: every request of a training group offered tools"
    NO_REAL_TOOLS = "a command line was refused: {}"
    NOT_REACHED = "the scenario ended before {}"


@dataclass(frozen=True)
class Unavailable:
    """A cause and its detail; ``str()`` is the sentence that reports show."""

    cause: Cause
    detail: str = ""
    place: Place = field(default_factory=Place)
    """The line of the environment that is the cause, where one is known."""

    def __str__(self) -> str:
        return self.cause.value.format(self.detail)


class ItemsEnd(enum.Enum):
    """Why no further training item was taken. The value is the text; ``{}`` is replaced by the number of items."""

    STUB = "get_next_item raises NotImplementedError: it is a stub, there is nothing to train on"
    NONE = "get_next_item returned only None after {} items"
    REPEATED = "the first item was returned again after {}"
    TIME = "stopped after {} items: time ran out"
    LIMIT = "stopped after {} items, without the first one being returned again"


class ErrorKind(enum.Enum):
    """Errors that rules tell apart."""

    NOT_AWAITABLE = enum.auto()
    """A plain function was awaited."""
    EVALUATE_NEEDS_ARGUMENTS = enum.auto()
    """``evaluate()`` was called without an argument that it requires."""
    NEVER_ENDED = enum.auto()
    """A call did not end in time."""
    ENDED_PROCESS = enum.auto()
    """The environment ended its process."""
    OTHER = enum.auto()


def kind_of(error: BaseException) -> ErrorKind:
    """Return the kind of an error. CPython has no classes for these, only texts of TypeError."""
    if isinstance(error, NeverEnded):
        return ErrorKind.NEVER_ENDED
    text = str(error) if isinstance(error, TypeError) else ""
    if "can't be used in 'await' expression" in text:
        return ErrorKind.NOT_AWAITABLE
    if "evaluate() missing" in text:
        return ErrorKind.EVALUATE_NEEDS_ARGUMENTS
    return ErrorKind.OTHER
