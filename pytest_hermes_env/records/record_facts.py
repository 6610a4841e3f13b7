"""What may differ between two rollouts: their facts by aspect, the cause before the effect, and which rollouts of two runs belong together."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes_env_shared.rollout_record import IGNORED, JudgeCall, Record, blob_path
from hermes_env_shared.rollout_record import Sequence as Columns
from pytest_hermes_env.errors import shorten
from pytest_hermes_env.records.observed import said_in, text_of
from pytest_hermes_env.records.play_for_compare import PLACES
from pytest_hermes_env.records.reading import Line

TOKENS, LATER_TOKENS, LOGPROBS = "chat template or tokens", "tokens after the prompt", "logprob"
ASPECTS = (
    "item order", "item", "version", "tools", "tool order", "tool schema", "setting", "prompt", "prepared file", TOKENS,
    "tool call", "tool result", "thought", "answer", LATER_TOKENS, "label", LOGPROBS, "end", "judge request", "judge answer", "reward", "metric", "rollout", "error",
)  # fmt: skip
"""What may differ, causes first."""
HASH = "\nSHA-256 "
"""What stands between the text of a prepared file, if it was kept, and its hash."""
NAMED = frozenset({"setting", "version"})
"""Aspects of which each name is told."""
MOST_PAIRS = 10_000
"""Above this, rollouts (and a tenth of it, items) are paired in their order, not by what is most alike."""
NATS, NEAR = 4, 0.02
"""Digits of a logprob that are kept, and how near two are that count as one: the same model on another machine differs by less."""
LONGEST_FILE = 20_000
"""Bytes up to which a prepared file is compared by its text, in which times and places are no difference."""
_PASSING = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"(?:/private)?(?:/var/folders|/var/tmp|/tmp|/dev/shm)/[\w.+@-]+"), "<temporary>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +(?:\d+ +)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* [\w :]*\d\d:\d\d:\d\d[\w :+]*"), "<time>"),
    (re.compile(r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d+ +(?:\d\d:\d\d|\d{4})\b"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b"), "<time>"),
    (re.compile(r"\b1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?: ?(?:ms|us|ns|s|sec|secs|seconds))\b"), "<duration>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b(?:call|proc|chatcmpl|msg|run|task|session|req)[_-][0-9A-Za-z]{6,}\b"), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,64}\b"), "<id>"),
    (re.compile(r"\"?\b(?:pid|PID)\b\"?[ :=]+\d+"), "<pid>"),
)  # fmt: skip
"""What names a place, a moment or an id, and what stands for it."""

Fact = tuple[str, str]
"""An aspect, and where in the rollout it was seen; its value is text."""
ORDER: Fact = ("item order", "training")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rollout:
    """The facts of a rollout of an ``item``, in ``source``, which also is a scenario; those of a whole run have neither. ``place`` is its file and line."""

    source: str = ""
    item: str = ""
    key: str = ""
    place: str = ""
    facts: Mapping[Fact, str] = field(default_factory=dict)

    def where(self, fact: Fact = ("", "")) -> str:
        """Return where a fact was seen, for people."""
        item = f"item {shorten(self.item, 60)}" if self.item else ""
        return ", ".join(filter(None, (self.source, item, "" if fact[0] in NAMED else fact[1])))


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A rollout of each side, or of one alone; ``is_item``: it stands for all rollouts of an item that the other side does not have."""

    before: Rollout | None
    after: Rollout | None
    is_item: bool = False


def plain(text: str) -> str:
    """Return a text without what names a place, a moment or an id."""
    for pattern, word in _PASSING:
        text = pattern.sub(word, text)
    return text


# ---------------------------------------------------------------------- facts


def facts_of_records(lines: Sequence[Line], *, is_played: bool = False) -> list[Rollout]:
    """Return what may differ in the rollouts of some lines. ``is_played``: they were played for this, so that their lines tell nothing."""
    return [
        Rollout(
            source=record.source or record.environment,
            item=_item(record) if record.item is not None else plain(record.prompt),
            key=record.key,
            place="" if is_played else line.place,
            facts=dict(_of_record(record, line)),
        )
        for line in lines
        if (record := line.record) is not None
    ]


def facts_of_run(facts: dict[str, Any]) -> Rollout:
    """Return what may differ in all that was played of an environment."""
    names = [str(tool["function"]["name"]) for tool in facts["tools"]]
    found: dict[Fact, str] = {("tools", "offered"): ", ".join(sorted(names)), ("tool order", "offered"): ", ".join(names)}
    found |= {
        ("tool schema", str(one["function"]["name"])): json.dumps(one["function"], sort_keys=True) for one in facts["tools"]
    }
    found |= {("setting", name): plain(json.dumps(value)) for name, value in facts["settings"].items()}
    found |= {(TOKENS, "the environment's own tokenizer"): plain(str(facts["template"]))}
    for scenario, requests in facts["judges"].items():
        calls = [JudgeCall(method="", request=request, answer=None) for request in requests]
        found |= {
            ("judge request", f"{scenario}, judge call {number}"): request_text(call)
            for number, call in enumerate(calls, start=1)
        }
    found |= {("metric", name): plain(json.dumps(metrics)) for name, metrics in facts["metrics"].items()}
    found |= {ORDER: "\n".join(map(plain, facts.get("items") or ()))}
    found |= {("error", name): plain(error) for name, error in facts["errors"].items()}
    return Rollout(facts=found)


def _item(record: Record) -> str:
    return plain(json.dumps(record.item, sort_keys=True, ensure_ascii=False))


def _of_record(record: Record, line: Line) -> Iterator[tuple[Fact, str]]:
    if record.item is not None:
        yield ("item", ""), _item(record)
    for name, version in record.versions.items():
        yield ("version", name), version
    if record.tools is not None:
        yield ("tools", ""), ", ".join(sorted(record.tools))
        yield ("tool order", ""), ", ".join(record.tools)
    for name, value in {"model": record.model, **record.sampling, **record.settings}.items():
        if not PLACES.search(name):
            yield ("setting", name), plain(json.dumps(value, sort_keys=True))
    yield ("prompt", ""), _text_of_messages(_opening(record.messages))
    yield from _prepared(record, line)
    for number, columns in enumerate(record.sequences or (), start=1):
        yield (TOKENS, f"sequence {number}"), " ".join(map(str, columns.tokens))
        yield ("label", f"sequence {number}"), _labels(columns)
        if columns.logprobs:
            trained = [nats for nats, label in zip(columns.logprobs, columns.masks, strict=False) if label != IGNORED]
            yield (LOGPROBS, f"sequence {number}"), " ".join(f"{round(nats, NATS) + 0.0:.{NATS}f}" for nats in trained)
    yield from _conversation(record.messages)
    yield ("end", ""), record.end
    for number, call in enumerate(record.judges, start=1):
        yield ("judge request", f"judge call {number}"), request_text(call)
        yield ("judge answer", f"judge call {number}"), plain(said_in(call.answer) or json.dumps(call.answer, sort_keys=True))
    yield ("reward", ""), record.error if record.reward is None else f"{record.reward + 0.0:.6g}"
    for name, value in record.metrics.items():
        yield ("metric", name), plain(str(value))


def _conversation(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[Fact, str]]:
    turn = part = 0
    for message in messages:
        role, part = message.get("role"), part + 1
        if role == "assistant":
            turn, part = turn + 1, 0
            if thought := message.get("reasoning_content") or message.get("reasoning"):
                yield ("thought", f"turn {turn}"), plain(text_of(thought))
            yield ("answer", f"turn {turn}"), plain(text_of(message.get("content")))
            for number, call in enumerate(message.get("tool_calls") or (), start=1):
                held = call.get("function") if isinstance(call, dict) else None
                function = held if isinstance(held, dict) else {}
                text = f"{function.get('name')} {function.get('arguments')}"
                yield ("tool call", f"turn {turn}, call {number}"), plain(text)
        elif role == "tool":
            text = f"{message.get('name') or ''} {text_of(message.get('content'))}"
            yield ("tool result", f"turn {turn}, call {part}"), plain(text)


def _opening(messages: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    return [*itertools.takewhile(lambda message: message.get("role") != "assistant", messages)]


def _text_of_messages(messages: Sequence[dict[str, Any]]) -> str:
    return plain("\n".join(f"[{one.get('role')}] {text_of(one.get('content'))}" for one in messages))


def _prepared(record: Record, line: Line) -> Iterator[tuple[Fact, str]]:
    """Yield the files with which the sandbox began: their texts, unless they are long or not kept, and the hashes of those that were recorded."""
    held = record.extra.get("prepared")
    for path, text in held.items() if isinstance(held, dict) else ():
        yield ("prepared file", plain(path)), plain(str(text))
    for one in record.world.files if record.world is not None else ():
        if one.by == "environment" and one.kind == "file":
            text = ""
            if one.sha256 and one.size <= LONGEST_FILE and (blob := blob_path(line.files, one.sha256)).is_file():
                text = plain(blob.read_text(encoding="utf-8", errors="backslashreplace"))
            yield ("prepared file", plain(one.path)), f"{text}{HASH}{one.sha256}"
            yield ("prepared file", f"{plain(one.path)}, its mode"), f"{one.mode:o}"


def _labels(columns: Columns) -> str:
    """Return how many tokens in a row are trained, are not, or have a label of another token."""
    kinds = [
        "no label"
        if label is None
        else "not trained"
        if label == IGNORED
        else "trained"
        if label == token
        else f"label {label}"
        for token, label in itertools.zip_longest(columns.tokens, columns.masks)
    ]
    return ", ".join(f"{len([*row])} {kind}" for kind, row in itertools.groupby(kinds))


def request_text(call: JudgeCall) -> str:
    """Return what a judge was asked: its messages as they are read, and the rest as JSON."""
    asked = call.request if isinstance(call.request, dict) else {"request": call.request}
    said = asked.get("messages")
    messages = [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    rest = {name: value for name, value in asked.items() if name not in {"messages", "model"} and value not in ([], {}, None)}
    return f"{_text_of_messages(messages)} {plain(json.dumps(rest, sort_keys=True, ensure_ascii=False))}".strip()


# ---------------------------------------------------------------------- pairs


def paired(before: Sequence[Rollout], after: Sequence[Rollout], common: Collection[str] = ()) -> Iterator[Pair]:
    """Yield which rollouts belong together: those of one item that are equal, then those that are most alike, with their own key first.

    ``common``: items that both sides have, so that none was changed into another one.
    """
    one, other = _by_item(before), _by_item(after)
    partners = {item: item for item in one if item in other}
    left, others = (
        [item for item in these if item not in those and item[1] not in common] for these, those in ((one, other), (other, one))
    )
    partners |= _alike(left, others)
    for item, rollouts in one.items():
        if item in partners:
            yield from _of_item(rollouts, other.pop(partners[item]))
        else:
            yield Pair(before=rollouts[0], after=None, is_item=True)
    yield from (Pair(before=None, after=rollouts[0], is_item=True) for rollouts in other.values())


_Item = tuple[str, str]


def _by_item(rollouts: Sequence[Rollout]) -> dict[_Item, list[Rollout]]:
    found: dict[_Item, list[Rollout]] = defaultdict(list)
    for one in rollouts:
        found[one.source, one.item].append(one)
    return found


def _alike(before: list[_Item], after: list[_Item]) -> dict[_Item, _Item]:
    """Return which items were changed into which: those that share most of their text, or all of a source where as many are left."""
    found: dict[_Item, _Item] = {}
    for source in dict.fromkeys(source for source, _ in before):
        left, others = ([item for item in items if item[0] == source] for items in (before, after))
        if len(left) * len(others) > MOST_PAIRS / 10:
            found |= zip(left, others, strict=False) if len(left) == len(others) else {}
            continue
        ratios = {(a, b): difflib.SequenceMatcher(None, a[1][:1000], b[1][:1000]).ratio() for a in left for b in others}
        least = 0.0 if len(left) == len(others) else 0.8
        for a, b in sorted(ratios, key=lambda pair: -ratios[pair]):
            if ratios[a, b] >= least and a not in found and b not in found.values():
                found[a] = b
    return found


def _of_item(before: list[Rollout], after: list[Rollout]) -> Iterator[Pair]:
    facts = {id(one): frozenset(one.facts.items()) for one in (*before, *after)}
    left, others = [*before], [*after]

    def take(a: Rollout, b: Rollout) -> Pair:
        left.remove(a)
        others.remove(b)
        return Pair(before=a, after=b)

    for is_own in (True, False):
        equal: dict[Any, list[Rollout]] = defaultdict(list)
        for b in others:
            equal[facts[id(b)], b.key if is_own else ""].append(b)
        for a in [*left]:
            if found := equal.get((facts[id(a)], a.key if is_own else "")):
                yield take(a, found.pop(0))
    if len(left) * len(others) <= MOST_PAIRS:
        distance = {(a, b): (len(facts[id(a)] ^ facts[id(b)]), a.key != b.key) for a in left for b in others}
        for a, b in sorted(distance, key=lambda pair: distance[pair]):
            if a in left and b in others:
                yield take(a, b)
    for a, b in [*zip(left, others, strict=False)]:
        yield take(a, b)
    yield from (Pair(before=a, after=None) for a in left)
    yield from (Pair(before=None, after=b) for b in others)
