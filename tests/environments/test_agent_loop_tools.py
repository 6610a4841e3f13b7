"""How the agent loop runs tools: arguments, refusals, errors, budgets."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from environments.agent_loop import AgentResult, HermesAgentLoop, ToolError
from environments.sandbox.isolation import close_sandbox


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What reached hermes; it answers with the arguments."""
    calls: list[dict[str, Any]] = []

    def handle(name: str, arguments: dict[str, Any], **keywords: Any) -> str:
        calls.append({"name": name, "arguments": arguments, **keywords})
        return json.dumps({"echo": arguments})

    monkeypatch.setattr("environments.agent_loop.handle_function_call", handle)
    return calls


def run(fake: Any, *answers: Any, tools: tuple[str, ...] = ("look",), prompt: str = "do it", **settings: Any) -> AgentResult:
    settings = {"task_id": "loop-tools", **settings}
    server = fake.server(*answers, fake.completion("done"))
    loop = HermesAgentLoop(server, [fake.schema(name) for name in tools], set(tools), **settings)
    try:
        return asyncio.run(loop.run([{"role": "user", "content": prompt}]))
    finally:
        close_sandbox(loop.task_id)


def tool_results(result: AgentResult) -> list[Any]:
    return [json.loads(message["content"]) for message in result.messages if message["role"] == "tool"]


def test_call_runs_in_hermes_with_the_rollouts_task(fake, ran):
    """A tool runs with its arguments, the rollout's task id and the user's task."""
    result = run(fake, fake.completion(None, fake.call("look", {"at": "sky"})))

    assert ran == [{"name": "look", "arguments": {"at": "sky"}, "task_id": "loop-tools", "user_task": "do it"}]
    assert result.messages[1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "name": "look", "content": '{"echo": {"at": "sky"}}'},
        {"role": "assistant", "content": "done"},
    ]
    assert result.tool_errors == []


def test_dict_calls_of_token_mode_read_like_objects(fake, ran):
    """Tool calls that arrive as dicts, with dict arguments, end in the same history of dicts with text."""
    as_dict = {"id": "c", "type": "function", "function": {"name": "look", "arguments": {"at": "sky"}}}

    result = run(fake, fake.completion(None, as_dict))

    assert ran[0]["arguments"] == {"at": "sky"}
    assert result.messages[1]["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}
    ]


def test_user_task_is_the_first_user_message_cut_at_500(fake, ran):
    """Tools get the first 500 characters of the task."""
    run(fake, fake.completion(None, fake.call("look")), prompt="x" * 600)

    assert ran[0]["user_task"] == "x" * 500


def test_execute_code_is_told_its_own_groups_tools(fake, ran):
    """hermes would otherwise take the tools of whichever group resolved its own last."""
    run(fake, fake.completion(None, fake.call("execute_code", {"code": "1"})), tools=("execute_code", "look"))

    assert ran[0]["enabled_tools"] == ["execute_code", "look"]


def test_calls_without_an_id_get_one(fake, ran):
    """The tool message always names the call that it answers."""
    call = SimpleNamespace(id=None, function=SimpleNamespace(name="look", arguments=""))

    result = run(fake, fake.completion(None, call))

    assert result.messages[1]["tool_calls"][0]["id"] == result.messages[2]["tool_call_id"]
    assert result.messages[2]["tool_call_id"].startswith("call_")


def test_unknown_tool_is_told_and_recorded_and_does_not_run(fake, ran):
    """The model learns which tools there are; nothing runs."""
    result = run(fake, fake.completion(None, fake.call("nope", {"a": 1})), tools=("look", "hear"))

    text = json.dumps({"error": "Unknown tool 'nope'. Available tools: ['hear', 'look']"})
    assert ran == []
    assert result.messages[2] == {"role": "tool", "tool_call_id": "call_1", "name": "nope", "content": text}
    assert result.tool_errors == [
        ToolError(turn=1, tool_name="nope", arguments='{"a": 1}', error="Unknown tool 'nope'", tool_result=text)
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"a": ', "Expecting value"),
        ("null", "got null"),
        ("[1]", "got a list"),
        ("7", "got a number"),
        ('"text"', "got a string"),
        ("true", "got a boolean"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_arguments_that_are_no_object_do_not_run(fake, ran, arguments, reason):
    """What is not a JSON object is reported to the model and recorded; nothing runs, and the rollout goes on."""
    result = run(fake, fake.completion(None, fake.call("look", arguments)))

    error = result.tool_errors[0]
    assert ran == []
    assert (error.turn, error.tool_name, error.arguments) == (1, "look", arguments)
    assert error.error.startswith("Invalid arguments for look: ")
    assert reason in error.error
    assert error.error in tool_results(result)[0]["error"]
    assert result.finished_naturally


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_empty_arguments_mean_none(fake, ran, arguments):
    """An empty text is a call without arguments, not an error."""
    result = run(fake, fake.completion(None, fake.call("look", arguments)))

    assert ran[0]["arguments"] == {}
    assert result.tool_errors == []


def test_todo_list_belongs_to_its_loop(fake, ran):
    """todo is served by the loop: what one rollout writes, another does not see."""
    todos = [{"id": "1", "content": "look", "status": "pending"}]
    write, read = fake.call("todo", {"todos": todos}), fake.call("todo", "", "call_2")

    first = run(fake, fake.completion(None, write, read), tools=("todo",))
    second = run(fake, fake.completion(None, read), tools=("todo",))

    assert ran == []
    assert [answer["todos"] for answer in tool_results(first)] == [todos, todos]
    assert tool_results(second)[0]["todos"] == []


@pytest.mark.parametrize("name", ["memory", "session_search", "delegate_task"])
def test_tools_that_need_a_real_agent_are_not_available(fake, ran, name):
    """Tools that hermes leaves to the agent say that they are not available, and do not reach hermes."""
    result = run(fake, fake.completion(None, fake.call(name)), tools=(name,))

    assert ran == []
    assert tool_results(result) == [{"error": f"{name} is not available in RL environments."}]


@pytest.mark.parametrize("failure", [RuntimeError("boom"), ValueError("bad value"), KeyError("k"), OSError("disk")])
def test_exception_in_a_tool_is_told_and_recorded(fake, monkeypatch, failure):
    """A tool that raises becomes an error of its own kind; the rollout goes on."""

    def handle(*_arguments: Any, **_keywords: Any) -> str:
        raise failure

    monkeypatch.setattr("environments.agent_loop.handle_function_call", handle)
    result = run(fake, fake.completion(None, fake.call("look")))

    text = f"Tool execution failed: {type(failure).__name__}: {failure}"
    assert tool_results(result) == [{"error": text}]
    assert result.tool_errors == [
        ToolError(
            turn=1, tool_name="look", arguments="{}", error=text, tool_result=json.dumps({"error": text}, ensure_ascii=False)
        )
    ]
    assert result.finished_naturally


@pytest.mark.parametrize(
    ("answer", "errors"),
    [
        ({"error": "no sandbox", "exit_code": -1}, ["no sandbox"]),
        ({"error": "timeout", "exit_code": 124}, []),
        ({"error": None, "exit_code": -1}, []),
        ({"error": "[Errno 28] No space left on device"}, ["[Errno 28] No space left on device"]),
        ({"error": "Unknown action", "success": False}, ["Unknown action"]),
        ({"error": "odd", "success": True}, []),
        ({"error": "not found", "similar_files": []}, []),
        ({"error": "[TOOL_ERROR] Tool execution failed: OSError: disk"}, ["[TOOL_ERROR] Tool execution failed: OSError: disk"]),
        ({"error": "odd", "exit_code": "-1"}, []),
        ([1, 2], []),
        ("plain text", []),
    ],
)
def test_failed_call_is_a_tool_error(fake, monkeypatch, answer, errors):
    """hermes gives it a negative exit code, or an error alone; a command that merely failed is none."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    monkeypatch.setattr("environments.agent_loop.handle_function_call", lambda *_a, **_k: text)

    result = run(fake, fake.completion(None, fake.call("look")))

    assert [error.error for error in result.tool_errors] == errors
    assert result.messages[2]["content"] == text


def test_result_that_is_no_text_becomes_text(fake, monkeypatch):
    """A tool message holds text: images are named, other structures written as JSON."""
    parts = {"content": [{"type": "text", "text": "a picture:"}, {"type": "image_url", "image_url": {}}]}
    monkeypatch.setattr("environments.agent_loop.handle_function_call", lambda *_a, **_k: parts)

    result = run(fake, fake.completion(None, fake.call("look")))

    assert result.messages[2]["content"] == "a picture:\n[image omitted]"


def test_raw_tool_call_text_is_parsed(fake, ran):
    """A server without a tool parser leaves the call in the text; it runs all the same."""
    raw = 'I look.\n<tool_call>\n{"name": "look", "arguments": {"at": "sky"}}\n</tool_call>'

    result = run(fake, fake.completion(raw))

    assert ran[0]["arguments"] == {"at": "sky"}
    assert result.messages[1]["content"] == "I look."
    assert result.messages[1]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "sky"}'}


@pytest.mark.parametrize(
    "text",
    [
        'I <think>could <tool_call>{"name": "look", "arguments": {}}</tool_call></think> No.',
        "<tool_call>not json</tool_call>",
        "the tag <tool_call> means a call",
    ],
)
def test_text_that_only_looks_like_a_call_is_an_answer(fake, ran, text):
    """What is thought, malformed or quoted is not a call; the text stays as it is."""
    result = run(fake, fake.completion(text))

    assert ran == []
    assert result.messages[1] == {"role": "assistant", "content": text}
    assert result.finished_naturally
