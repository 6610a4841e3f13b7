"""Finds what the calls of a recording repeat of earlier ones: the messages of a conversation, and the ids of a prompt.

Each request repeats the whole conversation before it. A cassette contains each message once, and refers to it:
``{"~as": 3, "then": [...]}`` means the messages of call 3 and these; ``{"~ids_of": 3, "choice": 0, "then": [...]}`` means the prompt of
call 3 with the ids of its first answer, and these. ``up_to`` limits a reference to the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.cassette.escape import dumped, is_plain_numbers
from pytest_hermes_env.types import JsonObject, JsonValue

BLOCK = 32
NO_CHOICE = -1


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


@dataclass(slots=True)
class _Node:
    call: int
    ends: int = 0
    next: dict[str, _Node] = field(default_factory=dict)


class MessageTree:
    """A prefix tree of the conversations so far."""

    def __init__(self) -> None:
        self._root = _Node(0)

    def add(self, call: int, messages: list[JsonValue]) -> Reference | None:
        """Add the messages of ``call``; return a reference to the longest prefix in an earlier call, or None."""
        node, depth, found = self._root, 0, self._root
        for position, message in enumerate(messages, start=1):
            key = text_of_value(message)
            if key is None:
                break
            following = node.next.get(key)
            if following is None:
                following = node.next[key] = _Node(call)
            elif depth == position - 1:
                depth, found = position, following
            node = following
        else:
            node.ends = node.ends or call
        if not depth:
            return None
        is_whole = bool(found.ends) and found.ends != call
        return Reference(call=found.ends if is_whole else found.call, up_to=depth, is_whole=is_whole)


class IdSources:
    """The token ids of prompts and answers so far, indexed by blocks, to find common prefixes."""

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[int, int]] = {}
        self._ids: dict[tuple[int, int], list[int]] = {}

    def add(self, call: int, ids: list[int], answers: list[list[int]]) -> Reference | None:
        """Add a prompt and its answers; return a reference to the prefix in an earlier call, or None if there is no long one."""
        chain, source = _chain(0, ids, 0), None
        for link in chain:
            known = self._blocks.get(link)
            if known is None:
                break
            source = known
        reference = self._reference(ids, source) if source else None
        self._remember(call, NO_CHOICE, ids, chain)
        whole_blocks = len(chain) * BLOCK
        for choice, answer in enumerate(answers):
            rest = _chain(chain[-1] if chain else 0, ids[whole_blocks:] + answer, whole_blocks)
            self._remember(call, choice, ids + answer, rest)
        return reference

    def _reference(self, ids: list[int], source: tuple[int, int]) -> Reference | None:
        earlier = self._ids[source]
        common = common_prefix(ids, earlier)
        if common < BLOCK:  # a hash collision
            return None
        return Reference(call=source[0], choice=source[1], up_to=common, is_whole=common == len(earlier))

    def _remember(self, call: int, choice: int, ids: list[int], chain: list[int]) -> None:
        self._ids[call, choice] = ids
        for link in chain:
            self._blocks.setdefault(link, (call, choice))


def _chain(start: int, ids: list[int], offset: int) -> list[int]:
    """Return one hash per whole block, of all ids up to its end."""
    links = []
    link = start
    for at in range(0, len(ids) - BLOCK + 1, BLOCK):
        link = hash((link, offset + at, *ids[at : at + BLOCK]))
        links.append(link)
    return links


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
