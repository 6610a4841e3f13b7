"""What each builder method adds to a result, as whole values."""

from __future__ import annotations

import json

import pytest

from environments.agent_loop import AgentResult, ToolError
from pytest_hermes_env import agent_result
from pytest_hermes_env.errors import UsageError

USER = {"role": "user", "content": "…"}


def assistant(content: str = "", *calls: dict[str, object], **fields: object) -> dict[str, object]:
    tool_calls = {"tool_calls": list(calls)} if calls else {}
    return {"role": "assistant", "content": content, **tool_calls, **fields}


def call(number: int, name: str, arguments: str) -> dict[str, object]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(number: int, content: str, name: str = "terminal") -> dict[str, object]:
    return {"role": "tool", "tool_call_id": f"call_{number}", "name": name, "content": content}


def test_it_is_no_function() -> None:
    """And says with what a result begins."""
    with pytest.raises(UsageError, match=r"agent_result\.say"):
        agent_result()  # type: ignore[operator]


def test_an_answer_is_an_agent_result() -> None:
    """The result goes where the layer's own class goes."""
    result = agent_result.say("42")

    assert isinstance(result, AgentResult)
    assert result == AgentResult(
        messages=[USER, assistant("42")], turns_used=1, finished_naturally=True, reasoning_per_turn=[None]
    )


def test_system_and_user_messages_come_first() -> None:
    """What the environment asks stands before what the model says."""
    result = agent_result.system("Be brief.").user("What is here?").say("a.txt")

    assert result.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is here?"},
        assistant("a.txt"),
    ]


def test_calls_before_the_first_result_are_parallel() -> None:
    """They stand in one message, and results answer them in order, one by one or together."""
    calls = agent_result.call("read_file", path="a").call("read_file", path="b")

    result = calls.returns("1|a").returns("1|b").say("done")

    assert result.messages == [
        USER,
        assistant("", call(1, "read_file", '{"path": "a"}'), call(2, "read_file", '{"path": "b"}')),
        tool(1, "1|a", "read_file"),
        tool(2, "1|b", "read_file"),
        assistant("done"),
    ]
    assert calls.returns("1|a", "1|b").say("done") == result
    assert result.turns_used == 2


@pytest.mark.parametrize(
    "told",
    [
        {"output": "", "exit_code": 1, "error": "failed"},
        {"output": "", "exit_code": -1, "error": None},
        {"output": "", "exit_code": 0, "error": "odd"},
        {"error": "not found", "similar_files": []},
        "error",
        "[1]",
    ],
)
def test_other_results_are_no_tool_errors(told: object) -> None:
    """A command that failed is a result like any other."""
    result = agent_result.call("terminal", command="ls").returns(told).say("sorry")

    assert result.tool_errors == []


def test_an_unknown_tool_is_answered_by_the_loop() -> None:
    """The model is told the tools that there are: hermes' terminal and file tools, and what the rollout calls."""
    result = agent_result.call("web_search", query="x").returns("").unknown_tool("bash", command="ls").say("sorry")

    available = "['patch', 'process', 'read_file', 'search_files', 'terminal', 'web_search', 'write_file']"
    told = json.dumps({"error": f"Unknown tool 'bash'. Available tools: {available}"})
    assert result.messages[-2] == tool(2, told, "bash")
    assert result.tool_errors == [
        ToolError(turn=2, tool_name="bash", arguments='{"command": "ls"}', error="Unknown tool 'bash'", tool_result=told)
    ]


def test_also_adds_a_call_to_a_turn_that_is_answered() -> None:
    """A call that the loop answers by itself can stand first among parallel calls."""
    result = agent_result.unknown_tool("bash").also().call("terminal").returns("a").say("done")

    assert [len(message.get("tool_calls", ())) for message in result.messages] == [0, 2, 0, 0, 0]
    assert result.turns_used == 2


def test_the_turn_limit_ends_a_rollout_without_an_answer() -> None:
    """It adds nothing to the fields: the last turn was the last that was allowed."""
    result = agent_result.call("terminal").returns("a").hit_turn_limit()

    assert result == agent_result.call("terminal").returns("a")
    assert (result.turns_used, result.finished_naturally) == (1, False)


def test_a_prefix_can_be_built_upon_twice() -> None:
    """Results share nothing that a reward could change in one and see in the other."""
    looked = agent_result.user("How many?").call("terminal", command="ls | wc -l").returns({"output": "42"})
    right, wrong = looked.say("42"), looked.say("41")

    right.messages[1]["tool_calls"][0]["function"]["name"] = "changed"
    right.messages.clear()

    assert wrong.build() == looked.say("41")
    assert looked.turns_used == 1


def test_build_gives_the_plain_class() -> None:
    """For code that asks for the exact type."""
    plain = agent_result.say("42").build()

    assert type(plain) is AgentResult
    assert plain == agent_result.say("42")


def test_text_that_only_looks_like_a_tool_call_is_an_answer() -> None:
    """The loop leaves it as text when it cannot read a call in it, or when there are no tools."""
    broken, whole = "<tool_call>{", '<tool_call>{"name": "terminal", "arguments": {}}</tool_call>'

    assert agent_result.say(broken).messages[1] == assistant(broken)
    assert agent_result.offering().say(whole).messages[1] == assistant(whole)
    assert agent_result.say(whole).call("terminal").returns("").messages[1] == assistant(whole, call(1, "terminal", "{}"))


def test_the_fixture_is_the_same_builder(pytester: pytest.Pytester) -> None:
    """A test may take it as an argument instead of importing it."""
    pytester.makepyfile(
        """
        from environments.agent_loop import AgentResult

        def test_reward(agent_result):
            result = agent_result.say("42")
            assert isinstance(result, AgentResult) and repr(result) == "agent_result.say('42')"
        """
    )

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "error")

    result.assert_outcomes(passed=1)
