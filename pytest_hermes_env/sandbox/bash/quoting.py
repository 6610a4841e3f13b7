"""Quotes as bash writes and reads them: ``$'...'``, and words as ``set -x`` shows them."""

from __future__ import annotations

import re

__all__ = ["shown", "unescaped"]

SIMPLE = {"a": 7, "b": 8, "e": 27, "E": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34, "?": 63}
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.)|(.))", re.DOTALL)
SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def unescaped(text: str) -> str:
    r"""Return what ``$'text'`` means. Bytes that are no UTF-8 become surrogates, and ``\0`` ends the text."""
    out = bytearray()
    at = 0
    for found in ESCAPE.finditer(text):
        out += text[at : found.start()].encode(errors="surrogateescape")
        at = found.end()
        octal, hexadecimal, short, long, control, letter = found.groups()
        if octal or hexadecimal:
            value = int(octal, 8) & 255 if octal else int(hexadecimal, 16)
            if not value:
                return out.decode(errors="surrogateescape")
            out.append(value)
        elif short or long:
            out += chr(min(int(short or long, 16), 0x10FFFF)).encode(errors="surrogatepass")
        elif control:
            out.append(ord(control.upper()) & 0x1F if control != "?" else 127)
        elif letter in SIMPLE:
            out.append(SIMPLE[letter])
        else:
            out += found.group().encode(errors="surrogateescape")
    return (out + text[at:].encode(errors="surrogateescape")).decode(errors="surrogateescape")


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
