"""`run_check` in hermes' real local terminal: a check on copies, which nothing that the agent left behind can make pass."""

from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import Any

import pytest

from environments.verification import STANDARD_PATH, machine_path, run_check

RIGHT = "def triple(n):\n    return 3 * n\n"
CHECK = """\
import json, subprocess, sys

word = sys.stdin.readline().strip()
call = "import sys; sys.path.insert(0, '.'); from triple import triple; print(triple(14))"
done = subprocess.run([sys.executable, "-I", "-c", call], capture_output=True, text=True, timeout=20)
right = done.stdout.strip() == "42"
print(word, json.dumps({"right": right}))
sys.exit(not right)
"""


def checked(sandbox: Any, **files: str) -> Any:
    """Return what came of the check of a sandbox with these files."""
    for name, content in files.items():
        assert "error" not in sandbox.write_file(f"{name}.py", content)
    return run_check(sandbox, 'exec python3 -I "$CHECK/check.py"', outputs=["triple.py"], files={"check.py": CHECK})


def test_right_work_passes_with_its_report(sandbox: Any) -> None:
    """The word is in no output that anyone sees."""
    done = checked(sandbox, triple=RIGHT)

    assert (done.passed, done.exit_code, done.report, done.missing) == (True, 0, {"right": True}, ())
    assert done.output.startswith("(the word) {")


@pytest.mark.parametrize(
    "files",
    [
        {"triple": "def triple(n):\n    return n\n"},
        {"triple": "import os\nprint('42')\nos._exit(0)\n", "json": "print('{}')", "sitecustomize": "raise SystemExit(0)"},
        {"triple": "import os\nos._exit(0)\n", "subprocess": "import os\nos._exit(0)\n"},
        {},
    ],
    ids=["wrong", "prints and ends", "ends its process", "nothing"],
)
def test_other_work_does_not(sandbox: Any, files: dict[str, str]) -> None:
    """Whatever lies beside it: only what is declared is copied."""
    assert not checked(sandbox, **files).passed


def test_what_the_session_holds_does_not_count(sandbox: Any) -> None:
    """Programs, functions and variables of the same names."""
    sandbox.terminal(
        "mkdir -p bin && printf '#!/bin/sh\\nexit 0\\n' > bin/python3 && chmod +x bin/python3 && cp bin/python3 bin/cat"
    )
    sandbox.terminal('export PATH="$PWD/bin:$PATH" PYTHONPATH="$PWD" BASH_ENV="$PWD/rc"; echo "exit 0" > rc')
    sandbox.terminal(
        'for each in cat printf mkdir env bash base64 test; do eval "$each() { echo \\"\\$* {}\\" >&2; }"; export -f $each; done'
    )

    assert not checked(sandbox, triple="def triple(n):\n    return n\n").passed


def test_where_the_agent_went_does_not_count(sandbox: Any) -> None:
    """Its outputs are those of the directory in which it began."""
    sandbox.terminal(f"mkdir -p else && cd else && printf %s {shlex.quote(RIGHT)} > triple.py")

    assert not checked(sandbox).passed


def test_only_declared_regular_files_are_copied(sandbox: Any) -> None:
    """A link, a file that is too large, and one that is absent are missing; a path out of the directory is a mistake of the caller."""
    sandbox.terminal("echo 1 > a; ln -s /etc/hostname b; head -c 2000 /dev/zero > c; echo 4 > not_declared")
    files = {"look.py": "import json, os, sys\nprint(sys.stdin.readline().strip(), json.dumps(sorted(os.listdir('.'))))\n"}
    done = run_check(sandbox, 'exec python3 -I "$CHECK/look.py"', outputs=["a", "b", "c", "d"], files=files, largest=1000)

    assert (done.passed, done.report, done.missing) == (True, ["a"], ("b", "c", "d"))
    with pytest.raises(ValueError, match="inside of the agent's directory"):
        run_check(sandbox, "true", outputs=["../x"], files={})


def test_data_is_told_and_in_no_file(sandbox: Any) -> None:
    """However long it is."""
    look = "import json, os, sys\nword, data = sys.stdin.readline().strip(), json.loads(sys.stdin.readline())\n"
    look += "print(word, json.dumps([data == ['x' * 200_000], sorted(os.listdir(os.environ['CHECK']))]))\n"
    done = run_check(sandbox, 'exec python3 -I "$CHECK/look.py"', outputs=[], files={"look.py": look}, data=["x" * 200_000])

    assert (done.passed, done.report) == (True, [True, ["look.py"]])


def test_a_report_without_the_word_is_none(sandbox: Any) -> None:
    """An exit code of 0 alone has not passed."""
    done = run_check(sandbox, "echo '{\"right\": true}'; exit 0", outputs=[], files={})

    assert (done.passed, done.exit_code, done.report) == (False, 0, None)


@pytest.mark.parametrize(
    ("code", "output", "path"),
    [
        (0, "/opt/tools/bin:/usr/bin", f"/opt/tools/bin:/usr/bin:{STANDARD_PATH}"),
        (1, "/bin/bash: line 1: /proc/1/environ: Permission denied", STANDARD_PATH),
        (0, "", STANDARD_PATH),
    ],
)
def test_a_message_is_no_path(code, output, path):
    """Where the machine's own variables cannot be read, programs are those of the standard path."""
    ctx = SimpleNamespace(terminal=lambda _: {"exit_code": code, "output": output})

    assert machine_path(ctx) == path
