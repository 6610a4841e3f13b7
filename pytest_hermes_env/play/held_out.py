"""Evaluations on few items: one full evaluation shows which items are held out, and the others need only three of them.

Place in the flow: the stages of a class share one `HeldOut`. It learns from the scenario `evaluate`, and every later evaluation runs
inside of `few`.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_hermes_env.patches import intercept
from pytest_hermes_env.play.buffers import copied, picture
from pytest_hermes_env.play.journal import LoopStarted, Reward
from pytest_hermes_env.play.scenario import Scenario

FEW = 3
"""How many items an evaluation gets: one that fails, and enough others to tell whether its failure costs their results."""
LONG = 500
"""Longer collections are left as they are, so that no dataset is compared with the items."""


class HeldOut:
    """The items that the full evaluation of a class scored beyond the first few, and the evaluations without them."""

    def __init__(self) -> None:
        """Know no items: evaluations get all."""
        self._surplus: frozenset[str] = frozenset()

    @property
    def is_shortened(self) -> bool:
        """Whether evaluations get few of the items."""
        return bool(self._surplus)

    def learn(self, evaluation: Scenario) -> None:
        """Take the items of a full evaluation."""
        self._surplus = frozenset([item.key for item in evaluation.held_out][FEW:])

    def check(self, evaluation: Scenario, with_few: Scenario) -> None:
        """Give evaluations all items again if one with few of them raised or ran nothing, and the full one did not."""
        if (with_few.error and not evaluation.error) or not with_few.of(LoopStarted):
            self._surplus = frozenset()

    @contextlib.contextmanager
    def few(self, env: Any) -> Iterator[None]:
        """Leave the surplus out of what the instance, its class and get_eval_items hold, while the context lasts."""
        with contextlib.ExitStack() as shortened:
            if self._surplus and hasattr(env, "get_eval_items"):
                shortened.enter_context(intercept("HermesAgentBaseEnv.get_eval_items", self._few_of, owner=env))
            for name, value in collections_of(env).items() if self._surplus else ():
                if (shorter := self._without_surplus(value)) is not value:
                    shortened.enter_context(_holding(env, name, shorter))
            yield

    def _few_of(self, real: Any) -> Any:
        items = real()
        return self._awaited(items) if inspect.isawaitable(items) else self._without_surplus(items)

    async def _awaited(self, items: Any) -> Any:
        return self._without_surplus(await items)

    def _without_surplus(self, value: Any) -> Any:
        """Return a collection without the surplus; the collection itself where it holds none."""
        if isinstance(value, dict):
            parts = {key: self._without_surplus(part) for key, part in value.items()}
            return parts if any(parts[key] is not part for key, part in value.items()) else value
        is_table = hasattr(value, "select") and hasattr(value, "__len__")  # datasets.Dataset
        if not (is_table or type(value) in {list, tuple}) or len(value) > LONG:
            return value
        kept = [index for index, item in enumerate(value) if repr(picture(item)) not in self._surplus]
        if len(kept) == len(value):
            return value
        return value.select(kept) if is_table else type(value)(value[index] for index in kept)


def items_asked(env: Any, evaluation: Scenario) -> list[Any]:
    """Return the items that an evaluation scored; where it did so without compute_reward, those that the environment holds and whose prompts it asked."""
    rewarded = {repr(picture(reward.item)): reward.item for reward in evaluation.of(Reward)}
    prompts = {prompt_in(request) for request in evaluation.requests if request.get("tools")} - {""}
    held = collections_of(env).values() if prompts and not rewarded else ()
    parts = [part for value in held for part in (value.values() if isinstance(value, dict) else [value])]
    for item in (
        item for part in parts if hasattr(part, "__len__") and len(part) <= LONG and not isinstance(part, str) for item in part
    ):
        with contextlib.suppress(Exception):  # it is no item, or HE204 reports it
            if env.format_prompt(copied(item)) in prompts:
                rewarded[repr(picture(item))] = item
    return [*rewarded.values()]


def prompt_in(request: Mapping[str, Any]) -> str:
    """Return the first user message of a request."""
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            return content if isinstance(content, str) else ""
    return ""


def collections_of(env: Any) -> dict[str, Any]:
    """Return the attributes that may hold items: those of the instance, and those of its classes."""
    of_classes = {name: value for cls in reversed(type(env).__mro__) for name, value in vars(cls).items()}
    kinds = (list, tuple, dict)
    held = {name: value for name, value in of_classes.items() if isinstance(value, kinds) and not name.startswith("__")}
    return held | {name: value for name, value in vars(env).items() if isinstance(value, kinds) or hasattr(value, "select")}


@contextlib.contextmanager
def _holding(env: Any, name: str, value: Any) -> Iterator[None]:
    """Give the instance another value; at the end its own is restored, unless the environment replaced it."""
    is_own, before = name in vars(env), getattr(env, name)
    setattr(env, name, value)
    try:
        yield
    finally:
        if getattr(env, name, None) is value:
            if is_own:
                setattr(env, name, before)
            else:
                delattr(env, name)
