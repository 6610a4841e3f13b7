"""Texts for patterns: such as match them, those that somebody wrote, and others that differ in a few characters.

Place in the flow: `witnesses` compares gold with a wrong pattern for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_hermes_env.play.inputs.data import QUOTED, ROUNDS, Making, in_turn

MOST_STRINGS, MOST_MATCHING = 300, 60


def strings_like(making: Making, texts: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    """Yield texts for patterns: such as match them, lines and quoted texts of what somebody wrote, and others that differ in a few characters."""
    yield from in_turn([iter(_matching(pattern)) for pattern in patterns])
    found = ["".join(match) for text in [making.prompt, *texts] for match in QUOTED.findall(text)]
    found += [line.strip() for text in texts for line in text.splitlines() if len(line) <= 80]  # noqa: PLR2004
    plain = [*dict.fromkeys(one for one in found if one)]
    yield from plain
    for _ in range(max(ROUNDS, MOST_STRINGS // max(1, len(plain)))):
        for one in plain:
            place = making.chance.randrange(len(one) + 1)
            same = "0123456789" if one[place : place + 1].isdigit() else making.chance.choice(plain)
            other = making.chance.choice(same)
            before, after = one[:place], one[place + 1 :]
            ways = [
                f"{before}{other}{after}",
                f"{before}{after}",
                f"{before}{other}{one[place:]}",
                f"{one}{other}",
                f"{other}{one}",
            ]
            yield making.chance.choice([*ways, ways[0], f"{one} {one}", one.swapcase()])


def _matching(pattern: str) -> list[str]:
    """Return texts that match a pattern, as `hypothesis` makes them; none of one that it does not know."""
    from hypothesis import HealthCheck, Phase, given, seed, settings, strategies  # noqa: PLC0415 - heavy
    from hypothesis.errors import HypothesisException  # noqa: PLC0415

    found: list[str] = []
    try:
        texts = strategies.from_regex(
            pattern.strip(), fullmatch=True, alphabet=strategies.characters(min_codepoint=32, max_codepoint=126)
        )
        asked = given(texts)(lambda text: found.append(text))  # noqa: PLW0108 - which needs a signature
        few = settings(
            max_examples=MOST_MATCHING,
            database=None,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=[*HealthCheck],
        )
        seed(0)(few(asked))()
    except (re.error, HypothesisException, ValueError):
        return found
    return found
