"""A test that fails because a double could not answer: one failure, which begins with the cause."""

from __future__ import annotations

import pytest

from pytest_hermes_env.cassette.recorder import Recorder
from pytest_hermes_env.cassette.session import CassetteSession
from pytest_hermes_env.errors import CassetteMiss
from pytest_hermes_env.failures import Problem
from pytest_hermes_env.plugin import plain_failure

GROUP = """
import asyncio
import logging

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import call, fail, say


def scores(env):
    async def collect():
        await env.setup()
        group, _ = await env.collect_trajectories(await env.get_next_item())
        return group["scores"]

    return asyncio.run(collect())
"""


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run pytest at 100 columns, without colours."""
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "--color=no", *args)


def test_what_a_double_could_not_answer_is_the_cause_of_the_tests_own_error(pytester: pytest.Pytester) -> None:
    """No second failure at teardown, and no word of leftovers."""
    pytester.makepyfile(
        test_it=GROUP
        + """
def test_a_group(make_env, fake_sandbox):
    fake_sandbox.on("never-called", output="")
    env = make_env(TerminalTestEnv, script=[call("terminal", command="no-such-program"), say("Done."), say("Left over.")])

    assert scores(env) == [1.0, 1.0]
"""
    )

    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "UnexpectedToolCall: the sandbox was asked to run a command that is neither scripted, *",
            "  command   no-such-program",
            "*in test_a_group",
            "    assert scores(env) == ?1.0, 1.0?",
            "E   assert * == ?1.0, 1.0?",
            "=* short test summary info *=",
            "FAILED test_it.py::test_a_group - UnexpectedToolCall: *",
        ]
    )
    result.stdout.no_fnmatch_line("*Left*")


def test_an_error_of_a_tests_own_rollout_is_its_own_lines_and_what_to_write(pytester: pytest.Pytester) -> None:
    """Neither the event loop nor the layer stands between them."""
    pytester.makepyfile(
        test_it=GROUP
        + """
class Env(TerminalTestEnv):
    def format_prompt(self, item):
        return item["paht"]

    async def compute_reward(self, item, result, ctx):
        return float(item["contents"] in "")


def test_a_reward(make_env, tool_context):
    env = make_env(Env)

    assert asyncio.run(env.compute_reward({"content": "x"}, None, tool_context)) == 1.0


def test_no_await(make_env, tool_context):
    env = make_env(Env)

    assert env.compute_reward({"content": "x"}, None, tool_context) == 1.0
"""
    )

    result = run(pytester)

    result.stdout.fnmatch_lines(
        [
            "test_it.py:*: in test_a_reward",
            "    assert asyncio.run(*",
            "test_it.py:*: in compute_reward",
            '    return float(item["contents"] in "")',
            "*^^^^*",
            "E   KeyError: 'contents'",
            "E   fix  Write item['content']: it has no 'contents'.",
            "E       assert Env.compute_reward was not awaited: *",
            "E         fix  await the call, or in a test that is not async: asyncio.run(...) around it",
        ]
    )
    result.stdout.no_fnmatch_line("*hosted.py*")
    result.stdout.no_fnmatch_line("*asyncio?runners*")


def test_problems_of_a_test_that_passes_still_fail_it_at_teardown(pytester: pytest.Pytester) -> None:
    """Agent loops swallow exceptions, so a test may pass in spite of them."""
    pytester.makepyfile(
        test_it=GROUP
        + """
def test_a_group(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv, script=[call("terminal", command="no-such-program"), say("Done.")])

    assert len(scores(env)) == 2
"""
    )

    result = run(pytester)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["UnexpectedToolCall: *", "  command   no-such-program"])


def test_the_problem_of_one_double_does_not_hide_that_of_another(pytester: pytest.Pytester) -> None:
    """The first is the cause of the test's error; the second fails the teardown."""
    pytester.makepyfile(
        """
def test_two(fake_sandbox, tool_context, mock_http):
    import httpx
    try:
        httpx.get("http://judge.invalid/score")
    except Exception:
        pass
    tool_context.cleanup()
    try:
        tool_context.terminal("ls")
    except Exception:
        pass
    assert False, "its own error"
"""
    )

    result = run(pytester)

    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines_random(["UseAfterCleanup: *", "UnexpectedRequest: *", "*its own error*"])


def test_an_error_that_rollouts_survive_is_logged_once_in_each_test(pytester: pytest.Pytester) -> None:
    """Eight failing requests of a group are one line of its log, without a traceback; the next test has it, too."""
    pytester.makepyfile(
        test_it=GROUP
        + """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_a_group(make_env, fake_sandbox, caplog, number):
    env = make_env(TerminalTestEnv, script=[fail(500)], group_size=4)
    with caplog.at_level(logging.WARNING):
        scores(env)

    told = [record for record in caplog.records if "The inference server failed" in record.getMessage()]
    assert [(record.levelname, record.exc_info) for record in told] == [("ERROR", None)]
    assert "scripted failure" in told[0].getMessage()
"""
    )

    run(pytester).assert_outcomes(passed=2)


def test_a_test_that_is_run_again_begins_anew(pytester: pytest.Pytester) -> None:
    """A plugin may run a failed test again: what is left over then is reported, as in the first run."""
    pytester.makeconftest(
        """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for _ in range(2):
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
    )
    pytester.makepyfile(
        """
RUNS = []

def test_second_run(mock_http):
    mock_http.get("http://judge.example/score").respond(json={})
    RUNS.append(1)
    assert len(RUNS) == 2
"""
    )

    result = run(pytester)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["LeftoverRoutes: *"])


def test_an_interrupted_test_has_no_leftovers(pytester: pytest.Pytester) -> None:
    """Ctrl-C leaves every script unused; pytest ends as it always does."""
    pytester.makepyfile(
        test_it=GROUP
        + """
def test_a_group(make_env, fake_sandbox):
    fake_sandbox.on("never-called", output="")
    make_env(TerminalTestEnv, script=[say("Never asked for.")])
    raise KeyboardInterrupt
"""
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.no_fnmatch_line("*Leftover*")
    result.stdout.fnmatch_lines(["*KeyboardInterrupt*"])


def test_a_command_much_like_the_scripted_one_is_shown_with_the_error_of_the_test(pytester: pytest.Pytester) -> None:
    """The answer was for another spelling."""
    pytester.makepyfile(
        """
def test_tests(fake_sandbox, tool_context):
    fake_sandbox.on("echo tests of all", output="3 passed")
    assert tool_context.terminal("echo tests of it all")["output"] == "3 passed"
"""
    )

    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*on('echo tests of all') has 1 answer, but it was never used.", "*ran       echo tests of it all"]
    )


@pytest.mark.parametrize(
    ("scripted", "ran", "is_shown"), [("pytest -q", "python3 -m pytest -q tests", True), ("pytest -q", "make test", False)]
)
def test_a_command_with_the_words_of_the_scripted_one_is_shown(
    pytester: pytest.Pytester, scripted: str, ran: str, is_shown: bool
) -> None:
    """And none that shares less."""
    pytester.makepyfile(
        f"""
def test_tests(fake_sandbox, tool_context):
    fake_sandbox.on({scripted!r}, output="3 passed")
    fake_sandbox.on({ran!r}, exit_code=1)
    assert tool_context.terminal({ran!r})["exit_code"] == 0
"""
    )

    shown = [line for line in run(pytester).stdout.lines if line.strip().endswith(f"ran       {ran}")]

    assert bool(shown) is is_shown


def test_what_a_reward_raised_is_shown_with_the_error_of_the_test(pytester: pytest.Pytester) -> None:
    """Scores of 0.0 are what is left of it; the line and what to write there are the environment's."""
    pytester.makepyfile(
        own_env="""
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

class OwnEnv(TerminalTestEnv):
    async def compute_reward(self, item, result, ctx):
        return float((await ctx.terminal("ls"))["exit_code"] == 0)
""",
        test_own="""
import asyncio
from own_env import OwnEnv
from pytest_hermes_env import say

def test_group(make_env, fake_sandbox):
    env = make_env(OwnEnv, script=[say("Done.")], group_size=2)

    async def collect():
        await env.setup()
        return await env.collect_trajectories(await env.get_next_item())

    group, _ = asyncio.run(collect())
    assert group["scores"] == [1.0, 1.0]
""",
    )

    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*A rollout failed before, and was counted: TypeError: object dict can't be used in 'await' expression",
            "*at        own_env.py:5",
            "*fix       Leave out the `await`*",
        ]
    )


def test_turns_behind_the_end_of_a_conversation_are_shown(pytester: pytest.Pytester) -> None:
    """The next rollout begins with the first turn again."""
    pytester.makepyfile(
        """
import openai
from pytest_hermes_env import say

def test_two(mock_server):
    mock_server.add([say("one"), say("two")])
    with openai.OpenAI(base_url=mock_server.base_url, api_key="x") as client:
        answers = [client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}]) for _ in "12"]
    assert [answer.choices[0].message.content for answer in answers] == ["one", "two"]
"""
    )

    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ended     by turn 1, which calls no tool: the next conversation begins with turn 1 again"])


def test_a_conversation_that_goes_on_after_words_has_not_ended(pytester: pytest.Pytester) -> None:
    """A user may answer; then it is the test that asked too little."""
    pytester.makepyfile(
        """
import openai
from pytest_hermes_env import say

def test_one(mock_server):
    mock_server.add([say("one"), say("two")])
    with openai.OpenAI(base_url=mock_server.base_url, api_key="x") as client:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    raise ValueError("of the test")
"""
    )

    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*ended     by turn*")


def test_logs_that_repeat_the_error_are_left_out() -> None:
    """With their tracebacks, and what follows from them; other records stay, and so do all of an error that is not this package's."""
    log = (
        "ERROR    model_tools:model_tools.py:13 Error executing terminal: gone\nTraceback (most recent call last):\n"
        "  pytest_hermes_env.errors.CassetteMiss: gone\n"
        "WARNING  environments.rollout.group_policy:group_policy.py:30 A group is not trained: all failed\n"
        "INFO     my_env:my_env.py:7 two\nlines"
    )

    assert plain_failure._without_told(log, frozenset({"CassetteMiss"})) == "INFO     my_env:my_env.py:7 two\nlines"
    assert plain_failure._without_told(log, frozenset()) == log


def test_a_miss_that_a_retry_makes_is_not_a_second_cause() -> None:
    """A request that is repeated after a miss was repeated because of it."""
    session = CassetteSession(name="c.json", record_command="again", player=None, recorder=Recorder())
    miss, retry = (
        Problem(error=CassetteMiss, text=text) for text in ("a request is not in the cassette.", "repeated more often")
    )
    session._miss(None, miss)
    session._miss(None, retry, may_follow=True)

    with pytest.raises(CassetteMiss, match=r"^a request is not in the cassette\.$"):
        session.verify()
