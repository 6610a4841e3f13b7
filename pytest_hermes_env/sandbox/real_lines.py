"""Command lines of an in-memory machine that run for real: in bash, in a confined cell, over the same files.

Place in the flow: the fake sandbox's ``terminal`` passes on all but simple commands. Only what changed since the last
real line is written out, and only what the line changed is read back. The files in memory are the truth and a cell holds a warm copy,
so an idle cell may be closed at any time: the next line opens another one.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_hermes_env.errors import EnvironmentSetupError, shorten
from pytest_hermes_env.sandbox.confinement import ADVICE, UNCONFINED_HERE, available
from pytest_hermes_env.sandbox.files import Files, Node
from pytest_hermes_env.sandbox.machine import is_interrupted
from pytest_hermes_env.sandbox.real_shell import Changed, Place, Ran, RealShell
from pytest_hermes_env.types import RealToolsUse

MOST_CELLS = 16
"""Cells that the machines of one sandbox keep warm."""
SHORT_S = 60.0
"""Seconds for a line of our own."""
INTERRUPTED, KILLED = 130, -15
"""The exit codes of a line whose rollout was cancelled, and of a process that ended with its cell."""


class CellLost(Exception):
    """A cell became unusable by what ran in it."""


class Cells:
    """The warm cells of a sandbox's machines. When there are too many, the idle one that was used least recently is closed.

    ``use`` says when real programs may run.
    """

    def __init__(self, use: RealToolsUse) -> None:
        self.use = use
        self._warm: dict[RealLines, None] = {}
        self._lock = threading.Lock()

    @property
    def is_confined(self) -> bool:
        """Whether commands cannot reach the host."""
        return self.use != "always" or available().is_in_force

    @functools.cached_property
    def refusal(self) -> Refusal | None:
        """Why no line runs for real, or None."""
        if self.use == "never":
            return Refusal(reason="is switched off: real_tools='never'", fix=_way_out("confined"))
        if self.use == "always" or available().is_in_force:
            return None
        return Refusal(
            reason=f"cannot be confined on this machine ({available().reason})",
            fix=f"{ADVICE}; {UNCONFINED_HERE}",
        )

    def open(self) -> RealShell:
        """Return a new cell. Raises: this machine cannot start one → OSError."""
        with self._lock:
            extra = len(self._warm) - MOST_CELLS + 1
            idle = [one for one in list(self._warm) if extra > 0 and one.close(only_idle=True)][:extra]
            for one in idle:
                del self._warm[one]
        return RealShell(unconfined=self.use == "always" and not available().is_in_force)

    def used(self, lines: RealLines) -> None:
        """Note that a machine's cell was used just now."""
        with self._lock:
            self._warm.pop(lines, None)
            self._warm[lines] = None

    def close(self) -> None:
        """Close every cell, with all processes in it."""
        with self._lock:
            warm, self._warm = list(self._warm), {}
        for lines in warm:
            lines.close()


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A line that needed real programs, and why it does not run: ``reason`` says it of real bash; ``fix`` is what changes that."""

    reason: str
    fix: str
    line: str = ""

    def __str__(self) -> str:
        return f"`{shorten(self.line)}`, and real bash {self.reason}: {self.fix}"


@dataclass(eq=False)
class RealProcess:
    """A background process of a machine. ``party`` started it."""

    lines: RealLines
    number: int
    party: str
    output: str = ""
    exit_code: int | None = None

    def poll(self) -> None:
        """Bring ``output`` and ``exit_code`` up to date."""
        if self.exit_code is None and self._shell is None:
            self.exit_code = KILLED
        elif self.exit_code is None and self._shell is not None:
            output, self.exit_code = self._shell.poll(self.number)
            self.output = output.decode(errors="replace")

    def write(self, data: bytes) -> None:
        """Send bytes to its standard input; none end it."""
        if self._shell is not None:
            self._shell.write(self.number, data)

    def kill(self) -> None:
        """End it, and the processes that it started."""
        if self._shell is not None:
            self._shell.kill(self.number)

    @property
    def _shell(self) -> RealShell | None:
        """The shell that it runs in; None if that was closed, even if there is another one by now."""
        return self.lines.shell if self in self.lines.running else None


@dataclass(eq=False, kw_only=True)
class RealLines:
    """The real lines of one machine. ``links`` lead from directories of the host to the machine's."""

    files: Files
    cells: Cells
    shell: RealShell | None = None
    running: list[RealProcess] = field(default_factory=list)
    _links: dict[str, Node] = field(default_factory=dict)
    _there: dict[str, Node] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def copy(self, files: Files) -> RealLines:
        """Return the real lines of another machine, which gets a cell of its own."""
        return RealLines(files=files, cells=self.cells, _links=dict(self._links))

    def link(self, directory: str, target: str) -> None:
        """Let a directory of the host lead to ``target``: files and commands name it."""
        self._links[directory] = Node(kind="link", target=target, mode=0o777)

    def run(self, command: str, place: Place, *, timeout: float) -> Ran:
        """Run a line, and take over what it changed and read, in the name of the current writer and party.

        Raises: this machine cannot start a cell, or the cell broke → OSError.
        """
        with self._warm_shell() as shell:
            try:
                ran = shell.run(command, place, changed=self._to_write(), timeout=timeout)
            except EnvironmentSetupError:
                if not is_interrupted():
                    raise
                self.close()  # the cell was closed with what ran in it
                return Ran(output=b"[Command interrupted]", exit_code=INTERRUPTED, cwd=place.cwd, variables=place.variables)
            self._take_over(ran)
        return ran

    def start(self, command: str, place: Place, *, has_input: bool) -> RealProcess:
        """Start a background process. ``has_input``: text can be sent to it. Raises: as `run`."""
        with self._warm_shell() as shell:
            number = shell.start(command, place, changed=self._to_write(), has_input=has_input)
            self._there = self._wanted()
            self.running.append(RealProcess(self, number, self.files.party))
        return self.running[-1]

    def synchronize(self, cwd: str) -> None:
        """Exchange changes with processes that run in the background, in the name of the party that started the last one."""
        if not self.running:
            return
        for process in self.running:
            process.poll()
        before = self.files.writer, self.files.party
        self.files.writer, self.files.party = "terminal", self.running[-1].party
        self.running = [process for process in self.running if process.exit_code is None]
        try:
            self.run(":", Place(cwd=cwd), timeout=SHORT_S)
        finally:
            self.files.writer, self.files.party = before

    def close(self, *, only_idle: bool = False) -> bool:
        """Close the cell, with all processes in it; an idle one has no line and no background process. Return whether it is closed."""
        if not self._lock.acquire(blocking=not only_idle):
            return False
        try:
            if only_idle and self.running:
                return False
            shell, self.shell = self.shell, None
            self._there = {}
            self.running = []
            if shell is not None:
                shell.close()
            return True
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _warm_shell(self) -> Iterator[RealShell]:
        with self._lock:
            self.shell = self.shell or self.cells.open()
            self.cells.used(self)
            try:
                yield self.shell
            except BaseException as error:
                self.close()
                if isinstance(error, EnvironmentSetupError) and self._fits_in_a_new_cell():
                    raise CellLost(str(error).partition("seen      ")[2].partition("\n")[0]) from error
                raise

    def _fits_in_a_new_cell(self) -> bool:
        """Whether another cell takes all files: then a command made this one unusable."""
        shell, wanted = self.cells.open(), self._wanted()
        try:
            shell.run(":", Place(cwd="/"), changed={path: wanted[path] for path in sorted(wanted)}, timeout=SHORT_S)
        except EnvironmentSetupError:
            return False
        finally:
            shell.close()
        return True

    def _wanted(self) -> dict[str, Node]:
        return {**self._links, **{path: node for path, node in self.files.nodes.items() if path != "/"}}

    def _to_write(self) -> Changed:
        """Return what differs from the cell's copy: removals from the leaves up, then everything else from the root down."""
        wanted = self._wanted()
        removed = sorted((path for path in self._there if path not in wanted), reverse=True)
        added = sorted(path for path, node in wanted.items() if self._there.get(path) is not node)
        return {**dict.fromkeys(removed), **{path: wanted[path] for path in added}}

    def _take_over(self, ran: Ran) -> None:
        existing = self.files.nodes
        read = sorted(ran.read)
        for path in read:
            if path in existing:
                self.files.note_read(path)
        changed = {path: entry for path, entry in ran.changed.items() if path != "/" and path not in self._links}
        self.files.take_over(changed)
        for path in read:
            if path in self.files.nodes:
                self.files.note_read(path)
        self._there = self._wanted()


def _way_out(use: RealToolsUse) -> str:
    return f"real_tools={use!r} where the test creates the sandbox, else --hermes-real-tools={use}"
