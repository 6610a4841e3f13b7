"""A command line as bash runs it, and what it leaves for the next one."""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["AT_START", "line_script", "take"]

AT_START = frozenset({"BASH_ENV", "ENV", "IFS", "POSIXLY_CORRECT", "PS4"})
"""Exported variables that have another meaning in the environment of a bash that starts: hermes sets them after the start."""

MOST_BYTES = 1 << 20


def line_script(command: str, cwd: str, mark: str, exports: Mapping[str, str], functions: str) -> str:
    """Return a line as hermes' local environment gives it to bash: errors then name line 3.

    ``exports`` are variables that bash does not take from its environment, or that change how it starts. ``functions`` defines
    some, on one line, which note their calls in ``mark`` with ``.asked``. In the end the script writes the directory and the
    exported variables to ``mark`` with ``.cwd`` and ``.exports``.
    """
    first = [f"export {name}={_quoted(value)}" for name, value in exports.items()]
    if functions:
        first += [f"__hermes_asked={_quoted(mark)}.asked", functions]
    return "\n".join((
        "; ".join(first) or ":",
        f"builtin cd -- {_quoted(cwd)} || exit 126",
        f"eval {_quoted(command)}",
        "__hermes_ec=$?",
        "umask 077",
        f"{{ export -p > {_quoted(mark)}.exports; }} 2>/dev/null || true",
        f"{{ pwd -P > {_quoted(mark)}.cwd; }} 2>/dev/null || true",
        "exit $__hermes_ec",
    ))  # fmt: skip


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def take(path: str) -> bytes:
    """Return what the wrapper wrote, empty if the line ended the shell, and remove it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        content = os.read(descriptor, MOST_BYTES)
        os.unlink(path)
    except OSError:  # the line put something else there
        content = b""
    os.close(descriptor)
    return content
