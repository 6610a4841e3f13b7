"""How the shell's own commands complain, and what they have in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.runner import Runner
from pytest_hermes_env.sandbox.bash.streams import Streams

__all__ = ["NAME", "USAGES", "Builtin", "bad_option", "say", "unsupported"]

Builtin: TypeAlias = "Callable[[Runner, tuple[str, ...], Streams], int]"
"""Does its work with its words, name first, and gives the exit code."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
USAGES = {
    "cd": "cd: usage: cd [-L|[-P [-e]] [-@]] [dir]",
    "pwd": "pwd: usage: pwd [-LP]",
    "export": "export: usage: export [-fn] [name[=value] ...] or export -p",
    "unset": "unset: usage: unset [-f] [-v] [-n] [name ...]",
    "set": "set: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]",
    "source": "source: usage: source filename [arguments]",
    ".": ".: usage: . filename [arguments]",
}


def say(shell: Runner, streams: Streams, text: str, code: int = 1) -> int:
    """Complain as bash does of the present line, and return the exit code."""
    shell.complain(streams, f"{shell.state.prefix}{text}\n")
    return code


def bad_option(shell: Runner, streams: Streams, name: str, option: str) -> int:
    """Complain of an option that bash does not know, and return the exit code."""
    say(shell, streams, f"{name}: {option}: invalid option")
    if name in USAGES:
        shell.complain(streams, USAGES[name] + "\n")
    return 2


def unsupported(words: tuple[str, ...]) -> UnsupportedSyntax:
    """Return the refusal of a command by its name and its first argument."""
    return UnsupportedSyntax(" ".join(words), " ".join(words[:2]))
