"""What the mock model says without a script."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from pytest_hermes_env.inference.steps import as_turn, call, fail, say
from pytest_hermes_env.play import auto_script
from pytest_hermes_env.play.auto_script import arguments_for, in_order

SCHEMA = {"properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = {"zebra": {}, "terminal": SCHEMA, "write_file": {"properties": {"path": {}, "content": {}}}}
FIRST = call("terminal", command="echo hello")
JUDGED = say(auto_script.JUDGE_ANSWER)


def conversation(turn: int, tools: Any = TOOLS, name: str = "a") -> Any:
    """Return a conversation that is in this turn."""
    return SimpleNamespace(id=name, turn=turn, tools=tools)


def steps(policy: Any, *turns: int, tools: Any = TOOLS) -> list[Any]:
    """Return the steps of each turn."""
    return [as_turn(policy(conversation(turn, tools))).steps for turn in turns]


def test_every_tool_is_used_then_the_model_answers() -> None:
    """The first alone, the others together, in an order in which they work."""
    used = steps(auto_script.tool_using_policy(30), 0, 1, 2)

    rest = (call("write_file", path="hermes_env_notes.txt", content="hello\n"), call("zebra"))
    assert used == [(FIRST,), rest, (say(auto_script.FINAL_ANSWER),)]


def test_all_tools_are_used_at_once_where_turns_are_few() -> None:
    """The answer needs the last one."""
    assert [len(turn) for turn in steps(auto_script.tool_using_policy(2), 0, 1)] == [3, 1]


@pytest.mark.parametrize(
    "policy",
    [
        auto_script.tool_using_policy(30),
        auto_script.brief_policy,
        auto_script.silent_policy,
        auto_script.failing_later_policy,
    ],
)
def test_a_judge_is_answered_with_a_score(policy: Any) -> None:
    """A question without tools is taken for a judge's."""
    assert steps(policy, 0, tools={}) == [(JUDGED,)]


def test_one_conversation_fails_and_the_others_do_not() -> None:
    """The first one with tools, in all of its turns."""
    policy = auto_script.failing_in_one(auto_script.brief_policy)

    answers = [
        policy(conversation(0, tools={}, name="judge")),
        policy(conversation(0, name="a")),
        policy(conversation(0, name="b")),
        policy(conversation(1, name="a")),
    ]

    assert answers == [JUDGED, fail(500), FIRST, fail(500)]


def test_tools_that_need_others_come_later() -> None:
    """Files are written before they are read; unknown tools come last, by name."""
    assert in_order(["b", "a", "read_file", "write_file", "terminal"]) == ["terminal", "write_file", "read_file", "a", "b"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 9},
        {"type": "integer", "minimum": 7},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {}}, "required": ["a"]},
        {"const": 3},
        {"default": "d"},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {},
    ],
    ids=str,
)
def test_arguments_are_valid(schema: Any) -> None:
    """By the schema of the tool; what is not required is left out."""
    parameters = {"type": "object", "properties": {"value": schema, "more": {}}, "required": ["value"]}

    arguments = arguments_for("unknown_tool", parameters)

    jsonschema.validate(arguments, parameters)
    assert set(arguments) == {"value"}
