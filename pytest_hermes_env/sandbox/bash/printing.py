r"""``echo`` and ``printf``, and the backslash escapes that they read.

Source: bash 5.2, builtins/echo.def and builtins/printf.def.
"""

from __future__ import annotations

import re

from pytest_hermes_env.sandbox.commands.process import Process
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["echo", "printf"]

LETTERS = {"a": 7, "b": 8, "e": 27, "E": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
OCTAL_OF_ECHO, OCTAL_OF_PRINTF = r"0[0-7]{0,3}", r"[0-7]{1,3}"
DIRECTIVE = re.compile(r"%(?:%|([-+ #0]*)(\d*)(?:\.(\d+))?([sdixXouc]))")
NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d{0,17})|")


def unescaped(text: str, *, octal: str) -> bytes:
    """Return what a text with escapes means. Raises: an escape is rare → NotExact."""
    if "\\" not in text:
        return text.encode(errors="surrogateescape")
    out, at = bytearray(), 0
    for found in re.finditer(rf"\\(?:({octal})|x([0-9a-fA-F]{{1,2}})|(.|$))", text, re.DOTALL):
        out += text[at : found.start()].encode(errors="surrogateescape")
        at = found.end()
        digits, byte, letter = found.groups()
        if digits or byte:
            out.append(int(digits, 8) & 255 if digits else int(byte, 16))
        elif letter in LETTERS:
            out.append(LETTERS[letter])
        elif not letter or letter in "cuUx":
            raise NotExact(f"the escape \\{letter}")
        else:
            is_quote = octal == OCTAL_OF_PRINTF and letter in "'\"?"
            out += (letter if is_quote else found[0]).encode(errors="surrogateescape")
    return bytes(out) + text[at:].encode(errors="surrogateescape")


def echo(process: Process) -> int:
    """Write the words; ``-n`` without a line break, ``-e`` with escapes."""
    words = list(process.arguments)
    flags = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags += words.pop(0)[1:]
    text = " ".join(words)
    if flags.rfind("e") > flags.rfind("E"):
        data = unescaped(text, octal=OCTAL_OF_ECHO)
    else:
        data = text.encode(errors="surrogateescape")
    process.write(data if "n" in flags else data + b"\n")
    return 0


def printf(process: Process) -> int:
    """Write a format with its arguments, again while arguments are left."""
    words = list(process.arguments)
    if words[:1] == ["--"]:
        words.pop(0)
    if not words or re.match(r"-.", words[0]):
        raise NotExact("this printf")
    form, *values = words
    while True:
        left = len(values)
        process.write(_once(form, values))
        if not values or len(values) == left:
            return 0


def _once(form: str, values: list[str]) -> bytes:
    out, at = b"", 0
    while (percent := form.find("%", at)) >= 0:
        found = DIRECTIVE.match(form, percent)
        if not found:
            raise NotExact(f"printf {form[percent : percent + 8]}")
        out += unescaped(form[at:percent], octal=OCTAL_OF_PRINTF)
        out += b"%" if found[0] == "%%" else _formatted(found, values.pop(0) if values else "")
        at = found.end()
    return out + unescaped(form[at:], octal=OCTAL_OF_PRINTF)


def _formatted(found: re.Match[str], value: str) -> bytes:
    flags, width, precision, kind = found.groups()
    if kind == "c" or (kind == "s" and ("0" in flags or "#" in flags)):
        raise NotExact(f"printf {found[0]}")
    if kind == "s":
        if (width or precision) and not value.isascii():
            raise NotExact("printf with the width of what is not ASCII")
        value = value if precision is None else value[: int(precision)]
        data = value.encode(errors="surrogateescape")
        return data.ljust(int(width or 0)) if "-" in flags else data.rjust(int(width or 0))
    if not NUMBER.fullmatch(value) or (kind not in "di" and value[:1] == "-") or (precision is not None and "0" in flags):
        raise NotExact(f"printf of {value}")
    letter = "d" if kind in "diu" else kind
    return (f"%{flags}{width}{f'.{precision}' if precision is not None else ''}{letter}" % int(value or "0")).encode()
