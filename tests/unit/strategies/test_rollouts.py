"""Drawn results: what the loop leaves, within what was asked for, and short when they shrink."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import Phase, find, given, settings

from environments import agent_loop
from pytest_hermes_env import agent_result
from pytest_hermes_env.results import Result
from pytest_hermes_env.results.values import DEFAULT_TOOLS
from pytest_hermes_env.strategies import agent_results

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"at": {"type": "integer", "minimum": 3}}, "required": ["at"]},
    },
}
RAISED = "Tool execution failed: "

drawn = settings(max_examples=50, deadline=None, database=None)
shrunk = settings(max_examples=2000, database=None, phases=[Phase.generate, Phase.shrink])


def left(result: Result, names: set[str]) -> agent_loop.AgentResult:
    """Let the real loop hear what the model of a result said, and its tools give what they gave."""
    spoken = [message for message in result.messages if message["role"] == "assistant"]
    told = {message["tool_call_id"]: message["content"] for message in result.messages if message["role"] == "tool"}
    raised = {error.tool_result: error.error for error in result.tool_errors if error.error.startswith(RAISED)}
    refused = {error.tool_result for error in result.tool_errors if error.error.startswith(("Unknown tool", "Invalid arg"))}
    gives = [(text, raised.get(text)) for text in told.values() if text not in refused]
    failed = result.turns_used > len(spoken)
    server = Speaker(spoken)
    loop = agent_loop.HermesAgentLoop(
        server,
        [{"type": "function", "function": {"name": name}} for name in names],
        names,
        max_turns=result.turns_used if not failed else 99,
        task_id="the drawn one's twin",
    )
    first = [dict(message) for message in result.messages if message["role"] in {"system", "user"}]
    with answering(gives):
        return asyncio.run(loop.run(first))


class Speaker:
    """Says assistant messages one after the other, then fails."""

    def __init__(self, spoken: list[dict[str, Any]]) -> None:
        self.spoken = iter(spoken)

    async def chat_completion(self, **_request: Any) -> Any:
        message = next(self.spoken)
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(**{"tool_calls": None, **message}))])


@contextlib.contextmanager
def answering(gives: list[tuple[str, str | None]]) -> Iterator[None]:
    waiting = iter(gives)

    def handle(_name: str, _arguments: dict[str, Any], **_keywords: Any) -> str:
        text, error = next(waiting)
        if error is None:
            return text
        name, _, said = error.removeprefix(RAISED).partition(": ")
        raise type(name, (Exception,), {})(said)

    with mock.patch.multiple(agent_loop, handle_function_call=handle, in_sandbox=contextlib.nullcontext):
        yield


@drawn
@given(agent_results(min_turns=0))
def test_every_drawn_result_is_what_the_loop_leaves(result: Result) -> None:
    """Given the same model and tools, the real loop ends with an equal result."""
    called = {call["function"]["name"] for message in result.messages for call in message.get("tool_calls", ())}
    unknown = {error.tool_name for error in result.tool_errors if error.error.startswith("Unknown tool")}

    assert left(result, (DEFAULT_TOOLS | called) - unknown) == result


@drawn
@given(
    agent_results([LOOK], min_turns=2, max_turns=3, finishes=["turn_limit", "server_error"], start=agent_result.user("Look."))
)
def test_results_keep_to_what_was_asked_for(result: Result) -> None:
    """Turns, ends, beginning and tools are those that were named."""
    spoken = [message for message in result.messages if message["role"] == "assistant"]
    called = {call["function"]["name"] for message in spoken for call in message["tool_calls"]}
    unknown = {error.tool_name for error in result.tool_errors if error.error.startswith("Unknown tool")}

    assert 2 <= len(spoken) <= 3
    assert not result.finished_naturally
    assert result.messages[0] == {"role": "user", "content": "Look."}
    assert called - unknown <= {"look"}
    assert left(result, {"look"}) == result


def test_every_end_and_every_kind_of_call_is_drawn() -> None:
    """A hundred results hold answers, limits, failures, parallel calls, reasoning, prose, and each kind of tool error."""
    seen: set[str] = set()

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(agent_results())
    def look(result: Result) -> None:
        seen.add("answer" if result.finished_naturally else "limit" if result.messages[-1]["role"] == "tool" else "other")
        seen.update(error.error.split()[0] for error in result.tool_errors)
        seen.update("parallel" for message in result.messages if len(message.get("tool_calls", ())) > 1)
        seen.update("prose" for message in result.messages if message.get("tool_calls") and message["content"])
        seen.update("reasoning" for text in result.reasoning_per_turn if text)

    look()

    assert {"answer", "limit", "parallel", "prose", "reasoning", "Unknown", "Invalid", "Tool"} <= seen


def tools_of(result: Result) -> list[str]:
    return [call["function"]["name"] for message in result.messages for call in message.get("tool_calls", ())]


PLAIN_RESULT = "returns({'output': '', 'exit_code': 0, 'error': None})"
SMALLEST: dict[str, tuple[Callable[[Result], bool], set[str]]] = {
    "any": (lambda result: True, {"agent_result.say('')"}),
    "an answer with a text": (lambda result: "42" in result.messages[-1]["content"], {"agent_result.say('42')"}),
    "an answer after a call of terminal": (
        lambda result: "terminal" in tools_of(result) and result.finished_naturally and not result.tool_errors,
        {f"agent_result.call('terminal', command='').{PLAIN_RESULT}.say('')"},
    ),
    "a tool that raised": (
        lambda result: any(RAISED in error.error for error in result.tool_errors),
        {
            f"agent_result.call('terminal', command='').raises(RuntimeError('the sandbox is gone')){end}"
            for end in (".say('')", ".hit_turn_limit()")
        },
    ),
    "a tool error": (
        lambda result: bool(result.tool_errors),
        {
            f"agent_result.{call}{end}"
            for call in (
                "unknown_tool('bash')",
                "bad_arguments('terminal', 'null')",
                "call('terminal', command='').raises(RuntimeError('the sandbox is gone'))",
            )
            for end in (".say('')", ".hit_turn_limit()", ".server_error()")
        },
    ),
    "two calls in one turn": (
        lambda result: any(len(message.get("tool_calls", ())) > 1 for message in result.messages),
        {
            f"agent_result.{calls}{end}"
            for calls in (
                f"call('terminal', command='').call('terminal', command='').{PLAIN_RESULT}.{PLAIN_RESULT}",
                f"call('terminal', command='').unknown_tool('bash').{PLAIN_RESULT}",
                f"unknown_tool('bash').also().call('terminal', command='').{PLAIN_RESULT}",
                "unknown_tool('bash').also().unknown_tool('bash')",
            )
            for end in (".say('')", ".hit_turn_limit()", ".server_error()")
        },
    ),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", SMALLEST)
def test_results_shrink_to_what_can_be_read(name: str, seed: int) -> None:
    """Whatever is looked for, what is found has nothing in it that is not needed."""
    condition, smallest = SMALLEST[name]

    found = find(agent_results(), condition, settings=shrunk, random=random.Random(seed))

    assert repr(found) in smallest


def test_tools_are_named_where_the_model_is_told_them() -> None:
    """The expression names the tools only in results with an unknown tool."""

    def shown(condition: Callable[[Result], bool]) -> str:
        return repr(find(agent_results([LOOK], finishes=["answer"]), condition, settings=shrunk, random=random.Random(0)))

    assert shown(lambda result: "look" in tools_of(result) and not result.tool_errors) == (
        "agent_result.call('look', at=3).returns({'success': True, 'output': ''}).say('')"
    )
    assert shown(lambda result: "bash" in tools_of(result)) == "agent_result.offering('look').unknown_tool('bash').say('')"
