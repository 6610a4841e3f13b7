"""Strategy for scripts of the mock model, for any environment that offers the tools."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from pytest_hermes_env.inference.script import Script
from pytest_hermes_env.inference.steps import (
    Step,
    Turn,
    call,
    call_raw,
    empty_choices,
    fail,
    garbage,
    say,
    think,
    turn,
    unoffered,
)
from pytest_hermes_env.strategies.json_values import texts
from pytest_hermes_env.strategies.limits import check_range
from pytest_hermes_env.strategies.tools import USUAL_TOOLS, checked_tools
from pytest_hermes_env.strategies.turns import DrawnCall, DrawnTurn, drawn_turns
from pytest_hermes_env.types import ToolSchema


def scripts(
    tools: Sequence[ToolSchema] | None = None, *, min_turns: int = 1, max_turns: int = 4, faults: bool = False
) -> st.SearchStrategy[Script]:
    """Return a strategy for scripts that call ``tools`` and end with an answer.

    ``tools`` default to short schemas of hermes' terminal and file tools; requests must offer them. With ``faults``, calls may have
    malformed arguments or name tools that are not offered, and a script may end with a server failure.

    Raises: no tool schemas, or bounds that allow nothing → StrategyError.
    """
    offered = checked_tools("scripts", USUAL_TOOLS if tools is None else tools)
    check_range("scripts", "min_turns", min_turns, "max_turns", max_turns, floor=1)
    turns = drawn_turns("scripts", offered, results=False, mistakes=faults)
    end: st.SearchStrategy[Step] = texts().map(say)
    if faults:
        end = st.one_of(end, st.sampled_from((fail(500), fail(429), empty_choices(), garbage("<html>"))))
    return st.builds(
        lambda drawn, last: Script([*map(_turn, drawn), last]),
        turns(min_turns - 1, max_turns - 1),
        end,
    )


def _turn(drawn: DrawnTurn) -> Turn:
    steps: list[Step] = []
    if drawn.thought is not None:
        steps.append(think(drawn.thought))
    if drawn.text is not None:
        steps.append(say(drawn.text))
    return turn(*steps, *map(_step, drawn.calls))


def _step(drawn: DrawnCall) -> Step:
    if drawn.kind == "bad":
        return call_raw(drawn.tool, drawn.arguments)
    step = call(drawn.tool, **json.loads(drawn.arguments))
    return unoffered(step) if drawn.kind == "unknown" else step
