"""A strategy for AgentResults that the agent loop could return. Its arguments are checked when it is called, not when a test draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hypothesis import strategies as st

from pytest_hermes_env.errors import StrategyError, shorten, with_type
from pytest_hermes_env.results import Result, agent_result
from pytest_hermes_env.results.builder import history_of
from pytest_hermes_env.strategies.json_values import texts
from pytest_hermes_env.strategies.turns import USUAL_TOOLS, DrawnTurn, checked_tools, drawn_turns
from pytest_hermes_env.types import ToolSchema

Finish = Literal["answer", "turn_limit", "server_error"]
FINISHES: tuple[Finish, ...] = ("answer", "turn_limit", "server_error")

ANSWERS_PER_OTHER = 4
"""How many rollouts end with an answer for each one that ends in another way."""

ANSWERS = (
    "42",
    "-1.5",
    "yes",
    "0.5",
    '{"score": 0.5}',
    "<answer>42</answer>",
    "\\boxed{42}",
    "```python\nprint(42)\n```",
    "nan",
    "x" * 2_000,
)
"""Answers in forms that rewards look for, or fail on."""


def agent_results(
    tools: Sequence[ToolSchema] | None = None,
    *,
    min_turns: int = 1,
    max_turns: int = 4,
    finishes: Sequence[Finish] = FINISHES,
    start: Result = agent_result,
) -> st.SearchStrategy[Any]:
    """Return a strategy for AgentResults, built with `agent_result`; their ``repr`` is the builder expression.

    ``tools``: the schemas of the tools to call (default: short ones of hermes' terminal and file tools). ``min_turns`` and
    ``max_turns`` count assistant messages. ``finishes``: the ends to draw from. ``start``: the beginning of every result, such as its
    user message.

    Raises: no tool schemas, or bounds or finishes that allow nothing → StrategyError.
    """
    offered = checked_tools(USUAL_TOOLS if tools is None else tools)
    _check_turns(min_turns, max_turns)
    _check_finishes(finishes)
    begun = _checked_start(start, offered)
    possible = [finish for finish in FINISHES if finish in finishes and (max_turns or finish == "server_error")]
    if not possible:
        raise StrategyError(
            "agent_results(max_turns=0) allows nothing: without a turn, a rollout can only end with 'server_error'.\n"
            f"  seen      finishes={list(finishes)!r}"
        )
    often = [finish for finish in possible for _ in range(ANSWERS_PER_OTHER if finish == "answer" else 1)]
    turns = drawn_turns(offered)
    names_tools = tools is not None and history_of(begun).offered is None

    @st.composite
    def results(draw: st.DrawFn) -> Result:
        finish = draw(st.sampled_from(often))
        answers = finish == "answer"
        least = max(min_turns - answers, int(finish == "turn_limit"))
        result = begun
        for turn in draw(turns(least, max_turns - answers)):
            result = _with_turn(result, turn)
        if names_tools and history_of(result).called("unknown"):
            result = result.offering(*offered)
        return _ended(result, finish, draw)

    return results()


def _check_turns(least: object, most: object) -> None:
    for name, value in (("min_turns", least), ("max_turns", most)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise StrategyError(f"agent_results({name}=...) takes an integer from 0; got {with_type(value)}.")
    if least > most:  # type: ignore[operator]  # both are ints by now
        raise StrategyError(
            f"agent_results(min_turns={least}, max_turns={most}) allows nothing: min_turns is greater than max_turns."
        )


def _check_finishes(chosen: object) -> None:
    if not isinstance(chosen, list | tuple) or not chosen or any(value not in FINISHES for value in chosen):
        raise StrategyError(
            f"agent_results(finishes=...) takes a list of values from {', '.join(map(repr, FINISHES))}.\n"
            f"  seen      {shorten(repr(chosen))}"
        )


def _checked_start(start: object, tools: Mapping[str, Any]) -> Result:
    history = history_of(start) if isinstance(start, Result) else None
    if not isinstance(start, Result) or history is None or history.turns or history.end or not history.is_complete:
        raise StrategyError(
            "agent_results(start=...) takes a builder without turns, such as agent_result.user('What is 6 * 7?').\n"
            f"  seen      {with_type(start)}"
        )
    if history.offered is not None and (missing := sorted(set(tools) - history.offered)):
        raise StrategyError(
            f"agent_results(start=...) does not offer {', '.join(missing)}, which the results call.\n"
            f"  seen      {shorten(repr(start))}\n"
            "  fix       pass the schemas of the offered tools: agent_results(tools)"
        )
    return start


def _with_turn(result: Result, turn: DrawnTurn) -> Result:
    """Return the result with one more turn."""
    if turn.thought is not None:
        result = result.think(turn.thought)
    if turn.text is not None:
        result = result.say(turn.text)
    for number, call in enumerate(turn.calls):
        if number:
            result = result.also()
        if call.kind == "bad":
            result = result.bad_arguments(call.tool, call.arguments)
        else:
            result = (result.call if call.kind == "valid" else result.unknown_tool)(call.tool, call.arguments)
    for call in turn.calls:
        if call.kind == "valid":
            result = result.raises(call.result) if isinstance(call.result, Exception) else result.returns(call.result)
    return result


def _ended(result: Result, finish: Finish, draw: st.DrawFn) -> Result:
    if finish == "turn_limit":
        return result.hit_turn_limit()
    if finish == "server_error":
        return result.server_error()
    thought = draw(st.none() | texts(min_size=1, max_size=12))
    answer = draw(texts() | st.sampled_from(ANSWERS))
    return (result if thought is None else result.think(thought)).say(answer)
