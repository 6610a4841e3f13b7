"""Orders: whether gold's already stands where the task gives it, so that copying is the whole work, and which other one is as good."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from pytest_hermes_env.play.buffers import fields_of
from pytest_hermes_env.play.cases.one_value import BETWEEN

FEWEST, MANY = 4, 6
"""The fewest parts whose order says something: over several items, and on one item alone."""
_ASKS = re.compile(
    r"\b(?:rank\w*|sort(?:ed|s|ing)?|best|worst|(?:short|fast|cheap|earli|larg|small|high|low)est|priorit\w*|arrang\w*|ascending|descending|order(?:ed)? by)\b",
    re.IGNORECASE,
)
_KEEPS = re.compile(
    r"\b(?:same|given|original|this|that|their|file|listed) order|order (?:of|in which) (?:\w+ )?(?:appear|occur|first|mention|they|the (?:file|list|input|text))"
    r"|\bas (?:they|it) (?:appear|occur|come)|order (?:does not|doesn't) matter",
    re.IGNORECASE,
)
"""Where a prompt asks for an order, and where it asks for the one that there is, or for none."""
_TIES = re.compile(
    r"\b(?:ties?|tied|equal(?:ly)?|same)\b[^.\n]*\b(?:(?:any|either) order|does not matter|doesn't matter)\b", re.IGNORECASE
)
"""Where a prompt leaves open in which order equal ones stand."""
_NUMBERED = re.compile(r"^\s*(?:\d+[.):]|[-*])\s+")


def order_in(text: str, prompt: str, given: Iterable[str]) -> str:
    """Return "kept" or "turned" where all parts of a text are the lines that a source gives, in that order, "other" where not; else nothing."""
    parts = _parts(text)
    if len(parts) < FEWEST or len({*parts}) < len(parts) or not _ASKS.search(prompt) or _KEEPS.search(prompt):
        return ""
    for source in given:
        places = _places(parts, source)
        if places:
            return "kept" if places == sorted(places) else "turned" if places == sorted(places, reverse=True) else "other"
    return ""


def with_a_tie_turned(text: str, item: Any, prompt: str) -> str:
    """Return a text in which two neighbours are exchanged that the item holds equal, where the prompt lets these stand in any order."""
    parts = _parts(text)
    lists = [value for value in fields_of(item).values() if isinstance(value, list)] if _TIES.search(prompt) else []
    for rows in lists:
        named = {one: row for row in rows if isinstance(row, dict) for one in map(str, row.values()) if one in parts}
        if len(named) < max(MANY, len(parts)):
            continue
        columns = [[named[part].get(key) for part in parts] for key in next(iter(named.values()))]
        ranks = [values for values in columns if _is_rank(values)]
        ties = [at for at in range(len(parts) - 1) if ranks and all(values[at] == values[at + 1] for values in ranks)]
        if ties:
            one, other = parts[ties[0] : ties[0] + 2]
            pattern = rf"(?<!\w)(?:({re.escape(one)})|{re.escape(other)})(?!\w)"
            return re.sub(pattern, lambda found: other if found[1] else one, text)  # noqa: B023 - it is called here
    return ""


def _is_rank(values: list[Any]) -> bool:
    """Whether values are numbers in rising or falling order, with more than two of them different."""
    is_number = all(isinstance(value, int | float) for value in values)
    return is_number and len({*values}) > 2 and values in (sorted(values), sorted(values, reverse=True))  # noqa: PLR2004 - yes and no


def _parts(text: str) -> list[str]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, list):
        return [one for one in value if isinstance(one, str)] if all(isinstance(one, str) for one in value) else []
    lines = [_NUMBERED.sub("", line).strip() for line in text.splitlines() if line.strip()]
    if len(lines) >= FEWEST:
        return lines
    return [part for part in BETWEEN.split(lines[-1].rpartition(":")[2].strip()) if part] if lines else []


def _places(parts: list[str], source: str) -> list[int]:
    """Return the line of each part; nothing where one stands in none or in several, or where lines between them hold none."""
    lines = [line for line in source.splitlines() if line.strip()]
    found = []
    for part in parts:
        pattern = re.compile(rf"(?<!\w){re.escape(part)}(?!\w)")
        at = [number for number, line in enumerate(lines) if pattern.search(line)]
        if len(at) != 1:
            return []
        found.append(at[0])
    return found if len({*found}) == len(found) == max(found) - min(found) + 1 else []
