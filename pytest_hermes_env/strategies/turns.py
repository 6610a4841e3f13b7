"""Strategy for the turns before an answer: tool calls, and the results of the tools.

A call is drawn with few choices, and turns are not nested lists, because hypothesis shrinks by removing a few choices at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hypothesis import strategies as st

from pytest_hermes_env.results.values import DEFAULT_TOOLS
from pytest_hermes_env.strategies.json_values import texts
from pytest_hermes_env.strategies.tools import NON_OBJECTS, arguments_of

CALLS_PER_TURN = 2
"""The maximum average number of calls per turn."""
UNKNOWN_TOOLS = ("bash", "python", "no_such_tool")
OPENINGS = ("turn", "turn", "join", "text", "thought")
GIVEN = ("good", "good", "bad", "raw", "raised")
FAILURES = ("not found", "timed out", "")
EXIT_CODES = (1, 2, 124, 127, -1)
RAISED = (RuntimeError("the sandbox is gone"), TimeoutError())

UNAVAILABLE = frozenset({"memory", "session_search", "delegate_task"})
"""Tools that the agent loop always refuses."""

TEXTS = texts()
REMARK = "Let me see."
"""The text or reasoning of a turn with calls: constant, so it needs no choice."""


@dataclass(frozen=True, kw_only=True)
class DrawnCall:
    """One tool call, its arguments as text, and the tool's result or exception."""

    kind: Literal["valid", "unknown", "bad"]
    tool: str
    arguments: str
    result: Mapping[str, Any] | str | Exception = ""


@dataclass(frozen=True, kw_only=True)
class DrawnTurn:
    """One message of the model."""

    thought: str | None = None
    text: str | None = None
    calls: tuple[DrawnCall, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """The kind of a call, drawn in one choice. ``given``: the kind of its result, or of its malformed arguments."""

    kind: Literal["valid", "unknown", "bad"]
    tool: str
    given: str = ""


def drawn_turns(offered: Mapping[str, dict[str, Any]]) -> Callable[[int, int], st.SearchStrategy[list[DrawnTurn]]]:
    """Return a function ``(least, most)`` to a strategy for ``least`` to ``most`` turns that call ``offered`` tools.

    Raises: parameters without a valid value → StrategyError.
    """
    arguments = {name: arguments_of(name, parameters) for name, parameters in offered.items()}
    calls = _calls(_shapes(list(offered)), arguments)

    def turns(least: int, most: int) -> st.SearchStrategy[list[DrawnTurn]]:
        flat = st.lists(calls, min_size=least, max_size=most * CALLS_PER_TURN)
        return flat.map(lambda drawn: _joined(drawn, least, most))

    return turns


def _shapes(tools: list[str]) -> list[_Shape]:
    """Return every kind of call, simplest first; kinds that differ only in the tool are adjacent."""
    shapes = [_Shape(kind="valid", tool=name, given=how) for how in GIVEN for name in tools]
    shapes += [_Shape(kind="unknown", tool=name) for name in UNKNOWN_TOOLS if name not in {*tools, *DEFAULT_TOOLS}]
    return shapes + [_Shape(kind="bad", tool=name, given=how) for how in ("cut", "no object") for name in tools]


def _calls(shapes: list[_Shape], arguments: Mapping[str, st.SearchStrategy[str]]) -> st.SearchStrategy[tuple[str, DrawnCall]]:
    """Return a strategy for (opening, call)."""

    @st.composite
    def calls(draw: st.DrawFn) -> tuple[str, DrawnCall]:
        opening = draw(st.sampled_from(OPENINGS))
        shape = draw(st.sampled_from(shapes))
        text = "{}"
        if shape.given == "no object":
            text = draw(st.sampled_from(NON_OBJECTS))
        elif shape.kind != "unknown":
            text = draw(arguments[shape.tool])
        call = DrawnCall(kind=shape.kind, tool=shape.tool, arguments=text[:-1] if shape.given == "cut" else text)
        if shape.given in GIVEN:
            call = replace(call, result=draw(_results(shape.tool, shape.given)))
        return opening, call

    return calls()


def _results(tool: str, how: str) -> st.SearchStrategy[Any]:
    """Return a strategy for results: success, failure, text that is not JSON, an exception."""
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


def _joined(drawn: list[tuple[str, DrawnCall]], least: int, most: int) -> list[DrawnTurn]:
    """Return the calls as turns: a new turn for each call that does not join the last one; omit calls beyond ``most`` turns.

    Those calls must not join a turn instead, or the shrinker could not remove earlier turns.
    """
    turns: list[DrawnTurn] = []
    for place, (opening, call) in enumerate(drawn):
        can_join = bool(turns) and len(turns) + len(drawn) - place - 1 >= least
        if opening == "join" and can_join:
            turns[-1] = replace(turns[-1], calls=(*turns[-1].calls, call))
        elif len(turns) < most:
            thought, text = (REMARK if opening == name else None for name in ("thought", "text"))
            turns.append(DrawnTurn(thought=thought, text=text, calls=(call,)))
    return turns
