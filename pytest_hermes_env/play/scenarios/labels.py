"""A rollout of an item whose answers are replaced by words that occur nowhere else: what of them can the agent see before it works?"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.inference.steps import call, say
from pytest_hermes_env.play.auto_script import JUDGE_ANSWER, SILENT_ANSWER
from pytest_hermes_env.play.buffers import copied, fields_of
from pytest_hermes_env.play.cases.slots import said
from pytest_hermes_env.play.cases.values import GOLD
from pytest_hermes_env.play.journal import Journal
from pytest_hermes_env.play.scenario import Cause, Sighting, Unavailable
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.scenarios.roles import case_of, prompt_of
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tool_backend import files_left

LABEL = re.compile(r"answer|expected|solution|gold|truth|correct|wants?\b|wanted|hidden|secret|private|\bchecks?\b|rubric")
NO_LABEL = re.compile(r"file|path|dir|name|format|type|column|keys|field|unit|count|example")
"""What an answer is called, and what is told to the agent of it."""
OF_VARIABLES = re.compile(r"\$\w|environment variable")
_FIRST = 731_907_000


class Answers:
    """A copy of an item in which each answer is a word or a number of its own; ``of`` is canary -> the field that it stands in.

    An answer is called so, or stands in ``gold`` and not in the ``prompt``. The latter may be what the agent is to find in files: it counts in
    variables, unless the prompt speaks of them.
    """

    def __init__(self, item: Any, gold: str = "", prompt: str = "") -> None:
        self.of: dict[str, str] = {}
        self.to_find: set[str] = set()
        self._numbers = itertools.count(_FIRST, 11)
        self.item = copied(item)
        for name, value in fields_of(self.item).items():
            is_label = LABEL.search(str(name).lower()) and not NO_LABEL.search(str(name).lower())
            is_told = _is_word_of(value, prompt) or OF_VARIABLES.search(prompt)
            if not (is_label or is_told) and _is_word_of(value, gold):
                self.to_find.add(str(name))
            if is_label or name in self.to_find:
                new = self._replaced(value, str(name))
                if isinstance(self.item, dict):
                    self.item[name] = new
                else:
                    object.__setattr__(self.item, str(name), new)

    def _replaced(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: self._replaced(part, name) for key, part in value.items()}
        if isinstance(value, list | tuple):
            parts = [self._replaced(part, name) for part in value]
            return type(value)(parts) if type(value) in {list, tuple} else parts
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return value
        number = next(self._numbers)
        self.of[str(number)] = name
        return f"quokka{number}" if isinstance(value, str) else float(number) if isinstance(value, float) else number

    def seen_in(self, where: str, text: str) -> tuple[str, ...]:
        """Return the fields whose answers are in a text."""
        found = dict.fromkeys(name for canary, name in self.of.items() if canary in text)
        return tuple(name for name in found if where == "variable" or name not in self.to_find)


def _is_word_of(value: Any, text: str) -> bool:
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool) and len(str(value)) > 1
    return is_plain and re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", text, re.IGNORECASE) is not None


@family(
    {"answers_replaced": "a rollout of an item whose answers are other words begins: which of them are in its reach?"},
    needs="item",
)
async def answers_replaced(stage: Stage) -> None:
    """Look at the prompt, the sandbox and the variables when the agent is asked for the first time."""
    gold = case_of(stage.cases, stage.item, GOLD, 0)
    answers = Answers(stage.item, repr(said(gold.turns)) if gold is not None else "", prompt_of(stage, stage.item))
    if not answers.of:
        stage.skip(Unavailable(Cause.NO_ANSWER))
        return
    seen: dict[tuple[str, str], tuple[str, ...]] = {}

    def look(conversation: Any) -> Any:
        if not conversation.tools:
            return say(JUDGE_ANSWER)
        if conversation.turn == 0 and "terminal" in dict(conversation.tools):
            return call("terminal", command="env")
        for where, name, text in _places(stage, conversation):
            if fields := answers.seen_in(where, text):
                seen.setdefault((where, name), fields)
        return say(SILENT_ANSWER)

    async def rollout() -> None:
        await stage.env.collect_trajectory(answers.item)

    def more(_: Journal) -> dict[str, Any]:
        return {
            "sightings": tuple(Sighting(where=where, name=name, words=words) for (where, name), words in seen.items()),
            "note": f"the answers in {', '.join(dict.fromkeys(answers.of.values()))}",
        }

    await stage.play("answers_replaced", rollout, policy=look, more=more)


def _places(stage: Stage, conversation: Any) -> Iterator[tuple[str, str, str]]:
    for message in conversation.messages:
        is_env = message.get("role") == "tool"  # what the session exports
        yield (
            ("variable", "the session", str(message.get("content")))
            if is_env
            else ("message", str(message.get("role")), str(message.get("content")))
        )
    yield from (("variable", name, value) for name, value in os.environ.items())
    machines = getattr(stage.sandbox, "rollouts", {}).values()
    yield from (
        ("file", path, node.data.decode(errors="replace")) for path, node in files_left(*machines, of_verifier=True).items()
    )
