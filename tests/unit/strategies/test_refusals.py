"""What cannot be drawn is refused when a strategy is called, and not when a test draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_hermes_env import agent_result
from pytest_hermes_env.errors import StrategyError
from pytest_hermes_env.strategies import agent_results


def tool(name: str = "look", **parameters: Any) -> dict[str, Any]:
    """Return the schema of a tool."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **parameters}}}


LOOK_OFTEN = tool(properties={"at": {"type": "string"}, "often": {"type": "integer"}}, required=["at"])

LOOK = tool(properties={"at": {"type": "integer", "minimum": 3}}, required=["at"])

IMPOSSIBLE: dict[str, tuple[Callable[[], Any], str]] = {
    "rollouts: no tools": (
        lambda: agent_results([]),
        "agent_results() takes a non-empty list of tool schemas.\n"
        "  seen      list []\n"
        "  fix       [{'type': 'function', 'function': {'name': 'look', 'parameters': {'type': 'object', 'properties': {}}}}]",
    ),
    "rollouts: bounds in the wrong order": (
        lambda: agent_results(min_turns=3, max_turns=2),
        "agent_results(min_turns=3, max_turns=2) allows nothing: min_turns is greater than max_turns.",
    ),
    "rollouts: a negative bound": (
        lambda: agent_results(min_turns=-1),
        "agent_results(min_turns=...) takes an integer from 0; got int -1.",
    ),
    "rollouts: a bound that is no number": (
        lambda: agent_results(max_turns="4"),
        "agent_results(max_turns=...) takes an integer from 0; got str '4'.",
    ),
    "rollouts: no end": (
        lambda: agent_results(finishes=[]),
        "agent_results(finishes=...) takes a list of values from 'answer', 'turn_limit', 'server_error'.\n  seen      []",
    ),
    "rollouts: an unknown end": (
        lambda: agent_results(finishes="answer"),
        "agent_results(finishes=...) takes a list of values from 'answer', 'turn_limit', 'server_error'.\n  seen      'answer'",
    ),
    "rollouts: an answer without a turn": (
        lambda: agent_results(min_turns=0, max_turns=0, finishes=["answer"]),
        "agent_results(max_turns=0) allows nothing: without a turn, a rollout can only end with 'server_error'.\n"
        "  seen      finishes=['answer']",
    ),
    "rollouts: a beginning that has ended": (
        lambda: agent_results(start=agent_result.say("42")),
        "agent_results(start=...) takes a builder without turns, such as agent_result.user('What is 6 * 7?').\n"
        "  seen      BuiltResult agent_result.say('42')",
    ),
    "rollouts: a beginning that is none": (
        lambda: agent_results(start="What is 6 * 7?"),
        "agent_results(start=...) takes a builder without turns, such as agent_result.user('What is 6 * 7?').\n"
        "  seen      str 'What is 6 * 7?'",
    ),
    "rollouts: a beginning that offers other tools": (
        lambda: agent_results([LOOK], start=agent_result.offering("terminal")),
        "agent_results(start=...) does not offer look, which the results call.\n"
        "  seen      agent_result.offering('terminal')\n"
        "  fix       pass the schemas of the offered tools: agent_results(tools)",
    ),
    "tools: no list": (
        lambda: agent_results(LOOK_OFTEN),
        "agent_results() takes a non-empty list of tool schemas.\n"
        "  seen      dict {'type': 'function', 'function': {'name': 'look', 'parameters': {'type': 'object', 'properties': "
        "{'at': {'type': 'string'}, 'often': {'type': 'integer'}}, 'required': ['at']}}}\n"
        "  fix       [{'type': 'function', 'function': {'name': 'look', 'parameters': {'type': 'object', 'properties': {}}}}]",
    ),
    "tools: no tool schema": (
        lambda: agent_results([{"name": "look"}]),
        "agent_results() takes tool schemas; this one has no function with a name.\n  seen      dict {'name': 'look'}",
    ),
    "tools: a name twice": (
        lambda: agent_results([LOOK_OFTEN, LOOK_OFTEN]),
        "agent_results() takes tools with different names; got two named 'look'.",
    ),
    "tools: no JSON schema": (
        lambda: agent_results([tool(properties={"at": {"type": "text"}})]),
        "agent_results(): the parameters of 'look' are not a valid JSON schema: "
        "'text' is not valid under any of the given schemas.\n"
        "  seen      {'type': 'object', 'properties': {'at': {'type': 'text'}}}",
    ),
    "tools: parameters that are no object": (
        lambda: agent_results([tool(type="array")]),
        "agent_results(): the parameters of 'look' must have type object.\n  seen      {'type': 'array'}",
    ),
    "tools: parameters that nothing fits": (
        lambda: agent_results([tool(properties={"at": False}, required=["at"])]),
        "agent_results() cannot draw arguments of 'look': no value is valid.\n"
        "  seen      {'type': 'object', 'properties': {'at': False}, 'required': ['at']}",
    ),
    "tools: bounds that leave nothing": (
        lambda: agent_results([tool(properties={"at": {"type": "integer", "minimum": 2, "maximum": 1}}, required=["at"])]),
        "agent_results() cannot draw arguments of 'look': Cannot have max_value=1 < min_value=2.\n"
        "  seen      {'type': 'object', 'properties': {'at': {'type': 'integer', 'minimum': 2, 'maximum': 1}}, 'required': ['at']}",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_drawn_is_refused_at_once(name: str) -> None:
    """The call itself raises."""
    ask, text = IMPOSSIBLE[name]

    with pytest.raises(StrategyError) as caught:
        ask()

    assert str(caught.value) == text
