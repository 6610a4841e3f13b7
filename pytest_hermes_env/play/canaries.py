"""Canaries: each rollout's model uses a unique word in all of its messages, and the words are looked for everywhere else.

Isolated rollouts never show the word of another one.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from pytest_hermes_env.inference.steps import call, hang, say, turn
from pytest_hermes_env.play.auto_script import JUDGE_ANSWER, arguments_for, in_order
from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.journal import Journal, Reward
from pytest_hermes_env.play.scenario import RolloutCanary, Sighting

SEED = 20260521
JUDGE_S = 0.002
"""Seconds that a judge takes, so that another rollout runs meanwhile, as with a real judge."""

_CODE = (FunctionType, ModuleType, classmethod, staticmethod, property)
"""Values that are not searched: they hold no words of rollouts, and much else."""


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
        """Return the owner of each word: the rollout whose agent first used it in a tool call."""
        owners: dict[str, str] = {}
        for used in journal.tool_calls:
            if used.by_agent:
                for word in self._in(repr(used.arguments)):
                    owners.setdefault(word, used.task_id)
        return tuple(RolloutCanary(word=word, task_id=owners.get(word, "")) for word in self.words)

    def look(self, env_class: type) -> None:
        """Search class attributes, the module and variables now; later they may hold words of other instances of the class."""
        module = sys.modules.get(env_class.__module__)
        places: list[tuple[str, str, Any]] = [
            *(("class attribute", name, value) for cls in env_class.__mro__ for name, value in vars(cls).items()),
            *(("module", name, value) for name, value in vars(module).items() if not name.startswith("__")),
            *(("os.environ", name, value) for name, value in os.environ.items()),
        ]
        for where, name, value in places:
            if not isinstance(value, _CODE) and (words := self._in(repr(picture(value)))):
                self._held[where, name] = max(self._held.get((where, name), ()), words, key=len)

    def sightings(self, env: Any, journal: Journal, requests: Iterable[Any]) -> tuple[Sighting, ...]:
        """Return where the words were seen: in requests, tool results, messages, attributes and shared state."""
        places: list[tuple[str, str, Any]] = [
            *(("request", str(number), request) for number, request in enumerate(requests)),
            *(("tool result", used.task_id, used.result) for used in journal.tool_calls),
            *(("messages", event.task_id, event.messages) for event in journal.events if isinstance(event, Reward)),
            *(("attribute", name, picture(value)) for name, value in vars(env).items()),
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
