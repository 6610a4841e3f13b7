"""Compares two versions: of an environment, of what it stands on, or of recordings. Reports what differs, the cause before the effect.

What only names a place, a moment or an id is no difference: temporary directories, times, ids. An environment that differs from itself is
played twice, and what is not stable then is left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hermes_env_shared.rollout_record import Record
from pytest_hermes_env.errors import BadTarget, UsageError, shorten
from pytest_hermes_env.records.found import Found
from pytest_hermes_env.records.observed import text_of
from pytest_hermes_env.records.reading import read_records

PLAY = Path(__file__).with_name("play_for_compare.py")
ASPECTS = ("tools", "tool order", "tool schema", "setting", "prompt", "chat template or tokens", "tool call", "tool result", "answer", "end", "reward", "metric", "rollout", "error")  # fmt: skip
"""What may differ, causes first."""
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
"""An aspect, and where it was seen; its value is text."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What differs: an aspect, in how many places, and the first one with both texts."""

    aspect: str
    count: int
    first: str
    before: str
    after: str


def plain(text: str) -> str:
    """Return a text without what names a place, a moment or an id."""
    for pattern, word in _PASSING:
        text = pattern.sub(word, text)
    return text


# ---------------------------------------------------------------------- what is compared


def facts_of_records(records: Sequence[Record]) -> dict[Fact, str]:
    """Return what may differ between rollouts, each with its place. Rollouts of one item are in the order of what happened in them."""
    held: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for record in records:
        item = json.dumps(record.item, sort_keys=True) if record.item is not None else record.prompt
        held[record.source or record.environment, plain(item)].append(dict(_of_record(record)))
    facts: dict[Fact, str] = {}
    shown: Counter[str] = Counter()
    for (name, item), rollouts in held.items():
        place = f"{name}, item {shorten(item, 60)}"
        shown[place] += 1
        place += f" ({shown[place]})" if shown[place] > 1 else ""
        for number, rollout in enumerate(sorted(rollouts, key=_causes_first), start=1):
            where = f"{place}, rollout {number}"
            facts["rollout", where] = "there"
            facts |= {(key.partition("|")[0], where + key.partition("|")[2]): text for key, text in rollout.items()}
    return facts


def _causes_first(rollout: dict[str, str]) -> list[tuple[int, str, str]]:
    """Return an order in which a rollout whose reward alone differs keeps its place."""
    return sorted((ASPECTS.index(key.partition("|")[0]), key, text) for key, text in rollout.items())


def _of_record(record: Record) -> Iterator[tuple[str, str]]:
    """Yield aspect, with where in the rollout, and text."""
    if record.tools is not None:
        yield "tools|", ", ".join(sorted(record.tools))
        yield "tool order|", ", ".join(record.tools)
    yield "prompt|", plain("\n".join(f"[{one.get('role')}] {text_of(one.get('content'))}" for one in _opening(record.messages)))
    for number, columns in enumerate(record.sequences or (), start=1):
        yield f"chat template or tokens|, sequence {number}", plain(" ".join(map(str, columns.tokens)))
    turn = part = 0
    for message in record.messages:
        role, part = message.get("role"), part + 1
        if role == "assistant":
            turn, part = turn + 1, 0
            yield f"answer|, turn {turn}", plain(text_of(message.get("content")))
            for number, call in enumerate(message.get("tool_calls") or (), start=1):
                function = call.get("function") or {}
                yield f"tool call|, turn {turn}, call {number}", plain(f"{function.get('name')} {function.get('arguments')}")
        elif role == "tool":
            yield (
                f"tool result|, turn {turn}, call {part}",
                plain(f"{message.get('name') or ''} {text_of(message.get('content'))}"),
            )
    yield "end|", record.end
    yield "reward|", record.error if record.reward is None else f"{record.reward:.6g}"
    for name, value in record.metrics.items():
        yield f"metric|, {name}", plain(str(value))


def _opening(messages: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    answers = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
    return messages[: answers[0] if answers else None]


def _of_run(facts: dict[str, Any]) -> Iterator[tuple[Fact, str]]:
    names = [str(tool["function"]["name"]) for tool in facts["tools"]]
    yield ("tools", "offered"), ", ".join(sorted(names))
    yield ("tool order", "offered"), ", ".join(names)
    for tool in facts["tools"]:
        yield ("tool schema", str(tool["function"]["name"])), json.dumps(tool["function"], sort_keys=True)
    for name, value in facts["settings"].items():
        yield ("setting", name), plain(json.dumps(value))
    for scenario, metrics in facts["metrics"].items():
        yield ("metric", scenario), plain(json.dumps(metrics))
    for scenario, error in facts["errors"].items():
        yield ("error", scenario), plain(error)


def differences(before: dict[Fact, str], after: dict[Fact, str], unstable: frozenset[Fact] = frozenset()) -> list[Difference]:
    """Return what differs, causes first; one entry for each aspect."""
    found: dict[str, list[Fact]] = defaultdict(list)
    for fact in {**before, **after}:
        if before.get(fact) != after.get(fact) and fact not in unstable:
            found[fact[0]].append(fact)
    if "tools" in found:
        found.pop("tool order", None)  # which follows
    return [
        Difference(aspect=aspect, count=len(facts), first=facts[0][1], **_sides(before.get(facts[0]), after.get(facts[0])))
        for aspect in ASPECTS
        if (facts := found.get(aspect))
    ]


def _sides(one: str | None, other: str | None) -> dict[str, str]:
    """Return both texts, cut to where they begin to differ."""
    if one is None or other is None:
        return {
            "before": shorten(one) if one is not None else "(not there)",
            "after": shorten(other) if other is not None else "(not there)",
        }
    start = max(0, len(os.path.commonprefix([one, other])) - 30)  # noqa: RUF071 - of texts
    lead = "..." if start else ""
    return {"before": shorten(lead + one[start:], 120), "after": shorten(lead + other[start:], 120)}


# ---------------------------------------------------------------------- the two sides


@dataclass(frozen=True, kw_only=True)
class Side:
    """One version: ``files`` of recordings, or a ``target`` that ``python`` plays, from a git ``revision`` if there is one."""

    name: str
    files: tuple[str, ...] = ()
    target: str = ""
    python: str = sys.executable
    revision: str = ""


def side_of(text: str, target: str) -> Side:
    """Return the side that a word names: recordings, an environment's file, a Python, or a git revision.

    Raises: it is none of these, or a Python or a revision without an environment → UsageError.
    """
    path = Path(text)
    if path.suffix in {".jsonl", ".json"}:
        return Side(name=text, files=(text,))
    if path.suffix == ".py" or ".py:" in text:
        return Side(name=text, target=text)
    if not target:
        raise UsageError(
            f"{text} is neither a file of rollouts nor an environment.\n  fix       for a Python or a git revision, name the environment: --env my_env.py"
        )
    if path.is_file() and os.access(path, os.X_OK):
        return Side(name=text, target=target, python=text)
    known = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}"],  # noqa: S607 - git of PATH
        capture_output=True,
        text=True,
        check=False,
    )
    if known.returncode:
        raise UsageError(f"{text} is no file of rollouts, environment, Python or git revision")
    return Side(name=text, target=target, revision=known.stdout.strip())


@dataclass(frozen=True, kw_only=True)
class _Placed:
    """A version that can be played: its target, and the directory from which it is."""

    side: Side
    target: str
    place: Path

    @property
    def file(self) -> str:
        """The environment's own file."""
        return str((self.place / f"{self.target.partition('.py')[0]}.py").absolute())

    def facts(self, mode: str, files: Sequence[str]) -> dict[Fact, str]:
        """Return what may differ, with the cases beside the first of these files that has some. Raises: nothing could be played → BadTarget; no rollouts → UsageError."""
        if self.side.files:
            return facts_of_records([line.record for line in read_records(self.side.files) if line.record is not None])
        with tempfile.TemporaryDirectory(prefix="hermes-compare-") as directory:
            output = os.path.join(directory, "played.jsonl")
            words = [self.side.python, str(PLAY), self.target, output, mode, *files]
            env = {**os.environ, "PYTHONHASHSEED": "0"}
            ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=self.place, env=env)
            if ran.returncode or not os.path.exists(output):
                said = ran.stderr.strip().splitlines()
                raise BadTarget(f"{self.side.name} could not be played: {shorten(said[-1] if said else 'no output')}")
            facts = dict(_of_run(json.loads(Path(f"{output}.facts.json").read_text(encoding="utf-8"))))
            if os.path.getsize(output):
                facts |= facts_of_records([line.record for line in read_records([output]) if line.record is not None])
            return facts


def _placed(side: Side, directory: str) -> _Placed:
    """Return a version where it can be played; a revision is written into a directory."""
    if not side.revision:
        return _Placed(side=side, target=side.target, place=Path.cwd())
    root = Path(subprocess.check_output(["git", "rev-parse", "--show-toplevel"], text=True).strip())  # noqa: S607
    file, colon, name = side.target.partition(".py:")
    path = os.path.relpath(os.path.realpath(f"{file}.py" if colon else file), root)
    tree = Path(tempfile.mkdtemp(dir=directory))
    archive = subprocess.run(["git", "archive", side.revision], cwd=root, capture_output=True, check=True)  # noqa: S607
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)  # noqa: S607
    if not (tree / path).exists():
        raise BadTarget(f"{side.name} has no file {path}")
    return _Placed(side=side, target=f"{path}{':' if name else ''}{name}", place=tree)


def compare(before: Side, after: Side, *, mode: str = "token") -> tuple[list[Difference], int]:
    """Return what differs, and how many facts were left out because the first side differs from itself.

    Both play the cases of the second one, or of the first where that has none.
    """
    with tempfile.TemporaryDirectory(prefix="hermes-compare-") as directory:
        sides = _placed(before, directory), _placed(after, directory)
        files = [side.file for side in reversed(sides) if side.target]
        one, other = (side.facts(mode, files) for side in sides)
        found = differences(one, other)
        unstable: frozenset[Fact] = frozenset()
        if found and not before.files:
            again = sides[0].facts(mode, files)
            unstable = frozenset(fact for fact in {**one, **again} if one.get(fact) != again.get(fact))
            found = differences(one, other, unstable)
    return found, len(unstable)


def compared_lines(found: Sequence[Difference], before: str, after: str, unstable: int = 0) -> Iterator[str]:
    """Yield the comparison as Markdown that fits a screen."""
    left_out = f" ({unstable} places that differ from themselves are left out)" if unstable else ""
    if not found:
        yield f"`{before}` and `{after}` are the same{left_out}"
        return
    yield f"`{before}` and `{after}` differ in {', '.join(one.aspect for one in found)}{left_out}"
    for one in findings(found):
        yield ""
        yield f"**{one.title}**, {one.text}"
        yield "```diff"
        yield f"- {one.before}"
        yield f"+ {one.after}"
        yield "```"


def findings(found: Sequence[Difference]) -> list[Found]:
    """Return the differences for a page."""
    places = {one: "1 place" if one.count == 1 else f"{one.count} places" for one in found}
    return [
        Found(title=one.aspect, text=f"{places[one]}; first: {one.first}", before=one.before, after=one.after) for one in found
    ]


def as_json(found: Sequence[Difference], unstable: int) -> dict[str, Any]:
    """Return the comparison as plain data."""
    return {"format": "hermes-compared/1", "unstable": unstable, "differences": [asdict(one) for one in found]}
