"""Whatever the model says and the tools answer, the builder's result is the one that the real loop leaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import hypothesis.strategies as st
from hypothesis import example, given, settings

from environments import agent_loop
from pytest_hermes_env.results import Result, agent_result
from pytest_hermes_env.results.values import DEFAULT_TOOLS, DEFAULT_USER

LIMIT = 30
TOOLS = ("terminal", "read_file", "web_search", "tool-with-dash")
STRANGERS = ("bash", "", "naïve", "Terminal", "patch")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One tool call: what kind it is, its arguments as text, and what the tool does."""

    kind: str
    tool: str
    arguments: str
    gives: Any = None


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """One message of the model."""

    thought: str | None = None
    text: str | None = None
    calls: tuple[Asked, ...] = ()
    as_dicts: bool = False


CUT = ("length", "abort")
"""Finish reasons of a last reply that is incomplete."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A rollout as both sides are told it."""

    system: str | None
    users: tuple[str, ...]
    turns: tuple[Spoken, ...]
    end: str
    names_tools: bool


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.text(max_size=6), JSON, max_size=3)
TERMINAL = st.fixed_dictionaries(
    {"output": st.text(max_size=5), "exit_code": st.integers(-2, 2), "error": st.none() | st.text(max_size=5) | st.integers()}
)
CAUGHT = st.text(max_size=5).map(lambda text: {"error": f"[TOOL_ERROR] Tool execution failed: {text}"})
RESULTS = st.one_of(TERMINAL, CAUGHT, OBJECTS, st.text(max_size=8), JSON.map(json.dumps))
EXCEPTIONS = st.builds(
    lambda kind, text: kind(text),
    st.sampled_from((RuntimeError, KeyError, OSError, TimeoutError, type("Gone", (Exception,), {}))),
    st.text(max_size=5),
) | st.sampled_from((ValueError(), FileNotFoundError(2, "No such file", "/a"), ValueError("a", 1), ValueError(1.5)))
READABLE = st.one_of(
    OBJECTS.map(json.dumps),
    OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False)),
    st.sampled_from(("", " \n", "{ }")),
)
UNREADABLE = st.sampled_from(('{"a": ', "null", "[]", "7", '"text"', "true", "{'a': 1}", "[" * 100_000)) | JSON.filter(
    lambda value: not isinstance(value, dict)
).map(json.dumps)

CALLS = st.one_of(
    st.builds(Asked, kind=st.just("valid"), tool=st.sampled_from(TOOLS), arguments=READABLE, gives=RESULTS | EXCEPTIONS),
    st.builds(Asked, kind=st.just("unknown"), tool=st.sampled_from(STRANGERS), arguments=READABLE | UNREADABLE),
    st.builds(Asked, kind=st.just("bad"), tool=st.sampled_from(TOOLS), arguments=UNREADABLE),
)
THOUGHTS = st.none() | st.text(max_size=6)
TURNS = st.builds(
    Spoken,
    thought=THOUGHTS,
    text=st.none() | st.text(max_size=6),
    calls=st.lists(CALLS, min_size=1, max_size=4).map(tuple),
    as_dicts=st.booleans(),
)
ANSWERS = st.builds(
    Spoken, thought=THOUGHTS, text=st.text(max_size=8) | st.sampled_from(("<tool_call>", "<tool_call>{}</tool_call>"))
)
PLANS = st.builds(
    lambda turns, answer, end, cuts_text, **fields: Plan(
        turns=(*turns, *((answer,) if end in {"answer", *CUT} and (end == "answer" or not turns or cuts_text) else ())),
        end=end,
        **fields,
    ),
    turns=st.lists(TURNS, max_size=3).map(tuple),
    answer=ANSWERS,
    cuts_text=st.booleans(),
    end=st.sampled_from(("answer", "server_error", "no_choices", "turn_limit", "length", "abort")),
    system=st.none() | st.text(max_size=5),
    users=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    names_tools=st.booleans(),
)


def built(plan: Plan) -> Result:
    """Tell the plan to the builder."""
    result = agent_result.offering(*TOOLS) if plan.names_tools else agent_result
    if plan.system is not None:
        result = result.system(plan.system)
    for text in plan.users:
        result = result.user(text)
    for turn in plan.turns:
        result = told(result, turn, runs=plan.end not in CUT or turn is not plan.turns[-1])
    if plan.end == "answer":
        return result
    if plan.end in CUT:
        return result.cut_by_length() if plan.end == "length" else result.aborted()
    return result.hit_turn_limit() if plan.end == "turn_limit" else result.server_error()


def told(result: Result, turn: Spoken, *, runs: bool) -> Result:
    if turn.thought is not None:
        result = result.think(turn.thought)
    if turn.text is not None:
        result = result.say(turn.text)
    for number, call in enumerate(turn.calls):
        if number:
            result = result.also()
        method = {"valid": result.call, "unknown": result.unknown_tool, "bad": result.bad_arguments}[call.kind]
        result = method(call.tool, call.arguments)
    for call in turn.calls:
        if call.kind == "valid" and runs:
            result = result.raises(call.gives) if isinstance(call.gives, Exception) else result.returns(call.gives)
    return result


def left(plan: Plan) -> agent_loop.AgentResult:
    """Let the real loop run the plan."""
    system = [] if plan.system is None else [{"role": "system", "content": plan.system}]
    messages = [*system, *({"role": "user", "content": text} for text in plan.users or (DEFAULT_USER,))]
    calls = [call for turn in plan.turns for call in turn.calls]
    called = {call.tool for call in calls if call.kind != "unknown"}
    names = (
        set(TOOLS) if plan.names_tools else {*DEFAULT_TOOLS, *called} - {call.tool for call in calls if call.kind == "unknown"}
    )
    loop = agent_loop.HermesAgentLoop(
        ScriptedServer(plan),
        [{"type": "function", "function": {"name": name}} for name in sorted(names)],
        names,
        max_turns=len(plan.turns) if plan.end == "turn_limit" else LIMIT,
        task_id="the builder's twin",
    )
    with answering([call.gives for turn in plan.turns for call in turn.calls if call.kind == "valid"]):
        return asyncio.run(loop.run(messages))


class ScriptedServer:
    """Says the turns of a plan; its ids count the calls of the rollout."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.turns = iter(plan.turns)
        self.calls = 0

    async def chat_completion(self, **_request: Any) -> Any:
        turn = next(self.turns, None)
        if turn is None:
            if self.plan.end == "no_choices":
                return SimpleNamespace(choices=[])
            raise RuntimeError("overloaded")
        calls = [self.as_sent(call, turn.as_dicts) for call in turn.calls]
        message = SimpleNamespace(content=turn.text, tool_calls=calls or None, reasoning_content=turn.thought)
        is_cut = self.plan.end in CUT and turn is self.plan.turns[-1]
        reason = {"finish_reason": self.plan.end} if is_cut else {}
        return SimpleNamespace(choices=[SimpleNamespace(message=message, **reason)])

    def as_sent(self, call: Asked, as_dict: bool) -> Any:
        self.calls += 1
        function = {"name": call.tool, "arguments": call.arguments}
        if as_dict:
            return {"id": f"call_{self.calls}", "type": "function", "function": function}
        return SimpleNamespace(id=f"call_{self.calls}", type="function", function=SimpleNamespace(**function))


@contextlib.contextmanager
def answering(gives: list[Any]) -> Iterator[None]:
    """Let each tool call of the loop give the next value, or raise it."""
    waiting = iter(gives)

    def handle(_name: str, _arguments: dict[str, Any], **_keywords: Any) -> str:
        value = next(waiting)
        if isinstance(value, Exception):
            raise value
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    with mock.patch.multiple(agent_loop, handle_function_call=handle, in_sandbox=contextlib.nullcontext):
        yield


@settings(max_examples=100, deadline=None, database=None)
@example(Plan(system=None, users=(), turns=(), end="turn_limit", names_tools=False))
@example(Plan(system=None, users=(), turns=(), end="server_error", names_tools=True))
@given(PLANS)
def test_the_builder_leaves_what_the_loop_leaves(plan: Plan) -> None:
    """Both sides are told the same rollout, and give equal results, ids, errors and reasoning included."""
    assert (built(plan), built(plan).end) == (left(plan), left(plan).end)


@settings(max_examples=100, deadline=None, database=None)
@given(PLANS)
def test_the_expression_makes_the_same_result(plan: Plan) -> None:
    """What `repr` shows can be pasted, and shows itself again."""
    result = built(plan)

    again = eval(repr(result), {"agent_result": agent_result})

    assert (again, repr(again)) == (result, repr(result))
