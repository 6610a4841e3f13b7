"""A strategy for AgentResults that the agent loop could return. Its arguments are checked when it is called, not when a test draws.

A call is drawn with few choices, and turns are not nested lists, because hypothesis shrinks by removing a few choices at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from pytest_hermes_env.errors import StrategyError, shorten, with_type
from pytest_hermes_env.results import Result, agent_result
from pytest_hermes_env.results.builder import history_of
from pytest_hermes_env.results.values import DEFAULT_TOOLS
from pytest_hermes_env.strategies.json_values import json_values, texts, validator_of
from pytest_hermes_env.types import ToolSchema

Finish = Literal["answer", "turn_limit", "server_error"]
FINISHES: tuple[Finish, ...] = ("answer", "turn_limit", "server_error")

ANSWERS_PER_OTHER = 4
"""How many rollouts end with an answer for each one that ends in another way."""

ANSWERS = (
    "42",
    "-1.5",
    "yes",
    "0.5",
    '{"score": 0.5}',
    "<answer>42</answer>",
    "\\boxed{42}",
    "```python\nprint(42)\n```",
    "nan",
    "x" * 2_000,
)
"""Answers in forms that rewards look for, or fail on."""

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


def agent_results(
    tools: Sequence[ToolSchema] | None = None,
    *,
    min_turns: int = 1,
    max_turns: int = 4,
    finishes: Sequence[Finish] = FINISHES,
    start: Result = agent_result,
) -> st.SearchStrategy[Any]:
    """Return a strategy for AgentResults, built with `agent_result`; their ``repr`` is the builder expression.

    ``tools``: the schemas of the tools to call (default: short ones of hermes' terminal and file tools). ``min_turns`` and
    ``max_turns`` count assistant messages. ``finishes``: the ends to draw from. ``start``: the beginning of every result, such as its
    user message.

    Raises: no tool schemas, or bounds or finishes that allow nothing → StrategyError.
    """
    offered = _checked_tools(USUAL_TOOLS if tools is None else tools)
    for name, value in (("min_turns", min_turns), ("max_turns", max_turns)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise StrategyError(f"agent_results({name}=...) takes an integer from 0; got {with_type(value)}.")
    if min_turns > max_turns:
        raise StrategyError(
            f"agent_results(min_turns={min_turns}, max_turns={max_turns}) allows nothing: min_turns is greater than max_turns."
        )
    if not isinstance(finishes, list | tuple) or not finishes or any(value not in FINISHES for value in finishes):
        raise StrategyError(
            f"agent_results(finishes=...) takes a list of values from {', '.join(map(repr, FINISHES))}.\n"
            f"  seen      {shorten(repr(finishes))}"
        )
    begun = _checked_start(start, offered)
    possible = [finish for finish in FINISHES if finish in finishes and (max_turns or finish == "server_error")]
    if not possible:
        raise StrategyError(
            "agent_results(max_turns=0) allows nothing: without a turn, a rollout can only end with 'server_error'.\n"
            f"  seen      finishes={list(finishes)!r}"
        )
    often = [finish for finish in possible for _ in range(ANSWERS_PER_OTHER if finish == "answer" else 1)]
    turns = _drawn_turns(offered)
    names_tools = tools is not None and history_of(begun).offered is None

    @st.composite
    def results(draw: st.DrawFn) -> Result:
        finish = draw(st.sampled_from(often))
        answers = finish == "answer"
        least = max(min_turns - answers, int(finish == "turn_limit"))
        result = begun
        for turn in draw(turns(least, max_turns - answers)):
            result = _with_turn(result, turn)
        if names_tools and history_of(result).called("unknown"):
            result = result.offering(*offered)
        if not answers:
            return result.hit_turn_limit() if finish == "turn_limit" else result.server_error()
        thought = draw(st.none() | texts(min_size=1, max_size=12))
        answer = draw(texts() | st.sampled_from(ANSWERS))
        return (result if thought is None else result.think(thought)).say(answer)

    return results()


def _checked_start(start: object, tools: Mapping[str, Any]) -> Result:
    history = history_of(start) if isinstance(start, Result) else None
    if not isinstance(start, Result) or history is None or history.turns or history.end or not history.is_complete:
        raise StrategyError(
            "agent_results(start=...) takes a builder without turns, such as agent_result.user('What is 6 * 7?').\n"
            f"  seen      {with_type(start)}"
        )
    if history.offered is not None and (missing := sorted(set(tools) - history.offered)):
        raise StrategyError(
            f"agent_results(start=...) does not offer {', '.join(missing)}, which the results call.\n"
            f"  seen      {shorten(repr(start))}\n"
            "  fix       pass the schemas of the offered tools: agent_results(tools)"
        )
    return start


def _with_turn(result: Result, turn: _Turn) -> Result:
    """Return the result with one more turn."""
    if turn.opening in {"thought", "text"}:
        result = (result.think if turn.opening == "thought" else result.say)(REMARK)
    for number, call in enumerate(turn.calls):
        if number:
            result = result.also()
        if call.kind == "bad":
            result = result.bad_arguments(call.tool, call.arguments)
        else:
            result = (result.call if call.kind == "valid" else result.unknown_tool)(call.tool, call.arguments)
    for call in turn.calls:
        if call.kind == "valid":
            result = result.raises(call.result) if isinstance(call.result, Exception) else result.returns(call.result)
    return result


@dataclass(frozen=True, kw_only=True)
class _Call:
    """One tool call, its arguments as text, and the tool's result or exception.

    ``given``: the kind of its result, or of its malformed arguments.
    """

    kind: Literal["valid", "unknown", "bad"]
    tool: str
    given: str = ""
    arguments: str = "{}"
    result: Mapping[str, Any] | str | Exception = ""


@dataclass(frozen=True, kw_only=True)
class _Turn:
    """One message of the model: it begins with a text or a thought, or with its calls."""

    opening: str
    calls: tuple[_Call, ...]


def _drawn_turns(offered: Mapping[str, dict[str, Any]]) -> Callable[[int, int], st.SearchStrategy[list[_Turn]]]:
    """Return a function ``(least, most)`` to a strategy for ``least`` to ``most`` turns that call ``offered`` tools.

    Raises: parameters without a valid value → StrategyError.
    """
    arguments = {name: arguments_of(name, parameters) for name, parameters in offered.items()}
    shapes = _shapes(list(offered))

    @st.composite
    def calls(draw: st.DrawFn) -> tuple[str, _Call]:
        opening = draw(st.sampled_from(OPENINGS))
        call = draw(st.sampled_from(shapes))
        if call.given == "no object":
            call = replace(call, arguments=draw(st.sampled_from(NON_OBJECTS)))
        elif call.kind != "unknown":
            text = draw(arguments[call.tool])
            call = replace(call, arguments=text[:-1] if call.given == "cut" else text)
        if call.given in GIVEN:
            call = replace(call, result=draw(_results(call.tool, call.given)))
        return opening, call

    def turns(least: int, most: int) -> st.SearchStrategy[list[_Turn]]:
        flat = st.lists(calls(), min_size=least, max_size=most * CALLS_PER_TURN)
        return flat.map(lambda drawn: _joined(drawn, least, most))

    return turns


def _shapes(tools: list[str]) -> list[_Call]:
    """Return every kind of call, simplest first; kinds that differ only in the tool are adjacent."""
    shapes = [_Call(kind="valid", tool=name, given=how) for how in GIVEN for name in tools]
    shapes += [_Call(kind="unknown", tool=name) for name in UNKNOWN_TOOLS if name not in {*tools, *DEFAULT_TOOLS}]
    return shapes + [_Call(kind="bad", tool=name, given=how) for how in ("cut", "no object") for name in tools]


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


def _joined(drawn: list[tuple[str, _Call]], least: int, most: int) -> list[_Turn]:
    """Return the calls as turns: a new turn for each call that does not join the last one; omit calls beyond ``most`` turns.

    Those calls must not join a turn instead, or the shrinker could not remove earlier turns.
    """
    turns: list[_Turn] = []
    for place, (opening, call) in enumerate(drawn):
        can_join = bool(turns) and len(turns) + len(drawn) - place - 1 >= least
        if opening == "join" and can_join:
            turns[-1] = replace(turns[-1], calls=(*turns[-1].calls, call))
        elif len(turns) < most:
            turns.append(_Turn(opening=opening, calls=(call,)))
    return turns


def _checked_tools(schemas: object) -> dict[str, dict[str, Any]]:
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
