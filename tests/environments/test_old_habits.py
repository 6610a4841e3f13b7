"""What tests of the old layer did still works."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock, patch

from environments import agent_loop, tool_context
from environments.agent_loop import (
    AgentResult,
    HermesAgentLoop,
    ToolError,
    _extract_reasoning_from_message,
    resize_tool_pool,
)
from environments.patches import apply_patches
from environments.tool_context import ToolContext, _run_tool_in_thread

SCHEMAS = [{"type": "function", "function": {"name": "terminal", "description": "", "parameters": {}}}]


def run(server: Any) -> AgentResult:
    loop = HermesAgentLoop(server=server, tool_schemas=SCHEMAS, valid_tool_names={"terminal"}, max_turns=5)
    return asyncio.run(loop.run([{"role": "user", "content": "go"}]))


def reply(message: Any) -> Any:
    return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")], id="1", model="m")


def test_handle_function_call_is_replaced_on_agent_loop():
    """patch("environments.agent_loop.handle_function_call") catches every tool call of the loop."""
    call = {"id": "c", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    server = SimpleNamespace(
        chat_completion=AsyncMock(
            side_effect=[
                reply(SimpleNamespace(content="", tool_calls=[call], role="assistant")),
                reply(SimpleNamespace(content="done", tool_calls=None, role="assistant")),
            ]
        )
    )

    with patch("environments.agent_loop.handle_function_call", return_value=json.dumps({"output": "ok"})) as handled:
        result = run(server)

    assert handled.call_args.args == ("terminal", {"command": "ls"})
    assert result.messages[2] == {"role": "tool", "tool_call_id": "c", "name": "terminal", "content": '{"output": "ok"}'}


def test_magic_mock_server_ends_with_its_answer():
    """A MagicMock has every attribute; only what is text or a list counts."""
    server = MagicMock()
    server.chat_completion = AsyncMock()
    server.chat_completion.return_value.choices = [MagicMock()]
    server.chat_completion.return_value.choices[0].message.content = "done"
    server.chat_completion.return_value.choices[0].message.tool_calls = None

    result = run(server)

    assert result.messages[-1] == {"role": "assistant", "content": "done"}
    assert (result.reasoning_per_turn, result.finished_naturally) == ([None], True)
    assert result.managed_state is server.get_state.return_value


def test_bare_magic_mock_message_is_an_empty_answer():
    """Nothing but mocks ends the rollout instead of running for ever."""
    server = MagicMock()
    server.chat_completion = AsyncMock(return_value=MagicMock(choices=[MagicMock()]))

    assert run(server).messages[-1] == {"role": "assistant", "content": ""}


def test_tool_executor_is_replaced(monkeypatch):
    """Tools run in whatever pool stands under the old name."""
    pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="mine")
    monkeypatch.setattr(agent_loop, "_tool_executor", pool)
    names: list[str] = []

    def handle(*_arguments: Any, **_keywords: Any) -> str:
        import threading

        names.append(threading.current_thread().name)
        return "{}"

    call = {"id": "c", "function": {"name": "terminal", "arguments": "{}"}}
    server = SimpleNamespace(
        chat_completion=AsyncMock(
            side_effect=[
                reply(SimpleNamespace(content="", tool_calls=[call])),
                reply(SimpleNamespace(content="done", tool_calls=None)),
            ]
        )
    )
    monkeypatch.setattr(agent_loop, "handle_function_call", handle)
    run(server)
    pool.shutdown()

    assert names == ["mine_0"]


def test_resize_shuts_the_old_executor_down_without_waiting(monkeypatch):
    """The old test replaces both pools with mocks."""
    old, new = MagicMock(), MagicMock()
    monkeypatch.setattr(agent_loop, "_tool_executor", old)
    monkeypatch.setattr(agent_loop.concurrent.futures, "ThreadPoolExecutor", MagicMock(return_value=new))

    resize_tool_pool(16)

    old.shutdown.assert_called_once_with(wait=False)
    assert agent_loop._tool_executor is new


def test_reasoning_is_extracted_from_a_message():
    """The helper keeps its name and its answer."""
    assert _extract_reasoning_from_message(SimpleNamespace(reasoning_content="why")) == "why"
    assert _extract_reasoning_from_message(SimpleNamespace(content="x")) is None


def test_run_tool_in_thread_works_with_and_without_a_loop():
    """Both ways reach the replaced function with the task id."""

    async def inside() -> str:
        return _run_tool_in_thread("terminal", {"command": "ls"}, "task")

    with patch("environments.tool_context.handle_function_call", return_value='{"output": 1}') as handled:
        outside = _run_tool_in_thread("terminal", {"command": "ls"}, "task")
        inner = asyncio.run(inside())

    ToolContext("task").cleanup()
    assert (outside, inner) == ('{"output": 1}', '{"output": 1}')
    assert [call.args for call in handled.call_args_list] == [("terminal", {"command": "ls"})] * 2
    assert [call.kwargs for call in handled.call_args_list] == [{"task_id": "task"}] * 2


def test_handle_function_call_is_replaced_on_tool_context(tool_answers):
    """Every method of a ToolContext goes through the replaced function."""
    made = tool_answers(lambda _name, _arguments: '{"content": "1|hi", "exit_code": 0, "output": "hi"}')
    ctx = ToolContext("task")

    assert ctx.terminal("echo hi")["output"] == "hi"
    assert ctx.read_file("a")["content"] == "hi"
    assert [name for name, _ in made] == ["terminal", "read_file"]
    ctx.cleanup()


def test_names_stay_where_they_were():
    """Modules and names that old code imports."""
    assert tool_context.ToolContext is ToolContext
    assert list(ToolError.__dataclass_fields__) == [
        "turn",
        "tool_name",
        "arguments",
        "error",
        "tool_result",
    ]
    assert (apply_patches(), apply_patches()) == (None, None)


def test_importing_the_layer_warns_of_nothing(tmp_path):
    """Also where warnings are errors, and where Python reports what hermes leaves open (from 3.13 on)."""
    environment = {**os.environ, "HERMES_HOME": str(tmp_path), "PYTHONPATH": str(Path(agent_loop.__file__).parents[1])}
    words = [sys.executable, "-W", "error::ResourceWarning", "-c", "import environments.agent_loop"]

    finished = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (finished.returncode, [line for line in finished.stderr.splitlines() if "ResourceWarning" in line]) == (0, [])
