"""Whether what gold puts into an order already stands in that order where the task gives it: then copying is the whole work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from pytest_hermes_env.play.cases.one_value import BETWEEN

FEWEST = 4
"""Parts from which on an order is no coincidence over several items."""
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
