"""What the machine in memory answers without a process, and when it does not: `tests/parity` compares the answers with bash's."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_hermes_env.sandbox.fake_tools.terminal import simple_commands
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.simple_commands import FIRST_VARIABLES, plain_words, run_simple

FILES = {"a.txt": b"one\ntwo\nthree\n", "n.csv": b"x,3,c\ny,1,b\nz,2,a\n", "sub/m.py": b"import os\n\nx = 1\n", "empty": b""}
PIECES = [
    "a",
    "b c",
    "$x",
    "x y",
    "*.txt",
    "~/x",
    "{p,q}",
    "~",
    "$?",
    "\\\\*",
    "'$x'",
    '"$x"',
    '"b  c"',
    "-n",
    "-e",
    "x=1",
    "=",
    "!=",
    "!",
    "@",
    "''",
    "#c",
    "[an].*",
    "é",
    "nope",
    "2",
    "&",
    ";",
    "]",
]
PATHS = [
    "a.txt",
    "n.csv",
    "sub/m.py",
    "sub",
    "empty",
    "nope",
    "$f",
    "*.txt",
    "a.txt/x",
    "nope/x",
    "./a.txt",
    "new",
    "sub/",
    ".",
    "..",
]
NAMES = ["echo", "echo -n", "printf '<%s>\\n'", "printf %s", "test", "[", "cat", "cat a.txt", "ls", "ls -a", "wc -l", "wc -c", "wc",
         "grep -c o", "grep -q t", "grep e", "touch", "mkdir", "mkdir -p", "rm -f", "rm", "test -f", "test ! -d", "[ -s", "pwd",
         "true", "false", ":"]  # fmt: skip
ENDS = ["", "", "", " ]", " > out", " >> a.txt", " < a.txt", " 2> err", " > sub", " | cat", " 2>out", " < nope", ">out"]
LINES = st.builds(
    lambda name, words, end: f"{name} {' '.join(words)}{end}",
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(PIECES + 2 * PATHS), max_size=3),
    st.sampled_from(ENDS),
)


@given(line=LINES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_line_comes_out_as_in_bash_or_is_not_answered(line, tmp_path_factory):
    """Output, exit code and files; and a line that is not answered changes nothing."""
    work = tmp_path_factory.mktemp("work")
    files = Files({f"{work}/{name}": data for name, data in FILES.items()}, cwd=str(work))
    before = dict(files.nodes)
    outcome = run_simple(line, files, str(work), FIRST_VARIABLES)
    if outcome is None:
        assert files.nodes == before
        return

    for name, data in FILES.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_bytes(data)
    run = subprocess.run(
        ["/usr/bin/bash", "-c", f"cd {work}\neval {shlex.quote(line)}"],
        executable=shutil.which("bash"),
        check=False,
        env={"HOME": str(work), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )

    assert (outcome.output, outcome.exit_code) == (run.stdout.decode(errors="replace"), run.returncode)
    assert {path: files.read(path) for path in files} == {
        str(path): path.read_bytes() for path in work.rglob("*") if path.is_file()
    }


@given(st.text(alphabet="ab $'\"`\\(){}[]*?!#;&|<>=~\n\t-/.,:+x1", max_size=30) | LINES)
@settings(max_examples=300, deadline=None)
def test_every_text_is_read(line):
    """No error comes out; where a composed line is taken apart, its commands are in it, in their order."""
    run_simple(line, Files({"a.txt": "one\n"}), "/workspace", FIRST_VARIABLES)
    parts = simple_commands(line)

    assert [line[part.start : part.end] for part in parts] == [part.text for part in parts]
    assert [part.start for part in parts] == sorted({part.start for part in parts})


@pytest.mark.parametrize("name", ["POSIXLY_CORRECT", "GREP_OPTIONS", "LC_ALL", "X", "PATH", "HOME"])
def test_nothing_is_answered_where_a_variable_may_change_it(name):
    """Such as one that a real line exported; those that bash itself sets change nothing."""
    files = Files({"a.txt": "one\n"})

    changed = run_simple("cat a.txt", files, "/workspace", {**FIRST_VARIABLES, name: "other"})
    same = run_simple("cat a.txt", files, "/workspace", {**FIRST_VARIABLES, "OLDPWD": "/", "PWD": "/workspace", "SHLVL": "2"})

    assert (changed, same and same.output) == (None, "one\n")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/usr/bin/env", "/", "/home/user", "/dev/null", "/proc/self", "../a", "a/", "x" * 300]
)
def test_path_that_the_tree_may_not_know_is_not_answered(path):
    """The machine's own files are there for real bash alone."""
    assert [run_simple(f"{name} {path}", Files(), "/workspace", FIRST_VARIABLES) for name in ("cat", "ls", "test -e")] == [
        None
    ] * 3


def test_path_of_the_tree_is_answered_wherever_it_is():
    """Also below a directory that machines have, if the test put it there."""
    files = Files({"/home/user/a": "one\n", "/etc/mine": "two\n"})

    outputs = [run_simple(f"cat {path}", files, "/workspace", FIRST_VARIABLES) for path in ("/home/user/a", "/etc/mine")]

    assert [outcome and outcome.output for outcome in outputs] == ["one\n", "two\n"]


def test_program_of_the_users_own_is_not_answered():
    """It comes before the system's on PATH; a builtin of bash comes before both."""
    files = Files({"/usr/local/bin/cat": "echo mine\n", "/usr/local/bin/echo": "", "a.txt": ""})

    assert run_simple("cat a.txt", files, "/workspace", FIRST_VARIABLES) is None
    assert run_simple("echo a", files, "/workspace", FIRST_VARIABLES) is not None


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ("cd app && pytest -q 2>&1 | tail -n 1; pwd", ["cd app", "pytest -q", "tail -n 1", "pwd"]),
        ("X=1 pytest -q 'a; b' > out", ["pytest -q 'a; b'"]),
        ("if [ -f x ]; then make; fi", ["[ -f x ]", "make", "fi"]),
        ("( ! make ) || { make all; }", ["make", "make all"]),
        ("while make; do :; done > log", ["make", ":", "done"]),
        ('make "$x" $y \\; &> out', ['make "$x" $y \\;']),
        ("make &", []),
        ("make $(ls)", []),
        ("make > a b", []),
        ("make <<E\nE", []),
        ("make # comment", []),
        ("make 'a", []),
    ],
)
def test_composed_line_is_taken_apart(line, texts):
    """Or not at all."""
    assert [part.text for part in simple_commands(line)] == texts


@pytest.mark.parametrize(
    ("line", "words"), [("pytest  -q 'a b'", ["pytest", "-q", "a b"]), ("a | b", None), ("a $b", None), ("a > b", None)]
)
def test_words_of_a_plain_command(line, words):
    """None where something would be expanded or redirected."""
    assert plain_words(line) == words


def test_long_line_is_read_in_a_moment():
    """Also one that is no simple command at its very end."""
    assert run_simple("echo " + "a" * 100_000 + " | cat", Files(), "/workspace", FIRST_VARIABLES) is None
    assert len(simple_commands("echo " + "$a" * 50_000 + "; cat")) == 2
