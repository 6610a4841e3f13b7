"""The items of an environment as clients see them: plain JSON, listed by split, and checked when they come back."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from environments.evaluation.samples import held_out_items
from environments.service.refusals import Refused

IDLE_DRAWS = 16
"""Draws beyond the number of known items without a new one, after which the training items count as complete."""


def check_json(value: object, place: str = "item") -> None:
    """Check that JSON gives ``value`` back as it is. Raises: Refused, with the place of the first part that it would change."""
    if isinstance(value, Mapping) and type(value) is dict:
        for name, inner in value.items():
            if not isinstance(name, str):
                raise Refused(
                    422, "bad_item", f"{place} has the key {name!r}, a {type(name).__name__}; JSON only has text as keys"
                )
            check_json(inner, f"{place}[{name!r}]")
    elif type(value) is list:
        for number, inner in enumerate(value):
            check_json(inner, f"{place}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise Refused(422, "bad_item", f"{place} is {value}, which JSON cannot hold")
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Refused(422, "bad_item", f"{place} is text that cannot be encoded: {value[:80]!r}") from None
    elif not (value is None or type(value) in {bool, int, float}):
        kind = type(value).__name__
        raise Refused(
            422,
            "bad_item",
            f"{place} is a {kind}, which JSON would not give back; make it text, numbers, lists and dicts in setup()",
        )


class TaskList:
    """The items of an environment, with their prompts.

    Training items are drawn from `get_next_item` once and kept, without repetitions, so that the n-th task stays the same.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._train: list[Any] = []
        self._seen: set[str] = set()
        self._kinds: set[str] = set()
        self._common: set[Any] | None = None
        """The keys that every known item has; None if none of them is a dict."""
        self._is_complete = False
        self._eval: list[Any] = []
        self._drawing = asyncio.Lock()

    async def load(self) -> None:
        """Load the held-out items and the first training item. Raises: Refused when there is neither."""
        self._eval = await held_out_items(self._env)
        for item in self._eval:
            self._know(item)
        if not await self._draw(1) and not self._eval:
            raise Refused(
                404,
                "no_items",
                f"{type(self._env).__name__} has no items: get_next_item returned None, and nothing is held out",
            )

    async def tasks(self, split: str, count: int | None) -> list[dict[str, Any]]:
        """Return the first ``count`` items of a split with prompt and system prompt; None returns all held-out items.

        Raises: Refused for a training split without ``count``, which may have no end.
        """
        if split == "train" and count is None:
            raise Refused(422, "bad_request", "n is required with split=train, whose items may have no end")
        items = self._eval if split == "eval" else await self._draw(count or 0)
        if not items:
            source = "get_eval_items() returns nothing" if split == "eval" else "get_next_item() returns None"
            raise Refused(404, "no_items", f"{type(self._env).__name__} has no items of split {split}: {source}")
        return [self._task(item) for item in items[:count]]

    def _task(self, item: Any) -> dict[str, Any]:
        check_json(item)
        prompt = self._env.format_prompt(item)
        check_json(prompt, "the prompt")
        return {"item": item, "prompt": prompt, "system_prompt": self._env.config.system_prompt}

    async def _draw(self, count: int) -> list[Any]:
        """Return the first ``count`` distinct training items, or fewer if there are no more."""
        async with self._drawing:
            idle = 0
            while len(self._train) < count and not self._is_complete:
                item = await self._env.get_next_item()
                key = repr(item)
                if item is not None and key not in self._seen:
                    self._seen.add(key)
                    self._train.append(item)
                    self._know(item)
                    idle = 0
                else:
                    idle += 1
                if item is None:  # there is none at the moment
                    break
                self._is_complete = idle > len(self._train) + IDLE_DRAWS
            return self._train[:count]

    def _know(self, item: Any) -> None:
        self._kinds.add(_kind(item))
        if isinstance(item, dict):
            self._common = set(item) if self._common is None else self._common & set(item)

    def check(self, item: Any) -> None:
        """Check an item that a client sent: it has what every known item has, and a prompt. Raises: Refused."""
        name = type(self._env).__name__
        if _kind(item) not in self._kinds:
            raise Refused(
                422, "bad_item", f"the item is a {_kind(item)}; an item of {name} is a {' or a '.join(sorted(self._kinds))}"
            )
        if isinstance(item, dict) and (missing := sorted(map(str, (self._common or set()) - set(item)))):
            raise Refused(422, "bad_item", f"the item has no {', '.join(missing)}, as every item of {name} has")
        try:
            self._env.format_prompt(item)
        except Exception as error:
            raise Refused(422, "bad_item", f"format_prompt refuses the item: {type(error).__name__}: {error}") from error


def _kind(item: Any) -> str:
    return "number" if isinstance(item, (int, float)) and not isinstance(item, bool) else type(item).__name__
