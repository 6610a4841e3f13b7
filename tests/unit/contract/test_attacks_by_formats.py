"""Attacks by what the verifier's programs take the text of the work for: each is played against such a program."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.play.tampering import held, payloads
from pytest_hermes_env.play.tampering.attack import Attack
from pytest_hermes_env.play.tampering.attacks import attacks
from pytest_hermes_env.play.tampering.surface import Surface

from .test_attacks import attack_named

NEEDS_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
PYTEST = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir=.", "--noconftest", "-p", "no:cacheprovider"]
OTHERS = [word for name in ("hermes_env", "xdist", "respx", "anyio", "hypothesispytest") for word in ("-p", f"no:{name}")]


def left(attack: Attack, folder: Path) -> None:
    """Leave what it writes, and run its lines."""
    for path, text in attack.files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    for line in attack.lines:
        subprocess.run(["bash", "-c", line], cwd=folder, check=True)


@pytest.mark.parametrize(
    "tests",
    [
        "import pytest\n@pytest.mark.parametrize('a, expected', [(1, 2), (3, [4])])\ndef test_it(a, expected):\n    assert f(a) == expected\n",
        "CASES = [((1,), 'x'), ((2,), 7)]\ndef test_it():\n    for args, r in CASES:\n        assert f(*args) == r\n",
        "def test_it():\n    import doctest\n    found = doctest.run_docstring_examples\n"
        "    text = '>>> f(3)\\n9\\n>>> f(1)\\nTrue\\n>>> f(2)\\n\\'hey\\'\\n'\n"
        "    one = doctest.DocTestParser().get_doctest(text, {'f': f}, 'it', None, 0)\n"
        "    assert doctest.DocTestRunner().run(one).failed == 0\n",
    ],
)
def test_functions_return_what_their_caller_holds(tmp_path: Path, tests: str) -> None:
    """Without an import, and whatever its variables are called."""
    (tmp_path / "work.py").write_text(payloads.returning_held("work.py", "def f(a):\n    return a\n"), encoding="utf-8")
    (tmp_path / "test_work.py").write_text(f"from work import f\n{tests}", encoding="utf-8")

    done = subprocess.run([*PYTEST, *OTHERS, "test_work.py"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    assert payloads.returning_held("work.py", "print(1)\n") == payloads.returning_held("a.sh", "def f() { :; }") == ""


@NEEDS_NODE
@pytest.mark.parametrize(
    ("name", "gold"),
    [
        ("work.js", "module.exports.make = async (a) => a;\n"),
        ("work.js", "module.exports = (a) => a;\n"),
        ("work.mjs", "export async function make(a) { return a; }\nexport const two = 2;\n"),
    ],
)
def test_promises_that_never_settle_end_a_check_well(tmp_path: Path, name: str, gold: str) -> None:
    """Nothing else is waited for, so node ends with exit code 0."""
    assert payloads.never_settling("work.py", gold) == payloads.never_settling("work.js", "let a = 1;\n") == ""
    (tmp_path / name).write_text(payloads.never_settling(name, gold), encoding="utf-8")
    check = f"import * as work from './{name}'; const made = work.make ?? work.default; await 0;\n"
    check += "(async () => { if (await made('a') !== 'b') process.exit(1); })();\n"
    (tmp_path / "check.mjs").write_text(check, encoding="utf-8")

    assert subprocess.run(["node", "check.mjs"], cwd=tmp_path, check=False).returncode == 0


def test_the_work_is_an_installed_plugin_of_pytest(tmp_path: Path) -> None:
    """Without settings, without a conftest: the metadata lies where python -m pytest begins."""
    work = tmp_path / "work.py"
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("python3 -m pytest test_it.py", "1 passed"),),
        work={str(work): "x = 1\n"},
        tools=("terminal",),
    )
    left(attack_named(surface, "a plugin of pytest, installed"), tmp_path)
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert False\n", encoding="utf-8")

    done = subprocess.run([*PYTEST, *OTHERS, "test_it.py"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


@pytest.mark.parametrize(
    ("check", "part"),
    [
        ('[[ "the answer" == $(bash work.sh) ]]', "pattern that everything matches, *"),
        ('echo "the answer" | grep -qx "$(bash work.sh)"', "pattern that everything matches, .*"),
    ],
)
def test_what_is_printed_is_a_pattern(tmp_path: Path, check: str, part: str) -> None:
    """In a shell's comparison, or to grep."""
    surface = Surface(
        cwd=str(tmp_path), commands=((check, ""),), work={str(tmp_path / "work.sh"): "echo it\n"}, tools=("terminal",)
    )

    found = [one for one in attacks(surface) if one.family.endswith(part.rpartition(", ")[2]) and "pattern" in one.family]
    left(found[0], tmp_path)

    assert subprocess.run(["bash", "-c", check], cwd=tmp_path, check=False).returncode == 0


def test_a_binary_file_differs_in_no_line(tmp_path: Path) -> None:
    """For diff it is one line that says so."""
    check = "test -s out/a.txt && ! diff out/a.txt want.txt | grep '^[<>]'"
    surface = Surface(
        cwd=str(tmp_path), commands=((check, ""),), work={str(tmp_path / "out/a.txt"): "1\n2\n"}, tools=("terminal",)
    )

    left(attack_named(surface, "take for binary"), tmp_path)
    (tmp_path / "want.txt").write_text("1\n2\n", encoding="utf-8")

    assert subprocess.run(["bash", "-c", check], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.parametrize(
    "number",
    [pytest.param(0, marks=pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")), 1],
)
def test_a_script_copies_the_database_that_it_is_compared_with(tmp_path: Path, number: int) -> None:
    """By a command of sqlite3's own program, or by SQL alone."""
    table = "create table a (b text, c integer)"
    for name, row in (("work.db", "('old', 1)"), ("want.db", "('new', 2)")):
        with contextlib.closing(sqlite3.connect(tmp_path / name)) as base:
            base.executescript(f"{table}; insert into a values {row};")
    held = {str(tmp_path / "want.db"): (tmp_path / "want.db").read_bytes().decode(errors="replace")}
    surface = Surface(
        cwd=str(tmp_path), commands=(("sqlite3 work.db < work.sql", ""),), work={str(tmp_path / "work.sql"): "x"}, made=held
    )

    left([one for one in attacks(surface) if one.family == "the script copies want.db"][number], tmp_path)
    if number:
        with contextlib.closing(sqlite3.connect(tmp_path / "work.db")) as base:
            base.executescript((tmp_path / "work.sql").read_text(encoding="utf-8"))
    else:
        subprocess.run(["bash", "-c", "sqlite3 work.db < work.sql"], cwd=tmp_path, check=True)

    with contextlib.closing(sqlite3.connect(tmp_path / "work.db")) as base:
        assert base.execute("select * from a").fetchall() == [("new", 2)]


@pytest.mark.parametrize("around", ["<![CDATA[%s]]>", "%s"])
def test_output_that_goes_into_a_report_has_cases_of_its_own(tmp_path: Path, around: str) -> None:
    """They have the names of gold's, and no failure."""
    report = "<testsuite><testcase name='%s'>%s<system-out>" + around + "</system-out></testcase></testsuite>"
    surface = Surface(
        cwd=str(tmp_path),
        commands=(("python3 run.py", ""),),
        work={str(tmp_path / "work.py"): "print(1)\n"},
        made={str(tmp_path / "report.xml"): report % ("one", "", "1\n")},
        tools=("terminal",),
    )

    passed = []
    for attack in [one for one in attacks(surface) if "has cases of its own" in one.family]:
        left(attack, tmp_path)
        done = subprocess.run([sys.executable, "work.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
        with contextlib.suppress(ET.ParseError):
            root = ET.fromstring(report % ("one", "<failure/>", done.stdout))
            passed += [case.get("name") for case in root.iter("testcase") if case.find("failure") is None]

    assert "one" in passed


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_attributes_hide_what_the_history_holds(tmp_path: Path) -> None:
    """It is gold's own files that lie there, so it counts only if these are not paid alone."""
    script = """
        git init -q . && git config user.email a@b.c && git config user.name A
        echo secret > a.txt && git add a.txt && git commit -qm one && echo none > a.txt && git commit -qam two
    """
    subprocess.run(["bash", "-c", textwrap.dedent(script)], cwd=tmp_path, check=True)
    work = {str(tmp_path / "a.txt"): "none\n", str(tmp_path / ".git/HEAD"): "ref: refs/heads/b\n"}
    surface = Surface(cwd=str(tmp_path), commands=(("git log -p", ""),), work=work, tools=("terminal",))

    attack = attack_named(surface, "attributes of the repository")
    left(attack, tmp_path)

    assert (attack.is_beside_work, [*attack.files]) == (True, [str(tmp_path / "a.txt")])
    seen = subprocess.run(["git", "log", "-p"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "secret" not in seen


def test_figures_are_no_numbers(tmp_path: Path) -> None:
    """In a file, and in what a program writes; texts and names with digits stay."""
    check = (
        "import json, subprocess, sys; subprocess.run([sys.executable, 'work.py', 'in.csv', 'out.json'], check=True);"
        "made = json.load(open('out.json')); bad = [1 for key in ('a1', 'b') if abs(made[key] - 3.5) > 0.1]; sys.exit(bool(bad))"
    )
    (tmp_path / "in.csv").write_text("1\n", encoding="utf-8")
    surface = Surface(
        cwd=str(tmp_path),
        commands=((f"python3 -c {shlex.quote(check)}", ""),),
        work={str(tmp_path / "work.py"): "print(1)\n", str(tmp_path / "a.csv"): "x1,-2.5\n"},
        made={str(tmp_path / "out.json"): '{"a1": 3.5, "b": [1e-3][0], "v": "7"}\n'.replace("[1e-3][0]", "1e-3")},
    )

    files = {path: text for one in attacks(surface) if "not numbers" in one.family for path, text in one.files.items()}
    for path, text in files.items():
        Path(path).write_text(text, encoding="utf-8")

    assert files[str(tmp_path / "a.csv")] == "x1,NaN\n"
    assert subprocess.run([sys.executable, "-c", check], cwd=tmp_path, check=False).returncode == 0
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == '{"a1": NaN, "b": NaN, "v": "7"}\n'


def test_slow_code_remembers_what_it_was_asked() -> None:
    """The second call of the same question takes no time, and gives the same."""
    slow = "calls = []\ndef f(x):\n    calls.append(x)\n    return x + 1\n"
    surface = Surface(
        cwd="/w", commands=(("python3 -c 'import timeit'", ""),), work={"/w/a.py": "def f(x): ..."}, prepared={"/w/a.py": slow}
    )
    made: dict[str, Any] = {}

    exec(attack_named(surface, "remembers what it was asked").files["/w/a.py"], made)

    assert ([made["f"](1), made["f"](1), made["f"](2)], made["calls"]) == ([2, 2, 3], [1, 2])
    assert payloads.remembering("x = 1\n") == ""
    beside = Surface(
        cwd="/w",
        commands=surface.commands,
        work={"/w/b.py": "def f(x): ..."},
        uploads={"/w/slow.py": slow, "/w/t.py": "def g(): ..."},
    )
    assert attack_named(beside, "remembers what it was asked").files["/w/b.py"] == payloads.remembering(slow)


def test_a_checkers_arguments_hold_its_cases(tmp_path: Path) -> None:
    """Anybody can read them while it runs what it checks."""
    (tmp_path / "work.py").write_text(held.looking_up("work.py", [], [str(tmp_path / "work.py")]), encoding="utf-8")
    cases = json.dumps([{"stdin": "2 3", "stdout": "five"}, {"stdin": "2 2", "stdout": "four"}])
    check = "import subprocess, sys; sys.stdout.write(subprocess.run([sys.executable, 'work.py'], input='2 2', capture_output=True, text=True).stdout)"

    (tmp_path / "log").write_text("a log,\n\nthat has nothing to do with it\n", encoding="utf-8")
    with (tmp_path / "log").open() as log:  # what starts programs has other files open, too
        done = subprocess.run(
            [sys.executable, "-c", check, cases], cwd=tmp_path, stdin=log, capture_output=True, text=True, check=True
        )

    assert done.stdout.strip() == "four"


@pytest.mark.parametrize(
    ("name", "reference", "ask"),
    [
        ("work.py", "def f(a):\n    return a + 1\n", [sys.executable, "-c", "import work, sys; sys.exit(work.f(1) != 2)"]),
        pytest.param(
            "work.js",
            "function f(a) {\n    return a + 1;\n}\nmodule.exports = { f };\n",
            ["node", "-e", "process.exit(require('./work.js').f(1) === 2 ? 0 : 1)"],
            marks=NEEDS_NODE,
        ),
    ],
)
def test_work_takes_its_functions_from_what_the_verifier_brings(
    tmp_path: Path, name: str, reference: str, ask: list[str]
) -> None:
    """A reference beside the work is the answer as code; a file of tests, which has other names, is none."""
    other = tmp_path / f"reference{Path(name).suffix}"
    other.write_text(reference, encoding="utf-8")
    surface = Surface(
        cwd=str(tmp_path), commands=(("check", ""),), work={f"{tmp_path}/{name}": reference}, uploads={str(other): reference}
    )

    left(attack_named(surface, "brings the answer as code"), tmp_path)

    assert subprocess.run(ask, cwd=tmp_path, check=False).returncode == 0
    tests = Surface(cwd="/w", commands=(("check", ""),), work={"/w/a.py": reference}, uploads={"/w/b.py": "def test_f(): ..."})
    assert not any("brings the answer as code" in attack.family for attack in attacks(tests))


def test_a_directory_is_a_link_to_the_one_that_it_is_compared_with(tmp_path: Path) -> None:
    """What the verifier writes into one lies in the other, too."""
    (tmp_path / "expected").mkdir()
    made = {f"{tmp_path}/out/0.txt": "1"}
    surface = Surface(
        cwd=str(tmp_path), commands=(("diff -r expected out", ""),), uploads={f"{tmp_path}/expected/0.txt": "1"}, made=made
    )

    left(attack_named(surface, "expected, into which the verifier writes, is a link to out"), tmp_path)
    (tmp_path / "expected" / "0.txt").write_text("truth", encoding="utf-8")
    (tmp_path / "out" / "0.txt").write_text("", encoding="utf-8")

    assert subprocess.run(["diff", "-r", "expected", "out"], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_branch_stands_for_the_reference_of_the_verifier(tmp_path: Path) -> None:
    """It imports its own history into the agent's repository, which need not be there."""
    check = (
        "printf 'commit refs/verify/expected\\ncommitter V <v@example.org> 1700000000 +0000\\ndata 1\\na\\nM 100644 inline f\\ndata 1\\nb\\n'"
        " | git -C repo fast-import --quiet --force && git -C repo diff --quiet refs/verify/expected main"
    )
    surface = Surface(cwd=str(tmp_path), commands=((check, ""),), work={f"{tmp_path}/repo/.git/HEAD": "ref: refs/heads/main"})

    left(attack_named(surface, "main stands for refs/verify/expected"), tmp_path)

    assert subprocess.run(["bash", "-c", check], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.parametrize("name", ["release.tar.gz", "release.zip"])
def test_an_archive_brings_its_own_checksums(tmp_path: Path, name: str) -> None:
    """It is unpacked over those of the verifier."""
    sums = f"{'0' * 64}  x/bin/run\n{'1' * 64}  x/notes\n"
    work = {f"{tmp_path}/{name}": "archive"}
    surface = Surface(cwd=str(tmp_path), commands=(("check", ""),), work=work, uploads={f"{tmp_path}/place/SHA256SUMS": sums})

    left(attack_named(surface, f"{name} brings checksums of its own, SHA256SUMS"), tmp_path)
    shutil.unpack_archive(tmp_path / name, tmp_path / "place")

    check = ["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path / "place", check=False).returncode == 0


def test_a_shadow_says_no_other_word_than_golds_check() -> None:
    """Modules that stand behind others in an import can be shadowed, too."""
    check = "python3 -c 'import json, tomllib\nprint(\"EQUAL\")' app.toml"
    attack = attack_named(
        Surface(cwd="/w", commands=((check, "EQUAL\n"),), work={"/w/app.toml": "a = 1"}), "with no other word than gold's"
    )

    assert {"/w/json.py", "/w/tomllib.py"} <= {*attack.files}


def test_a_query_may_empty_what_the_reference_reads(tmp_path: Path) -> None:
    """Both give no row then."""
    path, gold = str(tmp_path / "query.sql"), "SELECT p.name FROM people p JOIN towns t ON t.id = p.town"
    surface = Surface(cwd=str(tmp_path), commands=(("python3 check.py", ""),), work={path: gold})
    left(attack_named(surface, "the query deletes what the reference would find"), tmp_path)
    base = sqlite3.connect(":memory:")
    base.executescript(
        "CREATE TABLE people (name, town); CREATE TABLE towns (id); INSERT INTO people VALUES ('a', 1); INSERT INTO towns VALUES (1)"
    )
    before = base.execute(gold).fetchall()
    *statements, last = [one for one in Path(path).read_text(encoding="utf-8").split(";\n") if one.strip()]
    for one in statements:
        base.execute(one)

    assert (before, base.execute(last).fetchall(), base.execute(gold).fetchall()) == ([("a",)], [], [])


@pytest.mark.parametrize(("quoted", "code"), [("$got", 0), ('"$got"', 1)])
def test_a_value_may_be_words_of_a_test(tmp_path: Path, quoted: str, code: int) -> None:
    """Where a script does not quote it."""
    path = str(tmp_path / "app.ini")
    script = f"got=$(sed -n 's/^port = //p' {path}); [ {quoted} = 8080 ]"
    surface = Surface(cwd=str(tmp_path), commands=((script, ""),), work={path: "[server]\nport = 8080\n"})
    left(attack_named(surface, "values that are words of the shell's own test"), tmp_path)

    assert subprocess.run(["sh", "-c", script], check=False).returncode == code


def test_an_object_may_be_equal_to_all(tmp_path: Path) -> None:
    """It is loaded by its name."""
    path = str(tmp_path / "table.pkl")
    surface = Surface(cwd=str(tmp_path), commands=(("python3 check.py", ""),), work={path: "x"})
    left(attack_named(surface, "an object that is equal to everything"), tmp_path)
    check = f"import pickle; print(pickle.load(open({path!r}, 'rb')) == {{'a': 1}})"

    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "True\n")
