"""What a result shows, what it equals, and what becomes of it when it is copied or changed."""

from __future__ import annotations

import copy
import pickle

import pytest

from environments.agent_loop import AgentResult
from pytest_hermes_env import agent_result


class Gone(Exception):
    """An exception that no builtin name leads to."""


EXPRESSIONS = (
    "agent_result",
    "agent_result.user('…').call('terminal', command='ls').returns({'output': 'a', 'exit_code': 0, 'error': None}).say('42')",
    "agent_result.offering('a', 'b').system('s').user('u').user('v').think('t').say('p').call('a').returns('x').server_error()",
    "agent_result.call('a', '{\"x\":1}').call('b', **{'from': 1, 'a-b': [2.5]}).raises(ValueError('v', 1)).returns('')",
    "agent_result.call('b', é=1).call('b', **{'º': 1}).returns('').returns('')",
    "agent_result.call('a').unknown_tool('b', x=None).bad_arguments('c', '[]').returns('x').hit_turn_limit()",
    "agent_result.unknown_tool('b', '{').also().bad_arguments('c', '{').also().call('a', '').call('d').returns('1').returns('2')",
    "agent_result.call('a').raises(type('Gone', (Exception,), {})('no more')).say('')",
    "agent_result.call('a').raises(type('FileNotFoundError', (Exception,), {})(\"[Errno 2] No such file: '/a'\"))",
    "agent_result.call('a')",
    "agent_result.think('t')",
    "agent_result.unknown_tool('b').also()",
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_result_shows_the_expression_that_makes_it(expression: str) -> None:
    """Ready to paste, and in one form however it was built."""
    result = eval(expression, {"agent_result": agent_result})

    assert repr(result) == expression


def test_arguments_that_python_cannot_show_are_shown_as_text() -> None:
    """JSON knows NaN as the model wrote it; Python has no literal for it."""
    result = agent_result.call("a", '{"x": NaN}').returns("")

    assert repr(result) == "agent_result.call('a', '{\"x\": NaN}').returns('')"


def test_a_built_result_equals_the_plain_one_in_both_directions() -> None:
    """Field by field, on either side of ==, inside lists too."""
    built, plain = agent_result.say("42"), agent_result.say("42").build()

    assert (built == plain, plain == built, [built] == [plain], built != plain, plain != built) == (
        True,
        True,
        True,
        False,
        False,
    )


def test_results_with_different_fields_differ() -> None:
    """Also from a plain one, and from what is no result at all."""
    built = agent_result.say("42")

    others = [agent_result.say("41"), agent_result.say("41").build(), agent_result.think("t").say("42"), "42", None]
    assert [built == other for other in others] == [False] * 5
    assert [other == built for other in others] == [False] * 5


def test_results_cannot_be_hashed() -> None:
    """Like the layer's own class: their fields can change."""
    with pytest.raises(TypeError, match=r"^unhashable type: 'BuiltResult'$"):
        hash(agent_result.say("42"))


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, copy.copy, lambda result: pickle.loads(pickle.dumps(result))],
    ids=["deepcopy", "copy", "pickle"],
)
def test_a_copy_is_the_same_result(copied) -> None:
    """It shows the same expression and can be built upon."""
    result = agent_result.call("terminal", command="ls").returns("a")

    again = copied(result)

    assert (again, repr(again), again.say("x")) == (result, repr(result), result.say("x"))


def test_a_changed_result_shows_its_fields() -> None:
    """The expression would no longer make it."""
    result = agent_result.say("42")
    result.turns_used = 7

    assert repr(result) == (
        "AgentResult(messages=[{'role': 'user', 'content': '…'}, {'role': 'assistant', 'content': '42'}], managed_state=None, "
        "turns_used=7, finished_naturally=True, reasoning_per_turn=[None], tool_errors=[])"
    )
    assert result == AgentResult(messages=result.messages, turns_used=7, finished_naturally=True, reasoning_per_turn=[None])
