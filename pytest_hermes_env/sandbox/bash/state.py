"""The state of a running shell, and how a command line ends early."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["LOCALES", "Ended", "Jump", "State"]

LOCALES = frozenset({"C", "POSIX", "C.UTF-8", "C.utf8", ""})
"""The locales whose order of characters is that of their bytes."""


class Ended(Exception):
    """``exit``."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Jump(Exception):
    """``break`` or ``continue``."""

    def __init__(self, *, is_break: bool, levels: int) -> None:
        super().__init__(is_break, levels)
        self.is_break = is_break
        self.levels = levels


@dataclass(kw_only=True)
class State:
    """The state of one shell; a subshell has a copy.

    ``prefix`` begins the shell's own error messages; it is None where the line number is not known.
    """

    cwd: str
    variables: dict[str, str]
    exported: set[str]
    prefix: str | None
    status: int = 0
    loops: int = 0
    steps: list[int] = field(default_factory=lambda: [0])

    def copy(self) -> State:
        """Return the state of a subshell."""
        return State(
            cwd=self.cwd,
            variables=dict(self.variables),
            exported=set(self.exported),
            prefix=self.prefix,
            status=self.status,
            steps=self.steps,
        )

    def assign(self, name: str, value: str) -> None:
        """Set a variable. Raises: the value changes how commands work → NotExact."""
        if name in {"PWD", "OLDPWD"} or ((name == "LANG" or name.startswith("LC_")) and value not in LOCALES):
            raise NotExact(f"{name}={value}")
        self.variables[name] = value

    def message(self, text: str) -> str:
        """Return an error message of the shell itself. Raises: its line number is not known, or a name has special letters → NotExact."""
        if self.prefix is None or re.search(r"[^ -~]", text):
            raise NotExact("an error message with the number of a line")
        return f"{self.prefix}{text}\n"

    @property
    def is_utf8(self) -> bool:
        """Whether characters are encoded as UTF-8."""
        locale = next(
            (
                self.variables[name]
                for name in ("LC_ALL", "LC_CTYPE", "LANG")
                if name in self.exported and self.variables.get(name)
            ),
            "C",
        )
        return locale.upper().replace("-", "").endswith("UTF8")
