"""The steps of a scripted turn, and `Turn`. Standard library only.

A step is a value that checks itself: `say`, `think`, `call`, `call_raw`, `fail`, `hang`, `garbage`, `empty_choices` and
`sampled`. A turn consists of one or more steps:
``turn(think("hm"), call("a"), call("b"), say("both at once"))``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias, TypeVar, get_args

from pytest_hermes_env.errors import ScriptError, shorten, with_type
from pytest_hermes_env.faults.plan import SCRIPTED_DELAY, SCRIPTED_STATUS, PlannedFault

Logprobs: TypeAlias = Literal["all", "short", "null", "missing"]
T = TypeVar("T")
CLIENT_ERROR = 400
LAST_ERROR = 599
DESCRIPTION_LIMIT = 80
REPEATED = frozenset({"call", SCRIPTED_DELAY})
"""Kinds of steps of which a turn may have several."""


@dataclass(frozen=True)
class _Text:
    text: str

    def __post_init__(self) -> None:
        _check_text(type(self).__name__.lower(), self.text)

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()} {shorten(repr(self.text), DESCRIPTION_LIMIT)}"


class Say(_Text):
    """The step that answers with ``text``."""


class Think(_Text):
    """The step that reasons ``text`` before the answer; it is sent as ``reasoning_content``."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One tool call. ``arguments_text`` is sent as it is.

    ``names`` are the argument names to check against the offered schema; None if the text is raw and not checked.
    """

    tool: str
    arguments_text: str
    names: tuple[str, ...] | None = None
    is_offered: bool = True

    def __str__(self) -> str:
        if self.names is None:
            inner = repr(self.arguments_text)
        else:
            inner = ", ".join(f"{name}={value!r}" for name, value in json.loads(self.arguments_text).items())
        return f"call {self.tool}({shorten(inner, DESCRIPTION_LIMIT)})"


@dataclass(frozen=True)
class Garbage:
    """The step that answers with status 200 and this raw body, as broken proxies do."""

    body: str

    def __post_init__(self) -> None:
        _check_text("garbage", self.body)

    def __str__(self) -> str:
        return f"garbage {shorten(repr(self.body), DESCRIPTION_LIMIT)}"


@dataclass(frozen=True)
class EmptyChoices:
    """The step that answers with a valid completion without choices, as overloaded providers do."""

    def __str__(self) -> str:
        return "empty choices"


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """The step that controls how the turn's tokens are sampled.

    ``end``: whether the answer ends with the end-of-turn token; without it the turn still stops, as at a stop string.
    ``drift``: how many tokens are sampled as two (True means 1): the text is the same, but encoding it returns other ids.
    ``max_tokens``: the answer is truncated to this length and finishes with ``length``, as at the request's own limit.
    ``broken_utf8``: the text ends within a multi-byte character.
    ``wrong_id``: the answer ends with an id outside the vocabulary.
    ``logprobs``: ``all``; ``short``, one fewer than tokens; ``null``, without numbers; ``missing``, none.

    Raises: any other value → ScriptError.
    """

    end: bool = True
    drift: int = 0
    max_tokens: int | None = None
    broken_utf8: bool = False
    wrong_id: bool = False
    logprobs: Logprobs = "all"

    def __post_init__(self) -> None:
        for name in ("end", "broken_utf8", "wrong_id"):
            if not isinstance(value := getattr(self, name), bool):
                raise ScriptError(f"sampled({name}=...) takes True or False; got {with_type(value)}.")
        drift, limit, logprobs = self.drift, self.max_tokens, self.logprobs
        if not isinstance(drift, int) or drift < 0:
            raise ScriptError(f"sampled(drift=...) takes an integer from 0, or True for one token; got {with_type(drift)}.")
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise ScriptError(f"sampled(max_tokens=...) takes an integer from 1, or None for no limit; got {with_type(limit)}.")
        if logprobs not in get_args(Logprobs):
            raise ScriptError(f"sampled(logprobs=...) takes one of {', '.join(get_args(Logprobs))}; got {with_type(logprobs)}.")
        object.__setattr__(self, "drift", int(drift))

    def __str__(self) -> str:
        changed = (one.name for one in fields(self) if getattr(self, one.name) != one.default)
        return f"sampled ({', '.join(f'{name}={getattr(self, name)!r}' for name in changed) or 'default'})"


say = Say
think = Think
garbage = Garbage
empty_choices = EmptyChoices
sampled = Sampled
DEFAULT_SAMPLING = Sampled()

Step: TypeAlias = Say | Think | Call | PlannedFault | Garbage | EmptyChoices | Sampled
STEP_TYPES = (Say, Think, Call, PlannedFault, Garbage, EmptyChoices, Sampled)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The model's answer to one request."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return " + ".join(str(step) for step in self.steps)

    def only(self, kind: type[T]) -> T | None:
        """Return the step of that kind, or None. For calls, of which there can be several, see `every`."""
        return next((step for step in self.steps if isinstance(step, kind)), None)

    def every(self, kind: type[T]) -> tuple[T, ...]:
        """Return all steps of that kind, in order."""
        return tuple(step for step in self.steps if isinstance(step, kind))

    @property
    def failure(self) -> PlannedFault | None:
        """The step made by `fail`, or None."""
        return next((fault for fault in self.every(PlannedFault) if fault.kind == SCRIPTED_STATUS), None)

    @property
    def delay_s(self) -> float:
        """The sum of all `hang` steps, in seconds."""
        return sum(fault.seconds for fault in self.every(PlannedFault) if fault.kind == SCRIPTED_DELAY)

    @property
    def replaces_answer(self) -> bool:
        """Whether the turn is something else than an answer of a model: it fails at least once, is raw text, or has no choices."""
        return self.failure is not None or bool(self.every(Garbage) or self.every(EmptyChoices))


TurnLike: TypeAlias = Turn | Step | str | Sequence[Step | str]


def fail(status: int, message: str = "scripted failure", *, times: int | None = None) -> PlannedFault:
    """Return the step that answers with HTTP ``status``. ``times``: how many attempts of one request fail; None means all.

    A client that retries sends the same messages, so the same turn fails again. With ``times=2`` the first two attempts of a
    request fail and the third returns the rest of the turn: ``turn(fail(500, times=2), say("ok"))``. The openai client's header
    ``x-stainless-retry-count`` counts the attempts; without it, as in a rollout that the layer tries again, each request for the turn is one.
    """
    if not isinstance(status, int) or isinstance(status, bool) or not CLIENT_ERROR <= status <= LAST_ERROR:
        raise ScriptError(f"fail() takes an HTTP error status from 400 to 599; got {with_type(status)}.")
    if times is not None and (not isinstance(times, int) or isinstance(times, bool) or times < 1):
        raise ScriptError(f"fail(times=...) takes an integer from 1, or None for always; got {with_type(times)}.")
    _check_text("fail", message)
    return PlannedFault(place="model", kind=SCRIPTED_STATUS, status=status, message=message, times=times)


def hang(seconds: float) -> PlannedFault:
    """Return the step that delays the rest of the turn; without other steps the answer is empty text. Units: seconds."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < float("inf"):
        raise ScriptError(f"hang() takes a finite number of seconds from 0; got {with_type(seconds)}.")
    return PlannedFault(place="model", kind=SCRIPTED_DELAY, seconds=seconds)


def call(tool: str, /, **arguments: object) -> Call:
    """Return the step that calls ``tool``. The request must offer the tool, and its schema must have the arguments.

    Raises: arguments that JSON cannot represent → ScriptError.
    """
    _tool_name("call", tool)
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ScriptError(
            f"the arguments of call({tool!r}, ...) cannot be written as JSON: {exc}.\n"
            f"  seen      {shorten(arguments)}\n"
            "  fix       use strings, numbers, booleans, None, lists and dicts, or call_raw() for text that is not JSON"
        ) from exc
    return Call(tool=tool, arguments_text=text, names=tuple(arguments))


def call_raw(tool: str, arguments_text: str) -> Call:
    """Return the step that calls ``tool`` with exactly this text as arguments, for example malformed JSON."""
    _tool_name("call_raw", tool)
    _check_text("call_raw", arguments_text)
    return Call(tool=tool, arguments_text=arguments_text)


def unoffered(step: Call) -> Call:
    """Return the call, allowed to name a tool or arguments that the request does not offer."""
    if not isinstance(step, Call):
        raise ScriptError(f"unoffered() takes a call, such as unoffered(call('nope')); got {with_type(step)}.")
    return replace(step, is_offered=False)


def turn(*steps: Step | str) -> Turn:
    """Return one turn made of all the steps. A plain string means `say`.

    Raises: no steps, not a step, two texts, or steps that exclude each other → ScriptError.
    """
    if not steps:
        raise ScriptError("a turn needs at least one step, such as say('done').")
    made = Turn(steps=tuple(_step(step) for step in steps))
    kinds = [step.kind if isinstance(step, PlannedFault) else type(step).__name__.lower() for step in made.steps]
    for kind in dict.fromkeys(kinds):
        if kind not in REPEATED and kinds.count(kind) > 1:
            raise ScriptError(f"a turn has at most one {kind} step; got {made}.")
    failure = made.failure
    whole = [
        step for step in made.steps if isinstance(step, Garbage | EmptyChoices) or (step is failure and step.times is None)
    ]
    others = [step for step, kind in zip(made.steps, kinds, strict=True) if step not in whole and kind != SCRIPTED_DELAY]
    if whole and (others or len(whole) > 1):
        raise ScriptError(
            f"{whole[0]} is a complete answer, so only hang() can be combined with it; got {made}.\n"
            "  fix       put the other steps into a separate turn; for a failure that a retry overcomes, use fail(500, times=1)"
        )
    return made


def as_turn(value: TurnLike) -> Turn:
    """Return the `Turn` for a string, a step, a list or tuple of steps, or a turn.

    Raises: anything else → ScriptError.
    """
    if isinstance(value, Turn):
        return value
    if isinstance(value, list | tuple):
        return turn(*value)
    return turn(value)  # type: ignore[arg-type]  # `turn` rejects what is neither step nor text


def _step(value: Step | str) -> Step:
    if isinstance(value, str):
        return say(value)
    if isinstance(value, STEP_TYPES):
        return value
    raise ScriptError(
        f"a turn is made of steps; got {with_type(value)}.\n"
        "  fix       use say(text), think(text), call(tool, ...), fail(status), hang(seconds), garbage(body), "
        "or a list of them for one turn"
    )


def _check_text(step: str, value: object) -> None:
    if not isinstance(value, str):
        raise ScriptError(f"{step}() takes a string; got {with_type(value)}.")


def _tool_name(step: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ScriptError(f"the first argument of {step}() must be the name of a tool; got {with_type(value)}.")
