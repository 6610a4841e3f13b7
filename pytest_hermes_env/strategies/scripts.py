"""Strategy of scripts for the mock model: conversations that it can hold with any environment that offers the tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from pytest_hermes_env.inference.script import Script
from pytest_hermes_env.inference.steps import Step, call, call_raw, empty_choices, fail, garbage, say, think, turn, unoffered
from pytest_hermes_env.strategies.limits import check_range
from pytest_hermes_env.strategies.tools import USUAL_TOOLS, arguments_of, checked_tools, unreadable_arguments
from pytest_hermes_env.types import ToolSchema

__all__ = ["scripts"]

MOST_CALLS = 3


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
    calls = [_calls(name, parameters) for name, parameters in offered.items()]
    ends: list[st.SearchStrategy[Any]] = [st.text(max_size=20).map(say)]
    if faults:
        calls.append(st.just(unoffered(call("no_such_tool"))))
        calls += [_unreadable(name, parameters) for name, parameters in offered.items()]
        ends.append(st.sampled_from((fail(500), fail(429), empty_choices(), garbage("<html>"))))
    thoughts = st.none() | st.text(min_size=1, max_size=12).map(think)
    texts = st.none() | st.text(min_size=1, max_size=12).map(say)
    spoken = st.builds(
        lambda thought, text, called: turn(*(step for step in (thought, text, *called) if step is not None)),
        thoughts,
        texts,
        st.lists(st.one_of(calls), min_size=1, max_size=MOST_CALLS),
    )
    return st.builds(
        lambda turns, end: Script([*turns, end]),
        st.lists(spoken, min_size=min_turns - 1, max_size=max_turns - 1),
        st.one_of(ends),
    )


def _calls(name: str, parameters: dict[str, Any]) -> st.SearchStrategy[Step]:
    return arguments_of("scripts", name, parameters).map(lambda text: call(name, **json.loads(text)))


def _unreadable(name: str, parameters: dict[str, Any]) -> st.SearchStrategy[Step]:
    return unreadable_arguments(arguments_of("scripts", name, parameters)).map(lambda text: call_raw(name, text))
