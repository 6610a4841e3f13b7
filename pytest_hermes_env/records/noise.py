"""What of a text differs from one play to the next, word by word, so that only that is left out of a comparison."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_hermes_env.records.record_facts import Fact, Rollout, paired

_WORD = re.compile(r"-?\w+(?:[.:+-]\w+)*\s*|\W\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
UNSTABLE = "<unstable> "
"""What stands for words that differ from themselves."""
MANY_WORDS, MOST_WORDS = 250_000, 400_000_000
"""The products of two texts' lengths above which frequent words are no anchors, and above which what differs is one part."""
MOSTLY = 0.25
"""The share of a kind of fact that is unstable, from which on any of its unstable words may stand anywhere in it."""


class Noise:
    """What differs between two plays of one version."""

    def __init__(self, played: Sequence[Rollout], again: Sequence[Rollout]) -> None:
        pairs = [*paired(played, again)]
        self.of = {id(one.before): one.after for one in pairs if one.before is not None}
        self.sources = {
            one.source for pair in pairs if None in (pair.before, pair.after) for one in (pair.before, pair.after) if one
        }
        """Where each play has other items or rollouts."""
        self.count = 0
        self._words: dict[Fact, set[str]] = defaultdict(set)
        seen, unstable = Counter[Fact](), Counter[Fact]()
        for pair in pairs:
            facts, others = (one.facts if one is not None else {} for one in (pair.before, pair.after))
            for fact in {**facts, **others}:
                seen[fact] += 1
                if facts.get(fact) != others.get(fact):
                    self.count += 1
                    unstable[fact] += 1
                    for i, j in _changes(*(_words(one.get(fact, "")) for one in (facts, others))):
                        self._words[fact] |= {word.strip() for word in (*i.words, *j.words)}
        self._often = {fact for fact in unstable if unstable[fact] >= MOSTLY * seen[fact]}

    def without(self, rollout: Rollout, fact: Fact, other: str | None) -> tuple[str | None, str | None]:
        """Return a fact of a rollout and that of the other version without what is unstable; equal where nothing else differs."""
        partner, text = self.of.get(id(rollout)), rollout.facts.get(fact)
        again = partner.facts.get(fact) if partner is not None else None
        if other == again or (text is None) != (again is None) or partner is None:
            return None, None
        if text is None or again is None or other is None:
            return text, other
        vocabulary = self._words[fact]
        if sorted(map(str.strip, _words(text))) == sorted(map(str.strip, _words(other))) and text != again:
            return None, None  # the order alone, and it is unstable
        first = _without(text, other, again, vocabulary, is_often=fact in self._often)
        second = _without(again, other, text, vocabulary, is_often=fact in self._often)
        return second if second[0] == second[1] else first


@dataclass(frozen=True)
class _Part:
    """A part of a text: from which word to which, and the words."""

    start: int
    end: int
    words: Sequence[str]


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _changes(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[_Part, _Part]]:
    """Yield the parts in which two texts differ."""
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    most = min(len(one), len(other)) - same
    tail = next((n for n in range(most) if one[-1 - n] != other[-1 - n]), most)
    a, b = one[same : len(one) - tail], other[same : len(other) - tail]
    blocks = [("replace", 0, len(a), 0, len(b))]
    if a and b and len(a) * len(b) <= MOST_WORDS:
        blocks = difflib.SequenceMatcher(None, a, b, autojunk=len(a) * len(b) > MANY_WORDS).get_opcodes()  # type: ignore[assignment]
    for kind, i, i_end, j, j_end in blocks:
        if kind != "equal" and (i < i_end or j < j_end):
            yield _Part(same + i, same + i_end, a[i:i_end]), _Part(same + j, same + j_end, b[j:j_end])


@dataclass(frozen=True)
class _Hole:
    """A part of a text that is unstable: where, its words in both plays, and how many may stand there."""

    start: int
    end: int
    words: tuple[str, ...]
    most: int

    def takes(self, part: _Part, words: Sequence[str]) -> bool:
        """Whether a part of this text lies in it, and the other version's words are such as may stand there."""
        is_inside = self.start <= part.start and part.end <= self.end and len(words) <= self.most
        return is_inside and (_have_letters(self.words) or not _have_letters(words))


def _holes(text: Sequence[str], again: Sequence[str], vocabulary: set[str]) -> list[_Hole]:
    """Return the unstable parts of a text; what lies between two of them and says nothing, or is as unstable, belongs to them."""
    holes: list[_Hole] = []
    for i, j in _changes(text, again):
        words, most = (*i.words, *j.words), max(len(i.words), len(j.words)) * (1 if len(i.words) == len(j.words) else 2)
        between = text[holes[-1].end : i.start] if holes else []
        if holes and all(not word[:1].isalnum() or word.strip() in vocabulary for word in between):
            last = holes.pop()
            holes.append(_Hole(last.start, i.end, (*last.words, *words), last.most + len(between) + most))
        else:
            holes.append(_Hole(i.start, i.end, words, most))
    return holes


def _have_letters(words: Sequence[str]) -> bool:
    return any(any(map(str.isalpha, word)) for word in words if not _NUMBER.fullmatch(word.strip()))


def _without(text: str, other: str, again: str, vocabulary: set[str], *, is_often: bool) -> tuple[str, str]:
    """Return two texts with a sign in place of each part in which they differ as the first one differs from itself."""
    one, two = _words(text), _words(other)
    holes = _holes(one, _words(again), vocabulary)
    sides: tuple[list[str], list[str]] = [], []
    done = 0
    for i, j in _changes(one, two):
        is_known = is_often and {word.strip() for word in (*i.words, *j.words)} <= vocabulary
        is_noise = is_known or any(hole.takes(i, j.words) for hole in holes)
        for side, part in zip(sides, (i, j), strict=True):
            side += [*one[done : i.start], *([UNSTABLE] if is_noise else part.words)]
        done = i.end
    before, after = ("".join([*side, *one[done:]]) for side in sides)
    return before, after
