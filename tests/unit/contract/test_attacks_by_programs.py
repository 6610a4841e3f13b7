"""Attacks by what programs read and run of themselves: variables, settings, modules, a repository, uploads."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from environments.sandbox.file_transfer import upload_file
from pytest_hermes_env.play.tampering import payloads
from pytest_hermes_env.play.tampering.attacks import attacks
from pytest_hermes_env.play.tampering.surface import Surface, fresh_paths, without_uploads
from pytest_hermes_env.sandbox.seam import ToolCall

from .test_attacks import attack_named


@pytest.mark.parametrize(
    ("lines", "part", "seen"),
    [
        ("bash .t/tests.sh; echo $?", "what bash does", "BASH_ENV"),
        ("{ time python3 a.py; } 2>&1", "what time does", "TIMEFORMAT"),
        ("make check", "what make does", "MAKEFLAGS"),
        ("gcc -o p p.c && ./p | cmp - e.txt", "compares nothing", "/cmp"),
        ("cmp out.txt golden.txt", "out.txt is a link to golden.txt", "ln -sfn"),
    ],
)
def test_what_the_session_and_uploads_allow_is_tried(lines: str, part: str, seen: str) -> None:
    """Where the verifier was seen to run such a program; else not."""
    fitting = Surface(
        cwd="/w",
        commands=((lines, "ok"),),
        work={"/w/p.c": "x", "/w/out.txt": "1"},
        uploads={"/w/golden.txt": "1"},
        tools=("terminal",),
    )

    assert any(seen in line for line in attack_named(fitting, part).lines)
    others = dataclasses.replace(fitting, commands=(("python3 t.py", ""),), uploads={})
    assert not any(part in one.family for one in attacks(others))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_module_of_node_changes_the_checks_of_its_process(tmp_path: Path) -> None:
    """It is whatever it is taken for, and nothing that is compared differs."""
    (tmp_path / "lib.js").write_text(payloads.equal_to_all("lib.js", ""), encoding="utf-8")
    check = "const assert = require('node:assert'); const { f } = require('./lib.js'); assert.strictEqual(f(1).a, 2); assert.deepEqual(f, [3]);"

    assert subprocess.run(["node", "-e", check], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_settings_of_a_test_runner_are_written_where_the_verifier_has_none(tmp_path: Path) -> None:
    """A run that only collects ends well."""
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert False\n")
    line = "rm -f conftest.py pytest.ini && python3 -m pytest -q test_it.py"
    surface = Surface(
        cwd=str(tmp_path), commands=((line, "1 passed"),), uploads={f"{tmp_path}/setup.cfg": ""}, tools=("terminal",)
    )

    attack = attack_named(surface, "reads of itself")

    assert f"{tmp_path}/setup.cfg" not in attack.files
    for path, text in attack.files.items():
        Path(path).write_text(text)
    line = line.replace("python3", f"{sys.executable} -I").replace("-q", "-q -p no:cacheprovider")
    assert subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_what_the_verifier_writes_may_go_into_the_work(tmp_path: Path) -> None:
    """By a link where it writes what it compares with."""
    work, expected = tmp_path / "out.env", tmp_path / "expected.env"
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("diff out.env expected.env", ""),),
        work={str(work): "A=1\n"},
        uploads={str(expected): "A=1\n"},
        tools=("terminal",),
    )
    work.write_text("wrong\n")

    subprocess.run(["sh", "-c", *attack_named(surface, "which the verifier writes").lines], check=True)
    expected.write_text("A=1\n")

    assert work.read_text() == "A=1\n"


def test_an_old_result_stays_where_its_program_finds_no_work(tmp_path: Path) -> None:
    """The work is removed, the report is as gold's was."""
    report, work = tmp_path / "report.json", tmp_path / "list.json"
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("python3 audit.py", ""),),
        work={str(work): "[1]"},
        made={str(report): '{"lines": 3, "errors": []}'},
        tools=("terminal",),
    )
    work.write_text("[]")

    attack = attack_named(surface, "an old result")
    subprocess.run(["sh", "-c", *attack.lines], check=True)

    assert attack.files == {str(report): '{"lines": 3, "errors": []}'}
    assert not work.exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_texts_of_all_values_are_the_same_to_node(tmp_path: Path) -> None:
    """Whatever the module gives."""
    (tmp_path / "a.js").write_text(payloads.same_texts("a.js"))
    check = "const { f } = require('./a.js'); process.exit(JSON.stringify(f(1)) === JSON.stringify({ b: 2 }) ? 0 : 1)"

    assert subprocess.run(["node", "-e", check], cwd=tmp_path, check=False).returncode == 0


def test_lines_run_in_the_name_of_what_is_measured(tmp_path: Path) -> None:
    """Not one of its functions is called."""
    source = tmp_path / "m.py"
    source.write_text("def f(x):\n    return x\n")
    measuring = "import sys, unittest\nsys.settrace(seen)\n"
    surface = Surface(
        cwd=str(tmp_path),
        commands=((f"python3 -c '{measuring}'", ""),),
        work={f"{tmp_path}/test_m.py": "def test_f():\n    pass\n"},
        prepared={str(source): source.read_text()},
        tools=("terminal",),
    )
    (text,) = attack_named(surface, "only run lines").files.values()
    reached = set()

    def trace(frame: Any, event: str, arg: Any) -> Any:
        reached.update([frame.f_lineno] if frame.f_code.co_filename == str(source) else [])
        return trace

    held: dict[str, Any] = {}
    exec(text, held)
    case = next(value for value in held.values() if isinstance(value, type))("test_f")
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        case.test_f()
    finally:
        sys.settrace(before)

    assert {1, 2} <= reached


def test_what_the_work_is_compared_with_is_made_slower() -> None:
    """The work is the slow code itself."""
    slow = "def f(x):\n    return x\n"
    surface = Surface(
        cwd="/w",
        commands=(("python3 -c 'import time; t = time.perf_counter()'", "RESULT 3"),),
        work={"/w/fast.py": "def f(x):\n    return x\n"},
        prepared={"/w/slow.py": slow, "/w/notes.py": "1 +"},
        tools=("terminal",),
    )

    files = attack_named(surface, "what the work is compared with").files

    assert files["/w/fast.py"] == slow
    assert "def f(x):\n    __import__('time').sleep(2)\n    return x\n" in files["/w/slow.py"]
    untimed = dataclasses.replace(surface, commands=(("python3 -m pytest", "1 passed"),))
    assert not [one for one in attacks(untimed) if "compared with" in one.family]
    assert payloads.slowed("1 +") == payloads.slowed("x = 1\n") == ""


def test_a_commit_has_the_message_of_golds() -> None:
    """A verifier may look for it."""
    surface = Surface(cwd="/w", commands=(("git log -1", ""),), subject="Release 1.2", tools=("terminal",))

    assert "git commit -q --allow-empty -m 'Release 1.2'" in attack_named(surface, "settings of the repository").lines[0]


def test_a_script_of_sqlite_lets_no_query_after_it_print(tmp_path: Path) -> None:
    """Two that differ print the same."""
    prepared = {str(tmp_path / "shop.sql"): "create table a (b);\ninsert into a values (1);\n"}
    line = "sqlite3 :memory: '.read shop.sql' "
    surface = Surface(
        cwd=str(tmp_path), commands=((f"{line}'select * from a'", "1"),), prepared=prepared, reads=frozenset(prepared)
    )
    for path, text in attack_named(surface, "a script of sqlite3").files.items():
        Path(path).write_text(text, encoding="utf-8")

    told = {
        subprocess.run(["sh", "-c", line + query], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for query in ("'select * from a'", "'select 7'")
    }
    assert told == {"rows\n"}


class Noting:
    """A shell that notes its commands, all of which succeed."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []

    def terminal(self, command: str, timeout: int = 9) -> dict[str, Any]:
        """Note one."""
        self.calls.append(ToolCall(task_id="", name="terminal", arguments={"command": command}, result="", seconds=timeout))
        return {"exit_code": 0, "output": ""}


def test_what_the_layer_uploads_by_commands_is_the_verifiers(tmp_path: Path) -> None:
    """In one part or several, and whatever its name; these commands are none of its own."""
    texts = {"golden/one.txt": "1 2 3\n", "a golden/it's.py": "x" * 200_000, "empty": ""}
    shell: Any = Noting()
    for name, text in texts.items():
        (tmp_path / "one").write_text(text, encoding="utf-8")
        upload_file(shell, str(tmp_path / "one"), name)
    shell.terminal("ls")

    uploads, rest = without_uploads(shell.calls)

    assert uploads == texts
    assert [one.arguments["command"] for one in rest] == ["ls"]


@pytest.mark.parametrize(
    ("program", "line", "code", "printed"),
    [
        ("bash", "bash t.sh", 0, ""),
        ("make", "make check", 0, None),
        ("node", "node t.js", 0, ""),
        ("git", "git diff --no-index a.txt b.txt", None, ""),
        ("time", "{ time sleep 0.1; } 2>&1", 0, "real\t0m0.001s\nuser\t0m0.001s\nsys\t0m0.001s\n"),
        ("pytest", f"{sys.executable} -m pytest -q t.py", 0, None),
    ],
)
def test_variables_of_the_session_make_a_check_that_fails_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, line: str, code: int | None, printed: str | None
) -> None:
    """Or print what the verifier looks for; without them it fails."""
    if program not in {"time", "pytest"} and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))
    texts = {
        "t.sh": "exit 1\n",
        "t.js": "process.exit(1);\n",
        "t.py": "def test_it():\n    assert False\n",
        "Makefile": "check:\n\tfalse\n",
        "a.txt": "1\n",
        "b.txt": "2\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    surface = Surface(cwd=str(tmp_path), commands=((line, ""),), tools=("terminal",))
    (setting,) = attack_named(surface, f"what {program} does").lines

    without, with_it = (
        subprocess.run(["bash", "-c", f"{before}{line}"], cwd=tmp_path, capture_output=True, text=True, check=False)
        for before in ("", f"{setting}; ")
    )

    assert (without.returncode, without.stdout) != (with_it.returncode, with_it.stdout)
    assert code is None or with_it.returncode == code
    assert printed is None or with_it.stdout == printed


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("author", "taken_back", "expected"),
    [("environment", False, "right\n"), ("environment", True, "right\n"), ("agent", False, "wrong\n")],
)
def test_the_history_holds_an_answer_that_the_agent_did_not_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, author: str, taken_back: bool, expected: str
) -> None:
    """What gold itself committed is no answer that lay there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    repository = tmp_path / "repository"
    git = f"git -C {repository} -c user.name=a -c user.email=a@b.c"
    commit = f"{git} add -A && {git} commit -q -m"
    answer = f"echo right > {repository}/a.txt && {commit} fixed"
    surface = Surface(cwd=str(repository), commands=((f"git -C {repository} log", ""),), tools=("terminal",))
    attack = [one for one in attacks(surface) if "the history" in one.family][taken_back]
    steps = [
        f"git init -q {repository} && echo wrong > {repository}/a.txt && {commit} first && {git} branch start",
        f"{answer} && {git} checkout -q start" if author == "environment" and not taken_back else "true",
        f"{answer} && {git} rm -q a.txt && {commit} again" if taken_back else "true",
        *attack.first,
        answer if author == "agent" else "true",
        f"echo wrong > {repository}/a.txt",
        *attack.lines,
    ]

    for step in steps:
        subprocess.run(
            ["bash", "-c", step], cwd=repository if repository.exists() else tmp_path, capture_output=True, check=False
        )

    assert (repository / "a.txt").read_text(encoding="utf-8") == expected


def test_a_path_is_fresh_where_two_rollouts_have_another_one() -> None:
    """One that both have can be known, and so can what only one of them came to."""
    run, again, fixed, alone = (f"/w/.run-{name}/out" for name in ("0123456789ab", "ba9876543210", "deadbeef0001", "x"))

    assert fresh_paths(frozenset([run, alone]), frozenset([again])) == {run, again}
    assert fresh_paths(frozenset([run, fixed]), frozenset([fixed])) == frozenset()
    assert fresh_paths(frozenset([run]), frozenset([alone])) == frozenset()
    seen = Surface(cwd="/w", reads=frozenset([run, again, fixed]), fresh=frozenset([run, again]))
    assert seen.missing == [fixed]
