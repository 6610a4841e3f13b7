"""Commands that run another command: xargs, timeout."""

from __future__ import annotations

import re

from pytest_hermes_env.sandbox.bash.streams import Source, Streams
from pytest_hermes_env.sandbox.commands.process import Process
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["timeout", "xargs"]

NOT_PROGRAMS = frozenset({"[", ":", "break", "cd", "continue", "exit", "export", "printf", "pwd", "read", "test", "unset"})
"""Builtins that have no program, or one with other messages."""
MOST_WORDS = 1000
FAILED = 123


def _checked(words: list[str]) -> list[str]:
    """Return the words of a command. Raises: it would not be the program of this name → NotExact."""
    if words[0] in NOT_PROGRAMS or (words[0] == "echo" and any(word.startswith("-") for word in words)):
        raise NotExact(f"{words[0]} as a program")
    return words


def timeout(process: Process) -> int:
    """Run a command; here, none takes long."""
    words = list(process.arguments)
    if len(words) < 2 or not re.fullmatch(r"[1-9][0-9]*[smh]?", words[0]):  # noqa: PLR2004 - seconds and a command
        raise NotExact("this timeout")
    return process.run(_checked(words[1:]), process.streams)


def xargs(process: Process) -> int:
    """Run a command with words from standard input: ``-n`` words at a time, ``-0`` apart by null bytes, ``-I`` one per line."""
    options = process.options("0rn:I:", {"null": "0", "no-run-if-empty": "r"}, runs_command=True)
    text = process.streams.source.take().decode(errors="surrogateescape")
    command = options.operands or ["echo"]
    place = options.get("I")
    if "0" in options:
        if text and not text.endswith("\0"):
            raise NotExact("xargs -0 without a null byte at the end")
        words = text.split("\0")[:-1]
    elif re.search(r"['\"\\\0\v\f\r]", text):
        raise NotExact("quotes in the words of xargs")
    else:
        words = [line.strip(" \t") for line in text.split("\n") if line.strip(" \t")] if place else text.split()
    if (
        len(words) > MOST_WORDS
        or (options.get("n") and not re.fullmatch(r"[1-9]\d{0,8}", options.get("n")))
        or (place and "n" in options)
    ):
        raise NotExact("this xargs")
    if place:
        runs = [[part.replace(place, word) for part in command] for word in words]
        if place in command[0]:
            raise NotExact("this xargs")
    else:
        size = int(options.get("n") or MOST_WORDS)
        runs = [command + words[at : at + size] for at in range(0, len(words), size)] or ([] if "r" in options else [command])
    codes = [process.run(_checked(run), Streams(Source(), process.streams.out, process.streams.error)) for run in runs]
    return FAILED if any(codes) else 0
