"""Every command line comes out alike from plain hermes, the fake sandbox and the local sandbox.

Each sandbox runs a chunk of lines in a few concurrent sessions. Before each line a session has the same files and variables.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.sandbox.context import FakeToolContext
from pytest_hermes_env.sandbox.fake_tools import machine_state as memory
from pytest_hermes_env.sandbox.files import Files, Node
from pytest_hermes_env.sandbox.simple_commands import FIRST_VARIABLES, run_simple

from .lines import FILES, IN_MEMORY, REAL
from .worlds import fake, hermes, local

PATH = "/usr/bin:/bin"
SESSIONS = 6
"""Concurrent sessions of a sandbox: hermes mostly waits."""
WORLDS = {"fake": fake, "local": local}

REFUSED = [
    "mkfs --help",
    "kill -0 -1",
    "systemctl reboot --help",
    "echo no | sudo -S true",
    "true; nohup true",
    "true &",
    "python3 -m http.server",
    "init 6 --help",
]
"""Lines that hermes refuses, and that would do no harm."""


def installed() -> list[str]:
    """Return the lines, without those of git if this machine has none."""
    return [line for line in (*IN_MEMORY, *REAL) if shutil.which("git", path=PATH) or "git " not in line]


class Session(ABC):
    """A sandbox's session whose files and variables can be set back."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.base = context.terminal("pwd")["output"]
        context.terminal("mkdir -p work home")
        context.terminal(f"cd work; export HOME={self.base}/home PATH={PATH} LC_ALL=C; unset LANG")

    def run(self, line: str) -> Any:
        """Return what the terminal answers, without what differs from session to session, and the files afterwards."""
        self.set_back(line)
        given = line.replace("{work}", f"{self.base}/work")
        answer = self._context.call_tool("terminal", {"command": given, "workdir": f"{self.base}/work"})
        answer = json.loads(answer.replace(self.base, "{base}"))
        return {**answer, "output": re.sub(r"\S*bash: line \d+: ", "bash: ", answer["output"]), "files": self.tree()}

    @abstractmethod
    def set_back(self, line: str) -> None:
        """Prepare the next line."""

    @abstractmethod
    def tree(self) -> dict[str, bytes | str | None]:
        """Return what is below the working directory: contents, links, None for directories."""


class OnDisk(Session):
    """A session of hermes on this machine."""

    def __init__(self, context: Any) -> None:
        from tools.terminal_tool import get_active_env

        super().__init__(context)
        self._environment = get_active_env(getattr(context, "_machine", context).task_id)
        self._snapshot = Path(self._environment._snapshot_path)
        self._variables = self._snapshot.read_bytes()

    def set_back(self, line: str) -> None:
        self._snapshot.write_bytes(self._variables)
        self._environment.cwd = f"{self.base}/work"
        for name in ("work", "home"):
            shutil.rmtree(Path(self.base, name), ignore_errors=True)
            Path(self.base, name).mkdir()
        for name, data in FILES.items():
            path = Path(self.base, "work", name)
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(data)
        Path(self.base, "work", "run.sh").chmod(0o755)

    def tree(self) -> dict[str, bytes | str | None]:
        work = Path(self.base, "work")
        return {
            str(path.relative_to(work)): f"-> {path.readlink()}"
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else None
            for path in work.rglob("*")
            if ".git" not in path.parts
        }


class InMemory(Session):
    """A session of a fake sandbox."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._machine = context._machine._toolbox.machine
        self._session = self._machine.session
        self._first: dict[str, Node] | None = None

    def set_back(self, line: str) -> None:
        files = self._machine.files
        if self._first is None:
            for name, data in FILES.items():
                files[f"work/{name}"] = data
            script = f"{self.base}/work/run.sh"
            files.take_over({script: replace(files.nodes[script], mode=0o755)})
            self._first = dict(files.nodes)
        files.take_over({**dict.fromkeys(files.nodes.keys() - self._first.keys()), **self._first})
        first = memory.Session(cwd=self._session.cwd)  # with other variables every line is a real one
        self._machine.session = first if line in IN_MEMORY else self._session

    def tree(self) -> dict[str, bytes | str | None]:
        work = f"{self.base}/work/"
        return {
            path[len(work) :]: node.data if node.kind == "file" else f"-> {node.target}" if node.kind == "link" else None
            for path, node in self._machine.files.nodes.items()
            if path.startswith(work) and "/.git" not in path
        }


@contextlib.contextmanager
def sessions(world: Callable[[], contextlib.AbstractContextManager[Any]]) -> Iterator[list[Session]]:
    """Yield the sessions of one sandbox; the first context opens it."""
    with world() as first, contextlib.ExitStack() as opened:
        if world is fake:
            yield [InMemory(first)]
            return
        contexts = [first]
        for number in range(SESSIONS - 1):
            context = type(first)(*another(first, number))
            opened.callback(context.cleanup)
            contexts.append(context)
        yield [OnDisk(context) for context in contexts]


def another(context: Any, number: int) -> tuple[Any, ...]:
    """Return the arguments of one more context: a task of hermes, or a machine of the local sandbox."""
    if isinstance(context, FakeToolContext):
        return (context._machine._sandbox.machine(f"parity-{number}"),)
    return (str(uuid.uuid4()),)


def outcomes(world: Callable[[], contextlib.AbstractContextManager[Any]], lines: list[str]) -> dict[str, Any]:
    """Return what each line does."""
    with sessions(world) as opened, ThreadPoolExecutor(len(opened)) as pool:
        parts = pool.map(lambda part: [(line, part[0].run(line)) for line in part[1]], shared(opened, lines))
        return dict(pair for part in parts for pair in part)


def shared(opened: list[Session], lines: list[str]) -> list[tuple[Session, list[str]]]:
    """Return each session with its lines."""
    return [(session, lines[number :: len(opened)]) for number, session in enumerate(opened)]


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """What each line does in plain hermes."""
    return outcomes(hermes, installed())


@pytest.mark.parametrize("name", WORLDS)
def test_every_line_comes_out_alike_everywhere(name: str, expected: dict[str, Any]) -> None:
    """Output, exit code, remarks and files of each line."""
    seen = outcomes(WORLDS[name], list(expected))

    assert {line: seen[line] for line in seen if seen[line] != expected[line]} == {
        line: expected[line] for line in seen if seen[line] != expected[line]
    }


@pytest.mark.parametrize("line", IN_MEMORY)
def test_simple_command_starts_no_process(line: str) -> None:
    """The machine in memory answers it."""
    files = Files({f"/workspace/{name}": data for name, data in FILES.items()})
    line = line.replace("{work}", "/workspace")

    assert run_simple(line, files, "/workspace", FIRST_VARIABLES) is not None


@pytest.mark.parametrize("line", REAL)
def test_other_line_changes_nothing_in_memory(line: str) -> None:
    """Before real bash runs it."""
    files = Files({f"/workspace/{name}": data for name, data in FILES.items()})
    before = dict(files.nodes)

    assert run_simple(line, files, "/workspace", FIRST_VARIABLES) is None
    assert files.nodes == before


def test_what_hermes_refuses_is_refused_in_its_words() -> None:
    """Also what it would run only in the background, and what it runs for nobody."""
    expected = outcomes(hermes, REFUSED)

    assert all(answer["exit_code"] == -1 for answer in expected.values())
    for world in WORLDS.values():
        assert outcomes(world, REFUSED) == expected
