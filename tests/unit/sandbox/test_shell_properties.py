"""Lines that nobody thought of: the in-memory shell answers as real bash does, or says that it does not know."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_hermes_env.errors import NotKnown
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.shell import Shell

FILES = {"a.txt": b"one\ntwo\nthree\n", "n.csv": b"x,3,c\ny,1,b\nz,2,a\n", "sub/m.py": b"import os\n\nx = 1\n", "empty": b""}
PIECES = """a|b c|$x|"$x"|${x}|${u:-a b}|${#f}|$(echo s  t)|"$(cat a.txt)"|*.txt|~/x|\
{p,q}|~|$?|\\*|\\ |'$x'|"\\$x"|-n|x=1|=|@|''|sub/*|[an].*|é|nope"""
WORDS = st.lists(st.sampled_from(PIECES.split("|")), min_size=1, max_size=2).map("".join)
PATHS = st.sampled_from(
    ["a.txt", "n.csv", "sub/m.py", "sub", "empty", "nope", "$f", "*.txt", "a.txt/x", "nope/x", "./a.txt", "new"]
)
"""Only these names are written: the lines run in real bash."""
ON_PATHS = (
    "cat|ls|ls -a|head -n 2|tail -n +2|wc -l|wc -l *.txt|grep -n o|grep -c x|grep -v e|grep -E '^[ot].+'|"
    "touch|mkdir|mkdir -p|rm -f|rm -r|[ -f|tail -c 3 <|mv a.txt"
)
COMMANDS = st.one_of(
    st.builds(
        "{} {} {}".format, st.sampled_from(["echo", "printf '<%s>\\n'", "test", "cd", "true", "y=", "false"]), WORDS, WORDS
    ),
    st.builds(
        "{} {}".format,
        st.sampled_from(ON_PATHS.split("|")),
        PATHS,
    ).map(lambda line: f"{line} ]" if line.startswith("[") else line),
)
REDIRECTIONS = st.sampled_from(
    ["", "", "", "> out", ">> a.txt", "2>&1", "2> err", "2> /dev/null", "&> out", "< a.txt", "< nope", '<<< "$x"']
)
SIMPLE = st.builds("{} {}".format, COMMANDS, REDIRECTIONS)


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}{}".format, inner, st.sampled_from(["; ", " && ", " || ", " | "]), inner),
        st.builds("( {} ) {}".format, inner, REDIRECTIONS),
        st.builds("if {}; then {}; fi".format, inner, inner),
        st.builds('x=$({}); echo "$x" $?'.format, inner),
    )


LINES = st.recursive(SIMPLE, compound, max_leaves=4)


@pytest.fixture(scope="module")
def bash():
    """The real shell. Older ones say some things in other words."""
    path = shutil.which("bash")
    version = subprocess.run([path or "bash", "-c", "echo ${BASH_VERSINFO[0]}"], check=True, capture_output=True).stdout
    if path is None or int(version) < 5:
        pytest.skip("these are the words of bash 5")
    return path


@given(line=LINES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_line_comes_out_as_in_bash_or_is_not_known(line, bash, tmp_path_factory):
    """Output, exit code and files; and a line that is not known changes nothing."""
    work = tmp_path_factory.mktemp("work")
    files = Files({f"{work}/{name}": data for name, data in FILES.items()}, cwd=str(work))
    shell = Shell(files, cwd=str(work))
    shell.run(f"export HOME={work} PATH=/usr/bin:/bin x=q f=a.txt n=2")
    before = {path: files.read(path) for path in files}
    try:
        outcome = shell.run(line)
    except NotKnown:
        assert {path: files.read(path) for path in files} == before
        return

    for name, data in FILES.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_bytes(data)
    script = f"true\ncd {work}\neval '{line.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'"
    run = subprocess.run(
        ["/usr/bin/bash", "-c", script],
        executable=bash,
        check=False,
        env={"HOME": str(work), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "x": "q", "f": "a.txt", "n": "2"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=work,
    )

    real = {str(path): path.read_bytes() for path in work.rglob("*") if path.is_file()}
    assert (outcome.output, outcome.exit_code) == (run.stdout.decode(errors="replace"), run.returncode)
    assert {path: files.read(path) for path in files} == real


@given(st.text(alphabet="ab $'\"`\\(){}[]*?!#;&|<>=~\n\t-/.,:+x1", max_size=30) | LINES)
@settings(max_examples=200, deadline=None)
def test_every_text_is_answered_or_not_known(line):
    """No other error comes out."""
    shell = Shell(Files({"a.txt": "one\ntwo\n", "sub/c.txt": "three\n"}))

    try:
        outcome = shell.run(line)
    except NotKnown:
        return

    assert 0 <= outcome.exit_code < 256
