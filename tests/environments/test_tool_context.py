"""What a verifier may call, and what it gets back."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from environments.sandbox.nonblocking_calls import bridged
from environments.tool_context import ToolContext

place = contextvars.ContextVar("place", default="nowhere")

METHODS = [
    (lambda ctx: ctx.terminal("ls", 5), "terminal", {"command": "ls", "timeout": 5}),
    (lambda ctx: ctx.terminal("ls"), "terminal", {"command": "ls", "timeout": 180}),
    (lambda ctx: ctx.write_file("a", "b"), "write_file", {"path": "a", "content": "b"}),
    (lambda ctx: ctx.search("q", "/x"), "search_files", {"pattern": "q", "path": "/x"}),
    (lambda ctx: ctx.web_search("q"), "web_search", {"query": "q"}),
    (lambda ctx: ctx.web_extract(["u"]), "web_extract", {"urls": ["u"]}),
    (lambda ctx: ctx.browser_navigate("u"), "browser_navigate", {"url": "u"}),
    (lambda ctx: ctx.browser_snapshot(), "browser_snapshot", {}),
]


@pytest.mark.parametrize(("method", "name", "arguments"), METHODS)
def test_every_method_is_one_tool_call_of_the_rollouts_task(monkeypatch, method, name, arguments):
    """Each method calls its tool once, with the rollout's task id, and gives the tool's answer as a dict."""
    made: list[Any] = []

    def handle(*call: Any, **keywords: Any) -> str:
        made.append((call, keywords))
        return '{"answer": 1}'

    monkeypatch.setattr("environments.tool_context.handle_function_call", handle)
    ctx = ToolContext("mine")

    result = method(ctx)
    ctx.cleanup()

    assert made == [((name, arguments), {"task_id": "mine"})]
    assert result == {"answer": 1}


@pytest.mark.parametrize(("method", "name", "_arguments"), METHODS)
@pytest.mark.parametrize("text", ["Traceback: oops", '["a list"]', ""])
def test_answer_that_is_no_json_object_becomes_one(tool_answers, method, name, _arguments, text):
    """A verifier always gets a dict: with exit code -1 from the terminal, with an error from the others."""
    tool_answers(lambda _name, _arguments: text)
    ctx = ToolContext("mine")

    result = method(ctx)
    ctx.cleanup()

    assert result == ({"exit_code": -1, "output": text} if name == "terminal" else {"error": text})


def test_call_tool_gives_the_raw_text(tool_answers):
    """call_tool reaches any tool and gives what the agent would see."""
    made = tool_answers(lambda _name, _arguments: "as it is")

    assert ToolContext("mine").call_tool("anything", {"a": 1}) == "as it is"
    assert made == [("anything", {"a": 1})]
    ToolContext("mine").cleanup()


@pytest.mark.parametrize("where", ["no loop", "loop", "bridge"])
def test_tool_that_raises_runs_once_and_its_error_is_raised(tool_answers, where):
    """A RuntimeError of a tool is not taken for "no running loop", after which the tool would run again."""

    def broken(_name: str, _arguments: Any) -> str:
        raise RuntimeError("the tool's own")

    made = tool_answers(broken)
    ctx = ToolContext("mine")

    async def call() -> None:
        ctx.terminal("ls")

    with pytest.raises(RuntimeError, match="the tool's own"):
        ctx.terminal("ls") if where == "no loop" else asyncio.run(call() if where == "loop" else bridged(call)())
    ctx.cleanup()

    assert len(made) == 1


def test_other_tasks_go_on_while_a_reward_runs_a_command(tool_answers):
    """The tool returns only after another task of the same loop has run: stalling the loop would be a deadlock."""
    progress = threading.Event()
    tool_answers(lambda _name, _arguments: json.dumps({"went on": progress.wait(10)}))
    ctx = ToolContext("mine")

    @bridged
    async def reward() -> Any:
        return ctx.terminal("make test")

    async def other() -> None:
        progress.set()

    async def scenario() -> Any:
        result, _ = await asyncio.gather(reward(), other())
        return result

    result = asyncio.run(scenario())
    ctx.cleanup()

    assert result == {"went on": True}


def test_64_rewards_run_their_commands_at_the_same_time(tool_answers):
    """All 64 commands run at once: the last one to start lets them all end."""
    together = threading.Barrier(64)
    tool_answers(lambda _name, _arguments: json.dumps({"exit_code": together.wait(30) * 0}))

    @bridged
    async def reward(ctx: ToolContext) -> int:
        return ctx.terminal("pytest")["exit_code"]

    async def scenario() -> list[int]:
        contexts = [ToolContext(f"mine-{number}") for number in range(64)]
        codes = await asyncio.gather(*(reward(ctx) for ctx in contexts))
        for ctx in contexts:
            ctx.cleanup()
        return codes

    assert asyncio.run(scenario()) == [0] * 64


def test_cancelled_reward_kills_its_command(tmp_path, sandbox):
    """A command that a cancelled reward runs is stopped, and what stands after it never happens."""
    began, late = tmp_path / "began", tmp_path / "late"

    @bridged
    async def reward() -> None:
        sandbox.terminal(f"touch {began}; sleep 30; touch {late}")

    async def scenario() -> bool:
        task = asyncio.ensure_future(reward())
        while not began.exists():
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(scenario())
    assert not late.exists()


def test_command_that_takes_too_long_ends_with_124(sandbox):
    """The timeout is the command's, in seconds."""
    result = sandbox.terminal("echo begun; sleep 30", timeout=1)

    assert result["exit_code"] == 124
    assert "timed out" in str(result).lower()


def test_all_calls_share_one_session(sandbox):
    """Files, working directory and variables of the agent are the verifier's."""
    sandbox.terminal("mkdir sub && cd sub && export COLOUR=red")
    sandbox.write_file("a.txt", "written\n")

    assert sandbox.terminal("cat a.txt; echo $COLOUR; basename $PWD")["output"].split() == ["written", "red", "sub"]


def test_long_timeout_takes_a_background_process(tool_answers):
    """Beyond hermes' foreground limit the command is started in the background and waited for; its whole output comes."""

    def answer(name: str, arguments: dict[str, Any]) -> str:
        if name == "terminal":
            return json.dumps({"session_id": "p1", "exit_code": 0})
        if arguments["action"] == "log":
            return json.dumps({"output": "bash: no job control in this shell\nhermes-command-begins\nall of the output"})
        state = {"status": "timeout"} if len(made) < 4 else {"status": "exited", "exit_code": 3, "output": "the output"}
        return json.dumps(state)

    made = tool_answers(answer)
    ctx = ToolContext("mine")

    result = ctx.terminal("make world", timeout=5000)
    ctx.cleanup()

    assert made[0] == ("terminal", {"command": "echo hermes-command-begins; (\nmake world\n)", "background": True})
    assert [arguments["action"] for name, arguments in made[1:]] == ["wait", "wait", "wait", "log"]
    assert 4000 < made[1][1]["timeout"] <= 5000
    assert (result["exit_code"], result["output"]) == (3, "all of the output")


def test_long_command_is_killed_at_its_timeout(tool_answers, monkeypatch):
    """When the time is over the process is killed and the answer is the usual one."""
    clock = iter([0.0, 0.0, 700.0])
    monkeypatch.setattr("environments.tool_context.time", SimpleNamespace(monotonic=lambda: next(clock)))
    made = tool_answers(lambda _name, _arguments: '{"session_id": "p1", "status": "timeout"}')
    ctx = ToolContext("mine")

    result = ctx.terminal("make world", timeout=700)
    ctx.cleanup()

    assert made[-1] == ("process", {"action": "kill", "session_id": "p1"})
    assert result == {"exit_code": 124, "output": "", "error": "Command timed out after 700 seconds"}


def test_cleanup_may_be_called_again_and_inside_a_reward(sandbox):
    """Idempotent, in a bridge and outside."""
    sandbox.terminal("touch a")

    @bridged
    async def reward() -> None:
        sandbox.cleanup()
        sandbox.cleanup()

    asyncio.run(reward())
    sandbox.cleanup()

    assert sandbox.terminal("ls")["output"] == ""


def test_dangerous_looking_command_needs_no_approval(sandbox):
    """Nobody is there to approve: what hermes calls dangerous just runs, in the sandbox."""
    sandbox.terminal("mkdir -p victim && touch victim/file")

    result = sandbox.terminal("chmod -R 777 victim && stat -c %a victim/file")

    assert (result["exit_code"], result["output"]) == (0, "777")
