"""Finds what the calls of a recording repeat of earlier ones: the messages of a conversation, and the ids of a prompt.

Each request repeats the whole conversation before it. A cassette contains each message once, and refers to it:
``{"~as": 3, "then": [...]}`` means the messages of call 3 and these; ``{"~ids_of": 3, "choice": 0, "then": [...]}`` means the prompt of
call 3 with the ids of its first answer, and these. ``up_to`` limits a reference to the beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.cassette.escape import dumped, is_plain_numbers
from pytest_hermes_env.types import JsonObject, JsonValue

NO_CHOICE = -1
COMPARED = 16
"""How many of the last lists of a rollout, and of the first lists of rollouts, a list is compared with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A reference to the first ``up_to`` messages of a call, or to its first ids, followed by those of a ``choice``."""

    call: int
    up_to: int
    is_whole: bool
    choice: int = NO_CHOICE


def text_of_value(value: JsonValue) -> str | None:
    """Return a text that identifies the value (1 and 1.0 differ, as does the order of keys); None if it has no JSON."""
    try:
        return dumped(value)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """What a later call may begin with: the messages of a call, or the ids of its prompt, followed by those of a ``choice``."""

    call: int
    items: Sequence[Any]
    is_complete: bool
    choice: int = NO_CHOICE


class Repeats:
    """Finds what a call repeats of earlier ones, in lists of which at least the first ``least`` items are the same.

    A call is compared with the last ones of its own rollout, whose conversation it continues, and with the first ones of the rollouts
    before it, which have the same system prompt and tools.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._firsts: deque[_Source] = deque(maxlen=COMPARED)
        self._of_rollout: dict[int, deque[_Source]] = {}

    def add(
        self, call: int, rollout: int, items: Sequence[Any], *, is_complete: bool = True, answers: Sequence[list[int]] = ()
    ) -> Reference | None:
        """Add a list of ``call``, and the ``answers`` that may follow it; return a reference to its longest beginning, or None."""
        is_first = rollout not in self._of_rollout
        recent = self._of_rollout.setdefault(rollout, deque(maxlen=COMPARED))
        found: Reference | None = None
        for source in (*self._firsts, *recent):
            up_to = common_prefix(items, source.items) if items[: self._least] == source.items[: self._least] else 0
            is_whole = source.is_complete and up_to == len(source.items)
            if up_to >= self._least and (found is None or (up_to, is_whole) > (found.up_to, found.is_whole)):
                found = Reference(call=source.call, up_to=up_to, is_whole=is_whole, choice=source.choice)
        own = _Source(call=call, items=items, is_complete=is_complete)
        if is_first:
            self._firsts.append(own)
        recent.append(own)
        recent.extend(
            _Source(call=call, items=[*items, *answer], is_complete=True, choice=choice)
            for choice, answer in enumerate(answers)
        )
        return found


def common_prefix(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return the length of the common prefix, by binary search: comparing slices is faster than comparing items."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def prompt_ids(body: JsonValue) -> tuple[JsonObject, str] | None:
    """Return the object and the key with the prompt ids of a request to ``/generate`` or ``/completions``."""
    if not isinstance(body, dict):
        return None
    prompt = body.get("prompt")
    places = [(body, "input_ids"), (body, "prompt")]
    if isinstance(prompt, dict):
        places.append((prompt, "prompt_token_ids"))
    for container, key in places:
        if not isinstance(container.get(key), str | int | float | dict | None):
            return container, key
    return None


def is_ids(value: object) -> bool:
    """Return whether ``value`` is a list of integers."""
    return isinstance(value, list) and is_plain_numbers(value) and set(map(type, value)) == {int}


def answered_ids(body: JsonValue) -> list[list[int]]:
    """Return the ids of each choice in an answer of vLLM's or SGLang's ``/generate``; [] for other answers."""
    try:
        if isinstance(body, Mapping) and isinstance(body.get("logprobs"), list):
            return [[int(next(iter(position[0]))) for position in choice] for choice in body["logprobs"]]  # type: ignore[index, union-attr, arg-type]
        answers = body if isinstance(body, list) else [body]
        ids = [[position[1] for position in answer["meta_info"]["output_token_logprobs"]] for answer in answers]  # type: ignore[index, union-attr, call-overload]
    except (LookupError, TypeError, ValueError, StopIteration, RuntimeError):
        return []
    return ids if all(not answer or is_ids(answer) for answer in ids) else []  # type: ignore[return-value]
