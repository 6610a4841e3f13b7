"""The fixtures make_env, mock_server and hermes_tokenizer, in separate suites."""

from __future__ import annotations

import pytest

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env.errors import EnvironmentSetupError

IMPORTS = """
import asyncio, os, threading
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import MockServer, call, fail, say
"""


def run(pytester: pytest.Pytester, body: str, *args: str) -> pytest.RunResult:
    """Run a suite with warnings as errors."""
    pytester.makepyfile(IMPORTS + body)
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *args)


def test_an_environment_runs_on_a_script(pytester: pytest.Pytester) -> None:
    """A group is collected from a scripted conversation with hermes' own tools, without warnings or leftovers."""
    result = run(
        pytester,
        """
def test_group(make_env):
    threads = threading.active_count()
    env = make_env(
        TerminalTestEnv,
        script=[call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("Done.")],
        group_size=3,
    )

    async def collect():
        await env.setup()
        return await env.collect_trajectories(await env.get_next_item())

    group, backlog = asyncio.run(collect())

    assert group["scores"] == [1.0, 1.0, 1.0]
    assert backlog == []

def test_again(make_env):
    env = make_env(TerminalTestEnv)
    asyncio.run(env.setup())
    assert (env.config.group_size, env.config.use_wandb, env.config.terminal_backend) == (2, False, "local")
""",
    )

    result.assert_outcomes(passed=2)


def test_the_environment_variables_are_restored(pytester: pytest.Pytester) -> None:
    """Variables that a constructor exports are removed when the test ends."""
    result = run(
        pytester,
        """
before = dict(os.environ)

def test_exports(make_env):
    make_env(TerminalTestEnv, terminal_timeout=7)
    assert os.environ["TERMINAL_TIMEOUT"] == "7"

def test_restored():
    assert os.environ.get("TERMINAL_TIMEOUT") == before.get("TERMINAL_TIMEOUT")
""",
    )

    result.assert_outcomes(passed=2)


def test_a_failing_server_costs_one_request(pytester: pytest.Pytester) -> None:
    """The three layers of retries below a rollout are off: a 500 causes exactly one request in each attempt."""
    result = run(
        pytester,
        """
def test_once(make_env, mock_server):
    mock_server.add([fail(500)])
    env = make_env(TerminalTestEnv, server=mock_server, group_size=1, rollout_retries=0)

    async def collect():
        await env.setup()
        return await env.collect_trajectories(await env.get_next_item())

    group, _ = asyncio.run(collect())

    assert len(mock_server.journal) == 1
    assert set(group["masks"][0]) == {-100}
""",
    )

    result.assert_outcomes(passed=1)


def test_unused_turns_fail_the_test_unless_allowed(pytester: pytest.Pytester) -> None:
    """An unused turn is a mistake in the test or in the environment; the marker allows it."""
    result = run(
        pytester,
        """
import pytest

def collect(env):
    async def run():
        await env.setup()
        await env.collect_trajectories(await env.get_next_item())
    asyncio.run(run())

def test_left_over(make_env):
    collect(make_env(TerminalTestEnv, script=[say("Done."), say("Never asked for.")], group_size=1))

@pytest.mark.hermes_allow_leftovers
def test_allowed(make_env):
    collect(make_env(TerminalTestEnv, script=[say("Done."), say("Never asked for.")], group_size=1))
""",
    )

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*LeftoverTurns*"])


def test_a_reward_that_fails_is_no_bad_score(pytester: pytest.Pytester) -> None:
    """A test that expects 0.0 from bad work does not pass because the reward raised; it may say that it is about that."""
    result = run(
        pytester,
        """
import pytest

class Forgetful(TerminalTestEnv):
    async def compute_reward(self, item, result, ctx):
        return item["a key that items lack"]

def scores(env):
    async def run():
        await env.setup()
        group, _ = await env.collect_trajectories(await env.get_next_item())
        return group["scores"]
    return asyncio.run(run())

def test_bad_work_earns_nothing(make_env):
    assert scores(make_env(Forgetful, script=[say("Done.")], group_size=2)) == [0.0, 0.0]

@pytest.mark.hermes_allow_leftovers
def test_a_failing_reward(make_env):
    assert scores(make_env(Forgetful, script=[say("Done.")], group_size=2)) == [0.0, 0.0]

def test_a_reward(make_env):
    assert scores(make_env(TerminalTestEnv, script=[say("Done.")], group_size=2)) == [0.0, 0.0]
""",
    )

    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(
        ["*FailedRewards: compute_reward failed in rollouts of this test*", "*seen *KeyError*", "*at *:9 (* times)"]
    )


def test_a_server_that_nobody_reaches_is_no_bad_model(pytester: pytest.Pytester) -> None:
    """The layer survives it with rollouts that train nothing; a test of that says so."""
    result = run(
        pytester,
        """
import pytest

def rollouts(env):
    async def run():
        await env.setup()
        await env.collect_trajectories(await env.get_next_item())
    asyncio.run(run())

def test_an_old_address(make_env):
    rollouts(make_env(TerminalTestEnv, server="http://someone:secret-word@127.0.0.1:1/v1", group_size=2))

@pytest.mark.hermes_allow_leftovers
def test_a_server_that_is_down(make_env):
    rollouts(make_env(TerminalTestEnv, server="http://127.0.0.1:1/v1", group_size=2))
""",
    )

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*UnreachableServer: rollouts of this test could not connect*", "*seen *APIConnectionError*"])
    assert "secret-word" not in result.stdout.str()


def test_a_bad_argument_is_named_without_the_source_of_the_library(pytester: pytest.Pytester) -> None:
    """The traceback is that of the test: its own line, and the error."""
    result = run(pytester, "def test_wrong(make_env):\n    make_env(TerminalTestEnv, max_turns=3)\n")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "    make_env(TerminalTestEnv, max_turns=3)",
            "E   *EnvironmentSetupError: TerminalTestEnvConfig has no field 'max_turns'. Nearest: max_agent_turns*",
        ]
    )
    assert not [line for line in result.outlines if "pytest_hermes_env/" in line and ".py:" in line]


def test_what_two_doubles_saw_is_told_once(pytester: pytest.Pytester) -> None:
    """A reward that asks for a page without a route fails at the router, and as a reward."""
    result = run(
        pytester,
        """
import httpx

class Asking(TerminalTestEnv):
    async def compute_reward(self, item, result, ctx):
        async with httpx.AsyncClient() as client:
            return float(len((await client.get("https://example.com/")).text) > 0)

def test_it(make_env, fake_sandbox, mock_http):
    env = make_env(Asking, script=[say("x")], group_size=1)

    async def collect():
        await env.setup()
        return await env.collect_trajectories(await env.get_next_item())

    asyncio.run(collect())
""",
    )

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["UnexpectedRequest: no route of mock_http matches a request."])
    result.stdout.no_fnmatch_line("*FailedRewards*")
    result.stdout.no_fnmatch_line("*ExceptionGroup*")


def test_a_scripted_failure_passes_where_the_layer_tries_a_rollout_again(pytester: pytest.Pytester) -> None:
    """Each request for the turn is an attempt: the client of such an environment retries nothing, and counts nothing."""
    result = run(
        pytester,
        """
from pytest_hermes_env import turn

def test_it(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv, script=[turn(fail(503, times=2), say("ok"))], group_size=2)

    async def collect():
        await env.setup()
        return (await env.collect_trajectories(await env.get_next_item()))[0]

    assert [one["end"] for one in asyncio.run(collect())["overrides"]] == ["finished", "finished"]
""",
    )

    result.assert_outcomes(passed=1)


KEPT = """
from pytest_hermes_env import call

KEPT = []

async def collect(env):
    await env.setup()
    return (await env.collect_trajectories(await env.get_next_item()))[0]

def test_first(make_env, fake_sandbox):
    KEPT.append(make_env(TerminalTestEnv, script=[say("ok")]))
    assert asyncio.run(collect(KEPT[0]))["scores"] == [0.0, 0.0]
"""


def test_an_environment_ends_with_its_test(pytester: pytest.Pytester) -> None:
    """Without its model each rollout would fail, and its scores look like those of bad work."""
    result = run(
        pytester, f'{KEPT}\ndef test_second(fake_sandbox):\n    assert asyncio.run(collect(KEPT[0]))["scores"] == [0.0, 0.0]\n'
    )

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E   *UseAfterCleanup: this environment was used after the end of the test that made it.",
            "E     fix       call make_env in the test itself, or in a fixture of function scope",
        ]
    )


@pytest.mark.parametrize("size", [0, -1])
def test_a_group_has_a_rollout(make_env, size):
    """As the configuration is made."""
    with pytest.raises(EnvironmentSetupError, match=f"group_size={size}: a group has one rollout at least"):
        make_env(TerminalTestEnv, group_size=size)


def test_what_several_doubles_kept_is_shown_without_frames(pytester: pytest.Pytester) -> None:
    """One after the other, with the first one in the summary; an own teardown beside them with its own line."""
    result = run(
        pytester,
        """
import pytest

@pytest.fixture
def own(make_env, fake_sandbox):
    yield
    raise RuntimeError("my own teardown")

def test_it(make_env, fake_sandbox, own):
    fake_sandbox.on("make", output="x")
    make_env(TerminalTestEnv, script=[say("ok"), say("more")])
""",
    )

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "LeftoverTurns: *",
            "LeftoverAnswers: on('make') has 1 answer, but it was never used.",
            "    raise RuntimeError(*",
            "E   RuntimeError: my own teardown",
            "ERROR test_*::test_it - Le*",
        ]
    )
    result.stdout.no_fnmatch_line("*ExceptionGroup*")
    result.stdout.no_fnmatch_line("*rollout_fixtures.py*")
