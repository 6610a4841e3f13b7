"""Relations between results: changes that should not raise, or not change, a reward.

A reward may pay for the use of a tool, so an extra call is only added to results with a call. It may be negative for a wrong
answer, so removing the answer only counts if the reward was not negative.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.play.probing.transcripts import plain


@dataclass(frozen=True, kw_only=True)
class Variation:
    """A variation of another result. With ``is_kept`` the reward should stay the same, else it should not rise."""

    name: str
    law: str
    result: Any
    is_kept: bool = False


def variations(result: Any) -> Iterator[Variation]:
    """Yield the results that a reward should not prefer to ``result``."""
    if (longer := _with_extra_call(result)) is not None:
        yield Variation(
            name="extra-call", law="repeating a tool call that was already made does not raise the reward", result=longer
        )
    if (shorter := _without_answer(result)) is not None:
        yield Variation(name="no-answer", law="removing the final answer does not raise the reward", result=shorter)
    if (swapped := _with_swapped_results(result)) is not None:
        yield Variation(
            name="order",
            law="the order in which independent tool results come back does not change the reward",
            result=swapped,
            is_kept=True,
        )


def _with_extra_call(result: Any) -> Any:
    """Return the result with its last answered call repeated, or None without a call."""
    turns = [index for index, message in enumerate(result.messages) if message.get("tool_calls")]
    if not turns:
        return None
    first = turns[-1]
    call = result.messages[first]["tool_calls"][0]
    answer = next((one for one in result.messages if one.get("tool_call_id") == call["id"]), None)
    if answer is None:
        return None
    made = plain(result)
    again = {
        **copy.deepcopy(result.messages[first]),
        "content": "",
        "tool_calls": [{**copy.deepcopy(call), "id": "call_again"}],
    }
    after = first + 1
    while after < len(made.messages) and made.messages[after]["role"] == "tool":
        after += 1
    made.messages[after:after] = [again, {**copy.deepcopy(answer), "tool_call_id": "call_again"}]
    made.turns_used += 1
    return made


def _without_answer(result: Any) -> Any:
    """Return the result with an empty last answer; None without one, or if earlier text could be taken for it."""
    last = result.messages[-1] if result.messages else {}
    if any(message.get("content") for message in result.messages[:-1] if message.get("role") == "assistant"):
        return None
    if last.get("role") != "assistant" or last.get("tool_calls") or not last.get("content"):
        return None
    made = plain(result)
    made.messages[-1]["content"] = ""
    return made


def _with_swapped_results(result: Any) -> Any:
    """Return the result with the first two adjacent tool results swapped, or None without two."""
    for index, (one, other) in enumerate(zip(result.messages, result.messages[1:], strict=False)):
        if one.get("role") == other.get("role") == "tool" and one != other:
            made = plain(result)
            made.messages[index : index + 2] = [copy.deepcopy(other), copy.deepcopy(one)]
            return made
    return None
