"""Reads a command's options as GNU's getopt does, and refuses what this machine does not know."""

from __future__ import annotations

import getopt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_hermes_env.sandbox.commands.process import UnsupportedOption

__all__ = ["Options", "read_options"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options that were given, by their letters and in order, with their values; and the other words."""

    given: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        return name in self.letters

    @property
    def letters(self) -> tuple[str, ...]:
        """The names of the options."""
        return tuple(name for name, _ in self.given)

    def get(self, name: str, default: str = "") -> str:
        """Return an option's last value."""
        return self.all(name)[-1] if name in self else default

    def all(self, name: str) -> list[str]:
        """Return every value of an option that may be given several times."""
        return [value for given, value in self.given if given == name]


def read_options(
    words: Sequence[str], letters: str, long: Mapping[str, str] | None = None, *, runs_command: bool = False
) -> Options:
    """Split a command's words, its name first.

    ``letters`` as for getopt: a colon after a letter means that it takes a value. ``long`` leads from a long name to its letter
    (with a colon when it takes a value) or to itself. Options may stand after operands, unless the operands are a command to run;
    ``--`` ends them.

    Raises: an option that is not named, or has no value → UnsupportedOption.
    """
    long = long or {}
    names = [f"{name}=" if target.endswith(":") else name for name, target in long.items()]
    try:
        found, operands = (getopt.getopt if runs_command else getopt.gnu_getopt)(words[1:], letters, names)
    except getopt.GetoptError as error:
        raise UnsupportedOption(f"{words[0]} {'-' if len(error.opt) == 1 else '--'}{error.opt}") from error
    given = tuple((long[name[2:]].rstrip(":") if name.startswith("--") else name[1:], value) for name, value in found)
    return Options(given=given, operands=tuple(operands))
