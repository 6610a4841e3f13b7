"""Commands about text and bytes: cat, head, tail, wc, base64.

Source: GNU coreutils 9.1.
"""

from __future__ import annotations

import base64 as codec
import binascii
import os
import re

from pytest_hermes_env.sandbox.bash.commands.process import Process, Program, lines_of, quoted
from pytest_hermes_env.sandbox.bash.state import NotExact

__all__ = ["TEXT"]


def cat(process: Process) -> int:
    """Write files one after the other."""
    _, names = process.options("")
    for _, data in process.inputs(names):
        process.write(data)
    return process.code


def head_or_tail(process: Process) -> int:
    """Write the first or last lines (``-n``) or bytes (``-c``): all but the last N (``head -N``), or from one on (``tail +N``)."""
    is_head = process.name.endswith("head")
    if process.arguments and (old := re.fullmatch(r"-(\d+)", process.arguments[0])):
        process.arguments = ["-n", old[1], *process.arguments[1:]]
    options, operands = process.options("n:c:")
    found = re.fullmatch(r"([+-]?)([1-9]\d{0,8})", options.get("c") or options.get("n", "10"))
    if not found or ("c" in options and "n" in options) or len(operands) > 1 or operands[:1] == [""]:
        raise NotExact(f"this {process.name}")
    count = int(found[2])
    at = {"+": count - 1, "-": -count}.get(found[1], count if is_head else -count)
    part = slice(at) if is_head else slice(at, None)
    name = "".join(operands) or "-"
    try:
        data = process.read(name)
    except OSError as error:
        return process.complain(f"cannot open {quoted(name)} for reading: {os.strerror(error.errno or 0)}")
    process.write(data[part] if "c" in options else b"".join(lines_of(data)[part]))
    return 0


def wc(process: Process) -> int:
    """Count the lines (``-l``), words (``-w``) or bytes (``-c``) of one input."""
    options, names = process.options("lwc")
    if len(options) != 1 or len(names) > 1 or "-" in names:
        raise NotExact("this wc")
    (letter,) = options
    for name, data in process.inputs(names):
        process.write(f"{_count(letter, data)}{f' {name}' if names else ''}\n")
    return process.code


def _count(letter: str, data: bytes) -> int:
    if letter == "w":
        if re.search(rb"[^\t-\r -~]", data):
            raise NotExact("wc -w of what is not plain text")
        return len(data.split())
    return data.count(b"\n") if letter == "l" else len(data)


def base64(process: Process) -> int:
    """Encode standard input in lines of 76 characters, or decode it with ``-d``."""
    options, operands = process.options("d")
    if operands:
        raise NotExact("base64 of a file")
    data = process.streams.source.take()
    try:
        process.write(codec.b64decode(data.replace(b"\n", b""), validate=True) if "d" in options else codec.encodebytes(data))
    except binascii.Error:
        raise NotExact("base64 -d of what is no base64") from None
    return 0


TEXT: dict[str, Program] = {
    "base64": base64,
    "cat": cat,
    "head": head_or_tail,
    "tail": head_or_tail,
    "wc": wc,
}
"""Name → program."""
