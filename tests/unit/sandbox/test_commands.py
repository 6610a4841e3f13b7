"""The everyday commands of the in-memory machine, held to the real ones."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_hermes_env.sandbox.commands import COMMANDS, Process, UnsupportedOption
from pytest_hermes_env.sandbox.files import Files

TREE = {
    "a.txt": b"one\ntwo\nthree\n",
    "b.txt": b"one\n2\nthree\nfour\n",
    "numbers": b"10\n9\n100\n9\n",
    "table": b"x,3,c\ny,1,b\nz,2,a\n",
    "no_end": b"last line without end",
    "empty": b"",
    "binary": bytes(range(256)),
    "words": b"Apple banana\napple  Cherry\n\n\n banana\n",
    "d/deep/c.py": b"import os\nneedle = 1\n",
    "d/x.txt": b"a needle\n",
}
"""The files that every command works on."""

INVOCATIONS = [
    "cat a.txt b.txt",
    "cat -n words",
    "cat -b words",
    "cat -s words",
    "cat -A binary",
    "cat missing a.txt",
    "cat d",
    "head -n 2 a.txt",
    "head -1 a.txt b.txt",
    "head -c 5 a.txt",
    "head -n -1 a.txt",
    "head missing",
    "tail -n 1 a.txt",
    "tail -n +2 a.txt",
    "tail -c 4 a.txt",
    "tail -c +4 a.txt",
    "tail -2 b.txt",
    "wc a.txt",
    "wc -l a.txt b.txt",
    "wc -w words",
    "wc -c binary no_end",
    "wc missing a.txt",
    "sort numbers",
    "sort -n numbers",
    "sort -rn numbers",
    "sort -u numbers",
    "sort -t, -k2 table",
    "sort missing",
    "uniq words",
    "uniq -c numbers",
    "uniq -d numbers",
    "cut -d, -f1,3 table",
    "cut -d, -f2- table",
    "cut -c1-3 a.txt",
    "cut a.txt",
    "tac a.txt",
    "rev a.txt",
    "nl words",
    "grep one a.txt",
    "grep -n e a.txt b.txt",
    "grep -c one a.txt b.txt",
    "grep -v one a.txt",
    "grep -i APPLE words",
    "grep -w apple words",
    "grep -o n. words",
    "grep -E ^(one|two)$ a.txt",
    "grep -F 1. numbers",
    "grep -l needle a.txt d/x.txt",
    "grep -q one a.txt",
    "grep nothing a.txt",
    "grep one missing",
    "grep needle d",
    "grep -A1 one b.txt",
    "grep -B1 three b.txt",
    "grep -x one a.txt",
    "grep -h one a.txt b.txt",
    "grep -m1 e a.txt",
    "sed s/one/1/ a.txt",
    "sed s/e/E/g a.txt",
    "sed -n 2p a.txt",
    "sed 2d a.txt",
    "sed -n /two/,$p a.txt",
    "sed $d a.txt",
    "sed -E s/(t)(w)/\\2\\1/ a.txt",
    "sed -i s/one/uno/ a.txt",
    "sed 1q missing",
    "ls",
    "ls -a",
    "ls -1 d",
    "ls -R d",
    "ls -d d",
    "ls missing a.txt",
    "find d -type f -name *.py",
    "find d -maxdepth 1 -type d",
    "find missing",
    "mkdir new",
    "mkdir -p new/er/est",
    "mkdir d",
    "mkdir no/parent",
    "rmdir d",
    "rm a.txt b.txt",
    "rm missing",
    "rm -f missing",
    "rm d",
    "cp a.txt copy.txt",
    "cp a.txt d",
    "cp -r d e",
    "cp d e",
    "cp missing x",
    "cp a.txt b.txt d",
    "mv a.txt moved.txt",
    "mv a.txt d",
    "mv d e",
    "mv missing x",
    "touch new.txt a.txt",
    "touch no/parent",
    "basename d/deep/c.py .py",
    "dirname d/deep/c.py",
    "base64 binary",
    "base64 -w0 a.txt",
    "od -An -v -tx1 no_end",
    "sha256sum a.txt",
    "md5sum empty missing",
    "seq 3",
    "seq 2 2 6",
    "diff a.txt b.txt",
    "diff -q a.txt b.txt",
    "diff a.txt a.txt",
    "diff a.txt missing",
    "diff no_end a.txt",
    "stat -c %s a.txt",
]
"""Command lines without quoting: words are separated by blanks."""


def tree_of(directory: Path) -> dict[str, bytes | None]:
    """Return every file with its bytes, and every directory."""
    return {
        path.relative_to(directory).as_posix(): None if path.is_dir() else path.read_bytes() for path in directory.rglob("*")
    }


@pytest.mark.parametrize("line", INVOCATIONS)
def test_does_what_the_real_command_does(line: str, tmp_path: Path) -> None:
    """Output, complaints, exit code and the resulting tree are the same."""
    words = line.split(" ")
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    files = Files(cwd="/work")
    for name, data in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
        files[name] = data  # type: ignore[assignment]
    environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}

    real = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    process = Process(words=tuple(words), files=files, cwd="/work")
    code = COMMANDS[words[0]](process)

    made: dict[str, bytes | None] = {path.removeprefix("/work/"): files.read(path) for path in files.walk("/work")}
    known = {name for name, data in tree_of(tmp_path).items() if data is None}
    made |= {name: None for name in known if files.is_dir(f"/work/{name}")}
    assert (code, bytes(process.out), bytes(process.err), made) == (
        real.returncode,
        real.stdout,
        real.stderr,
        tree_of(tmp_path),
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("ls --color=always", "ls --color"),
        ("grep -P x a.txt", "grep -P"),
        ("sort --magic", "sort --magic"),
        ("find . -exec x", "find -exec"),
        ("ls -t", "ls -t"),
        ("mkdir", "mkdir without an operand"),
        ("cp a.txt nowhere/", "cp to nowhere/, which is no directory"),
        ("grep [ a.txt", "the pattern ["),
    ],
)
def test_an_option_that_is_not_known_is_refused(line: str, what: str) -> None:
    """It is named rather than ignored, and so is a wrong use of a command."""
    words = tuple(line.split(" "))

    with pytest.raises(UnsupportedOption) as caught:
        COMMANDS[words[0]](Process(words=words, files=Files({"a.txt": "x"}), cwd="/workspace"))

    assert str(caught.value) == what
