"""The attacks that are made for what a verifier was seen to do, and what their files and commands do."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from pytest_hermes_env import say
from pytest_hermes_env.inference.steps import turn
from pytest_hermes_env.play.tampering import payloads
from pytest_hermes_env.play.tampering.attack import Attack
from pytest_hermes_env.play.tampering.attacks import attacks
from pytest_hermes_env.play.tampering.search import with_attack
from pytest_hermes_env.play.tampering.surface import Surface

from .test_tampering import TRIPLE

SURFACE = Surface(
    cwd="/w",
    commands=(("python3 -m pytest -q test_a.py", "3 passed in 0.10s\n"),),
    reads=frozenset({"/w/test_a.py", "/w/a.py", "/w/report.json"}),
    work={"/w/a.py": "def f():\n    return 1\n"},
    uploads={"/w/test_a.py": "import json\nfrom a import f\n"},
    tools=("terminal", "write_file"),
)


@pytest.mark.parametrize(
    ("output", "said"),
    [("", ""), ("all passed\n", "all passed"), ("42\n", None)],
)
def test_an_end_says_just_what_was_said_of_gold(output: str, said: str | None) -> None:
    """Nothing, or its one word; an answer is no word of it."""
    surface = dataclasses.replace(
        SURFACE,
        work={"/w/triple.py": TRIPLE},
        commands=(("mktemp -d", "/tmp/x"), ("python3 -m doctest triple.py", output)),
        answers=frozenset({"42"}),
    )

    assert surface.said_of_work == said
    ends = [one for one in attacks(surface) if "no other word than gold's" in one.family]
    assert [one.files["/w/triple.py"].count("print(") for one in ends] == ([] if said is None else [bool(said)])


def test_attacks_follow_what_was_seen() -> None:
    """Modules that are imported, files that are looked for, and what the runner said."""
    first = next(attacks(SURFACE))

    assert {"/w/a.py", "/w/conftest.py", "/w/pytest.py", "/w/json.py"} <= {*first.files}
    assert "/w/os.py" not in first.files
    assert "3 passed in 0.10s" in first.files["/w/a.py"]
    assert any("/w/report.json" in one.files for one in attacks(SURFACE))
    assert not any("git" in one.family for one in attacks(SURFACE))


def test_no_answer_is_among_what_is_said() -> None:
    """Lines that programs printed count where they are a runner's, or words of the verifier's own code."""
    surface = Surface(
        cwd="/w", commands=(("python3 a.py", "a line of the answer\nMATCH\n"),), uploads={"/w/c.py": "print('MATCH')"}
    )

    assert "MATCH" in surface.said.splitlines()
    assert "answer" not in surface.said


def test_an_agent_without_a_terminal_writes_files() -> None:
    """An attack that needs a command is not tried."""
    base = (turn(say("no")),)
    plain = Attack(family="x", files={"/w/a": "1"})

    assert with_attack(base, plain, ("write_file",))[0].steps[0].tool == "write_file"
    assert with_attack(base, Attack(family="x", files={"~/a": "1"}), ("write_file",)) == ()


def test_an_attack_without_one_of_its_files_is_otherwise_the_same() -> None:
    """One that lives by the session's own programs stays such a one: it is a warning."""
    attack = Attack(family="x", files={"/w/a": "1", "/w/b": "2"}, lines=("ls",), first=("pwd",), is_of_session=True)

    assert attack.without("/w/a") == dataclasses.replace(attack, files={"/w/b": "2"})


@pytest.mark.parametrize("text", ["it's", 'a "b" $HOME `c`', "two\nlines"])
def test_a_script_writes_results_as_they_are(tmp_path: Path, text: str) -> None:
    """Whatever quotes they hold."""
    place = tmp_path / "it's.json"
    script = payloads.program("x.sh", "ok", {str(place): text})
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert (place.read_text(encoding="utf-8"), done.stdout) == (text, "ok\n")


def attack_named(surface: Surface, part: str, *, is_full: bool = False) -> Attack:
    """Return the first attack whose family holds a text."""
    return next(one for one in attacks(surface, is_full=is_full) if part in one.family)


def test_what_lies_prepared_may_be_moved_or_go_after_another_file() -> None:
    """Limits in settings, by their names; a file that make reads first."""
    prepared = {
        "/w/quality.ini": "[f]\nmax_lines = 5\nmin_documented = 1.0\nother = 3\n",
        "/w/Makefile": "check:\n\tpython3 t.py\n",
    }
    surface = dataclasses.replace(SURFACE, prepared=prepared, reads=frozenset(prepared))

    moved = attack_named(surface, "limits").files["/w/quality.ini"]
    assert moved == "[f]\nmax_lines = 999999\nmin_documented = 0\nother = 999999\n"
    assert attack_named(surface, "limits were set as low").files["/w/quality.ini"].endswith("other = 0\n")
    assert attack_named(surface, "goes before").files == {"/w/GNUmakefile": "check:\n\t@echo PASS\n"}


def test_what_programs_make_may_be_a_link_or_a_view() -> None:
    """Results of two programs that are compared; a table that the verifier makes."""
    made = {"/w/.g/actual.txt": "a", "/w/.g/expected.txt": "a", "/w/shop.db": "\x00"}
    line = (
        'python3 -c \'db.execute("create table wanted (n)"); db.execute("select * from summary except select * from wanted")\'',
        "",
    )
    surface = dataclasses.replace(SURFACE, made=made, commands=(line,))

    links = [one.lines[0] for one in attacks(surface) if "is a link to expected.txt" in one.family]
    assert "mkdir -p $(dirname /w/.g/actual.txt); ln -sfn /w/.g/expected.txt /w/.g/actual.txt" in links
    assert "create view summary as select * from wanted" in attack_named(surface, "summary is a view of wanted").lines[0]


def test_work_that_was_there_before_is_attacked_as_it_was() -> None:
    """What the agent should have made faster, with a clock that stands."""
    surface = dataclasses.replace(SURFACE, prepared={"/w/a.py": "def f():\n    return sum(range(10 ** 9))\n"})

    assert attack_named(surface, "the work as it was").files["/w/a.py"].endswith(surface.prepared["/w/a.py"])


def test_a_process_may_wait_for_the_checker(tmp_path: Path) -> None:
    """It is a warning, since it lives by the session, and is part of the full search."""
    script = tmp_path / "check.sh"
    surface = dataclasses.replace(SURFACE, uploads={str(script): "exit 1\n"}, commands=(("bash check.sh", "all is well\n"),))
    assert not any("background" in one.family for one in attacks(surface))

    attack = attack_named(surface, "background", is_full=True)
    assert attack.is_of_session
    subprocess.run(["bash", "-c", attack.lines[0]], cwd=tmp_path, check=True, timeout=20)
    script.write_text("exit 1\n", encoding="utf-8")
    while "exit 0" not in script.read_text(encoding="utf-8"):
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("seen", "is_first"),
    [
        ('{"total": 3, "passed": 3, "failures": []}', True),
        ('{"status": "passed"}', True),
        ('{"answer": "the river Oder"}', False),
    ],
)
def test_a_report_that_anybody_could_write_is_written(seen: str, is_first: bool) -> None:
    """One of counts and words of success; no word of it is an answer."""
    found = payloads.results_for("/w/report.json", seen, ())

    assert (found[0] == seen) == is_first


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_code_for_node_writes_results_at_its_end(tmp_path: Path) -> None:
    """Whatever the program that loads it wrote before."""
    (tmp_path / "work.js").write_text(payloads.program("work.js", "ok", {"report.json": "good"}), encoding="utf-8")
    runner = "require('./work.js'); require('fs').writeFileSync('report.json', 'bad')"
    done = subprocess.run(["node", "-e", runner], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert ((tmp_path / "report.json").read_text(encoding="utf-8"), done.stdout) == ("good", "ok\n")


def test_where_data_is_emptied_the_head_of_golds_table_may_be_right() -> None:
    """A verifier that computes what is right from the agent's own copy of the data expects the head of a table."""
    ledger, summary = "/workspace/ledger.csv", "/workspace/summary.csv"
    seen = Surface(
        cwd="/workspace",
        work={summary: "account,total\nrent,4\n"},
        prepared={ledger: "date,account\n1,rent\n"},
        reads=frozenset({ledger, summary}),
    )

    files = [attack.files for attack in attacks(seen) if "emptied" in attack.family]

    assert files == [{ledger: "date,account", summary: ""}, {ledger: "date,account", summary: "account,total\n"}]


@pytest.mark.parametrize(
    ("lines", "part", "seen"),
    [
        ("git diff --quiet v1 HEAD -- a.txt", "all names of the repository", "git update-ref"),
        ("cd d && grep -L x *", "a file is named -q", "/w/d/-q"),
        ("gcc -I. -o t t.c a.c && ./t", "headers where the compiler looks first", "/w/assert.h"),
        ("set -eu; . ./a.env; test $A = 1", "makes every test of the shell succeed", "/w/a.env"),
        ("npm test", "settings that a program reads of itself", "/w/.npmrc"),
    ],
)
def test_names_that_a_program_finds_may_stand_for_something_else(lines: str, part: str, seen: str) -> None:
    """Commits, options, headers, and settings, where the verifier was seen to run a program that finds them so; else none is tried."""
    work = {"/w/a.env": "A=1\n", "/w/a.c": "int a(int n)\n{\n    return n;\n}\n", "/w/d/x": "x\n"}
    source = {"/w/t.c": "#include <assert.h>\n"} if "gcc" in lines else {}
    fitting = Surface(cwd="/w", commands=((lines, ""),), work=work, uploads=source, tools=("terminal",))

    attack = attack_named(fitting, part)

    assert seen in {*attack.files} or any(seen in line for line in attack.lines)
    others = dataclasses.replace(fitting, commands=(("python3 t.py", ""),), uploads={})
    assert not any(part in one.family for one in attacks(others))


@pytest.mark.parametrize(
    ("name", "text", "run"),
    [
        ("work.awk", "", "awk -f work.awk case1.csv"),
        ("work.pl", "", "perl work.pl case1.csv"),
        ("work.sh", "", "sh work.sh case1.csv"),
        ("work.c", "#include <stdio.h>\nint main(void)\n{\n    return 1;\n}\n", "gcc -o work work.c && ./work case1.csv"),
    ],
)
def test_work_in_any_language_finds_what_stands_beside_its_input(tmp_path: Path, name: str, text: str, run: str) -> None:
    """By the words with which it was called, whichever program it is."""
    if shutil.which(run.split(maxsplit=1)[0]) is None:
        pytest.skip(f"{run.split(maxsplit=1)[0]} is not installed")
    surface = Surface(
        cwd=str(tmp_path), commands=((run, ""),), work={str(tmp_path / name): text}, reads=frozenset({"/w/gone.txt"})
    )
    (tmp_path / "case1.csv").write_text("a,b\n", encoding="utf-8")
    (tmp_path / "case1.want").write_text("what is right\n", encoding="utf-8")
    for path, made in attack_named(surface, "a program of python3").files.items():
        Path(path).write_text(made, encoding="utf-8")

    done = subprocess.run(["sh", "-c", run], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "what is right\n"


def test_a_base_may_lose_its_source_and_keep_its_tables(tmp_path: Path) -> None:
    """The tables that gold made are there, and nothing is in any."""
    base = tmp_path / "shop.db"
    with contextlib.closing(sqlite3.connect(base)) as made:
        made.executescript("create table orders (n int); insert into orders values (3)")
    before = base.read_bytes().decode(errors="replace")
    surface = Surface(
        cwd="/w", work={str(base): "CREATE TABLE orders (n int)\0CREATE TABLE totals (n int)"}, prepared={str(base): before}
    )

    for line in attack_named(surface, "tables of which all are empty").lines:
        subprocess.run(["sh", "-c", line], check=True)

    with contextlib.closing(sqlite3.connect(base)) as made:
        assert made.execute("select (select count(*) from orders), (select count(*) from totals)").fetchall() == [(0, 0)]


@pytest.mark.parametrize(
    ("name", "work", "kept"),
    [
        (
            "work.js",
            "function f(a) {\n  return a;\n}\nmodule.exports = { f };\n",
            ["// function f(a) {", "// module.exports = { f };"],
        ),
        ("work.sh", "total() {\n  echo 3\n}\ntotal\n", ["# total() {"]),
        ("work.py", "from __future__ import annotations\nLIMIT = 3\ndef f(a):\n    return a\n", ["LIMIT = 3", "def f(a):"]),
    ],
)
def test_names_of_the_work_stay(name: str, work: str, kept: list[str]) -> None:
    """Where a verifier looks for them before it runs anything."""
    surface = Surface(cwd="/w", commands=((f"run {name}", ""),), work={f"/w/{name}": work}, tools=("terminal",))

    ended = attack_named(surface, "code that ends the verifier's process").files[f"/w/{name}"]

    assert [line for line in ended.splitlines() if line in kept] == kept
