"""Numbers in place of what changes in each run, so that recording again changes nothing of a recording that did not change.

A number stands where the name of a temporary directory or the id of a call stood, in the whole file, and is compared like it.
"""

from __future__ import annotations

import re

from pytest_hermes_env.cassette.matching import temporary_directory

_IDS = re.compile(
    r'\\?"tool_call_id\\?":\s*\\?"([^"\\]+)'
    r'|\\?"id\\?":\s*\\?"(?:([^"\\]+)\\?",\s*\\?"type\\?":\s*\\?"function|((?:chatcmpl|cmpl|gen)-[\w-]+))'
)
_RANDOM = re.compile(r"([A-Za-z]+[_-])[\w-]{8,}")
"""An id with a readable beginning; one without is short, or written by a test."""
_DATE = re.compile(r'"recorded_at": "[^"]*"')


def numbered(text: str) -> str:
    """Return the text of a cassette with numbers in temporary directories and in ids of calls, in the order in which they appear."""
    seen: dict[str, str] = {}
    text = temporary_directory().sub(lambda found: seen.setdefault(found[0], f"/tmp/hermes-{len(seen) + 1:08}"), text)  # noqa: S108
    ids = dict.fromkeys(found for groups in _IDS.findall(text) for found in groups if _RANDOM.fullmatch(found))
    names = {name: f"{_beginning(name)}{number:08}" for number, name in enumerate(ids, start=1)}
    every = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in names)) if names else None
    return every.sub(lambda found: names[found[0]], text) if every is not None else text


def is_the_same(text: str, before: str) -> bool:
    """Return whether two recordings differ in their dates alone."""
    return _DATE.sub("", text) == _DATE.sub("", before)


def _beginning(name: str) -> str:
    found = _RANDOM.fullmatch(name)
    return found[1] if found is not None else ""
