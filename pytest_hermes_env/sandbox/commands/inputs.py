"""How commands read what they are given: operands that are files, ``-`` and standard input, with GNU's complaints."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_hermes_env.sandbox.commands.process import Process

__all__ = ["Input", "inputs", "lines_of", "reason"]


@dataclass(frozen=True, kw_only=True)
class Input:
    """One file that was read. ``name`` is as it was given, ``-`` for standard input."""

    name: str
    data: bytes


def reason(error: OSError) -> str:
    """Return an error as GNU's commands tell it."""
    return os.strerror(error.errno) if error.errno else str(error)


def inputs(
    process: Process, operands: Sequence[str], failures: list[str], *, complaint: str = "{name}: {reason}"
) -> Iterator[Input]:
    """Give each operand's content, standard input where there is none; what cannot be read is complained of and noted."""
    for name in operands or ("-",):
        if name == "-":
            yield Input(name="-", data=process.stdin)
            continue
        try:
            data = process.files.read(process.path(name))
        except OSError as error:
            failures.append(name)
            process.complain(complaint.format(name=name, reason=reason(error)))
        else:
            yield Input(name=name, data=data)


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines with their line breaks; the last may have none."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
