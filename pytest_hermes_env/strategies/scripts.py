"""Strategy of scripts for the mock model: conversations that it can hold with any environment that offers the tools."""

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
from pytest_hermes_env.strategies.limits import check_range
from pytest_hermes_env.strategies.spoken import SpokenCall, SpokenTurn, spoken_turns
from pytest_hermes_env.strategies.texts import texts
from pytest_hermes_env.strategies.tools import USUAL_TOOLS, checked_tools
from pytest_hermes_env.types import ToolSchema

__all__ = ["scripts"]


def scripts(
    tools: Sequence[ToolSchema] | None = None, *, min_turns: int = 1, max_turns: int = 4, faults: bool = False
) -> st.SearchStrategy[Script]:
    """Return scripts that call ``tools`` and end with an answer.

    ``tools`` default to hermes' terminal and file tools, in short; the mock model refuses to call what a request does not
    offer. With ``faults``, calls may be unreadable or of tools that are not offered, and the end may be a failing server.

    Raises: no tool schemas, or bounds that leave nothing → StrategyError.
    """
    offered = checked_tools("scripts", USUAL_TOOLS if tools is None else tools)
    check_range("scripts", "min_turns", min_turns, "max_turns", max_turns, floor=1)
    turns = spoken_turns("scripts", offered, results=False, mistakes=faults)
    end: st.SearchStrategy[Step] = texts().map(say)
    if faults:
        end = st.one_of(end, st.sampled_from((fail(500), fail(429), empty_choices(), garbage("<html>"))))
    return st.builds(
        lambda spoken, last: Script([*map(_turn, spoken), last]),
        turns(min_turns - 1, max_turns - 1),
        end,
    )


def _turn(spoken: SpokenTurn) -> Turn:
    said: list[Step] = []
    if spoken.thought is not None:
        said.append(think(spoken.thought))
    if spoken.text is not None:
        said.append(say(spoken.text))
    return turn(*said, *map(_step, spoken.calls))


def _step(spoken: SpokenCall) -> Step:
    if spoken.kind == "bad":
        return call_raw(spoken.tool, spoken.arguments)
    step = call(spoken.tool, **json.loads(spoken.arguments))
    return unoffered(step) if spoken.kind == "unknown" else step
