"""How tests with cassettes end: recordings of tests that fail late, what counts as a difference, and which tools a replay uses."""

from __future__ import annotations

import pytest

from pytest_hermes_env.cassette.format import read_tape

CONFTEST = """
import asyncio
import openai
import pytest
from pytest_hermes_env import MockServer, call, say

@pytest.fixture
def script():
    return [say("42")]

@pytest.fixture
def hermes_upstream(script):
    with MockServer(script, allow_leftovers=True) as server:
        yield server

@pytest.fixture
def ask(recorded_server):
    def ask(text="What is six times seven?", **settings):
        with openai.OpenAI(base_url=recorded_server.base_url, api_key="none") as client:
            message = {"role": "user", "content": text}
            answer = client.chat.completions.create(model=recorded_server.model, messages=[message], **settings)
            return [choice.message.content for choice in answer.choices]

    return ask
"""

GROUP = """
import asyncio
import pytest
from pytest_hermes_env import call, say
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

@pytest.fixture
def script():
    return [call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("Done.")]

def collect(env, times=1):
    async def run():
        await env.setup()
        item = await env.get_next_item()
        return [(await env.collect_trajectories(item))[0]["scores"] for _ in range(times)]

    return asyncio.run(run())
"""


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run the suite with warnings as errors."""
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *args)


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    return pytester


def test_a_recording_is_kept_only_when_all_fixtures_have_ended_well(suite: pytest.Pytester) -> None:
    """A test that fails in another fixture's teardown, or tried to use the network, writes nothing, and its lock is released."""
    suite.makepyfile(
        """
import pytest
import socket

@pytest.fixture
def late():
    yield
    raise AssertionError("late")

@pytest.fixture(scope="module")
def later():
    yield
    raise AssertionError("later")

def test_late(ask, late):
    assert ask() == ["42"]

def test_outside(ask):
    assert ask() == ["42"]
    with pytest.raises(OSError):
        socket.create_connection(("example.invalid", 80))

def test_fine(ask):
    assert ask() == ["42"]

def test_later(later, ask):
    assert ask() == ["42"]
"""
    )

    result = run(suite, "--hermes-record=once")

    result.assert_outcomes(passed=4, errors=3)
    result.stdout.fnmatch_lines(["cassettes: 3 not written, since the test did not pass, 1 recorded (--hermes-record=once)"])
    left = sorted(path.name for path in (suite.path / "cassettes").rglob("*") if path.is_file())
    assert left == ["test_fine.json"]


def test_a_recording_with_a_secret_fails_the_test_and_is_not_written(suite: pytest.Pytester) -> None:
    """The findings of the scan are reported at the end of the test, and no cassette is written."""
    suite.makepyfile(
        """
import pytest
from pytest_hermes_env.cassette.redact import Redactor

class Blind(Redactor):
    def text(self, text):
        return text

@pytest.fixture(scope="session")
def hermes_redaction():
    return Blind()

def test_key(ask):
    assert ask("sk-" + "proj-" + "Ab1" * 12) == ["42"]
"""
    )

    result = run(suite, "--hermes-record=once")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["BadCassette: */test_key.json: this cassette was not written, because it would contain what looks like a secret."]
    )
    assert not list((suite.path / "cassettes").rglob("*.json"))


def test_a_key_in_a_parameter_is_not_in_the_name_of_a_file(suite: pytest.Pytester) -> None:
    """The file name of a test whose parameter is a key does not contain the key, is stable, and differs for different keys."""
    keys = ["sk-" + "proj-" + "Ab1" * 12, "sk-" + "proj-" + "Cd2" * 12]
    suite.makepyfile(
        f"import pytest\n\n@pytest.mark.parametrize('key', {keys!r})\ndef test_key(ask, key):\n    assert ask(key) == ['42']\n"
    )

    recorded = run(suite, "--hermes-record=once")
    played = run(suite)

    recorded.assert_outcomes(passed=2)
    played.assert_outcomes(passed=2)
    names = [path.name for path in (suite.path / "cassettes").rglob("*.json")]
    assert [name.startswith("test_key-redacted-") for name in names] == [True, True]
    assert not [name for name in names if "Ab1Ab1" in name or "Cd2Cd2" in name]


def test_another_host_fails_a_replay_twice(suite: pytest.Pytester) -> None:
    """A request to another host fails at the call and at the end of the test, in replays and recordings, unless it is allowed."""
    suite.makepyfile(
        """
import httpx
import pytest

@pytest.mark.hermes_cassette("one")
def test_swallowed(ask):
    ask()
    with pytest.raises(httpx.ConnectError):
        httpx.get("http://data.invalid/set")

@pytest.mark.hermes_cassette("one")
@pytest.mark.hermes_allow_hosts("data.invalid")
def test_allowed(ask):
    ask()
    with pytest.raises(httpx.ConnectError):
        httpx.get("http://data.invalid/set")
"""
    )
    run(suite, "--hermes-record=once", "-k", "not swallowed")

    played = run(suite)

    played.assert_outcomes(passed=2, errors=1)
    played.stdout.fnmatch_lines(["*NetworkBlocked: this test reached for data.invalid."])


def test_a_reward_that_is_no_longer_computed_is_reported(suite: pytest.Pytester) -> None:
    """If the replay has no reward where the recording has one, or one that differs slightly, that is a change."""
    suite.makepyfile(
        GROUP
        + """
def test_group(make_env, fake_sandbox, monkeypatch, request):
    env = make_env(TerminalTestEnv, group_size=2)
    if request.config.getoption("verbose") == 2:
        real = TerminalTestEnv.compute_reward

        async def reward(self, item, result, ctx):
            return await real(self, item, result, ctx) - 1e-12

        monkeypatch.setattr(TerminalTestEnv, "compute_reward", reward)
        env = make_env(TerminalTestEnv, group_size=2)
    if request.config.getoption("verbose") == 3:
        monkeypatch.setattr(env, "compute_reward", no_reward)
    collect(env)

async def no_reward(item, result, ctx):
    ctx.read_file("greeting.txt")
    return 1.0

pytestmark = pytest.mark.hermes_cassette
"""
    )

    recorded = run(suite, "--hermes-record=once")
    hair = run(suite, "-vv")
    none = run(suite, "-vvv")

    recorded.assert_outcomes(passed=1)
    for result in (hair, none):
        result.assert_outcomes(passed=1, errors=1)
    hair.stdout.fnmatch_lines(["  rewards   rollout 1: recorded 1.0, now 0.999999999999"])
    none.stdout.fnmatch_lines(
        ["  rewards   rollout 1: recorded 1.0, now none", "            rollout 2: recorded 1.0, now none"]
    )


def test_tools_of_a_replay_may_be_live_or_fake(suite: pytest.Pytester) -> None:
    """With live or fake tools, a replay runs tool calls in the test's sandbox."""
    suite.makepyfile(
        GROUP
        + """
@pytest.mark.hermes_cassette
def test_group(make_env, fake_sandbox):
    assert collect(make_env(TerminalTestEnv, group_size=2)) == [[1.0, 1.0]]
    assert len(fake_sandbox.rollouts) == 2
"""
    )

    recorded = run(suite, "--hermes-record=once")
    results = [run(suite, f"--hermes-replay-tools={tools}") for tools in ("live", "fake")]

    recorded.assert_outcomes(passed=1)
    for result in results:
        result.assert_outcomes(passed=1)


def test_new_adds_whole_rollouts(suite: pytest.Pytester) -> None:
    """With `new_episodes`, a larger group replays the recorded rollouts, and records the others after them."""
    suite.makepyfile(
        GROUP
        + """
import os

def test_group(make_env, fake_sandbox):
    size = int(os.environ["SIZE"])
    assert collect(make_env(TerminalTestEnv, group_size=size)) == [[1.0] * size]
    assert len(fake_sandbox.rollouts) == int(os.environ["MADE"])

pytestmark = pytest.mark.hermes_cassette("group")
"""
    )
    path = suite.path / "cassettes" / "group.json"
    outcomes = []

    for mode, size, made in (("once", 2, 2), ("new_episodes", 3, 1), ("none", 3, 0), ("new_episodes", 3, 0)):
        suite._monkeypatch.setenv("SIZE", str(size))
        suite._monkeypatch.setenv("MADE", str(made))
        result = run(suite, f"--hermes-record={mode}")
        outcomes.append((result.parseoutcomes(), [each.reward for each in read_tape(path).rollouts]))

    assert outcomes == [({"passed": 1}, [1.0] * size) for size in (2, 3, 3, 3)]


def test_workers_record_and_play(suite: pytest.Pytester, two_workers: tuple[str, ...]) -> None:
    """Under xdist each worker records its own tests, tests with the same cassette are reported, and the summary is complete."""
    suite.makepyfile(
        """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_one(ask, number):
    assert ask(str(number)) == ["42"]

@pytest.mark.hermes_cassette("same")
def test_left(ask):
    ask()

@pytest.mark.hermes_cassette("same")
def test_right(ask):
    ask()
"""
    )

    recorded = suite.runpytest_subprocess(*two_workers, "-W", "error", "-p", "no:cacheprovider", "--hermes-record=rewrite")
    played = run(suite)

    recorded.assert_outcomes(passed=5, errors=1)
    recorded.stdout.fnmatch_lines(
        ["UsageError: two tests of this run record the cassette cassettes/same.json.", "cassettes: 5 recorded (*"]
    )
    played.assert_outcomes(passed=6)
    played.stdout.fnmatch_lines(["cassettes: 6 replayed (--hermes-record=none)"])
