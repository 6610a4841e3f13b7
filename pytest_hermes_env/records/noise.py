"""What of a text differs from one play to the next, word by word, so that only that is left out of a comparison."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

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
                    for _, _, *words in _changes(*(_words(one.get(fact, "")) for one in (facts, others))):
                        self._words[fact] |= _said(*words)
        self._often = {fact for fact in unstable if unstable[fact] >= MOSTLY * seen[fact]}

    def is_unstable(self, rollout: Rollout, fact: Fact) -> bool:
        """Return whether a fact of a rollout was another one when it was played again."""
        partner = self.of.get(id(rollout))
        return partner is None or partner.facts.get(fact) != rollout.facts.get(fact)

    def without(self, rollout: Rollout, fact: Fact, other: str | None) -> tuple[str | None, str | None]:
        """Return a fact of a rollout and that of the other version without what is unstable; equal where nothing else differs."""
        partner, text = self.of.get(id(rollout)), rollout.facts.get(fact)
        again = partner.facts.get(fact) if partner is not None else None
        if other == again or (text is None) != (again is None) or partner is None:
            return None, None
        if text is None or again is None or other is None:
            return text, other
        if text != again and sorted(map(str.strip, _words(text))) == sorted(map(str.strip, _words(other))):
            return None, None  # the order alone, and it is unstable
        vocabulary = self._words[fact]
        often = vocabulary if fact in self._often else set()
        first, second = (_without(one, other, two, often, vocabulary) for one, two in ((text, again), (again, text)))
        return second if second[0] == second[1] else first


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _said(*parts: Sequence[str]) -> set[str]:
    return {word.strip() for part in parts for word in part}


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _changes(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int, Sequence[str], Sequence[str]]]:
    """Yield the parts in which two texts differ: from where to where in the first one, and the words of both."""
    same = _common(one, other)
    tail = _common(one[same:][::-1], other[same:][::-1])
    a, b = one[same : len(one) - tail], other[same : len(other) - tail]
    blocks = [("replace", 0, len(a), 0, len(b))]
    if a and b and len(a) * len(b) <= MOST_WORDS:
        blocks = difflib.SequenceMatcher(None, a, b, autojunk=len(a) * len(b) > MANY_WORDS).get_opcodes()  # type: ignore[assignment]
    yield from ((same + i, same + end, a[i:end], b[j:last]) for kind, i, end, j, last in blocks if kind != "equal" and (a or b))


def _holes(text: Sequence[str], again: Sequence[str], vocabulary: set[str]) -> list[tuple[int, int, list[str], int]]:
    """Return the unstable parts of a text: from where to where, their words in both plays, and how many may stand there.

    What lies between two of them and says nothing, or is as unstable, belongs to them.
    """
    holes: list[tuple[int, int, list[str], int]] = []
    for start, end, here, there in _changes(text, again):
        begin, words, most = start, [*here, *there], max(len(here), len(there)) * (1 if len(here) == len(there) else 2)
        between = text[holes[-1][1] : start] if holes else []
        if holes and all(not word[:1].isalnum() or word.strip() in vocabulary for word in between):
            begin, _, before, more = holes.pop()
            words, most = [*before, *words], more + len(between) + most
        holes.append((begin, end, words, most))
    return holes


def _have_letters(words: Sequence[str]) -> bool:
    return any(any(map(str.isalpha, word)) for word in words if not _NUMBER.fullmatch(word.strip()))


def _without(text: str, other: str, again: str, often: set[str], vocabulary: set[str]) -> tuple[str, str]:
    """Return two texts with a sign in place of each part in which they differ as the first one differs from itself, or by words that ``often`` do."""
    one = _words(text)
    holes = _holes(one, _words(again), vocabulary)
    before, after, done = "", "", 0
    for start, end, here, there in _changes(one, _words(other)):
        is_noise = _said(here, there) <= often or any(
            first <= start and end <= last and len(there) <= most and (_have_letters(seen) or not _have_letters(there))
            for first, last, seen, most in holes
        )
        same = "".join(one[done:start])
        before += same + (UNSTABLE if is_noise else "".join(here))
        after += same + (UNSTABLE if is_noise else "".join(there))
        done = end
    rest = "".join(one[done:])
    return before + rest, after + rest
