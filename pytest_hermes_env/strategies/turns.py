"""Strategy for the turns before an answer: calls of checked tools, and the results of the tools.

A call is drawn with few choices, and turns are not nested lists, because hypothesis shrinks by removing a few choices at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from pytest_hermes_env.errors import StrategyError, shorten, with_type
from pytest_hermes_env.results.values import DEFAULT_TOOLS
from pytest_hermes_env.strategies.json_values import json_values, texts, validator_of
from pytest_hermes_env.types import ToolSchema

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
NON_OBJECTS = ("null", "[]", '"text"', "7")
"""JSON that is not an object, as models sometimes write for arguments."""


def _schema(name: str, *required: str) -> ToolSchema:
    parameters: Any = {"type": "object", "properties": {key: {"type": "string"} for key in required}, "required": [*required]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


USUAL_TOOLS: tuple[ToolSchema, ...] = (
    _schema("terminal", "command"),
    _schema("read_file", "path"),
    _schema("write_file", "path", "content"),
    _schema("search_files", "pattern"),
)
"""Short schemas of common tools, with hermes' names and required arguments."""

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


def checked_tools(schemas: object) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each tool's parameters.

    Raises: not a list, an empty one, an invalid tool schema, or a duplicate name → StrategyError.
    """
    if not isinstance(schemas, list | tuple) or not schemas:
        raise StrategyError(
            f"agent_results() takes a non-empty list of tool schemas.\n"
            f"  seen      {with_type(schemas)}\n"
            "  fix       [{'type': 'function', 'function': {'name': 'look', 'parameters': {'type': 'object', 'properties': {}}}}]"
        )
    tools: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        name, parameters = _read(schema)
        if name in tools:
            raise StrategyError(f"agent_results() takes tools with different names; got two named {name!r}.")
        tools[name] = parameters
    return tools


def _read(schema: Any) -> tuple[str, dict[str, Any]]:
    from jsonschema import SchemaError  # noqa: PLC0415 - takes 100 ms

    function = schema.get("function") if isinstance(schema, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str) or not name:
        raise StrategyError(
            f"agent_results() takes tool schemas; this one has no function with a name.\n  seen      {with_type(schema)}"
        )
    parameters = function.get("parameters") or NO_PARAMETERS
    try:
        validator_of(parameters)
    except SchemaError as error:
        raise StrategyError(
            f"agent_results(): the parameters of {name!r} are not a valid JSON schema: {error.message}.\n"
            f"  seen      {shorten(repr(parameters))}"
        ) from error
    if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
        raise StrategyError(
            f"agent_results(): the parameters of {name!r} must have type object.\n  seen      {shorten(repr(parameters))}"
        )
    return name, {**parameters, "type": "object"}


def arguments_of(name: str, parameters: dict[str, Any]) -> st.SearchStrategy[str]:
    """Return a strategy for valid arguments, as JSON text. Raises: no value is valid → StrategyError."""
    values = json_values(parameters)
    try:
        values.validate()
        problem = "no value is valid" if values.is_empty else ""
    except InvalidArgument as error:
        problem = str(error)
    if problem:
        raise StrategyError(
            f"agent_results() cannot draw arguments of {name!r}: {problem}.\n  seen      {shorten(repr(parameters))}"
        )
    return values.map(lambda arguments: json.dumps(arguments, ensure_ascii=False))
