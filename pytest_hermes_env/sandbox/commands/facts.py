"""Commands about bytes, names and numbers: base64, od, checksums, basename, dirname, seq, sleep, timeout."""

from __future__ import annotations

import base64 as codec
import binascii
import hashlib
import posixpath
import re

from pytest_hermes_env.sandbox.commands.process import Process, Program
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["FACTS"]

MOST_NUMBERS = 100_000
NOT_PROGRAMS = frozenset(
    {"[", ":", "break", "cd", "continue", "echo", "exit", "export", "printf", "pwd", "read", "test", "unset"}
)

"""Builtins that have no program, or one that differs."""


def base64(process: Process) -> int:
    """Encode, or decode with ``-d``; ``-w`` sets the width of lines, 0 for one."""
    options = process.options("dw:", {"decode": "d", "wrap": "w:"})
    width = options.get("w", "76")
    if len(options.operands) > 1 or not width.isdigit():
        raise NotExact("this base64")
    data = process.content(options.operands)
    if process.code:
        return process.code
    if "d" in options:
        try:
            process.write(codec.b64decode(data.replace(b"\n", b""), validate=True))
        except binascii.Error:
            raise NotExact("base64 -d of what is no base64") from None
        return 0
    text, size = codec.b64encode(data), int(width)
    process.write(b"".join(text[at : at + size] + b"\n" for at in range(0, len(text), size)) if size else text)
    return 0


def od(process: Process) -> int:
    """Write bytes as hexadecimal numbers (``-An -v -tx1``)."""
    options = process.options("A:vt:")
    if (options.get("A"), options.get("t"), "v" in options) != ("n", "x1", True) or options.operands:
        raise NotExact("this od")
    data = process.streams.source.take()
    process.write("".join(f" {data[at : at + 16].hex(' ')}\n" for at in range(0, len(data), 16)))
    return 0


def checksum(process: Process) -> int:
    """Write the checksum that the command is named after."""
    algorithm = process.name.rpartition("/")[2].removesuffix("sum")
    for name, data in process.inputs(process.options("").operands):
        if re.search(r"[\\\n\r]", name):
            raise NotExact("a checksum of a file with this name")
        process.write(f"{hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()}  {name}\n")
    return process.code


def basename(process: Process) -> int:
    """Write the last part of a path, without a suffix when one is given."""
    names = process.options("", runs_command=True).operands
    if not 1 <= len(names) <= 2 or not names[0]:  # noqa: PLR2004 - the path and a suffix
        raise NotExact("this basename")
    base = posixpath.basename(names[0].rstrip("/")) or "/"
    process.write(f"{base if base == names[-1] else base.removesuffix(names[1] if names[1:] else '')}\n")
    return 0


def dirname(process: Process) -> int:
    """Write paths without their last part."""
    names = process.options("").operands
    if not names or not all(names) or any("//" in name for name in names):
        raise NotExact("this dirname")
    for name in names:
        process.write((posixpath.dirname(name.rstrip("/")) or ("/" if name.startswith("/") else ".")) + "\n")
    return 0


def seq(process: Process) -> int:
    """Write the numbers from a first to a last one."""
    words = process.arguments
    if any(not re.fullmatch(r"0|-?[1-9]\d{0,8}", word) for word in words) or not 1 <= len(words) <= 3:  # noqa: PLR2004
        raise NotExact("this seq")
    numbers = [int(word) for word in words]
    first, step, last = {1: [1, 1, *numbers], 2: [numbers[0], 1, numbers[-1]]}.get(len(numbers), numbers)
    if step == 0 or (last - first) // step > MOST_NUMBERS:
        raise NotExact("this seq")
    process.write("".join([f"{value}\n" for value in range(first, last + (1 if step > 0 else -1), step)]))
    return 0


def sleep(process: Process) -> int:
    """Do nothing: nothing happens meanwhile."""
    if len(process.arguments) != 1 or not re.fullmatch(r"\d{1,4}(\.\d+)?s?", process.arguments[0]):
        raise NotExact("this sleep")
    return 0


def timeout(process: Process) -> int:
    """Run a command; here, none takes long."""
    seconds, *words = process.arguments or ("",)
    if not re.fullmatch(r"[1-9][0-9]*[smh]?", seconds) or not words or words[0] in NOT_PROGRAMS:
        raise NotExact("this timeout")
    return process.run(words, process.streams)


FACTS: dict[str, Program] = {
    "base64": base64,
    "basename": basename,
    "dirname": dirname,
    "md5sum": checksum,
    "od": od,
    "seq": seq,
    "sha256sum": checksum,
    "sleep": sleep,
    "timeout": timeout,
}
"""Name → program."""
