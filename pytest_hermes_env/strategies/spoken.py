"""Strategy of what a model says before its answer: turns with tool calls, and what the tools give.

Every call is drawn with as few choices as possible, and turns are no lists of their own: hypothesis removes a few choices at a
time when it shrinks, so that only what costs few choices disappears from what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hypothesis import strategies as st

from pytest_hermes_env.results.values import DEFAULT_TOOLS
from pytest_hermes_env.strategies.texts import texts
from pytest_hermes_env.strategies.tools import NO_OBJECTS, arguments_of

__all__ = ["SpokenCall", "SpokenTurn", "spoken_turns"]

CALLS_PER_TURN = 2
"""How many calls a turn has on average, at most."""
STRANGERS = ("bash", "python", "no_such_tool")
OPENINGS = ("turn", "turn", "join", "text", "thought")
GIVEN = ("good", "good", "bad", "raw", "raised")
FAILURES = ("not found", "timed out", "")
EXIT_CODES = (1, 2, 124, 127, -1)
RAISED = (RuntimeError("the sandbox is gone"), TimeoutError())

UNAVAILABLE = frozenset({"memory", "session_search", "delegate_task"})
"""Tools that the agent loop answers itself, always with the same refusal."""

TEXTS = texts()
REMARK = "Let me see."
"""What the model says beside a call, or thinks before it: always the same, which costs no choice."""


@dataclass(frozen=True, kw_only=True)
class SpokenCall:
    """One tool call, its arguments as text, and what the tool gives: a result or an exception."""

    kind: Literal["valid", "unknown", "bad"]
    tool: str
    arguments: str
    gives: Mapping[str, Any] | str | Exception = ""


@dataclass(frozen=True, kw_only=True)
class SpokenTurn:
    """One message of the model."""

    thought: str | None = None
    text: str | None = None
    calls: tuple[SpokenCall, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """What kind of call is drawn, in one choice. ``given`` is how its tool answers, or why its arguments cannot be read."""

    kind: Literal["valid", "unknown", "bad"]
    tool: str
    given: str = ""


def spoken_turns(
    strategy: str, offered: Mapping[str, dict[str, Any]], *, results: bool = True, mistakes: bool = True
) -> Callable[[int, int], st.SearchStrategy[list[SpokenTurn]]]:
    """Return a function ``(least, most)`` that gives turns, between ``least`` and ``most`` of them, which call ``offered`` tools.

    Without ``results`` the tools give nothing; without ``mistakes`` every call is of an offered tool with arguments that fit.

    Raises: parameters that nothing fits → StrategyError, in the name of ``strategy``.
    """
    arguments = {name: arguments_of(strategy, name, parameters) for name, parameters in offered.items()}
    shapes = _shapes(list(offered), GIVEN if results else ("",), mistakes=mistakes)
    calls = _calls(shapes, arguments)

    def turns(least: int, most: int) -> st.SearchStrategy[list[SpokenTurn]]:
        flat = st.lists(calls, min_size=least, max_size=most * CALLS_PER_TURN)
        return flat.map(lambda drawn: _joined(drawn, least, most))

    return turns


def _shapes(tools: list[str], given: tuple[str, ...], *, mistakes: bool) -> list[_Shape]:
    """Return every kind of call, the plainest first, and kinds that differ by their tool alone side by side."""
    shapes = [_Shape(kind="valid", tool=name, given=how) for how in given for name in tools]
    if mistakes:
        strangers = [name for name in STRANGERS if name not in {*tools, *DEFAULT_TOOLS}]
        shapes += [_Shape(kind="unknown", tool=name) for name in strangers]
        shapes += [_Shape(kind="bad", tool=name, given=how) for how in ("cut", "no object") for name in tools]
    return shapes


def _calls(shapes: list[_Shape], arguments: Mapping[str, st.SearchStrategy[str]]) -> st.SearchStrategy[tuple[str, SpokenCall]]:
    """Return (opening, call)."""

    @st.composite
    def calls(draw: st.DrawFn) -> tuple[str, SpokenCall]:
        opening = draw(st.sampled_from(OPENINGS))
        shape = draw(st.sampled_from(shapes))
        text = "{}"
        if shape.given == "no object":
            text = draw(st.sampled_from(NO_OBJECTS))
        elif shape.kind != "unknown":
            text = draw(arguments[shape.tool])
        call = SpokenCall(kind=shape.kind, tool=shape.tool, arguments=text[:-1] if shape.given == "cut" else text)
        if shape.given in GIVEN:
            call = replace(call, gives=draw(_results(shape.tool, shape.given)))
        return opening, call

    return calls()


def _results(tool: str, how: str) -> st.SearchStrategy[Any]:
    """Return what a tool can give: a plain result, a failure, text that is no JSON, an exception."""
    if tool in UNAVAILABLE:
        return st.just({"error": f"{tool} is not available in RL environments."})
    if how == "raised":
        return st.sampled_from(RAISED)
    if how == "raw":
        return TEXTS
    if how == "bad" and tool == "terminal":
        return st.builds(
            lambda code, error: {"output": "", "exit_code": code, "error": error},
            st.sampled_from(EXIT_CODES),
            st.sampled_from((None, *FAILURES)),
        )
    if how == "bad":
        return st.sampled_from(FAILURES).map(lambda error: {"error": error})
    if tool == "terminal":
        return TEXTS.map(lambda output: {"output": output, "exit_code": 0, "error": None})
    if tool == "read_file":
        return TEXTS.map(lambda text: {"content": f"1|{text}", "total_lines": 1, "file_size": len(text.encode())})
    return TEXTS.map(lambda text: {"success": True, "output": text})


def _joined(drawn: list[tuple[str, SpokenCall]], least: int, most: int) -> list[SpokenTurn]:
    """Return the calls as turns: one of its own for each call that does not join; calls beyond ``most`` turns are left out.

    Such a call does not join instead: it would keep the turns before it from being removed by the shrinker.
    """
    turns: list[SpokenTurn] = []
    for place, (opening, call) in enumerate(drawn):
        can_join = bool(turns) and len(turns) + len(drawn) - place - 1 >= least
        if opening == "join" and can_join:
            turns[-1] = replace(turns[-1], calls=(*turns[-1].calls, call))
        elif len(turns) < most:
            thought, text = (REMARK if opening == name else None for name in ("thought", "text"))
            turns.append(SpokenTurn(thought=thought, text=text, calls=(call,)))
    return turns
