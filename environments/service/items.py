"""The items of an environment as clients see them: plain JSON, listed by split, and checked when they come back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from environments.rollout.evaluation import held_out_items
from environments.service.waiting_line import Refused

IDLE_DRAWS = 16
"""Draws beyond the number of known items without a new one, after which the training items count as complete."""


def check_json(value: object, what: str = "the item") -> None:
    """Check that JSON gives ``value`` back as it is. Raises: Refused."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(422, "bad_item", f"{what} cannot be written as JSON: {error}") from None
    if json.loads(text) != value:
        raise Refused(
            422, "bad_item", f"JSON would change {what}: it has only lists, and only text as keys; change it in setup()"
        )


class TaskList:
    """The items of an environment, with their prompts.

    Training items are drawn from `get_next_item` once and kept, without repetitions, so that the n-th task stays the same.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._train: list[Any] = []
        self._seen: set[str] = set()
        self._is_complete = False
        self._eval: list[Any] = []
        self._drawing = asyncio.Lock()

    async def load(self) -> None:
        """Load the held-out items and the first training item. Raises: Refused when there is neither."""
        self._eval = await held_out_items(self._env)
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
                    idle = 0
                else:
                    idle += 1
                if item is None:  # there is none at the moment
                    break
                self._is_complete = idle > len(self._train) + IDLE_DRAWS
            return self._train[:count]

    def check(self, item: Any) -> None:
        """Check that an item which a client sent has a prompt. Raises: Refused."""
        try:
            self._env.format_prompt(item)
        except Exception as error:
            raise Refused(422, "bad_item", f"format_prompt refuses the item: {type(error).__name__}: {error}") from error
