"""Attacks that show a verifier its own side: each is played against the real program that compares."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_a_patch_changes_the_check(tmp_path: Path, shown: str) -> None:
    """By its name, or by one that no check of names sees."""
    (tmp_path / "app.py").write_text("def double(x):\n    return x\n", encoding="utf-8")
    (tmp_path / "checks.py").write_text(CHECK, encoding="utf-8")
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("git apply fix.patch && python3 checks.py", "ALL CHECKS PASSED"),),
        work={f"{tmp_path}/fix.patch": FIX},
        prepared={f"{tmp_path}/app.py": "def double(x):\n    return x\n", f"{tmp_path}/checks.py": CHECK},
        reads=frozenset({f"{tmp_path}/checks.py", f"{tmp_path}/fix.patch"}),
    )
    found = [one for one in attacks(surface) if one.family == "a patch of the verifier's own file"]
    (chosen,) = [one for one in found if f"+++ {shown}\n" in next(iter(one.files.values()))]
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
