"""Formats a JSON document for review: values that fit, and all lists of numbers, on one line; others indented by one space.

Each message of a conversation is on a separate line.
"""

from __future__ import annotations

import re

from pytest_hermes_env.cassette.escape import dumped
from pytest_hermes_env.types import JsonValue

WIDTH = 140
_SECOND_MESSAGE = '}, {"role": '
_NUMBERS = re.compile(r'[\[\]{}0-9eE+\-., :"]*')
_UNSEEN = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)


def formatted(document: JsonValue) -> str:
    r"""Return ``document`` as JSON text with a final newline, encodable as UTF-8 whatever it contains.

    Invisible characters, those that change the writing direction, and those that some programs treat as line breaks become
    ``\uXXXX``, so a diff shows them.
    """
    pieces: list[str] = []
    _write(document, "", pieces)
    text = "".join(pieces) + "\n"
    return text if text.isascii() and "\x7f" not in text else _UNSEEN.sub(_escaped, text)


def _write(value: JsonValue, margin: str, pieces: list[str]) -> None:
    """Append the text of ``value``; ``margin`` is the indentation of the line on which it begins."""
    line = dumped(value)
    fits = len(line) <= WIDTH and _SECOND_MESSAGE not in line
    if not isinstance(value, dict | list) or fits or _NUMBERS.fullmatch(line):
        pieces.append(line)
        return
    deeper = margin + " "
    start = "{\n" if isinstance(value, dict) else "[\n"
    for key, item in value.items() if isinstance(value, dict) else ((None, item) for item in value):
        pieces.append(start + deeper if key is None else f"{start}{deeper}{dumped(key)}: ")
        _write(item, deeper, pieces)
        start = ",\n"
    pieces.append(f"\n{margin}{'}' if isinstance(value, dict) else ']'}")


def _escaped(unseen: re.Match[str]) -> str:
    units = unseen[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
