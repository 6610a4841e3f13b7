"""Attacks by what the verifier's programs keep, or are told by names: each is played against such a program."""

from __future__ import annotations

import io
import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from pytest_hermes_env.play.tampering.attacks import attacks
from pytest_hermes_env.play.tampering.surface import Surface

from .test_attacks import attack_named
from .test_attacks_by_formats import left

INSERTED = [(1, "north", 5), (2, "south", 7)]


def git(folder: Path, *words: str) -> str:
    """What git says in a folder."""
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_database_keeps_no_row_of_the_verifier(tmp_path: Path) -> None:
    """Two queries over nothing are the same."""
    base = tmp_path / "sales.db"
    with sqlite3.connect(base) as made:
        made.execute("CREATE TABLE sales (id INTEGER, place TEXT, sum NUMERIC(10, 2))")
        made.execute("CREATE VIEW report AS SELECT place, COALESCE(SUM(sum), 0) AS total, COUNT(*) n FROM sales GROUP BY place")
    text = base.read_bytes().decode(errors="replace")
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("python3 -c 'db.executemany(\"INSERT INTO sales ...\")'", "same"),),
        work={str(base): text},
        tools=("terminal",),
    )

    left(attack_named(surface, "has triggers that ignore"), tmp_path)

    with sqlite3.connect(base) as found:
        found.executemany("INSERT INTO sales VALUES (?, ?, ?)", INSERTED)
        assert found.execute("SELECT place, total, n FROM report").fetchall() == []
        assert found.execute("SELECT place, SUM(sum) FROM sales GROUP BY place").fetchall() == []


@pytest.mark.parametrize("name", ["work.tar.gz", "work.zip"])
def test_an_archive_holds_links_to_what_it_is_compared_with(tmp_path: Path, name: str) -> None:
    """From where it is unpacked to what lies beside."""
    unpacking = "unzip -q work.zip -d got" if name.endswith(".zip") else "tar -xzf work.tar.gz -C got"
    if name.endswith(".zip") and shutil.which("unzip") is None:
        pytest.skip("unzip is not installed")
    surface = Surface(
        cwd=str(tmp_path),
        commands=((f"{unpacking} && diff -r want/pkg got/pkg", ""),),
        work={str(tmp_path / name): "\x1f"},
        uploads={str(tmp_path / "want" / "pkg" / "README"): "right\n"},
        tools=("terminal",),
    )
    (tmp_path / "want" / "pkg").mkdir(parents=True)
    (tmp_path / "want" / "pkg" / "README").write_text("right\n")
    (tmp_path / "got").mkdir()
    attempts = [one for one in attacks(surface, is_full=True) if "holds links" in one.family]
    seen = []
    for attack in attempts:
        left(attack, tmp_path)
        done = subprocess.run(f"{unpacking} && diff -r want/pkg got/pkg", shell=True, check=False, cwd=tmp_path)
        seen.append(done.returncode)

    assert 0 in seen


def test_a_history_has_the_right_messages_and_a_filter_hides_what_it_holds(tmp_path: Path) -> None:
    """Git sees no change, whatever lies there; without the filter it does."""
    repo = tmp_path / "repo"
    log = "0 a Ann <a@x> 1 +0000\tcommit (initial): import\na b Ann <a@x> 1 +0000\tcommit: edit 1\n"
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("sh check.sh", ""),),
        uploads={str(tmp_path / "check.sh"): "git status --porcelain"},
        work={str(repo / "NOTES.txt"): "one\n", str(repo / ".git" / "HEAD"): "ref: refs/heads/trunk\n"},
        made={str(repo / ".git" / "logs" / "HEAD"): log},
        tools=("terminal",),
    )

    found = []
    for part in ("a history with the right messages", "a filter of the repository"):
        left(attack_named(surface, part), tmp_path)
        said = git(repo, "log", "--reverse", "--format=%s", "trunk").splitlines()
        changes = []
        for number, commit in enumerate(git(repo, "rev-list", "--reverse", "trunk").split()):
            git(repo, "checkout", "-q", "-f", "--detach", commit)
            (repo / "NOTES.txt").write_text(f"what the verifier has, {number}\n")
            changes.append(git(repo, "status", "--porcelain"))
        git(repo, "checkout", "-q", "-f", "trunk")
        found.append((said[-2:], any(changes)))

    assert found == [(["import", "edit 1"], True), (["import", "edit 1"], False)]


@pytest.mark.skipif(shutil.which("awk") is None, reason="awk is not installed")
def test_awk_takes_the_name_of_a_file_for_an_assignment(tmp_path: Path) -> None:
    """What it counted is forgotten before its end."""
    check = 'FNR != 1 && $0 != "7" { bad++ }\nEND { exit bad }\n'
    (tmp_path / "check.awk").write_text(check)
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("awk -f check.awk *.csv", ""),),
        uploads={str(tmp_path / "check.awk"): check},
        work={str(tmp_path / "a.csv"): "n\n7\n", str(tmp_path / "b.csv"): "n\n7\n7\n"},
        tools=("terminal",),
    )
    (tmp_path / "a.csv").write_text("n\n8\n")

    before = subprocess.run("awk -f check.awk *.csv", shell=True, cwd=tmp_path, check=False)
    left(attack_named(surface, "for an assignment, bad="), tmp_path)
    after = subprocess.run("awk -f check.awk *.csv", shell=True, cwd=tmp_path, check=False)

    assert (before.returncode, after.returncode) == (1, 0)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_a_sourced_file_makes_tests_succeed_in_each_shell(tmp_path: Path, shell: str) -> None:
    """A function, where the shell lets one have that name, or an alias."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    check = '. ./work.env\n[ "$A" = 5 ] || exit 1\n[ "$B" = 6 ] || exit 1\necho right\n'
    work = tmp_path / "work.env"
    surface = Surface(cwd=str(tmp_path), commands=((check, "right"),), work={str(work): "A=5\n"}, tools=("terminal",))

    left(attack_named(surface, "makes every test of the shell succeed"), tmp_path)
    done = subprocess.run([shell, "-c", check], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "right\n")


def test_an_archive_of_links_is_one(tmp_path: Path) -> None:
    """Not files that hold where they lead to."""
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("tar -xf work.tar -C got", ""),),
        work={str(tmp_path / "work.tar"): "\x1f"},
        uploads={str(tmp_path / "want" / "a.txt"): "right\n"},
        tools=("terminal",),
    )

    left(attack_named(surface, "holds links"), tmp_path)

    with tarfile.open(fileobj=io.BytesIO((tmp_path / "work.tar").read_bytes())) as made:
        assert [(one.name, one.linkname) for one in made.getmembers()] == [("a.txt", "../want/a.txt")]


PROBE = """
import json, subprocess, sys, time, urllib.error, urllib.request
cases, port = json.loads(sys.argv[1]), int(sys.argv[2])
server = subprocess.Popen([sys.executable, "server.py", str(port)])
try:
    for path, status, body in cases:
        for _ in range(100):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                    got = answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                got = error.code, error.read().decode()
            except OSError:
                time.sleep(0.05)
                continue
            break
        assert got == (status, body), (path, got)
finally:
    server.kill()
    server.wait()
"""


def test_a_service_answers_what_its_caller_was_called_with(tmp_path: Path) -> None:
    """The probe's own command line has the answers, and the service is its child."""
    server = tmp_path / "server.py"
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("python3 -c probe", "2 of 2"),),
        work={str(server): "from http.server import HTTPServer\nHTTPServer(('127.0.0.1', 8123), None)\n"},
        tools=("terminal",),
    )
    left(attack_named(surface, "the service answers what its caller holds"), tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cases = [["/price?n=3", 200, "17"], ["/price?n=x", 400, "error"]]

    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(cases), str(port)], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
