"""The local sandbox: hermes' own terminal and file tools in a private directory, confined if the machine supports it.

Place in the flow: the fixture ``local_sandbox`` and the contract's ``--hermes-sandbox local`` use it as the sandbox of a `ToolSeam`;
its `machine` serves a `FakeToolContext` without a rollout. Commands in the sandbox read and write that machine's files: a link of
the agent to a path outside cannot make the test process write there.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import posixpath
import signal
import stat
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import pytest

from hermes_env_shared.abandoned import claim, is_gone, remove_abandoned_meanwhile, remove_tree
from hermes_env_shared.hermes_names import former_name
from hermes_env_shared.processes import kill_processes, mark_commands, now, tag_descendants
from pytest_hermes_env.errors import HermesEnvError, UsageError, shorten
from pytest_hermes_env.failures import Problem, combined_error
from pytest_hermes_env.sandbox import sessions
from pytest_hermes_env.sandbox.answers import called, takes
from pytest_hermes_env.sandbox.cell import Limits
from pytest_hermes_env.sandbox.confinement import ADVICE, UNCONFINED_HERE, Confinement, available
from pytest_hermes_env.sandbox.fake import FakeSandbox
from pytest_hermes_env.sandbox.hermes_modules import hermes_name
from pytest_hermes_env.sandbox.local_cell import LocalCell, check_variables
from pytest_hermes_env.sandbox.machine import FILE_TIMEOUT_S, MAX_BYTES, NOT_REGULAR, NotReadable, too_large
from pytest_hermes_env.sandbox.sandbox_errors import lost_sandbox

PREFIX = "pytest-hermes-sandbox-"
"""How the names of sandbox directories begin."""

JUST_MADE_S = 1.0
"""Age up to which a directory of the layer may belong to a rollout that is not registered yet, in seconds."""
MARK = "LOCAL_SANDBOX"
"""The variable that marks every command of a sandbox."""

LOCAL_TOOLS = frozenset({"terminal", "process", "read_file", "write_file", "patch", "search_files", "todo"})
"""Tools that hermes itself runs here: those of the toolsets ``terminal`` and ``file``, and the to-do list."""

_READ = f"""\
if [ -e "$1" ] && [ ! -f "$1" ] && [ ! -d "$1" ]; then echo '{NOT_REGULAR}' >&2; exit 1; fi
exec head -c "$2" < "$1"
"""

_NUMBERS = {os.strerror(number): number for number in errno.errorcode}


class LocalSandbox:
    """Runs hermes' local backend in a separate directory for every rollout, from `start` to `stop` or as a context manager.

    While it is active, ``PATH`` and ``SHELL`` of the test process point to a shell that enters the sandbox, ``TMPDIR`` and
    ``TERMINAL_SANDBOX_DIR`` to a directory in it. A ``bash`` that the test starts is confined, too; Python's own temporary directory
    stays the same. Only one sandbox can be active in a process.
    """

    backend = "local"
    _active: ClassVar[LocalSandbox | None] = None
    _starting: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self,
        *,
        confinement: Confinement | None = None,
        variables: Mapping[str, str] | None = None,
        unscripted: Literal["refuse", "not found"] = "refuse",
        allow_leftovers: bool = False,
        limits: Limits | None = None,
    ) -> None:
        """Use ``confinement``, by default the best one that works here. Every command also gets ``variables``.

        ``limits``: the most that confined commands may use. ``unscripted``: how other, unscripted tools are answered, as for a `FakeSandbox`. ``allow_leftovers``: unused scripted answers
        are not a problem.
        Raises: an invalid variable, or nothing confines commands here and ``confinement`` does not say that it may → UsageError.
        """
        self.scripted = FakeSandbox(unscripted=unscripted, allow_leftovers=allow_leftovers)
        self.confinement = confinement or available()
        if confinement is None and not self.confinement.is_in_force:
            raise UsageError(
                "this machine cannot confine the commands of a local sandbox.\n"
                "  expected  bubblewrap or user namespaces: an agent's commands are nobody's review\n"
                f"  seen      {self.confinement.reason}\n"
                f"  fix       {ADVICE}; {UNCONFINED_HERE},\n"
                "            LocalSandbox(confinement=UNCONFINED) does for one sandbox"
            )
        self._variables = dict(variables or {})
        check_variables(self._variables)
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._rollouts: dict[str, LocalRollout] = {}
        self._directories: dict[str, str] = {}
        self._cells: dict[str, int] = {}
        self._hits = 0
        self._hit: set[str] = set()
        self._open_before: set[str] = set()
        self._problems: list[Problem] = []
        self._resources: contextlib.ExitStack | None = None
        self._root: Path | None = None
        self._cell: LocalCell | None = None
        self.shell = Path()
        """The shell that hermes finds: a bash in the sandbox with the variables of commands."""
        self._is_kept_inside = False
        self._kept: set[Path] | None = None
        self._started = 0.0

    @property
    def is_confined(self) -> bool:
        """Whether commands cannot write the machine's files or use its network."""
        return self.confinement.is_in_force

    @property
    def description(self) -> str:
        """The confinement in force, as a line for reports."""
        return self.confinement.describe()

    @property
    def not_found(self) -> tuple[str, ...]:
        """Unscripted tools that were answered with "not found", in order."""
        return self.scripted.not_found

    @property
    def root(self) -> Path:
        """The only directory that commands may write to. Raises: the sandbox is not active → UsageError."""
        if self._root is None:
            raise UsageError(
                "this LocalSandbox is not active.\n"
                "  expected  a sandbox between start() and stop()\n"
                "  fix       use `with LocalSandbox() as sandbox: ...` or the fixture local_sandbox"
            )
        return self._root

    @property
    def home(self) -> Path:
        """HOME of all commands."""
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        """TMPDIR of all commands; rollouts have their directories here."""
        return self.root / "tmp"

    def on_tool(self, name: str, result: Any = "", **how: Any) -> Self:
        """Answer a tool outside the toolsets ``terminal`` and ``file``, as `FakeSandbox.on_tool` does.

        Raises: a tool that hermes itself runs, or a function that also takes the sandbox → UsageError.
        """
        if former_name(name) in LOCAL_TOOLS:
            raise UsageError(
                f"hermes itself runs the tool `{name}` in a LocalSandbox, so it cannot be scripted.\n"
                f"  expected  a tool other than {', '.join(sorted(LOCAL_TOOLS))}\n"
                "  fix       use FakeSandbox to script the terminal or the files"
            )
        for answer in result if isinstance(result, (list, tuple)) else (result,):
            if callable(answer) and not isinstance(answer, type) and takes(answer, 2):
                raise UsageError(
                    f"a function that answers a tool in a LocalSandbox must take the tool's arguments only.\n"
                    f"  seen      {called(answer)}, which also takes the sandbox, for `{name}`\n"
                    "  fix       def answer(arguments): ..."
                )
        self.scripted.on_tool(name, result, **how)
        return self

    def web(self, pages: Mapping[str, Any] | None = None, *, searches: Mapping[str, Any] | None = None) -> Self:
        """Define pages and searches, as `FakeSandbox.web` does."""
        self.scripted.web(pages, searches=searches)
        return self

    def verify(self) -> None:
        """Raise the problems of the rollouts again, and unused answers: a caller may have swallowed an error.

        Raises: UnexpectedToolCall, NotAToolResult, UsageError, LeftoverAnswers.
        """
        error = combined_error([*self._problems, *self.scripted.problems], who="the sandbox") if self._problems else None
        if error is not None:
            raise error
        self.scripted.verify()

    def start(self) -> Self:
        """Create the sandbox and set the variables of the process.

        Raises: a sandbox is already active in this process, or the confinement cannot start → UsageError.
        """
        with LocalSandbox._starting:
            if LocalSandbox._active is not None:
                raise UsageError(
                    "a LocalSandbox is already active in this process.\n"
                    "  expected  one at a time: hermes finds its shell through the variables of the process\n"
                    f"  seen      {LocalSandbox._active.root}\n"
                    "  fix       stop() it first; each rollout of a sandbox has a separate directory"
                )
            with contextlib.ExitStack() as resources:
                resources.callback(setattr, LocalSandbox, "_active", None)
                self._make(resources)
                LocalSandbox._active = self
                self._resources = resources.pop_all()
        return self

    def stop(self) -> None:
        """Kill all its processes, restore the variables and remove the directory. Does nothing when not active."""
        with self._lock:
            resources, self._resources = self._resources, None
        if resources is not None:
            resources.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def sandbox_of(self, task_id: str) -> LocalRollout:
        """Return the sandbox of ``task_id``, the same one each time. Thread-safe."""
        with self._lock:
            return self._rollouts.setdefault(task_id, LocalRollout(self, task_id))

    def machine(self, task_id: str = "test-rollout") -> LocalMachine:
        """Return the machine of ``task_id`` for use without a rollout, such as in a `FakeToolContext`."""
        return LocalMachine(self, task_id)

    def open(self, task_id: str) -> str:
        """Prepare hermes for a tool call of ``task_id`` and return its working directory.

        Raises: its environment registered a directory outside the sandbox, and commands are confined → UsageError.
        """
        self._tidy(task_id)
        self.raise_if_lost(task_id)
        with self._lock:
            root = self.root
            if not self._is_kept_inside and self._resources is not None:
                self._resources.enter_context(sessions.keep_inside(self.shell))
                self._resources.callback(setattr, self, "_is_kept_inside", False)
                self._is_kept_inside = True
            directory = sessions.open_session(task_id, lambda: self._directory_for(task_id, root))
        self._keep_directory(task_id, directory)
        if self.confinement.is_in_force and not Path(os.path.realpath(directory)).is_relative_to(root):
            if Path(directory).is_relative_to(root):
                raise self._lost(task_id, f"a command put something else in the place of {shorten(directory)}")
            text = (
                "the working directory of a rollout is outside the local sandbox, where its commands cannot write.\n"
                f"  expected  a working directory below {root}, or none: the sandbox then creates one\n"
                f"  seen      {shorten(directory)}, registered for the task {shorten(task_id)}\n"
                "  fix       create it with tempfile.mkdtemp(dir=os.environ['TERMINAL_SANDBOX_DIR']), or use\n"
                "            LocalSandbox(confinement=UNCONFINED)"
            )
            self._problems.append(Problem(error=UsageError, text=text))
            raise self._problems[-1].exception()
        return directory

    def _tidy(self, task_id: str) -> None:
        """Before a rollout that no other accompanies, end and remove what earlier ones left: it has a cell of its own."""
        with self._lock:
            self._repair()
            if task_id in self._cells or self._open_rollouts() - {task_id} or self._cell is None:
                return
            present = {path for place in (self.home, self.temporary) for path in place.iterdir()}
            if self._kept is None:
                self._kept = present
                return
            self._cell.renew()
            self._hits, self._hit = 0, set()
            for path in present - self._kept:
                with contextlib.suppress(OSError):  # it is gone
                    if not self._is_used(path):
                        away = self.root.parent / uuid.uuid4().hex
                        path.rename(away)
                        remove_tree(str(away))

    def _repair(self) -> None:
        """Open what a command closed, and put back what it replaced: the next rollout gets its directory there."""
        for place in (self.root, self.home, self.temporary):
            if os.path.islink(place) or not os.path.isdir(place):  # only where nothing confines commands
                place.unlink(missing_ok=True)
                place.mkdir()
            if os.lstat(place).st_mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(place, 0o700)

    def _open_rollouts(self) -> set[str]:
        return {*sessions.directories_in(self.root)}

    def _is_used(self, path: Path) -> bool:
        """Whether a rollout has its directory there, or below; or may have it in a moment: the layer creates it, then registers it."""
        if any(Path(directory).is_relative_to(path) for directory in sessions.directories_in(self.root).values()):
            return True
        return path.name.startswith("hermes-") and time.time() - path.lstat().st_ctime < JUST_MADE_S

    def _keep_directory(self, task_id: str, directory: str) -> None:
        """Make a rollout's directory again if a command removed it: hermes would go on in the directory of all rollouts.

        Raises: it may have been another rollout's command → SandboxLost.
        """
        try:
            if Path(directory).is_relative_to(self.root) and is_gone(directory):
                if self._open_rollouts() - {task_id}:
                    raise self._lost(task_id, "its directory was removed while other rollouts ran in the same sandbox")
                os.makedirs(directory, 0o700)
        except OSError as error:
            raise self._lost(task_id, f"its directory cannot be used any more: {error.strerror}") from error

    def raise_if_lost(self, task_id: str) -> None:
        """Before and after each tool call of ``task_id``.

        Raises: the cell in which it began cannot be entered any more, or a limit ended commands of several rollouts → SandboxLost.
        """
        with self._lock:
            reason = self._cell.loss_of(self._cells.setdefault(task_id, self._cell.number)) if self._cell is not None else ""
            self._note_hits()
            if task_id in self._hit:
                reason = reason or "one of several rollouts in it passed a limit, which ended the commands of all"
        if reason:
            raise self._lost(task_id, reason)

    def _note_hits(self) -> None:
        """Note which rollouts were open while a limit was hit; one that was alone is told of it and goes on."""
        hits = self._cell.hits() if self._cell is not None else 0
        concerned = self._open_rollouts() | self._open_before
        if hits > self._hits and len(concerned) > 1:
            self._hit |= concerned
        self._hits, self._open_before = hits, self._open_rollouts()

    def after_call(self, task_id: str) -> None:
        """After each tool call of ``task_id``. Raises: see `raise_if_lost`."""
        with self._lock:
            self._repair()
        self.raise_if_lost(task_id)
        if directory := sessions.directories_in(self.root).get(task_id):
            self._keep_directory(task_id, directory)

    def _lost(self, task_id: str, reason: str) -> HermesEnvError:
        """Note that a rollout cannot be scored, and return the error."""
        self._problems.append(lost_sandbox(task_id, reason))
        return self._problems[-1].exception()

    def release(self, task_id: str) -> None:
        """Kill the processes of a session, remove it from hermes, and remove its directory if this sandbox created it."""
        with self._lock:
            directory = self._directories.pop(task_id, "")
            self._cells.pop(task_id, None)
        sessions.close_session(task_id, directory)
        if directory:
            remove_tree(directory)

    def _directory_for(self, task_id: str, root: Path) -> str:
        self._directories[task_id] = tempfile.mkdtemp(prefix="rollout-", dir=root / "tmp")
        return self._directories[task_id]

    def _make(self, resources: contextlib.ExitStack) -> None:
        """Create everything, and register its removal in ``resources``."""
        remove_abandoned_meanwhile()
        base = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX)))
        root = base / "sandbox"
        resources.callback(remove_tree, str(base), then=claim(str(base), str(root), variable=MARK))
        own = {"HOME": str(root / "home"), "TMPDIR": str(root / "tmp"), "GIT_CEILING_DIRECTORIES": str(base), MARK: str(root)}
        variables = {**own, **self._variables}
        self._cell = LocalCell(self.confinement.kind, self.confinement.cell, base, self._limits, variables)
        self._root = root
        resources.callback(setattr, self, "_root", None)
        resources.callback(self._cell.stop)
        self._cell.start()
        self.shell = self._cell.shell
        self._set_variables(resources)
        tag_descendants()
        self._started = now()
        resources.callback(self._end_sessions)

    def _set_variables(self, resources: contextlib.ExitStack) -> None:
        """Set the variables of the test process with which hermes works in the sandbox; None unsets one."""
        temporary = str(self.temporary)
        variables = {
            "PATH": f"{self.shell.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "SHELL": str(self.shell),
            "TMPDIR": temporary,
            "TMP": temporary,
            "TEMP": temporary,
            "TERMINAL_ENV": self.backend,
            "TERMINAL_SANDBOX_DIR": temporary,  # where our layer creates the directories of rollouts
            "TERMINAL_HOME_MODE": "real",  # the file tools then expand ~ to the next variable
            "HERMES_REAL_HOME": str(self.home),
            **sessions.VARIABLES,
        }
        changes = resources.enter_context(pytest.MonkeyPatch.context())
        for name, value in variables.items():
            changes.delenv(name, raising=False)
            if value is not None:
                changes.setenv(name, value)

    def _end_sessions(self) -> None:
        """Kill all processes of the sandbox, and remove its sessions from hermes."""
        if self._cell is not None:
            self._cell.stop()
        root = str(self.root)
        kill_processes(mark=root, directory=root, variable=MARK, since=self._started, strays_until=math.inf)
        for task_id in sessions.directories_in(self.root):
            sessions.close_session(task_id)
        with self._lock:
            self._rollouts.clear()
            self._directories.clear()
            self._cells.clear()


class LocalRollout:
    """One rollout's sandbox: hermes runs the terminal and file tools; scripted answers serve the others."""

    def __init__(self, sandbox: LocalSandbox, task_id: str) -> None:
        self._sandbox = sandbox
        self.task_id = task_id

    def call(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Return None for the terminal and file tools, which hermes runs, and the scripted result of any other tool."""
        if former_name(name) in LOCAL_TOOLS:
            self._sandbox.open(self.task_id or "default")
            return None
        return self._sandbox.scripted.sandbox_of(self.task_id).call(name, arguments)

    def after_call(self) -> None:
        """Raises: the sandbox was lost → SandboxLost."""
        self._sandbox.after_call(self.task_id)


class LocalMachine(LocalRollout):
    """The machine of one task_id without a rollout: it calls hermes' own tools itself. It starts with the first call."""

    prints_at_login = True

    @property
    def directory(self) -> str:
        """The initial directory of the session, created on first use."""
        return self._sandbox.open(self.task_id)

    @property
    def cwd(self) -> str:
        """The session's directory: where relative paths lead."""
        directory = self.directory
        current = hermes_name("tools.terminal_tool", "get_session_cwd")(self.task_id)
        return current if current and os.path.isdir(current) else directory

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the result of one tool call as text. Raises: an unscripted tool → UnexpectedToolCall."""
        answer = super().call(name, arguments)
        if answer is not None:
            return answer
        from model_tools import handle_function_call  # noqa: PLC0415 - hermes is heavy

        with mark_commands(self.directory):
            result = handle_function_call(name, dict(arguments), task_id=self.task_id)
        self.after_call()
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

    def read_bytes(self, path: str, max_bytes: int = MAX_BYTES, timeout: float = FILE_TIMEOUT_S) -> bytes:
        """Return a file's bytes. Raises: it does not exist → OSError; it is a FIFO, too large or too slow → NotReadable."""
        data = self._run(path, _READ, self._absolute(path), str(max_bytes + 1), timeout=timeout)
        if len(data) > max_bytes:
            raise too_large(path, max_bytes)
        return data

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file and create missing directories. Raises: it cannot be written → OSError."""
        place = self._absolute(path)
        self._run(path, 'mkdir -p -- "$2" && cat > "$1"', place, posixpath.dirname(place), given=data)

    def list_files(self, directory: str) -> list[str]:
        """Return the sorted names of all files below a directory, relative to it. Raises: the directory does not exist → OSError."""
        listing = self._run(directory, 'cd -- "$1" && find . -type f -print0', self._absolute(directory))
        return sorted(os.fsdecode(name).removeprefix("./") for name in listing.split(b"\0") if name)

    def release(self) -> None:
        """Kill the processes of the session, remove it from hermes, and remove its directory."""
        self._sandbox.release(self.task_id)

    def _absolute(self, path: str) -> str:
        """Return the absolute path: ``~`` is the home of commands, relative paths begin at the session's directory."""
        if path == "~" or path.startswith("~/"):
            path = f"{self._sandbox.home}{path[1:]}"
        return os.path.join(self.cwd, path)

    def _run(self, path: str, script: str, *arguments: str, given: bytes = b"", timeout: float = FILE_TIMEOUT_S) -> bytes:
        """Run a script in the sandbox and return its output. Raises: it failed → OSError with the command's reason."""
        words = [str(self._sandbox.shell), "-c", script, "bash", *arguments]
        with subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
            cwd=self.directory,
            start_new_session=True,
        ) as process:
            try:
                output, errors = process.communicate(given, timeout)
            except subprocess.TimeoutExpired as error:
                os.killpg(process.pid, signal.SIGKILL)
                reason = f"it takes longer than {timeout:g} seconds; timeout= raises the limit"
                raise NotReadable(errno.ETIMEDOUT, reason, path) from error
        if process.returncode != 0:
            reason = os.fsdecode(errors).strip().rpartition(": ")[2]
            kind = NotReadable if reason == NOT_REGULAR else OSError
            raise kind(_NUMBERS.get(reason, errno.EIO), reason or "it could not be done", path)
        return output
