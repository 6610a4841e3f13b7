"""The state that the tools of one fake sandbox share: files, the session, and what each tool remembers between calls."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_hermes_env.sandbox.fake_tools.processes import Processes
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.real_lines import RealLines
from pytest_hermes_env.sandbox.simple_commands import FIRST_VARIABLES

__all__ = ["MachineState", "Session"]


@dataclass(frozen=True, kw_only=True)
class Session:
    """What lasts from one command line to the next: the directory and the exported variables."""

    cwd: str
    variables: Mapping[str, str] = field(default_factory=lambda: FIRST_VARIABLES)


@dataclass(kw_only=True)
class MachineState:
    """The state of one in-memory machine.

    ``home`` is the initial directory of rollouts. ``real`` runs lines in real bash. ``aliases``: directories of the host that map to ``home``.
    ``todos``: the to-do list. ``page``: the address of the page that the browser shows.
    """

    files: Files
    session: Session
    home: str
    real: RealLines
    processes: Processes = field(default_factory=Processes)
    aliases: tuple[str, ...] = ()
    todos: list[dict[str, str]] = field(default_factory=list)
    page: str = ""

    def copy(self) -> MachineState:
        """Return an independent machine in the same state, without background sessions."""
        files = self.files.copy()
        return MachineState(
            files=files,
            session=self.session,
            home=self.home,
            real=self.real.copy(files),
            aliases=self.aliases,
            todos=[dict(item) for item in self.todos],
            page=self.page,
        )

    def alias(self, directory: str) -> None:
        """Map a directory of the host to ``home``."""
        self.aliases = (*self.aliases, directory)
        self.real.link(directory, self.home)

    def synchronize(self) -> None:
        """Exchange changes of files with processes that run in the background."""
        self.real.synchronize(self.session.cwd)

    def resolve(self, path: str) -> str:
        """Return the absolute path that a tool call's path leads to; relative and empty ones begin at the session's directory.

        Raises: a NUL in the path → ValueError.
        """
        if "\0" in path:
            raise ValueError("embedded null byte")
        return self.files.follow(self.translated(path) or ".", self.session.cwd)

    def translated(self, path: str) -> str:
        """Return ``path`` with an aliased directory at its beginning replaced by ``home``."""
        for alias in self.aliases:
            if path == alias or path.startswith(f"{alias}/"):
                return posixpath.normpath(self.home + path[len(alias) :])
        return path
