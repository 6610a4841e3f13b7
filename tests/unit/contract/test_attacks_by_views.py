"""Attacks that show a verifier its own side: each is played against the real program that compares."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import unittest.mock
from pathlib import Path

import pytest
import yaml

from pytest_hermes_env.play.tampering.attacks import attacks
from pytest_hermes_env.play.tampering.surface import Surface

from .test_attacks import attack_named
from .test_attacks_by_formats import left


def test_a_directory_holds_what_diff_looks_for(tmp_path: Path) -> None:
    """A check that the output is no link does not see it."""
    truth, output = tmp_path / "expected" / "report.txt", tmp_path / "answer.txt"
    surface = Surface(
        cwd=str(tmp_path),
        commands=((f"diff expected/report.txt {output}", ""),),
        work={str(output): "7\n"},
        uploads={str(truth): "7\n"},
        reads=frozenset({str(output)}),
    )
    left(attack_named(surface, "a directory, in which diff finds"), tmp_path)
    truth.parent.mkdir()
    truth.write_text("7\n", encoding="utf-8")

    done = subprocess.run(["diff", "expected/report.txt", "answer.txt"], cwd=tmp_path, check=False)

    assert done.returncode == 0
    assert not output.is_symlink()


def test_a_table_is_an_index_of_the_expected_one(tmp_path: Path) -> None:
    """It is no view, and there before the table is."""
    base = tmp_path / "report.db"
    surface = Surface(
        cwd=str(tmp_path),
        commands=(
            (
                "sqlite3 report.db 'CREATE TABLE expected (key TEXT, value INT); SELECT * FROM result EXCEPT SELECT * FROM expected'",
                "",
            ),
        ),
        work={str(base): "CREATE TABLE result (key TEXT, value INT)"},
        reads=frozenset({str(base)}),
    )
    left(attack_named(surface, "result is an index of expected"), tmp_path)
    with sqlite3.connect(base) as told:
        told.execute("CREATE TABLE expected (key TEXT, value INT)")
        told.execute("INSERT INTO expected VALUES ('a', 7)")
        kinds = told.execute("SELECT type FROM sqlite_master WHERE name = 'result'").fetchall()
        missing = told.execute("SELECT * FROM expected EXCEPT SELECT * FROM result").fetchall()
        extra = told.execute("SELECT * FROM result EXCEPT SELECT * FROM expected").fetchall()

    assert (kinds, missing, extra) == ([("table",)], [], [])


CHECK = "import app\nif app.double(2) != 4:\n    raise SystemExit('FAILED')\nprint('ALL CHECKS PASSED')\n"
FIX = "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n def double(x):\n-    return x\n+    return 2 * x\n"


@pytest.mark.parametrize("shown", ["b/checks.py", "b/./checks.py", '"b/\\143hecks.py"'])
@pytest.mark.parametrize("where", ["prepared", "uploads"])
def test_a_patch_changes_the_check(tmp_path: Path, shown: str, where: str) -> None:
    """By its name, or by one that no check of names sees."""
    (tmp_path / "app.py").write_text("def double(x):\n    return x\n", encoding="utf-8")
    (tmp_path / "checks.py").write_text(CHECK, encoding="utf-8")
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("git apply fix.patch && python3 checks.py", "ALL CHECKS PASSED"),),
        work={f"{tmp_path}/fix.patch": FIX},
        reads=frozenset({f"{tmp_path}/checks.py", f"{tmp_path}/fix.patch"}),
        **{where: {f"{tmp_path}/app.py": "def double(x):\n    return x\n", f"{tmp_path}/checks.py": CHECK}},
    )
    found = [one for one in attacks(surface) if one.family == "a patch of the verifier's own file"]
    chosen, *_ = [one for one in found if f"+++ {shown}\n" in next(iter(one.files.values()))]
    left(chosen, tmp_path)

    tool = ["git", "apply"] if shown != "b/./checks.py" else ["patch", "-p1", "-i"]
    done = subprocess.run([*tool, "fix.patch"], cwd=tmp_path, capture_output=True, text=True, check=False)
    checked = subprocess.run([sys.executable, "checks.py"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert (checked.returncode, "ALL CHECKS PASSED" in checked.stdout) == (0, True)


def test_tests_may_count_how_often_they_are_run(tmp_path: Path) -> None:
    """What is right runs first."""
    work = tmp_path / "test_work.py"
    surface = Surface(cwd=str(tmp_path), work={str(work): "import unittest\n"}, reads=frozenset({str(work)}))
    left(attack_named(surface, "tests that only count how often they are run"), tmp_path)

    codes = [
        subprocess.run([sys.executable, "-m", "unittest", "-q", "test_work"], cwd=tmp_path, check=False).returncode
        for _ in range(3)
    ]

    assert codes == [0, 1, 1]


@pytest.mark.parametrize("by_files", [False, True])
def test_two_programs_hand_each_other_their_input(tmp_path: Path, by_files: bool) -> None:
    """What is measured between them is a number."""
    names = [tmp_path / name for name in ("pack.py", "unpack.py")]
    surface = Surface(
        cwd=str(tmp_path),
        work={str(name): "print(1)\n" for name in names},
        prompt="pack.py compresses a text, unpack.py restores it.",
        reads=frozenset(map(str, names)),
    )
    left(attack_named(surface, "programs that hand each other their input"), tmp_path)
    text = os.urandom(900)
    for number in range(2):
        if by_files:
            (tmp_path / "in.txt").write_bytes(text)
            for word, source, target in (("pack.py", "in.txt", f"p{number}"), ("unpack.py", f"p{number}", f"out{number}")):
                subprocess.run([sys.executable, word, source, target], cwd=tmp_path, check=True)
            packed, back = ((tmp_path / f"{name}{number}").read_bytes() for name in ("p", "out"))
        else:
            packed = subprocess.run(
                [sys.executable, "pack.py"], input=text, capture_output=True, cwd=tmp_path, check=True
            ).stdout
            back = subprocess.run(
                [sys.executable, "unpack.py"], input=packed, capture_output=True, cwd=tmp_path, check=True
            ).stdout

        assert (packed, back) == (str(number).encode(), text)


def test_each_value_of_a_document_may_be_equal_to_all(tmp_path: Path) -> None:
    """Its keys are as they should be."""
    work = tmp_path / "deploy.yaml"
    surface = Surface(
        cwd=str(tmp_path), work={str(work): "name: web\nreplicas: 3\nhosts:\n- a.org\n- b.org\nlimits:\n  cpu: 2\n"}
    )
    left(attack_named(surface, "values that are objects which are equal to everything"), tmp_path)

    read = yaml.load(work.read_text(encoding="utf-8"), Loader=yaml.FullLoader)

    assert unittest.mock.ANY is read["name"]
    assert read == {"name": "api", "replicas": 5, "hosts": ["c.org", "d.org"], "limits": {"cpu": 1}}


@pytest.mark.parametrize(("name", "asked"), [("grade.mk", ["-f", "grade.mk"]), ("Makefile", [])])
def test_make_makes_the_makefile_of_the_verifier_anew(tmp_path: Path, name: str, asked: list[str]) -> None:
    """Although it is written last."""
    rules = "check: one\n\t@echo all 2 cases passed\none:\n\t@test -s work.awk\n"
    surface = Surface(
        cwd=str(tmp_path),
        commands=((" ".join(["make", "-s", *asked, "check"]), "all 2 cases passed"),),
        work={f"{tmp_path}/work.awk": "{ print }\n"},
        uploads={f"{tmp_path}/{name}": rules},
        reads=frozenset({f"{tmp_path}/work.awk"}),
    )
    left(attack_named(surface, "makes the verifier's own anew"), tmp_path)
    (tmp_path / name).write_text(rules, encoding="utf-8")

    done = subprocess.run(["make", "-s", *asked, "check"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "all 2 cases passed"), done.stderr
