"""What no rollout can leave behind is refused, with the reason and the way out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_hermes_env import agent_result
from pytest_hermes_env.errors import BadTarget, ResultError
from pytest_hermes_env.results import Result

TERMINAL = agent_result.call("terminal", command="ls")
LOOKED = TERMINAL.returns("a")
ANSWERED = agent_result.say("42")

JOIN_FIX = "add a call to that answer, as in .say('I look first').call('terminal', command='ls'), or remove one of them"
ANSWER_FIX = "add .returns({...}) or .raises(...); the text of a message goes before its calls"
ALSO_FIX = "agent_result.unknown_tool('nope').also().call('terminal', command='ls').returns(...)"

STEPS: dict[str, tuple[Callable[[], Result], str, str, str]] = {
    # what is tried: (the call, what happened, the story so far, what to do)
    "a second answer": (
        lambda: ANSWERED.say("41"),
        "say(...) cannot follow: an answer without a tool call ended the loop.",
        "agent_result.say('42')",
        JOIN_FIX,
    ),
    "a result without its call": (
        lambda: agent_result.returns("a"),
        "returns(...) has no pending call to answer.",
        "agent_result",
        "put .call('tool', ...) before it",
    ),
    "an answer before the result": (
        lambda: TERMINAL.say("42"),
        "say(...) cannot follow: call('terminal', command='ls') has no result, and the loop runs every call before it continues.",
        "agent_result.call('terminal', command='ls')",
        ANSWER_FIX,
    ),
    "a call after a server error": (
        lambda: agent_result.server_error().call("process"),
        "call('process') cannot follow: the server failed, which ended the loop.",
        "agent_result.server_error()",
        "put the call before the end",
    ),
    "two reasonings in one turn": (
        lambda: agent_result.think("a").think("b"),
        "think(...) cannot follow think(...): a turn has one reasoning text.",
        "agent_result.think('a')",
        "join the texts, or add a turn between them",
    ),
    "reasoning in a turn that failed": (
        lambda: agent_result.think("a").server_error(),
        "server_error() cannot follow think(...): reasoning needs a turn, and this adds none.",
        "agent_result.think('a')",
        "remove think(...)",
    ),
    "a user message in the middle": (
        lambda: LOOKED.user("Go on."),
        "user(...) cannot follow: the loop adds no user messages later.",
        "agent_result.call('terminal', command='ls').returns('a')",
        "put user(...) before the first turn",
    ),
    "a system prompt after the user": (
        lambda: agent_result.user("a").system("b"),
        "system(...) cannot follow: a conversation begins with its one system message.",
        "agent_result.user('a')",
        "put it first",
    ),
    "also twice": (
        lambda: LOOKED.also().also(),
        "also() must follow a call or its result, once.",
        "agent_result.call('terminal', command='ls').returns('a').also()",
        ALSO_FIX,
    ),
    "an answer after also": (
        lambda: LOOKED.also().say("42"),
        "say(...) cannot follow also(), which needs a call.",
        "agent_result.call('terminal', command='ls').returns('a').also()",
        "add .call(...), or remove also()",
    ),
    "a call of a tool that is not offered": (
        lambda: agent_result.offering("b", "a").call("terminal"),
        "call('terminal') names a tool that is not offered; offered: a, b.",
        "agent_result.offering('a', 'b')",
        "add it to offering(...), or use unknown_tool('terminal', ...)",
    ),
    "an unknown tool that was called": (
        lambda: LOOKED.unknown_tool("terminal"),
        "unknown_tool('terminal') names a tool of this rollout: the loop would run it.",
        "agent_result.call('terminal', command='ls').returns('a')",
        "use call('terminal', ...)",
    ),
    "a call of a tool that was unknown": (
        lambda: agent_result.unknown_tool("bash").call("bash"),
        "call('bash') names a tool that was unknown before; the tools of a rollout do not change.",
        "agent_result.unknown_tool('bash')",
        "use another name",
    ),
    "an offer without a tool that was called": (
        lambda: LOOKED.offering("a"),
        "offering(...) does not name terminal, which this rollout calls.",
        "agent_result.call('terminal', command='ls').returns('a')",
        "name every called tool, or use unknown_tool(...) for a tool that is not offered",
    ),
    "an offer of a tool that was unknown": (
        lambda: agent_result.unknown_tool("bash").offering("bash"),
        "offering(...) names bash, which is unknown in this rollout.",
        "agent_result.unknown_tool('bash')",
        "remove it, or use call(...)",
    ),
    "building a call without its result": (
        TERMINAL.build,
        "call('terminal', command='ls') has no result: the loop runs every call before it ends.",
        "agent_result.call('terminal', command='ls')",
        "add .returns({...}) or .raises(...)",
    ),
    "building reasoning without its turn": (
        lambda: agent_result.think("hm").build(),
        "think(...) has no turn: reasoning belongs to a text or a call.",
        "agent_result.think('hm')",
        "add .say(...) or .call(...)",
    ),
    "building also without its call": (
        lambda: LOOKED.also().build(),
        "also() has no call to add.",
        "agent_result.call('terminal', command='ls').returns('a').also()",
        "add .call(...)",
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_cannot_follow_is_refused(name: str) -> None:
    """The message says what cannot be, what the rollout is so far, and what to do."""
    step, what, so_far, fix = STEPS[name]

    with pytest.raises(ResultError) as caught:
        step()

    assert str(caught.value) == f"{what}\n  so far    {so_far}\n  fix       {fix}"


ARGUMENTS: dict[str, tuple[Callable[[], Result], str]] = {
    "text that is none": (lambda: agent_result.say(42), "say(...) takes a string; got int 42."),
    "a tool without a name": (lambda: agent_result.call(""), "call(...) takes the name of a tool; got str ''."),
    "arguments twice": (
        lambda: agent_result.call("a", "{}", x=1),
        "call() takes the arguments as a string or by name, not both; got '{}' and names.",
    ),
    "arguments that JSON cannot hold": (
        lambda: agent_result.call("a", x={1}),
        "the arguments of call(...) cannot be written as JSON: Object of type set is not JSON serializable.\n"
        "  seen      {'x': {1}}\n"
        "  fix       use strings, finite numbers, booleans, None, lists and dicts",
    ),
    "arguments that cannot be read": (
        lambda: agent_result.call("a", "[1]"),
        "the arguments of call('a', ...) are not a JSON object: expected a JSON object, got a list.\n"
        "  seen      '[1]'\n"
        "  fix       for a call with unreadable arguments, use bad_arguments('a', text)",
    ),
    "bad arguments that are fine": (
        lambda: agent_result.bad_arguments("a", "{}"),
        "the arguments of bad_arguments('a', ...) are valid: the loop would run the tool.\n"
        "  seen      '{}'\n"
        "  fix       call('a', ...).returns(...)",
    ),
    "a result that is none": (
        lambda: TERMINAL.returns(None),
        "returns(...) takes a tool result: an object or a string, like the results of hermes' tools.\n"
        "  seen      NoneType None\n"
        "  fix       returns({'output': 'a.txt', 'exit_code': 0, 'error': None}), or returns('plain text')",
    ),
    "a result that JSON cannot hold": (
        lambda: TERMINAL.returns({"output": b"a"}),
        "the result in returns(...) cannot be written as JSON: Object of type bytes is not JSON serializable.\n"
        "  seen      {'output': b'a'}\n"
        "  fix       use strings, finite numbers, booleans, None, lists and dicts, or pass the text itself",
    ),
    "no result": (
        TERMINAL.returns,
        "returns() takes at least one result: an object or a string; got none.",
    ),
    "an exception that is none": (
        lambda: TERMINAL.raises("boom"),
        "raises(...) takes an exception that a tool can raise and the loop catches.\n"
        "  seen      str 'boom'\n"
        "  fix       raises(RuntimeError('the sandbox is gone'))",
    ),
    "a field of nothing": (
        lambda: agent_result.messages,
        "agent_result is empty: it has no steps yet.\n  fix       begin with .say(...), .call(...) or .user(...)",
    ),
    "an answer that holds a tool call": (
        lambda: agent_result.say('<tool_call>{"name": "a", "arguments": {}}</tool_call>').build(),
        "the answer contains a tool call as text, which the loop parses and runs: no rollout ends with it.\n"
        '  seen      \'<tool_call>{"name": "a", "arguments": {}}</tool_call>\'\n'
        "  fix       .call('tool', ...).returns(...); or add the calls that follow this text",
    ),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_that_no_rollout_has_is_refused(name: str) -> None:
    """The message says what was seen and what to give instead."""
    step, text = ARGUMENTS[name]

    with pytest.raises(ResultError) as caught:
        step()

    assert str(caught.value) == text


def test_a_changed_result_cannot_be_built_upon() -> None:
    """What follows would stand on fields that no loop left."""
    result = LOOKED.hit_turn_limit()
    result.messages.clear()

    with pytest.raises(ResultError) as caught:
        result.say("42")

    assert str(caught.value) == (
        "this result was modified after it was built, so no step can be added.\n"
        "  seen      AgentResult(messages=[], managed_state=None, turns_used=1, finished_naturally=False, "
        "reasoning_per_turn=[None], tool_errors=[])\n"
        "  fix       build the whole rollout first, then change the fields"
    )


def test_an_unfinished_result_has_no_other_attributes() -> None:
    """A misspelt method is an AttributeError, as on any object."""
    with pytest.raises(AttributeError, match=r"^an incomplete result has no attribute 'retruns': did you mean 'returns'\?$"):
        TERMINAL.retruns("a")


def test_the_layer_is_found_from_environments_only() -> None:
    """Another class leads to no layer."""
    text = r"^int is not an environment: it does not derive from HermesAgentBaseEnv. Its bases are none\.$"
    with pytest.raises(BadTarget, match=text):
        agent_result.of(int)


@pytest.mark.parametrize("how", ["cut_by_length", "aborted"])
@pytest.mark.parametrize(
    ("result", "part"),
    [
        (agent_result, "must follow the text or the calls"),
        (agent_result.say("a").call("terminal", command="ls").also(), "must follow the text or the calls"),
        (agent_result.think("a"), "must follow the text or the calls"),
        (LOOKED, "cannot follow the result of a call"),
        (LOOKED.hit_turn_limit(), "cannot follow: the turn limit ended the loop"),
        (agent_result.say("half a").aborted(), "cannot follow: the server aborted the last reply"),
    ],
)
def test_what_an_incomplete_reply_cannot_follow(how, result, part):
    """Only a text or calls without results can be incomplete."""
    with pytest.raises(ResultError, match=part):
        getattr(result, how)()
