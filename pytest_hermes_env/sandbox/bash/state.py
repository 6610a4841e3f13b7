"""What commands of a line change besides files: directory, variables, functions, options; and how they leave their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pytest_hermes_env.sandbox.bash.tree import Function
from pytest_hermes_env.sandbox.files import HOME

__all__ = ["Abandoned", "Ended", "Jump", "Place", "Returned", "State", "first_variables"]

Scope: TypeAlias = "dict[str, str | None]"


class _Left(Exception):
    """Something ends before its last command, with an exit code."""

    def __init__(self, code: int = 1) -> None:
        super().__init__(code)
        self.code = code


class Ended(_Left):
    """The shell ends: ``exit``, a failure under ``set -e``, a variable without a value under ``set -u``."""


class Abandoned(_Left):
    """The rest of the line is given up, and the shell goes on: an expansion that bash cannot carry out."""


class Returned(_Left):
    """``return``, out of a function or a sourced file."""


class Jump(Exception):
    """``break`` or ``continue``, out of so many loops."""

    def __init__(self, kind: str, levels: int) -> None:
        super().__init__(kind, levels)
        self.kind = kind
        self.levels = levels


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a text that runs comes from, as bash tells it: its name, and the line before its first one."""

    name: str
    before: int = 0
    syntax_name: str = ""

    def prefix(self, line: int) -> str:
        """Return how a complaint about a line begins."""
        return f"{self.name}: line {self.before + line}: "

    def syntax_prefix(self, line: int) -> str:
        """Return how a complaint about a line that cannot be read begins."""
        return f"{self.syntax_name or self.name}: line {self.before + line}: "


def first_variables(cwd: str) -> dict[str, str]:
    """Return the variables of a fresh session. All of them are exported."""
    return {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "LOGNAME": "root",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PWD": cwd,
        "SHELL": "/bin/bash",
        "SHLVL": "1",
        "USER": "root",
    }


@dataclass(kw_only=True)
class State:
    """The state of one shell; a subshell has a copy.

    ``options`` are the letters of ``set``, and ``pipefail``. ``scopes`` keep what ``local`` hides, one for each function that runs.
    ``guards`` counts the conditions inside which a failure does not end the shell. ``is_file``: the shell runs a file.
    """

    cwd: str
    variables: dict[str, str]
    exported: set[str]
    place: Place
    readonly: set[str] = field(default_factory=set)
    functions: dict[str, tuple[Function, Place]] = field(default_factory=dict)
    options: set[str] = field(default_factory=set)
    arguments: tuple[str, ...] = ()
    name: str = "/usr/bin/bash"
    status: int = 0
    line: int = 1
    scopes: list[Scope] = field(default_factory=list)
    loops: int = 0
    guards: int = 0
    sourced: int = 0
    is_file: bool = False
    subshells: int = 0

    def copy(self) -> State:
        """Return the state of a subshell."""
        return replace(
            self,
            variables=dict(self.variables),
            exported=set(self.exported),
            readonly=set(self.readonly),
            functions=dict(self.functions),
            options=set(self.options),
            scopes=[dict(scope) for scope in self.scopes],
        )

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the exported variables, and ``more``."""
        found = {name: self.variables[name] for name in self.exported if name in self.variables}
        return {**found, **more} if more else found

    @property
    def code_without_value(self) -> int:
        """The exit code of a shell that ends because a variable has no value."""
        return 1 if self.subshells or self.is_file or "e" in self.options else 127

    @property
    def prefix(self) -> str:
        """How a complaint about the present line begins."""
        return self.place.prefix(self.line)
