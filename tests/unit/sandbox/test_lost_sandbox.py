"""What a command does to its own sandbox is its rollout's end, named and unscored, and never the next rollout's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from typing import Any

import pytest

from environments.loop.end import RolloutEnd
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env.errors import SandboxLost
from pytest_hermes_env.inference import call, say
from pytest_hermes_env.sandbox.local import LocalSandbox

DEEP = "mkdir -p $(printf 'd/%.0s' $(seq 1500)) && echo made"


def output(sandbox: LocalSandbox, command: str, task_id: str = "first") -> str:
    """What a command prints."""
    return str(json.loads(sandbox.machine(task_id).call("terminal", {"command": command}))["output"])


def end_cell(sandbox: LocalSandbox) -> None:
    """As the kernel does when the machine's memory is used up; another rollout may have been quicker."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(sandbox._cell._cell._process.pid, signal.SIGKILL)
        signal.pidfd_send_signal(sandbox._cell._cell._first, signal.SIGKILL)


def test_directories_deeper_than_python_end_nothing(confined_or_not: LocalSandbox) -> None:
    """Neither the cell, nor the end of the rollout, nor the next one."""
    sandbox = confined_or_not
    made, base = output(sandbox, DEEP), sandbox.root.parent
    still = output(sandbox, "echo still here")
    sandbox.release("first")
    following = output(sandbox, "echo next", "second")
    sandbox.stop()

    assert (made, still, following, base.exists()) == ("made", "still here", "next", False)


@pytest.mark.usefixtures("namespaces")
def test_a_cell_that_ended_is_said_and_replaced() -> None:
    """The commands of rollouts that had begun are not run any more; those of the next one are, in a cell of its own."""
    with LocalSandbox() as sandbox:
        output(sandbox, "echo before")
        end_cell(sandbox)

        with pytest.raises(SandboxLost, match="the cell of this sandbox cannot be joined"):
            output(sandbox, "echo after")
        following = output(sandbox, "echo next; ls -d /root 2>&1 | head -1", "second")

        assert following.startswith("next")
        with pytest.raises(SandboxLost):
            sandbox.verify()


@pytest.mark.usefixtures("namespaces")
def test_every_rollout_of_a_lost_cell_is_lost_and_none_of_the_next() -> None:
    """Also one whose command found the cell ended only after another one was started."""
    with LocalSandbox() as sandbox:
        for name in ("first", "second"):
            output(sandbox, "echo before", name)
        end_cell(sandbox)
        with pytest.raises(SandboxLost):
            output(sandbox, "echo after", "first")
        output(sandbox, "echo begun", "third")

        for name in ("second", "first", "second"):
            with pytest.raises(SandboxLost):
                output(sandbox, "echo after", name)
        sandbox.release("first")

        assert [output(sandbox, "echo well", name) for name in ("third", "first")] == ["well", "well"]


@pytest.mark.usefixtures("namespaces")
def test_a_link_in_the_place_of_a_sandbox_is_the_commands_doing() -> None:
    """Not an error in how the author registered its directory."""
    with LocalSandbox() as sandbox:
        own = sandbox.machine("first").directory
        output(sandbox, f"cd / && rm -r {own} && ln -s /etc {own}")

        with pytest.raises(SandboxLost, match="put something else in the place of"):
            output(sandbox, "echo after")

        assert output(sandbox, "echo next", "second") == "next"


@pytest.mark.usefixtures("namespaces")
@pytest.mark.hermes_allow_leftovers
def test_a_rollout_in_a_lost_sandbox_is_not_scored(
    make_env: Any, local_sandbox: LocalSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    """The layer names its end, and nothing of it trains."""

    def turn(conversation: Any) -> Any:
        if conversation.turn == 1:
            end_cell(local_sandbox)
        return call("terminal", command="echo x > greeting.txt") if conversation.turn < 2 else say("Done.")

    async def scenario() -> None:
        env = make_env(TerminalTestEnv, script=turn, group_size=2, rollout_retries=0)
        await env.setup()
        await env.collect_trajectories(await env.get_next_item())

    asyncio.run(scenario())

    assert f"A group is not trained: all of its rollouts failed ({RolloutEnd.TOOL_POOL_FAILED})" in caplog.text
    with pytest.raises(SandboxLost):
        local_sandbox.verify()
    local_sandbox._problems.clear()
