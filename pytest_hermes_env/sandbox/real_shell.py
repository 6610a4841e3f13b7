"""A real bash over the files of an in-memory machine, in a cell of its own that stays warm between the lines.

Place in the flow: the terminal of a `FakeSandbox` runs here all but simple commands. Only what differs between the two
trees goes over, in both directions.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias

from pytest_hermes_env.errors import EnvironmentSetupError
from pytest_hermes_env.sandbox.cell import Cell, CellError, CellPlan, Limits
from pytest_hermes_env.sandbox.confinement import Confinement, available
from pytest_hermes_env.sandbox.files import Node
from pytest_hermes_env.sandbox.inside.messages import receive, send
from pytest_hermes_env.sandbox.machine import is_interrupted
from pytest_hermes_env.sandbox.view import PROGRAM_PATHS, boot, inner_interpreter, inner_library, real_view

TIMED_OUT = 124
NOISE = (b"cannot set terminal process group", b"no job control in this shell")

HOST_PYTHON = os.path.dirname(sys.executable)
"""Where the interpreter of the tests is: a line finds it first."""


Changed: TypeAlias = Mapping[str, Node | None]
"""Paths and what is there; None for what is gone."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a line runs: its directory, the exported variables, and the definitions of bash functions, on one line."""

    cwd: str
    variables: Mapping[str, str] = field(default_factory=dict)
    functions: str = ""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a line did. ``changed`` maps each path to its new state, None if it is gone; ``read`` has the files that it read.

    ``variables`` are the exported ones after the line, ``asked`` the functions of its `Place` that it called. ``limit``: the limit
    that was hit, in plain words; empty if none.
    """

    output: bytes
    exit_code: int
    cwd: str
    variables: Mapping[str, str]
    changed: Changed = field(default_factory=dict)
    read: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    timed_out: bool = False
    limit: str = ""


_OWN_LIMIT = re.compile(r"\b(?:ulimit|prlimit|setrlimit|RLIMIT_\w+)")
"""A line with a limit of its own: what it hit was that one."""


class RealShell:
    """One warm cell. It starts at the first line and ends, with every process in it, at `close`. Thread-safe."""

    def __init__(
        self, *, confinement: Confinement | None = None, limits: Limits | None = None, unconfined: bool = False
    ) -> None:
        """Use ``confinement``, by default the best one that works here; or, if ``unconfined``, none."""
        self._unconfined = unconfined
        self._confinement = confinement or available()
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._cell: Cell | HostCell | None = None

    def run(self, command: str, place: Place, *, changed: Changed, timeout: float) -> Ran:
        """Write ``changed``, run a line in bash, and return what it did.

        Raises: the cell cannot start, or cannot have a path of ``changed`` → EnvironmentSetupError.
        """
        answer, answered = self._line("run", command, place, changed, timeout=timeout, options=["-c"])
        *contents, output, asked, after, exports = answered
        return Ran(
            output=output,
            exit_code=_exit_code(answer),
            cwd=after.decode(errors="surrogateescape").removesuffix("\n") or place.cwd,
            variables=_exported(exports.decode(errors="surrogateescape")) if exports else dict(place.variables),
            changed={
                path: entry and Node(**{**entry, "data": contents[entry["data"]] if "data" in entry else b""})
                for path, entry in answer["changed"].items()
            },
            read=frozenset(answer["read"]),
            asked=frozenset(asked.decode(errors="replace").split()),
            timed_out=answer["timed_out"],
            limit=answer["limit"]
            or ("" if _OWN_LIMIT.search(command) else _limit_of(answer["exit_code"], output, self._limits)),
        )

    def start(self, command: str, place: Place, *, changed: Changed, has_input: bool = False) -> int:
        """Start a line in the background and return its process id. ``has_input``: `write` may write to it."""
        answer, _ = self._line("start", f"set +m; {command}", place, changed, options=["-lic"], has_input=has_input)
        return int(answer["process"])

    def poll(self, process: int) -> tuple[bytes, int | None]:
        """Return all output of a background process so far, and its exit code, None while it runs."""
        answer, blobs = self._ask({"do": "poll", "process": process}, [])
        return _without_noise(blobs[0]), None if answer["exit_code"] is None else _exit_code(answer)

    def write(self, process: int, data: bytes) -> None:
        """Write to the standard input of a background process; no bytes end it."""
        self._ask({"do": "write", "process": process}, [data])

    def kill(self, process: int) -> None:
        """End a background process and its process group."""
        self._ask({"do": "kill", "process": process}, [])

    def close(self) -> None:
        """Kill every process in the cell. The next line would start another one."""
        with self._lock:
            cell, self._cell = self._cell, None
            if cell is not None:
                cell.stop()

    def _line(self, do: str, command: str, place: Place, changed: Changed, **more: Any) -> tuple[dict[str, Any], list[bytes]]:
        blobs = [node.data for node in changed.values() if node]
        numbers = itertools.count()
        entries = {path: node and wire_form(node, next(numbers)) for path, node in changed.items()}
        request = {
            "do": do,
            "command": command,
            "cwd": place.cwd,
            "variables": _given(place),
            "functions": place.functions,
            "changed": entries,
        }
        return self._ask({**request, **more}, blobs)

    def _ask(self, request: Mapping[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        with self._lock:
            try:
                if self._cell is None:
                    self._cell = self._started()
                answer, answered = self._cell.ask(request, blobs, is_over=is_interrupted)
            except (CellError, EOFError, OSError) as error:
                raise EnvironmentSetupError(
                    "the in-memory machine has no real shell for a command line.\n"
                    "  expected  a confined cell, in which real bash runs\n"
                    f"  seen      {str(error) or 'its first process ended'}\n"
                    '  fix       see "How commands are confined": hermes-env docs local-sandbox'
                ) from error
        if "error" in answer:
            raise EnvironmentSetupError(
                "a file of the in-memory machine cannot exist where real bash runs.\n"
                "  expected  paths outside /usr, /bin, /lib, /sbin, /dev and /proc, which are the machine's programs and devices\n"
                f"  seen      {answer['error']}\n"
                "  fix       put the file elsewhere, for example below /root or /workspace"
            )
        return answer, answered

    def _started(self) -> Cell | HostCell:
        if self._unconfined:
            return HostCell()
        library = inner_library()
        plan = CellPlan(
            steps=real_view(self._limits.disk_bytes),
            user=0,
            interpreter=inner_interpreter(),
            variables={"LD_LIBRARY_PATH": library} if library else {},
            limits=self._limits,
            has_tree=True,
        )
        cell = self._confinement.cell(plan)
        if cell is None:
            raise CellError(self._confinement.reason)
        cell.start()
        return cell


def _given(place: Place) -> dict[str, str]:
    """Return the variables that bash starts with: it counts ``SHLVL`` up itself."""
    level = place.variables.get("SHLVL", "")
    lowered = {"SHLVL": str(int(level) - 1)} if level.isdecimal() else {}
    return {**place.variables, **lowered, "PWD": place.cwd}


def wire_form(node: Node, content: int) -> dict[str, Any]:
    """Return what a cell has to know of a path; ``content`` is the number of its content in a message."""
    return {"kind": node.kind, "target": node.target, "mode": node.mode, "changed_ns": node.changed_ns, "data": content}


def _exit_code(answer: Mapping[str, Any]) -> int:
    """Return the exit code as hermes has it: the timeout's, or of bash; a signal is negative."""
    return TIMED_OUT if answer.get("timed_out") else int(answer["exit_code"])


def _without_noise(output: bytes) -> bytes:
    """Return the output of an interactive shell without its warnings that it has no terminal, as hermes does."""
    lines = output.split(b"\n")
    while any(noise in lines[0] for noise in NOISE):
        lines.pop(0)
    return b"\n".join(lines)


def _exported(environment: str) -> dict[str, str]:
    """Return the exported variables of a line, as ``env -0`` lists them, without functions and what it sets itself."""
    pairs = (entry.partition("=") for entry in environment.split("\0"))
    return {name: value for name, _, value in pairs if name.isidentifier() and name != "_"}


def _limit_of(exit_code: int, output: bytes, limits: Limits) -> str:
    """Return the limit that the kernel enforced, as far as the exit code and the output tell; empty if none."""
    tail = output[-2000:]
    if exit_code in {-signal.SIGXCPU, 128 + signal.SIGXCPU} or b"CPU time limit exceeded" in tail:
        return f"CPU time: at most {limits.cpu_s} s for each process"
    if exit_code == 0:
        return ""
    if exit_code in {-signal.SIGXFSZ, 128 + signal.SIGXFSZ} or b"No space left on device" in tail or b"File too large" in tail:
        return f"disk: at most {limits.disk_bytes} bytes"
    if b"fork: " in tail or b"can't start new thread" in tail or b"BlockingIOError" in tail:
        return f"processes: at most {limits.processes} at a time"
    if b"MemoryError" in tail or b"Cannot allocate memory" in tail or b"memory exhausted" in tail:
        return f"memory: at most {limits.memory_bytes} bytes"
    return ""


class HostCell:
    """What stands in for a cell where nothing confines: its first process runs on this machine, over files in a private directory.

    The in-memory machine's directories lie in the private one, so a path in a command or in its output is translated; one in a
    file is not.
    """

    def __init__(self) -> None:
        self._base = tempfile.TemporaryDirectory(prefix="pytest-hermes-unconfined-")
        self._root = os.path.join(os.path.realpath(self._base.name), "root")
        self._names: set[str] = set()
        os.mkdir(self._root)
        words, pipe = [*boot(sys.executable, PROGRAM_PATHS, "server"), self._root], subprocess.PIPE
        self._process = subprocess.Popen(words, bufsize=0, stdin=pipe, stdout=pipe, env={}, start_new_session=True)
        receive(self._descriptor(self._process.stdout))
        self.ask({"do": "begin", "limits": {}, "most_bytes": Limits().disk_bytes, "has_tree": True, "directory": ""}, [])

    def ask(self, request: Mapping[str, Any], blobs: list[bytes], **_: Any) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer of the first process to a request, as `Cell.ask`, but to its end. Raises: it ended → EOFError, OSError."""
        self._names |= {path.split("/")[1] for path in request.get("changed", ())}
        inner = _translated(request, self._inward)
        if "command" in inner:
            places = inner["variables"].get("PATH", os.defpath).removeprefix(f"{HOST_PYTHON}:")
            own = {"TMPDIR": f"{self._root}/tmp"}  # noqa: S108 - below its own
            own["GIT_CEILING_DIRECTORIES"] = os.path.dirname(self._root)  # a repository around it is not its own
            inner["variables"] |= {"PATH": f"{HOST_PYTHON}:{places}", **own}
        send(self._descriptor(self._process.stdin), inner, blobs)
        answer, answered = receive(self._descriptor(self._process.stdout))
        files = sum("data" in entry for entry in answer.get("changed", {}).values() if entry)
        outer = _translated(answer, lambda text: text.replace(self._root, ""))
        return outer, answered[:files] + [text.replace(self._root.encode(), b"") for text in answered[files:]]

    def stop(self) -> None:
        """End the first process, which ends all others, and remove the directory."""
        self._process.communicate()
        self._base.cleanup()

    def _inward(self, text: str) -> str:
        """Return text whose paths to the machine's directories lead into the private one."""
        names = "|".join(map(re.escape, sorted(self._names)))
        return re.sub(rf"(?<![\w./-])/(?=(?:{names})(?![\w.-]))", f"{self._root}/", text) if names else text

    @staticmethod
    def _descriptor(stream: IO[bytes] | None) -> int:
        if stream is None or stream.closed:
            raise EOFError
        return stream.fileno()


def _translated(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON's value with all its texts changed."""
    if isinstance(value, Mapping):
        return {change(name): _translated(one, change) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_translated(one, change) for one in value]
    return change(value) if isinstance(value, str) else value
