"""Command lines on the in-memory machine come out as real bash brings them out: output, exit code, directory, files.

The real shell is started as hermes starts it: two lines stand above the ``eval`` of the command.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pytest_hermes_env.errors import NotKnown, UnknownCommand
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.shell import Shell


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a line does. ``cwd`` is where it leads, None when it ends the shell; ``tree`` has None for directories."""

    output: str
    exit_code: int
    cwd: str | None
    tree: dict[str, bytes | None]


@pytest.fixture(scope="session")
def bash():
    """The real shell. Older ones say some things in other words."""
    path = shutil.which("bash")
    version = subprocess.run([path or "bash", "-c", "echo ${BASH_VERSION%%.*}"], check=True, capture_output=True).stdout
    if path is None or int(version) < 5:
        pytest.skip("these are the words of bash 5")
    return path


def on_real_bash(bash: str, line: str, work: Path, home: Path) -> Seen:
    for name, data in FILES.items():
        (work / name).parent.mkdir(exist_ok=True)
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
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C", "USER": "root"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=30,
    )
    output, mark, rest = run.stdout.decode(errors="replace").rpartition("\n@@")
    return Seen(
        output=output if mark else rest,
        exit_code=run.returncode,
        cwd=rest.removesuffix("@@\n") if mark else None,
        tree={
            os.fsencode(path).decode(errors="surrogateescape"): path.read_bytes() if path.is_file() else None
            for path in work.rglob("*")
        },
    )


def in_memory(line: str, work: Path, home: Path) -> Seen:
    files = Files({f"{work}/{name}": data for name, data in FILES.items()}, cwd=str(work))
    files.make_directory(str(home), parents=True)
    files.set_executable("run.sh", True)
    shell = Shell(files, cwd=str(work))
    shell.run(f"export HOME={shlex.quote(str(home))} PATH=/usr/bin:/bin; unset LANG")
    outcome = shell.run(line)
    tree: dict[str, bytes | None] = {path: files.read(path) for path in files.walk(str(work))}
    return Seen(
        output=outcome.output,
        exit_code=outcome.exit_code,
        cwd=shell.cwd,
        tree=tree | dict.fromkeys(directories(files, str(work))),
    )


def directories(files: Files, above: str) -> list[str]:
    below = [f"{above}/{name}" for name in files.list_directory(above) if files.is_dir(f"{above}/{name}")]
    return below + [one for directory in below for one in directories(files, directory)]


@pytest.mark.parametrize("line", ALL)
def test_line_that_is_known_comes_out_as_in_bash(line, bash, tmp_path):
    """Everything that a rollout could see of it."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    line = line.replace("{work}", str(work))
    try:
        seen = in_memory(line, work, home)
    except (NotKnown, UnknownCommand):
        pytest.skip("only real bash runs this line")

    real = on_real_bash(bash, line, work, home)

    assert seen == replace(real, cwd=seen.cwd if real.cwd is None else real.cwd)


def test_most_lines_are_known(tmp_path):
    """So that the tests above are not all skipped."""
    known = 0
    for line in ALL:
        with contextlib.suppress(NotKnown, UnknownCommand):
            in_memory(line.replace("{work}", str(tmp_path)), tmp_path, tmp_path)
            known += 1

    assert known > len(ALL) * 0.4
