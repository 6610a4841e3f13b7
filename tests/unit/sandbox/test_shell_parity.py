"""Command lines on an in-memory machine come out as real bash brings them out: output, exit code, directory, files.

A line runs in the in-memory shell, or in real bash in a cell over the same files. The bash that it is compared with is started as
hermes starts it: two lines stand above the ``eval`` of the command.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pytest_hermes_env.errors import NotKnown
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.real_lines import Cells, RealLines
from pytest_hermes_env.sandbox.real_shell import Place
from pytest_hermes_env.sandbox.shell import Shell

from ...parity.agent_lines import AGENT_LINES  # noqa: TID252 - the lists are kept beside the other parity tests
from ...parity.lines import ALL, FILES  # noqa: TID252

PATH = "/usr/bin:/bin"
SANDBOXES = Path(__file__).parents[3] / "docs" / "reference" / "sandboxes.md"
NEEDED = [*((line, ()) for line in ALL), *((line, programs) for programs, lines in AGENT_LINES.items() for line in lines)]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a line does. ``cwd`` is where it leads, None when it ends the shell; ``tree`` has None for directories."""

    output: str
    exit_code: int
    cwd: str | None
    tree: dict[str, bytes | str | None]


@pytest.fixture(scope="session")
def bash() -> str:
    """The real shell. Older ones say some things in other words."""
    path = shutil.which("bash")
    version = subprocess.run([path or "bash", "-c", "echo ${BASH_VERSION%%.*}"], check=True, capture_output=True).stdout
    if path is None or int(version) < 5:
        pytest.skip("these are the words of bash 5")
    return path


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealLines]:
    """One machine for all lines: its files are as at first before each of them, and so is its cell."""
    base = tmp_path_factory.mktemp("lines")
    files = Files({f"{base}/work/{name}": data for name, data in FILES.items()}, cwd=f"{base}/work")
    files.make_directory(f"{base}/home", parents=True)
    files.set_mode("run.sh", 0o755)
    cells = Cells("confined")
    yield RealLines(files=files, cells=cells)
    cells.close()


def on_real_bash(bash: str, line: str, base: Path) -> Seen:
    work, home = base / "work", base / "home"
    for directory in (work, home):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
    for name, data in FILES.items():
        (work / name).parent.mkdir(exist_ok=True, parents=True)
        (work / name).write_bytes(data)
    (work / "run.sh").chmod(0o755)
    script = (
        f"true\nbuiltin cd -- {shlex.quote(str(work))} || exit 126\neval '{line.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'\n"
        'code=$?\nset +x\nprintf "\\n@@%s@@\\n" "$(pwd -P)"\nexit $code'
    )
    run = subprocess.run(
        ["/usr/bin/bash", "-c", script],
        executable=bash,
        check=False,
        cwd=work,
        env={"PATH": PATH, "HOME": str(home), "LANG": "C.UTF-8", "USER": "root"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=30,
    )
    output, mark, rest = run.stdout.decode(errors="replace").rpartition("\n@@")
    cwd, _, after = rest.partition("@@\n")
    return Seen(
        output=output + after if mark else rest,
        exit_code=run.returncode,
        cwd=cwd if mark else None,
        tree={
            os.fsencode(path).decode(errors="surrogateescape"): f"-> {path.readlink()}"
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else None
            for path in work.rglob("*")
            if ".git" not in path.parts
        },
    )


def on_machine(machine: RealLines, line: str) -> tuple[Seen, bool]:
    """Return what a line does, and whether the in-memory shell knew it."""
    files, before = machine.files, machine.files.copy()
    work, home = files.cwd, files.cwd.replace("/work", "/home")
    shell = Shell(files, cwd=work)
    shell.run(f"export HOME={shlex.quote(home)} PATH={PATH}")
    is_known = True
    try:
        outcome = shell.run(line)
        output, exit_code = outcome.output, outcome.exit_code
    except NotKnown:
        is_known = False
        ran = machine.run(line, Place(cwd=shell.cwd, variables=shell.variables), timeout=30)
        shell.resume(ran.cwd, ran.variables)
        output, exit_code = ran.output.decode(errors="replace"), ran.exit_code
    below = {path: node for path, node in files.nodes.items() if path.startswith(f"{work}/") and "/.git" not in path}
    tree = {
        path: node.data if node.kind == "file" else f"-> {node.target}" if node.kind == "link" else None
        for path, node in below.items()
    }
    files.restore(before)
    return Seen(output=output, exit_code=exit_code, cwd=shell.cwd, tree=tree), is_known


@pytest.mark.parametrize(("line", "programs"), NEEDED, ids=[line for line, _ in NEEDED])
def test_line_comes_out_as_in_bash(
    line: str, programs: tuple[str, ...], bash: str, machine: RealLines, namespaces: None
) -> None:
    """Everything that a rollout could see of it, whichever shell ran it."""
    missing = [name for name in programs if shutil.which(name, path=PATH) is None]
    if missing:
        pytest.skip(f"this machine does not have {', '.join(missing)}")
    line = line.replace("{work}", machine.files.cwd)

    real = on_real_bash(bash, line, Path(machine.files.cwd).parent)
    seen, _ = on_machine(machine, line)

    assert seen == replace(real, cwd=seen.cwd if real.cwd is None else real.cwd)


def test_documentation_tells_how_many_lines_are_known(machine: RealLines) -> None:
    """Without a process: the common ones."""
    known = 0
    for line in ALL:
        before = machine.files.copy()
        with contextlib.suppress(NotKnown):
            Shell(machine.files, cwd=machine.files.cwd).run(line.replace("{work}", machine.files.cwd))
            known += 1
        machine.files.restore(before)

    assert f"| {len(ALL)} | {known} | {len(ALL) - known} | 0 | 0 |" in SANDBOXES.read_text(encoding="utf-8")
