"""Verdicts in the words that a judge's prompt offers, such as ``"severity": "minor|major|critical"``.

Place in the flow: `judged` plays gold with each of them; a word that the prompt offers and the reward does not know counts for nothing.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_OFFERED = re.compile(r'"(\w+)"\s*:\s*("[^"\n]*"(?:\s*(?:\||,|or|/)\s*"[^"\n]*"(?!\s*:))*)')
"""A key, and the word or words that an example shows for it."""
_PLACEHOLDER = re.compile(r"(?<![\"\w])(?:<[^<>\n\"]*>|\.\.\.|…)(?![\"\w])")
MANY = 5
"""Entries of one kind that a judge lists: a reward may forgive one."""
MOST_WORDS = 6
_SCALE = re.compile(r"sever|level|grade|rating|impact|importan|priorit|weight|serious", re.IGNORECASE)
"""Fields of what a judge lists whose words are a scale: those of a kind or a place have no order."""
TINY = 1e-9


@dataclass(frozen=True, kw_only=True)
class Offered:
    """Words for one place of a verdict, from one end of their scale to the other, and the verdict with each."""

    at: str
    words: tuple[str, ...]
    verdicts: tuple[Any, ...]
    is_list: bool = False

    def told(self, word: str) -> str:
        """Return what the judge did."""
        return f"listed {MANY} entries with {self.at} {word!r}" if self.is_list else f"gave {word!r} for {self.at}"


def offered(value: Any, asked: str) -> Iterator[Offered]:
    """Yield what a prompt offers for a declared verdict: words for its own key, from the declared one on, or for what an empty list of it may hold."""
    if not isinstance(value, dict):
        return
    words_of = dict(_words(asked))
    named = [key for key, part in value.items() if isinstance(part, str) and key in words_of]
    for key, part in value.items():
        words = words_of.get(key, ())
        if named == [key] and part in (words[:1] + words[-1:]):  # of several, one may be what the verdict is about
            words = words if part == words[0] else words[::-1]
            yield Offered(at=key, words=words[1:], verdicts=tuple({**value, key: word} for word in words[1:]))
        entry = _entry(asked, key) if part == [] else None
        plain = {field: words_of.get(field, (part,))[-1] for field, part in (entry or {}).items()}
        for field in plain:
            if _SCALE.search(field) and (words := words_of.get(field, ())):
                made = tuple({**value, key: [{**plain, field: word}] * MANY} for word in words)
                yield Offered(at=field, words=words, verdicts=made, is_list=True)


def uncounted(one: Offered, costs: Sequence[float], *, counts_alone: bool) -> str:
    """Return a word at an end of the scale that costs nothing although others do, or none does; empty where each may be meant so."""
    if not one.is_list:
        return one.words[-1] if costs[-1] <= TINY else ""
    if max(costs) <= TINY:
        return one.words[-1] if counts_alone else ""
    rises = all(before <= after + TINY for before, after in itertools.pairwise(costs))
    falls = all(before >= after - TINY for before, after in itertools.pairwise(costs))
    return "" if rises or falls else next((one.words[end] for end in (-1, 0) if costs[end] <= TINY), "")


def _words(asked: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, told in _OFFERED.findall(_plain(asked)):
        words = [word.strip() for part in re.findall(r'"([^"\n]*)"', told) for word in part.split("|")]
        if 1 < len(words) <= MOST_WORDS and all(re.fullmatch(r"[\w -]{1,30}", word) for word in words):
            yield key, tuple(words)


def _entry(asked: str, key: str) -> Mapping[str, Any] | None:
    """Return the object that the prompt shows as an entry of a list."""
    found = re.search(rf'"{re.escape(key)}"\s*:\s*\[\s*(\{{[^{{}}]*\}})', _plain(asked))
    try:
        entry = json.loads(_PLACEHOLDER.sub('"some"', found[1])) if found is not None else None
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _plain(asked: str) -> str:
    """Return a request without the signs that JSON writes before quotes and ends of lines."""
    return asked.replace('\\"', '"').replace("\\n", "\n")
