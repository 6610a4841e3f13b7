"""Quotes as bash writes and reads them: ``$'...'``, and words as ``set -x`` shows them."""

from __future__ import annotations

import re

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.commands import escapes

__all__ = ["shown", "unescaped"]

SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def unescaped(text: str) -> str:
    r"""Return what ``$'text'`` means. Bytes that are no UTF-8 become surrogates, and ``\0`` ends the text."""
    data, is_cut = escapes.unescaped(text, octal="[0-7]{1,3}", quotes="'\"?")
    if is_cut:
        raise UnsupportedSyntax(f"$'{text}'", "the escape \\c")
    return data.partition(b"\0")[0].decode(errors="surrogateescape")


def shown(word: str) -> str:
    """Return a word as ``set -x`` writes it."""
    if not word:
        return "''"
    if any(letter < " " or letter == "\x7f" for letter in word):
        named = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "'": "\\'", "\\": "\\\\"}
        return "$'" + "".join(named.get(one, one if one >= " " else f"\\{ord(one):03o}") for one in word) + "'"
    if SAFE.fullmatch(word) or (word[0] not in "~#" and re.fullmatch(r"[A-Za-z0-9_@%+=:,./~#{}-]+", word)):
        return word
    return "'" + word.replace("'", "'\\''") + "'"
