"""Several groups at the same time, and what their rollouts show of each other.

The rollouts overlap, and no reward begins before all agents have ended. Words that only one model uses are looked for everywhere else:
isolated rollouts never show that of another one. So are texts that only one item has: a place that holds a single item by then has lost
those of the others.
"""

from __future__ import annotations

import asyncio
import functools
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from pytest_hermes_env.inference.steps import call, hang, say, turn
from pytest_hermes_env.play.auto_script import JUDGE_ANSWER, arguments_for, in_order
from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.faults import Faults
from pytest_hermes_env.play.journal import Journal, Reward
from pytest_hermes_env.play.scenario import RolloutCanary, Sighting
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage

GROUPS = 3
"""Groups at the same time."""
PATIENCE_S = 2.0
"""Seconds without any progress after which rewards wait no longer: rollouts that fail or run one after the other never arrive."""
SEED = 20260521
JUDGE_S = 0.002
"""Seconds that a judge takes, so that another rollout runs meanwhile, as with a real judge."""

_SHORTEST = 4
"""The length of the shortest text of an item that counts: shorter ones are in too many others."""
_CODE = (FunctionType, ModuleType, classmethod, staticmethod, property)
"""Values that are not searched: they hold no words of rollouts, and much else."""


async def wait_while_working(stage: Stage, tasks: Iterable[asyncio.Task[Any]], steps: Callable[[], int]) -> bool:
    """Wait for tasks as long as the model gets requests or ``steps`` rises, and return whether they have ended."""
    pending, seen = set(tasks), (-1, -1)
    while pending and seen != (now := (len(stage.mock.journal), steps())):
        seen = now
        _, pending = await asyncio.wait(pending, timeout=min(PATIENCE_S, stage.timeout_s / 2))
    return not pending


@family({"concurrent_groups": "three groups are collected at once; every rollout's model uses a unique word"})
async def concurrent_groups(stage: Stage) -> None:
    """Collect several groups at once, of different items if there are any."""
    env = stage.env
    canaries = Canaries()
    items: list[Any] = [stage.item]
    shared: list[SharedItems] = []
    asked = len(stage.mock.journal)
    faults = Faults(fault="reward_waits", look=functools.partial(canaries.look, type(env)))

    def look_before() -> None:
        if faults.waiting == faults.expected:
            shared[0].look()

    faults.look_before = look_before

    async def at_once() -> None:
        for _ in range(GROUPS - 1):
            item = await env.get_next_item()
            items.append(stage.item if item is None else item)
        shared.append(SharedItems(env, items))
        faults.expected = GROUPS * int(getattr(env.config, "group_size", 1))
        groups = [asyncio.ensure_future(env.collect_trajectories(item)) for item in items]
        try:
            await wait_while_working(stage, groups, lambda: faults.waiting)
        finally:
            faults.released.set()
        await asyncio.gather(*groups)

    def more(journal: Journal) -> dict[str, Any]:
        requests = [exchange.request for exchange in stage.mock.journal[asked:]]
        different = len({repr(picture(item)) for item in items})
        return {
            "canaries": canaries.given(journal),
            "sightings": (*canaries.sightings(env, journal, requests), *(seen for one in shared for seen in one.sightings)),
            "note": f"{GROUPS} groups of {different} different items, {faults.waiting} of {faults.expected} rewards at once",
        }

    await stage.play("concurrent_groups", at_once, policy=canaries.policy(), faults=faults, more=more)


@dataclass
class Canaries:
    """Assigns a word to each new conversation; its model uses it in every turn and in tool arguments."""

    words: list[str] = field(default_factory=list)
    _held: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    _random: random.Random = field(default_factory=lambda: random.Random(SEED))  # noqa: S311 - words, not secrets

    def policy(self) -> Callable[[Any], Any]:
        """Return the policy: two turns with a tool call that holds the word, then an answer that holds it."""

        def canary_policy(conversation: Any) -> Any:
            schemas = dict(conversation.tools)
            if not schemas:
                return turn(hang(JUDGE_S), say(JUDGE_ANSWER))
            said = repr([message for message in conversation.messages if message.get("role") == "assistant"])
            word = next(iter(self._in(said)), "") if conversation.turn else self._next()
            names = in_order(schemas)
            if conversation.turn < min(2, len(names)):
                name = names[conversation.turn]
                return turn(say(f"I work as {word}."), call(name, **_marked(arguments_for(name, schemas[name]), word)))
            return say(f"Done by {word}.")

        return canary_policy

    def given(self, journal: Journal) -> tuple[RolloutCanary, ...]:
        """Return the owner of each word: the rollout whose agent first used it in a tool call, or else began to speak with it."""
        owners: dict[str, str] = {}
        for used in journal.tool_calls:
            if used.by_agent:
                for word in self._in(repr(used.arguments)):
                    owners.setdefault(word, used.task_id)
        for event in [
            event for event in journal.events if isinstance(event, Reward)
        ]:  # nobody watches tools of the environment's own
            said = [str(message.get("content")) for message in event.messages if message.get("role") == "assistant"]
            for word in self._in("".join(said[:1])):
                owners.setdefault(word, event.task_id)
        return tuple(RolloutCanary(word=word, task_id=owners.get(word, "")) for word in self.words)

    def look(self, env_class: type) -> None:
        """Search class attributes, the module and variables now; later they may hold words of other instances of the class."""
        variables = (("os.environ", name, value) for name, value in os.environ.items())
        for where, name, value in (*_shared_places(env_class), *variables):
            if not isinstance(value, _CODE) and (words := self._in(repr(picture(value)))):
                self._held[where, name] = max(self._held.get((where, name), ()), words, key=len)

    def sightings(self, env: Any, journal: Journal, requests: Iterable[Any]) -> tuple[Sighting, ...]:
        """Return where the words were seen: in requests, tool results, messages, attributes and shared state."""
        places: list[tuple[str, str, Any]] = [
            *(("request", str(number), request) for number, request in enumerate(requests)),
            *(("tool result", used.task_id, used.result) for used in journal.tool_calls),
            *(("messages", event.task_id, event.messages) for event in journal.events if isinstance(event, Reward)),
            *(("attribute", name, picture(value, of_rollouts=False)) for name, value in vars(env).items()),
        ]
        held = (Sighting(where=where, name=name, words=words) for (where, name), words in self._held.items())
        seen = ((where, name, self._in(repr(value))) for where, name, value in places)
        return (*(Sighting(where=where, name=name, words=words) for where, name, words in seen if words), *held)

    def _next(self) -> str:
        self.words.append(f"canary{self._random.randrange(16**8):08x}")
        return self.words[-1]

    def _in(self, text: str) -> tuple[str, ...]:
        return tuple(word for word in self.words if word in text)


def _marked(arguments: dict[str, Any], word: str) -> dict[str, Any]:
    """Return the arguments with the word in the first one that is free text."""
    for name in ("command", "content", "query", "pattern", "text", "prompt"):
        if isinstance(arguments.get(name), str):
            return {**arguments, name: f"echo {word}" if name == "command" else word}
    return arguments


class SharedItems:
    """Knows the texts that only one of ``items`` has, and looks for places that hold a single one of them.

    Before the first reward, the environment's attributes, those of its class and the names of its module are searched for them,
    wherever and however they were put there.
    """

    def __init__(self, env: Any, items: list[Any]) -> None:
        """Look around before rollouts begin: what holds an item by now is data, and no rollout's."""
        self._env = env
        self._keys = list(dict.fromkeys(repr(picture(item)) for item in items))
        self._texts = self._own_texts()
        self._data = {place for place, text in self._places() if self._items_in(text)}
        self._found: list[Sighting] | None = None

    def look(self) -> None:
        """Search all places, the first time that this is called: later, rewards have written there, too."""
        if self._found is None and len(self._keys) > 1:
            self._found = [
                Sighting(where=place[0], name=place[1], words=(self._texts[found.pop()][0],), is_of_an_item=True)
                for place, text in self._places()
                if place not in self._data and len(found := self._items_in(text)) == 1
            ]

    @property
    def sightings(self) -> tuple[Sighting, ...]:
        """The places that held the item of one rollout while several waited for their rewards."""
        return tuple(self._found or ())

    def _own_texts(self) -> list[tuple[str, ...]]:
        """Return for each item the texts in it that no other item has, the whole item first."""
        parts = [(key, *_texts_in(key)) for key in self._keys]
        return [
            tuple(text for text in mine if not any(text in other for other in self._keys if other != key))
            for key, mine in zip(self._keys, parts, strict=True)
        ]

    def _items_in(self, text: str) -> set[int]:
        return {number for number, texts in enumerate(self._texts) if any(own in text for own in texts)}

    def _places(self) -> Iterator[tuple[tuple[str, str], str]]:
        attributes = (("attribute", name, value) for name, value in vars(self._env).items())
        for where, name, value in (*attributes, *_shared_places(type(self._env))):
            if not name.startswith("__") and (seen := picture(value, of_rollouts=False)) is not None:
                yield (where, name), repr(seen)


def _texts_in(key: str) -> list[str]:
    """Return the texts in a picture: every quoted one, without its quotes."""
    return [text for text in key.replace('"', "'").replace("\\", "").split("'") if len(text) >= _SHORTEST]


def _shared_places(env_class: type) -> Iterator[tuple[str, str, Any]]:
    """Yield where, name and value of each attribute of a class, and of each name of its module."""
    of_classes = {name: value for cls in reversed(env_class.__mro__) for name, value in vars(cls).items()}
    yield from (("class attribute", name, value) for name, value in of_classes.items())
    module = sys.modules.get(env_class.__module__)
    for name, value in list(vars(module).items()) if module is not None else ():
        if not name.startswith("__"):
            yield "module", name, value
