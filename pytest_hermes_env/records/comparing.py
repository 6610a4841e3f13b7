"""Compares two versions: of an environment, of what it stands on, or of recordings. Reports what differs, the cause before the effect.

What only names a place, a moment or an id is no difference: temporary directories, times, ids. An environment that differs from itself is
played twice, and the words that are not stable then are left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pytest_hermes_env.errors import BadTarget, UsageError, shorten
from pytest_hermes_env.records.found import Found
from pytest_hermes_env.records.noise import Noise
from pytest_hermes_env.records.reading import read_records
from pytest_hermes_env.records.record_facts import (
    ASPECTS,
    HASH,
    LATER_TOKENS,
    LOGPROBS,
    NAMED,
    NEAR,
    ORDER,
    TOKENS,
    Fact,
    Pair,
    Rollout,
    facts_of_records,
    facts_of_run,
    paired,
)

LONGEST_REASON = 1_000
CHOSEN = ("other_gold", "neighbour")
"""How the names of cases begin that are made from other items."""
PLAY = Path(__file__).with_name("play_for_compare.py")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What differs: an aspect, in how many places, and the first one with both texts and, in recordings, with the lines of both. ``name`` is that of a setting or version."""

    aspect: str
    count: int
    first: str
    before: str
    after: str
    before_place: str = ""
    after_place: str = ""
    name: str = ""


def differences(
    before: Sequence[Rollout], after: Sequence[Rollout], again: Sequence[Rollout] | None = None
) -> tuple[list[Difference], int]:
    """Return what differs, causes first, and how many facts do so by themselves.

    There is one entry for each aspect, and for each setting and version. ``again``: another play of the first side.
    """
    noise = Noise(before, again) if again is not None else None
    found: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    orders = [[item for one in side if ORDER in one.facts for item in one.facts[ORDER].split("\n")] for side in (before, after)]
    listed = {*orders[0]} & {*orders[1]}
    pairs = [*paired(before, after, listed)]
    items = ({one.item for one in before} & {one.item for one in after}) | listed
    lone = [one for pair in pairs if pair.is_item for one in (pair.before, pair.after) if one is not None]
    lost = tuple(f"{name}, " for one in lone for name in (one.source, one.key.rpartition(" ")[0]) if name)
    for pair in pairs:
        sides = [one for one in (pair.before, pair.after) if one is not None]
        is_lone = len(sides) == 1 and sides[0].item in items  # others were chosen to be played, which follows from the order
        if orders[0] != orders[1] and (is_lone or any(one.source.startswith(CHOSEN) for one in sides)):
            continue
        is_known = pair.is_item and {one.item for one in sides} <= items
        for fact, one, other in _of_pair(pair, noise):
            mine, others = ((text or "").split("\n") for text in (one, other))
            if fact == ORDER and sorted(mine) != sorted(others):
                if noise is not None and noise.is_unstable(pair.before, fact):  # type: ignore[arg-type]  # there is one
                    continue
                fact = ("item", "training")  # noqa: PLW2901
                one, other = (  # noqa: PLW2901
                    ", ".join(item for item in these if item not in those) or None
                    for these, those in ((mine, others), (others, mine))
                )
            is_of_training = fact[0] == "judge request" and not fact[1].startswith("evaluate")
            if is_of_training and (orders[0] != orders[1] or (None in (one, other) and fact[1].startswith(lost))):
                continue  # about an item that is not there, or stands elsewhere
            aspect, called = "rollout" if is_known else fact[0], fact[1] if fact[0] in NAMED else ""
            first = (pair.before or pair.after).where(fact)  # type: ignore[union-attr]  # one is there
            places = {f"{name}_place": side.place for name in ("before", "after") if (side := getattr(pair, name)) is not None}
            if None in (pair.before, pair.after):
                first += f" is not there in the {'second' if pair.after is None else 'first'}"
            entry = Difference(aspect=aspect, count=1, name=called, first=first, **_sides(one, other), **places)
            found[aspect, called].append(entry)
    if ("tools", "") in found:
        found.pop(("tool order", ""), None)  # which follows
    return [
        replace(found[key][0], count=len(found[key])) for key in sorted(found, key=lambda key: ASPECTS.index(key[0]))
    ], noise.count if noise is not None else 0


def _of_pair(pair: Pair, noise: Noise | None) -> Iterator[tuple[Fact, str | None, str | None]]:
    """Yield the facts that differ in two rollouts that belong together; that one is not there is one fact."""
    before, after = pair.before, pair.after
    if before is None or after is None:
        alone: Rollout = before or after  # type: ignore[assignment]  # one is there
        if noise is None or alone.source not in noise.sources:
            here = alone.item if pair.is_item and alone.item else "there"
            yield ("item" if pair.is_item else "rollout", ""), here if before else None, here if after else None
        return
    for fact in {**before.facts, **after.facts}:
        one, other = before.facts.get(fact), after.facts.get(fact)
        if fact[0] == "prepared file" and one and other and HASH in one and HASH in other:
            kept, hashes = zip(*(text.rsplit(HASH, 1) for text in (one, other)), strict=True)
            one, other = kept if all(kept) else hashes
        if one != other and noise is not None:
            one, other = noise.without(before, fact, other)
        tokens = TOKENS, fact[1]
        if fact[0] == "label" and one and other and before.facts.get(tokens) != after.facts.get(tokens):
            is_unstable = noise is not None and noise.is_unstable(before, tokens)  # numbers of tokens follow the tokens
            one, other = (re.sub(r"\d+ " if is_unstable else r"\d+ (?=not trained)", "", text) for text in (one, other))
        if fact == tokens and one and other and one != other:
            labels = [side.facts.get(("label", fact[1]), "") for side in (before, after)]
            prompts = [int(found[1]) for text in labels if (found := re.match(r"(\d+) not trained", text))]
            is_later = bool(prompts) and len(os.path.commonprefix([one.split(), other.split()])) >= max(prompts)  # noqa: RUF071
            fact = (LATER_TOKENS if is_later else TOKENS, fact[1])  # noqa: PLW2901
        lost = before if one is None else after if other is None else None
        if fact[0] == LOGPROBS and before.facts.get((TOKENS, fact[1])) != after.facts.get((TOKENS, fact[1])):
            continue  # of other tokens
        if fact[0] == LOGPROBS and one and other and _are_near(one.split(), other.split()):
            continue
        is_effect = lost is not None and fact[0] in {TOKENS, "label"} and not _is_number(lost.facts.get(("reward", ""), "0"))
        if one != other and not is_effect:  # a rollout without a reward has none
            yield fact, one, other


def _are_near(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(abs(float(a) - float(b)) <= NEAR for a, b in zip(one, other, strict=True))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sides(one: str | None, other: str | None) -> dict[str, str]:
    """Return both texts, cut to where they begin to differ."""
    if one is None or other is None:
        return {
            "before": shorten(one) if one is not None else "(not there)",
            "after": shorten(other) if other is not None else "(not there)",
        }
    start = max(0, len(os.path.commonprefix([one, other])) - 30)  # noqa: RUF071 - of texts
    lead = "..." if start else ""
    shown = [shorten(lead + text[start:], 120) for text in (one, other)]
    if shown[0] == shown[1]:  # they differ in what is not seen
        shown = [lead + repr(text[start : start + 60]).strip("'\"").replace(" ", "·") for text in (one, other)]
    return {"before": shown[0], "after": shown[1]}


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
    if path.suffix in {".jsonl", ".json", ".gz"} or (path.is_dir() and not target):
        return Side(name=text, files=(text,))
    revision, colon, file = text.partition(":")
    if colon and file.endswith(".py"):
        raise UsageError(f"{text} is a file of a git revision.\n  fix       hermes-env compare {revision} {file} --env {file}")
    if path.suffix == ".py" or ".py:" in text:
        return Side(name=text, target=text)
    if not target:
        raise UsageError(
            f"{text} is neither a file or directory of rollouts nor an environment.\n  fix       for a Python or a git revision, name the environment: --env my_env.py"
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
        where = "" if _is_in_git() else ": the current directory is in no git repository"
        raise UsageError(
            f"{text} is no file of rollouts, environment, Python or git revision{where}.\n"
            "  expected  runs.rollouts.jsonl, my_env.py, the python of a virtual environment, or a revision such as HEAD~1\n"
            "  fix       correct the name; a revision is looked for in the repository of the current directory"
        )
    return Side(name=text, target=target, revision=known.stdout.strip())


def _is_in_git() -> bool:
    return any((place / ".git").exists() for place in (Path.cwd(), *Path.cwd().parents))


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

    def facts(self, mode: str, files: Sequence[str]) -> list[Rollout]:
        """Return what may differ, with the cases beside the first of these files that has some. Raises: nothing could be played → BadTarget; no rollouts → UsageError."""
        if self.side.files:
            return facts_of_records(read_records(self.side.files, tell=sys.stderr.write))
        with tempfile.TemporaryDirectory(prefix="hermes-compare-") as directory:
            output = os.path.join(directory, "played.jsonl")
            words = [self.side.python, str(PLAY), self.target, output, mode, *files]
            env = {**os.environ, "PYTHONHASHSEED": "0"}
            ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=self.place, env=env)
            if ran.returncode or not os.path.exists(output):
                lines = ran.stderr.strip().splitlines() or ["no output"]
                said = lines[-1] if "Traceback (most recent call last):" in lines else "\n".join(lines)
                has_kit = not re.search(r"No module named '(?:pytest_hermes_env|hermes_env_shared)", said)
                fix = "" if has_kit else f"\n  fix       {self.side.python} -m pip install pytest-hermes-env"
                raise BadTarget(f"{self.side.name} could not be played: {said[:LONGEST_REASON]}{fix}")
            run = facts_of_run(json.loads(Path(f"{output}.facts.json").read_text(encoding="utf-8")))
            return [
                run,
                *(
                    facts_of_records(read_records([output], tell=sys.stderr.write), is_played=True)
                    if os.path.getsize(output)
                    else ()
                ),
            ]


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


def compare(before: Side, after: Side, *, mode: str = "token") -> tuple[list[Difference], int, dict[str, str]]:
    """Return what differs, how many facts were left out because the first side differs from itself, and what failed alike on both sides.

    Both play the cases of the second one, or of the first where that has none.
    """
    with tempfile.TemporaryDirectory(prefix="hermes-compare-") as directory:
        sides = _placed(before, directory), _placed(after, directory)
        files = [side.file for side in reversed(sides) if side.target]
        with ThreadPoolExecutor(len(sides)) as both:
            one, other = both.map(lambda side: side.facts(mode, files), sides)
        found, unstable = differences(one, other)
        if found and not before.files:
            found, unstable = differences(one, other, sides[0].facts(mode, files))
    errors = [
        {fact[1]: text for run in side for fact, text in run.facts.items() if fact[0] == "error" and text and not run.source}
        for side in (one, other)
    ]
    return found, unstable, {name: text for name, text in errors[0].items() if errors[1].get(name) == text}


def compared_lines(
    found: Sequence[Difference], before: str, after: str, unstable: int = 0, failed: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the comparison as Markdown that fits a screen."""
    left_out = f" (words in {unstable} places that differ from themselves are left out)" if unstable else ""
    is_part = " as far as they could be played" if failed else ""
    alike = [f"not compared: {name}, which fails on both sides: {shorten(text, 200)}" for name, text in (failed or {}).items()]
    if not found:
        yield f"`{before}` and `{after}` are the same{is_part}{left_out}"
        yield from alike
        return
    yield f"`{before}` and `{after}` differ in {', '.join(dict.fromkeys(one.aspect for one in found))}{left_out}"
    for one, shown in zip(found, findings(found), strict=True):
        yield ""
        yield f"**{shown.title}**, {shown.text}"
        yield "```diff"
        if shown.places:
            yield f"--- {one.before_place or '(not there)'}"
            yield f"+++ {one.after_place or '(not there)'}"
        yield f"- {one.before}"
        yield f"+ {one.after}"
        yield "```"
    yield from ["", *alike] if alike else []


def findings(found: Sequence[Difference]) -> list[Found]:
    """Return the differences for a page."""
    counts = ["1 place" if one.count == 1 else f"{one.count} places" for one in found]
    return [
        Found(
            title=f"{one.aspect} {one.name}".strip(),
            text=f"{count}; first: {one.first}" if one.first else count,
            places=[*filter(None, (one.before_place, one.after_place))],
            before=one.before,
            after=one.after,
        )
        for one, count in zip(found, counts, strict=True)
    ]


def as_json(found: Sequence[Difference], unstable: int) -> dict[str, Any]:
    """Return the comparison as plain data."""
    return {"format": "hermes-compared/1", "unstable": unstable, "differences": [asdict(one) for one in found]}
