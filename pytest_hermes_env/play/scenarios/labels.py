"""A rollout of an item whose answers are replaced by words that occur nowhere else: what of them can the agent see before it works?"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.inference.steps import Turn, call, say
from pytest_hermes_env.play.auto_script import JUDGE_ANSWER, SILENT_ANSWER
from pytest_hermes_env.play.buffers import copied, fields_of, with_field
from pytest_hermes_env.play.cases.slots import Work, said
from pytest_hermes_env.play.cases.values import GOLD
from pytest_hermes_env.play.item_texts import LABEL, NO_LABEL, PERHAPS_LABEL, pairs_under
from pytest_hermes_env.play.journal import Journal
from pytest_hermes_env.play.probing.reward_constants import fields_unread
from pytest_hermes_env.play.scenario import Cause, Sighting, Unavailable
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.scenarios.roles import case_of, prompt_of
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tool_backend import files_left

USUAL = re.compile(r"\$[A-Z_{]|environment variable")
"""What a prompt says that speaks of variables."""
_FIRST = 731_907_000
_READING = frozenset({"terminal", "read_file", "search_files", "execute_code"})
"""Tools that read files of the machine."""
_WANTED = re.compile(r"(?:^|_)want(?:s|ed)?(?:_|$)")
_NAMES = re.compile(r"id$|name|slug|seed|split|index|kind|type|level|number$")
ENOUGH, MOST_READ = 12, 1 << 24
"""What names an item, or its kind, characters of answers that are in a file by no coincidence, and bytes of it that are read."""


class Answers:
    """A copy of an item in which each answer is a word or a number of its own; ``of`` is canary -> the field that it stands in."""

    def __init__(self, item: Any, gold: tuple[Turn, ...] = ()) -> None:
        said_by_gold = str(said(gold))
        whole = {slot.text.strip() for slot in Work(turns=gold, item=item).slots()} if gold else set()
        self.of: dict[str, str] = {}
        self._numbers = itertools.count(_FIRST, 11)
        self.item = copied(item)
        for name, value in fields_of(item).items():
            called = str(name).lower()
            if gold and _WANTED.search(called) and not _is_said(str(value), said_by_gold):
                continue  # how many, or which, are wanted is told
            is_work = PERHAPS_LABEL.search(called) is not None and str(value).strip() in whole
            if (LABEL.search(called) or is_work) and not NO_LABEL.search(called):
                self.item = with_field(self.item, name, self._replaced(value, str(name)))

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

    def seen_in(self, text: str) -> tuple[str, ...]:
        """Return the fields whose answers are in a text."""
        return tuple(dict.fromkeys(name for canary, name in self.of.items() if canary in text))


def _is_said(value: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", text) is not None


def parts_of_gold(item: Any, gold: str, prompt: str) -> dict[str, str]:
    """Return value -> name of the fields that stand in gold and not in the prompt: what the agent is to find out, whatever it is called.

    None where the prompt speaks of variables. They keep their values: the sandbox is made of them.
    """
    if USUAL.search(prompt):
        return {}
    fields = {str(value): str(name) for name, value in fields_of(item).items() if isinstance(value, str | int | float)}
    return {
        value: name
        for value, name in fields.items()
        if len(value) > 1 and _is_word(value, gold) and not _is_word(value, prompt)
    }


def _is_word(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def _untold(stage: Stage) -> list[str]:
    """Return the texts of an item that its prompt does not hold and whose fields the reward's code names: its answers, whatever they are called."""
    fields, prompt = fields_of(stage.item), prompt_of(stage, stage.item)
    unread = fields_unread(type(stage.env), type(stage.env).compute_reward, fields)
    pairs = (pair for name, value in fields.items() if name not in unread for pair in pairs_under(str(name), value))
    return [text for key, text in pairs if text.strip() and text not in prompt and not _NAMES.search(key.lower())]


def _left_on_host(stage: Stage) -> Iterator[str]:
    """Yield the files in the directory for temporary files that setup wrote and that hold all answers of an item, where the agent works on this machine."""
    is_here = getattr(stage.env.config, "terminal_backend", "local") == "local"
    answers = [text.encode(errors="replace") for text in (_untold(stage) if is_here else ())]
    shared = f"{os.path.realpath(tempfile.gettempdir())}/"
    for path in [one for one in stage.written if one.startswith(shared)] if sum(map(len, answers)) >= ENOUGH else ():
        with contextlib.suppress(OSError), open(path, "rb") as file:
            data = file.read(MOST_READ)
            if all(text in data or json.dumps(text.decode(errors="replace"))[1:-1].encode() in data for text in answers):
                yield path


@family(
    {"answers_replaced": "a rollout of an item whose answers are other words begins: which of them are in its reach?"},
    needs="item",
)
async def answers_replaced(stage: Stage) -> None:
    """Look at the prompt, the sandbox and the variables when the agent is asked for the first time."""
    gold = case_of(stage.cases, stage.item, GOLD, 0)
    answers = Answers(stage.item, gold.turns if gold is not None else ())
    parts = parts_of_gold(answers.item, repr(said(gold.turns)), prompt_of(stage, stage.item)) if gold is not None else {}
    left = {("host file", path): ("the answer",) for path in _left_on_host(stage)}
    if not (answers.of or parts or left):
        stage.skip(Unavailable(Cause.NO_ANSWER))
        return
    seen: dict[tuple[str, str], tuple[str, ...]] = {}

    def look(conversation: Any) -> Any:
        if not conversation.tools:
            return say(JUDGE_ANSWER)
        if not _READING.isdisjoint(dict(conversation.tools)):
            seen.update(left)
        for where, name, text in _places(stage, conversation):
            if fields := answers.seen_in(text):
                seen.setdefault((where, name), fields)
            if where == "variable" and text in parts and name not in os.environ:
                seen.setdefault((where, name), (parts[text],))
        is_first = conversation.turn == 0 and "terminal" in dict(conversation.tools)
        return call("terminal", command="env") if is_first else say(SILENT_ANSWER)

    async def rollout() -> None:
        await stage.env.collect_trajectory(answers.item)

    def more(_: Journal) -> dict[str, Any]:
        return {
            "sightings": tuple(Sighting(where=where, name=name, words=words) for (where, name), words in seen.items()),
            "note": f"the answers in {', '.join(dict.fromkeys([*answers.of.values(), *parts.values()]))}",
        }

    await stage.play("answers_replaced", rollout, policy=look, more=more)


def _places(stage: Stage, conversation: Any) -> Iterator[tuple[str, str, str]]:
    for message in conversation.messages:
        role, text = str(message.get("role")), str(message.get("content"))
        if role == "tool":  # what the session exports
            with contextlib.suppress(ValueError, AttributeError):  # a result is JSON, unless the layer has cut it
                text = str(json.loads(text).get("output"))
            yield from (("variable", name, value) for name, _, value in (line.partition("=") for line in text.splitlines()))
        else:
            yield "message", role, text
    yield from (("variable", name, value) for name, value in os.environ.items())
    machines = getattr(stage.sandbox, "rollouts", {}).values()
    yield from (
        ("file", path, node.data.decode(errors="replace")) for path, node in files_left(*machines, of_verifier=True).items()
    )
