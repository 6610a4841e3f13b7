"""The fixtures fake_sandbox, local_sandbox and tool_context, in separate suites."""

from __future__ import annotations

import pytest

IMPORTS = """
import asyncio, os, threading
import pytest
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from environments.tool_context import ToolContext
from pytest_hermes_env import call, say

async def collect(env):
    await env.setup()
    return await env.collect_trajectories(await env.get_next_item())
"""


def run(pytester: pytest.Pytester, body: str, *args: str) -> pytest.RunResult:
    """Run a suite with warnings as errors."""
    pytester.makepyfile(IMPORTS + body)
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *args)


def test_whole_rollouts_work_in_memory(pytester: pytest.Pytester) -> None:
    """Each rollout of a group has a separate machine; the agent's calls are distinguished from the verifier's."""
    result = run(
        pytester,
        """
def test_group(make_env, fake_sandbox):
    env = make_env(
        TerminalTestEnv,
        script=[call("terminal", command="printf %s 'Hello from Hermes Agent' > greeting.txt"), say("Done.")],
        in_process=True,
        group_size=3,
    )

    group, _ = asyncio.run(collect(env))

    assert group["scores"] == [1.0, 1.0, 1.0]
    machines = list(fake_sandbox.rollouts.values())
    assert [machine.files["/workspace/greeting.txt"] for machine in machines] == ["Hello from Hermes Agent"] * 3
    assert [[call.name for call in machine.calls] for machine in machines] == [["terminal", "read_file"]] * 3
    assert "greeting.txt" not in fake_sandbox.files
    assert os.environ["TERMINAL_ENV"] == "fake"

def test_afterwards():
    from tools.registry import registry

    assert os.environ.get("TERMINAL_ENV") != "fake"
    assert "dispatch" not in vars(registry)
""",
    )

    result.assert_outcomes(passed=2)


def test_every_call_is_in_the_journal(pytester: pytest.Pytester) -> None:
    """The turn in the journal distinguishes the agent's calls from the verifier's, in memory and on hermes' own tools."""
    result = run(
        pytester,
        """
SCRIPT = [call("terminal", command="true"), call("write_file", path="greeting.txt", content="Hello"), say("Done.")]
EXPECTED = [("terminal", 1), ("write_file", 2), ("read_file", 0)]

def test_in_memory(make_env, tool_journal, fake_sandbox):
    asyncio.run(collect(make_env(TerminalTestEnv, script=SCRIPT, group_size=1)))

    assert [(call.name, call.turn) for call in tool_journal.calls] == EXPECTED
    assert {call.task_id for call in tool_journal.calls} == set(fake_sandbox.rollouts)
    assert all(call.seconds >= 0 and isinstance(call.result, str) for call in tool_journal.calls)

def test_for_real(make_env, tool_journal):
    asyncio.run(collect(make_env(TerminalTestEnv, script=SCRIPT, group_size=1)))

    assert [(call.name, call.turn) for call in tool_journal.calls] == EXPECTED
""",
    )

    result.assert_outcomes(passed=2)


def test_an_unused_answer_fails_the_test(pytester: pytest.Pytester) -> None:
    """Unused scripted commands are listed; the marker allows them."""
    result = run(
        pytester,
        """
def test_forgotten(fake_sandbox):
    fake_sandbox.on("make", output="built")

@pytest.mark.hermes_allow_leftovers
def test_allowed(fake_sandbox):
    fake_sandbox.on("make", output="built")
""",
    )

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*LeftoverAnswers: *make*"])


def test_a_reward_test_starts_no_thread(pytester: pytest.Pytester) -> None:
    """A reward on the doubles runs in the calling thread."""
    result = run(
        pytester,
        """
def test_reward(make_env, agent_result, fake_sandbox, tool_context):
    env = make_env(TerminalTestEnv, in_process=True)
    fake_sandbox.files["greeting.txt"] = "Hello from Hermes Agent"
    threads = set(threading.enumerate())

    async def reward():
        await env.setup()
        return await env.compute_reward(await env.get_next_item(), agent_result.say("Done."), tool_context)

    assert asyncio.run(reward()) == 1.0
    assert set(threading.enumerate()) <= threads
    assert tool_context.cleanups == 0
""",
    )

    result.assert_outcomes(passed=1)


def test_a_context_that_was_cleaned_up_is_not_used(pytester: pytest.Pytester) -> None:
    """Use after cleanup fails at the call, and again at the end of the test if it was swallowed."""
    result = run(
        pytester,
        """
def test_swallowed(tool_context):
    tool_context.cleanup()
    try:
        tool_context.terminal("ls")
    except Exception:
        pass
""",
    )

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*UseAfterCleanup: *"])


def test_the_real_terminal_works_in_a_separate_directory(pytester: pytest.Pytester) -> None:
    """With local_sandbox, rollouts and tool_context use hermes' own tools; the report shows the confinement."""
    result = run(
        pytester,
        """
def test_group(make_env, local_sandbox, tool_context):
    env = make_env(
        TerminalTestEnv,
        script=[call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("Done.")],
        group_size=2,
    )

    group, _ = asyncio.run(collect(env))

    assert group["scores"] == [1.0, 1.0]
    place = tool_context.terminal("echo made > here.txt; pwd")["output"]
    assert place.startswith(str(local_sandbox.root))
    assert tool_context.read_file("here.txt")["content"] == "made\\n"
""",
    )

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["local sandbox: *confined*"])


def test_one_sandbox_per_test(pytester: pytest.Pytester) -> None:
    """A test that uses both is an error."""
    result = run(pytester, "def test_both(fake_sandbox, local_sandbox): pass")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*UsageError: a second sandbox was requested in this test: local sandbox: *",
            "*expected  either fake_sandbox or local_sandbox, since each would answer every tool call",
            "*seen      an in-memory machine answers already",
            "*fix       take one of them, as an argument of the test; tool_journal then follows it",
        ]
    )


LIVE = """
def test_live(make_env):
    make_env(TerminalTestEnv, server="https://api.example.com/v1")

def test_in_memory(make_env, fake_sandbox):
    make_env(TerminalTestEnv, server="https://api.example.com/v1")

def test_on_this_machine(make_env):
    make_env(TerminalTestEnv, server="http://localhost:8000/v1")
"""


def test_a_live_model_gets_no_unconfined_terminal(pytester: pytest.Pytester) -> None:
    """A model on another machine must not use hermes' own terminal here; with a sandbox, or a model on this machine, it runs."""
    result = run(pytester, LIVE)

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*EnvironmentSetupError: A live model at api.example.com would be given a terminal of this machine that nothing confines.",
            "*expected  a sandbox in which the model's commands cannot do harm",
            "*seen      hermes' own terminal, with your files and your network",
            "*fix       take the fixture local_sandbox (bubblewrap or user namespaces confine it), fake_sandbox, or another",
            "*terminal_backend; --hermes-confine=off accepts the risk",
        ]
    )


def test_the_risk_can_be_accepted(pytester: pytest.Pytester) -> None:
    """By the flag."""
    result = run(pytester, LIVE, "--hermes-confine=off")

    result.assert_outcomes(passed=3)


def test_the_flag_wins_over_what_the_project_accepts(pytester: pytest.Pytester) -> None:
    """--hermes-confine=required is required."""
    pytester.makeini("[pytest]\nhermes_confine = off\n")

    run(pytester, LIVE).assert_outcomes(passed=3)
    result = run(pytester, LIVE, "--hermes-confine=required")

    result.stdout.fnmatch_lines(["*would be given a terminal of this machine that nothing confines*"])


def test_in_process_needs_a_mock(pytester: pytest.Pytester) -> None:
    """A server at a URL cannot be reached without a socket."""
    result = run(
        pytester,
        """
def test_url(make_env):
    make_env(TerminalTestEnv, server="http://localhost:8000/v1", in_process=True)
""",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*EnvironmentSetupError: make_env cannot reach http://localhost:8000/v1 in this process: in_process=True is for a script "
            "or a MockServer"
        ]
    )
