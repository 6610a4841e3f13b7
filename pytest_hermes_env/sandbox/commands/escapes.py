r"""Backslash escapes, as ``$'...'``, ``printf`` and ``echo -e`` read them."""

from __future__ import annotations

import re

__all__ = ["unescaped"]

LETTERS = {"a": 7, "b": 8, "e": 27, "E": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
HEXADECIMAL = r"x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})"


def unescaped(text: str, *, octal: str, quotes: str = "") -> tuple[bytes, bool]:
    r"""Return what a text with escapes means, and whether ``\c`` cut it off.

    ``octal``: the expression of an octal number behind the backslash. ``quotes``: letters that may have a backslash for nothing.
    """
    out = bytearray()
    at = 0
    for found in re.finditer(rf"\\(?:({octal})|{HEXADECIMAL}|(.))", text, re.DOTALL):
        out += text[at : found.start()].encode(errors="surrogateescape")
        at = found.end()
        digits, byte, short, long, letter = found.groups()
        if letter == "c":
            return bytes(out), True
        if digits or byte:
            out.append(int(digits, 8) & 255 if digits else int(byte, 16))
        elif short or long:
            out += chr(min(int(short or long, 16), 0x10FFFF)).encode(errors="surrogatepass")
        elif letter in LETTERS:
            out.append(LETTERS[letter])
        else:
            out += (letter if letter in quotes else found.group()).encode(errors="surrogateescape")
    return bytes(out) + text[at:].encode(errors="surrogateescape"), False
