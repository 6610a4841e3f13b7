"""A command line as bash runs it, and what it leaves for the next one."""

from __future__ import annotations

import os

__all__ = ["line_script", "take"]

MOST_BYTES = 1 << 20


def line_script(command: str, cwd: str, mark: str) -> str:
    """Return a line as hermes' local environment gives it to bash: errors then name line 3.

    In the end it writes the directory and the exported variables to ``mark`` with ``.cwd`` and ``.exports``.
    """
    return "\n".join((
        ":",
        f"builtin cd -- {_quoted(cwd)} || exit 126",
        f"eval {_quoted(command)}",
        "__hermes_ec=$?",
        "umask 077",
        f"{{ export -p > {mark}.exports; }} 2>/dev/null || true",
        f"{{ pwd -P > {mark}.cwd; }} 2>/dev/null || true",
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
