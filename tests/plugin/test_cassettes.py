"""The marker hermes_cassette, the fixture recorded_server and their options, in separate suites."""

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
        async def run():
            async with openai.AsyncOpenAI(base_url=recorded_server.base_url, api_key="none") as client:
                message = {"role": "user", "content": text}
                answer = await client.chat.completions.create(model=recorded_server.model, messages=[message], **settings)
                return [choice.message.content for choice in answer.choices]

        return asyncio.run(run())

    return ask
"""


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run the suite with warnings as errors."""
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *args)


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    return pytester


def test_a_call_is_recorded_once_and_played_without_its_server(suite: pytest.Pytester) -> None:
    """A recorded test passes without the server, and the run reports what it did with cassettes."""
    suite.makepyfile("def test_six(ask):\n    assert ask() == ['42']\n")

    recorded = run(suite, "--hermes-record=once")
    again = run(suite, "--hermes-record=once")
    played = run(suite)

    for result in (recorded, again, played):
        result.assert_outcomes(passed=1)
    recorded.stdout.fnmatch_lines(["cassettes: --hermes-record=once", "cassettes: 1 recorded (--hermes-record=once)"])
    again.stdout.fnmatch_lines(["cassettes: 1 replayed (--hermes-record=once)"])
    played.stdout.fnmatch_lines(["cassettes: 1 replayed (--hermes-record=none)"])
    assert [path.name for path in (suite.path / "cassettes").rglob("*.json")] == ["test_six.json"]


def test_a_missing_cassette_fails_with_the_command_that_records_it(suite: pytest.Pytester) -> None:
    """By default no request is sent to a server: without a cassette the test fails immediately."""
    suite.makepyfile("def test_six(ask):\n    assert ask() == ['42']\n")

    result = run(suite)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "BadCassette: there is no cassette cassettes/test_a_missing_cassette_fails_with_the_command_that_records_it/test_six.json,"
            " and without --hermes-record no request reaches the network.",
            "  expected  a recording of test_a_missing_cassette_fails_with_the_command_that_records_it.py::test_six",
            "  fix       record it: pytest --hermes-record=once "
            "test_a_missing_cassette_fails_with_the_command_that_records_it.py::test_six",
        ]
    )


def test_a_damaged_cassette_is_recorded_by_the_test_that_has_it(suite: pytest.Pytester) -> None:
    """Which need not be the one that recorded it."""
    test = 'import pytest\n\n@pytest.mark.hermes_cassette("greeting")\ndef test_six(ask):\n    assert ask() == ["42"]\n'
    suite.makepyfile(test_first=test)
    run(suite, "--hermes-record=once", "test_first.py").assert_outcomes(passed=1)
    file = suite.path / "cassettes" / "greeting.json"
    file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    suite.makepyfile(test_other=test)

    result = run(suite, "test_other.py")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*record it again: pytest --hermes-record=rewrite test_other.py::test_six"])


def test_a_cassette_of_a_name_like_it_is_named(suite: pytest.Pytester) -> None:
    """A misspelt marker needs no new recording."""
    test = 'import pytest\n\n@pytest.mark.hermes_cassette("greeting")\ndef test_six(ask):\n    assert ask() == ["42"]\n'
    suite.makepyfile(test)
    run(suite, "--hermes-record=once").assert_outcomes(passed=1)
    suite.makepyfile(test.replace("greeting", "greetings"))

    result = run(suite)

    result.stdout.fnmatch_lines(
        ["  fix       Did you mean cassettes/greeting.json? Or record it: pytest --hermes-record=once *"]
    )


def test_a_difference_fails_at_the_call_and_again_at_the_end(suite: pytest.Pytester) -> None:
    """A changed temperature fails at the call and, if swallowed, at the end of the test, with the command that records again."""
    suite.makepyfile(
        """
import openai
import pytest

@pytest.mark.hermes_cassette("shared/one")
def test_six(ask, pytestconfig):
    heat = 1.0 if pytestconfig.getoption("hermes_record") else 0.5
    try:
        assert ask(temperature=heat) == ["42"]
    except openai.BadRequestError as error:
        assert "CassetteMiss" in str(error)
"""
    )

    recorded = run(suite, "--hermes-record=once")
    played = run(suite)

    recorded.assert_outcomes(passed=1)
    assert (suite.path / "cassettes" / "shared" / "one.json").is_file()
    played.assert_outcomes(passed=1, errors=1)
    played.stdout.fnmatch_lines(
        [
            "CassetteMiss: a request is not in the cassette.",
            "  where     outside of any rollout (nearest: call 1)",
            "  cassette  cassettes/shared/one.json",
            "  differs   the temperature: recorded 1.0, now 0.5",
            "  fix       undo the change, or record again: pytest --hermes-record=rewrite *::test_six",
        ]
    )


def test_modes(suite: pytest.Pytester) -> None:
    """A failed test writes nothing; `new_episodes` adds new rollouts; `rewrite` records again; the ini value is the default."""
    suite.makepyfile(
        """
import os

def test_six(ask):
    for text in os.environ["TEXTS"].split():
        assert ask(text) == ["42"]
    assert os.environ["TEXTS"] != "bad"
"""
    )
    path = suite.path / "cassettes" / "test_modes" / "test_six.json"

    def counted(mode: str, texts: str) -> tuple[dict[str, int], int]:
        suite._monkeypatch.setenv("TEXTS", texts)
        outcome = run(suite, f"--hermes-record={mode}").parseoutcomes()
        return outcome, len(read_tape(path).calls) if path.exists() else 0

    outcomes = [
        counted("once", "bad"),
        counted("once", "a b"),
        counted("new_episodes", "a b c"),
        counted("none", "a b c"),
        counted("rewrite", "bad"),
        counted("rewrite", "c"),
        counted("none", "c"),
    ]
    suite.makeini("[pytest]\nhermes_record = sometimes\n")
    wrong = run(suite)

    assert outcomes == [
        ({"failed": 1}, 0),
        ({"passed": 1}, 2),
        ({"passed": 1}, 3),
        ({"passed": 1}, 3),
        ({"failed": 1}, 3),
        ({"passed": 1}, 1),
        ({"passed": 1}, 1),
    ]
    wrong.stderr.fnmatch_lines(
        ["ERROR: the ini value hermes_record must be one of none, once, new_episodes, rewrite, not 'sometimes'"]
    )


def test_markers_are_read_strictly(suite: pytest.Pytester) -> None:
    """A wrong argument, a name outside the directory, and two tests that record to the same file are errors."""
    suite.makepyfile(
        """
import pytest

@pytest.mark.hermes_cassette(mode="once")
def test_argument():
    pass

@pytest.mark.hermes_cassette("../elsewhere")
def test_name():
    pass

@pytest.mark.hermes_cassette("one")
def test_first(ask):
    ask()

@pytest.mark.hermes_cassette("one")
def test_second(ask):
    ask()
"""
    )

    recorded = run(suite, "--hermes-record=rewrite")
    played = run(suite, "-k", "first or second")

    recorded.assert_outcomes(passed=1, errors=3)
    recorded.stdout.fnmatch_lines(
        [
            "UsageError: @pytest.mark.hermes_cassette has wrong arguments: unknown argument 'mode'.",
            "UsageError: @pytest.mark.hermes_cassette has wrong arguments: a name must lead to a file below the directory of "
            "cassettes; '../elsewhere' leaves it.",
            "UsageError: two tests of this run record the cassette cassettes/one.json.",
            "  seen      test_markers_are_read_strictly.py::test_first",
            "            test_markers_are_read_strictly.py::test_second",
        ]
    )
    played.assert_outcomes(passed=2)


def test_a_whole_rollout_needs_no_sandbox(suite: pytest.Pytester) -> None:
    """A group recorded in a sandbox is replayed without it, with the same scores, and a different reward is reported."""
    suite.makepyfile(
        """
import asyncio
import pytest
from pytest_hermes_env import call, say
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

@pytest.fixture
def script():
    return [call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("Done.")]

@pytest.mark.hermes_cassette
def test_group(make_env, fake_sandbox, request, monkeypatch):
    env = make_env(TerminalTestEnv, group_size=2)

    async def collect():
        await env.setup()
        group, _ = await env.collect_trajectories(await env.get_next_item())
        return group["scores"]

    if request.config.getoption("verbose") == 2:
        async def compute_reward(self, item, result, ctx):
            ctx.read_file("greeting.txt")
            return 0.5

        monkeypatch.setattr(TerminalTestEnv, "compute_reward", compute_reward)
        env = make_env(TerminalTestEnv, group_size=2)
        asyncio.run(collect())
    else:
        assert asyncio.run(collect()) == [1.0, 1.0]
    is_recorded = request.config.getoption("hermes_record") == "once"
    assert len(fake_sandbox.rollouts) == (2 if is_recorded else 0)
"""
    )

    recorded = run(suite, "--hermes-record=once")
    played = run(suite)
    rewarded = run(suite, "-vv")

    recorded.assert_outcomes(passed=1)
    played.assert_outcomes(passed=1)
    rewarded.assert_outcomes(passed=1, errors=1)
    rewarded.stdout.fnmatch_lines(
        [
            "RewardChanged: the rewards of the same conversations differ from the recording.",
            "  cassette  cassettes/test_a_whole_rollout_needs_no_sandbox/test_group.json",
            "  rewards   rollout 1: recorded 1.0, now 0.5",
            "            rollout 2: recorded 1.0, now 0.5",
            "  fix       undo the change of compute_reward, or, if it is intended, record again: "
            "pytest --hermes-record=rewrite *::test_group",
        ]
    )


READING = """
import asyncio
import pytest
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

LINES = "".join(f"{number}\\n" for number in range(3000))

class ReadingEnv(TerminalTestEnv):
    async def prepare_sandbox(self, item, ctx):
        ctx.write_file("README.txt", LINES)

    async def compute_reward(self, item, result, ctx):
        whole = ctx.read_file("README.txt")["content"] == LINES
        return 0.5 * whole + 0.25 * ("error" in ctx.read_file("none.txt")) + 0.25 * (ctx.terminal("pwd")["exit_code"] == 0)

@pytest.mark.hermes_cassette
def test_reading(make_env, local_sandbox):
    env = make_env(ReadingEnv, group_size=1)

    async def collect():
        await env.setup()
        return (await env.collect_trajectories(await env.get_next_item()))[0]["scores"]

    assert asyncio.run(collect()) == [1.0]
"""
"""A reward that reads a long file, and one that is not there, in a sandbox whose terminal hermes has opened."""


@pytest.mark.parametrize("is_busy", [False, True])
def test_files_that_a_reward_reads_are_replayed(suite: pytest.Pytester, is_busy: bool) -> None:
    """A replay has no terminal, so all that decides what is asked next must be in the recording; a clock is none of it."""
    suite.makepyfile(READING)

    recorded = run(suite, "--hermes-record=once")
    (cassette,) = (suite.path / "cassettes").rglob("*.json")
    if is_busy:
        text = cassette.read_text(encoding="utf-8")
        assert '"timeout": 59' in text
        cassette.write_text(text.replace('"timeout": 59', '"timeout": 57'), encoding="utf-8")
    played = run(suite)

    recorded.assert_outcomes(passed=1)
    played.assert_outcomes(passed=1)
