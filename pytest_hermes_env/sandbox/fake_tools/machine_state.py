"""The state that the tools of one fake sandbox share: files, the session, and what each tool remembers between calls."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field

from pytest_hermes_env.sandbox.fake_tools.processes import Processes
from pytest_hermes_env.sandbox.fake_tools.read_tracker import ReadTracker
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.real_lines import RealLines
from pytest_hermes_env.sandbox.shell import Shell

__all__ = ["MachineState"]


@dataclass(kw_only=True)
class MachineState:
    """The state of one in-memory machine.

    ``home`` is the initial directory of rollouts. ``real`` runs lines in real bash. ``aliases``: directories of the host that map to ``home``. ``patch_failures``:
    failed patches of a file since its last successful one. ``todos``: the to-do list. ``opened``: the pages that the browser opened,
    the current one last.
    """

    files: Files
    shell: Shell
    home: str
    real: RealLines
    reads: ReadTracker = field(default_factory=ReadTracker)
    processes: Processes = field(default_factory=Processes)
    aliases: tuple[str, ...] = ()
    patch_failures: dict[str, int] = field(default_factory=dict)
    todos: list[dict[str, str]] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    def copy(self, task_id: str) -> MachineState:
        """Return an independent machine in the same state, for the rollout ``task_id``."""
        files = self.files.copy()
        return MachineState(
            files=files,
            shell=self.shell.copy(files),
            home=self.home,
            real=self.real.copy(files),
            reads=self.reads.copy(task_id),
            processes=self.processes.copy(),
            aliases=self.aliases,
            patch_failures=dict(self.patch_failures),
            todos=[dict(item) for item in self.todos],
            opened=list(self.opened),
        )

    def alias(self, directory: str) -> None:
        """Map a directory of the host to ``home``."""
        self.aliases = (*self.aliases, directory)
        self.real.link(directory, self.home)

    def synchronize(self) -> None:
        """Exchange changes of files with processes that run in the background."""
        self.real.synchronize(self.shell.cwd)

    def resolve(self, path: str) -> str:
        """Return the absolute path that a tool call's path leads to; relative and empty ones begin at the session's directory.

        Raises: a NUL in the path → ValueError.
        """
        if "\0" in path:
            raise ValueError("embedded null byte")
        return self.files.follow(self.translated(path) or ".", self.shell.cwd)

    def translated(self, path: str) -> str:
        """Return ``path`` with an aliased directory at its beginning replaced by ``home``."""
        for alias in self.aliases:
            if path == alias or path.startswith(f"{alias}/"):
                return posixpath.normpath(self.home + path[len(alias) :])
        return path

    def outside(self, path: str) -> str | None:
        """Return hermes' warning about a relative path that leads out of the session's directory, or None."""
        absolute, root = self.resolve(path), self.shell.cwd
        if path.startswith(("/", "~")) or absolute == root or absolute.startswith(f"{root.rstrip('/')}/"):
            return None
        return (
            f"Relative path {path!r} resolved to {absolute!r}, which is OUTSIDE the active workspace ({root!r}). The edit will land "
            "in a different directory than the terminal's cwd. If this is not intended (e.g. a git-worktree session writing into "
            "the main checkout), pass an absolute path under the workspace instead."
        )
