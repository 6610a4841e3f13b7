"""``search_files``: contents and names, as hermes gives what ripgrep found."""

from __future__ import annotations

import pytest

from pytest_hermes_env.sandbox.fake import FakeSandbox

FORMAT = "path-grouped: each file path on its own line, followed by indented '<line>: <content>' rows for matches in that file"


@pytest.fixture
def machine():
    """A machine with a few files, hidden and binary ones among them."""
    return FakeSandbox(
        {
            "s/many": "".join(f"alpha{number}\n" for number in range(1, 8)),
            "s/t/two.py": "alpha\n",
            "s/one.txt": "alpha\nbeta\nalpha two\n",
            "s/.hidden/x": "alpha\n",
            "s/.hide": "alpha\n",
            "s/binary": b"a\x00lpha alpha\n",
            "lines": "".join(f"row {number}\n" for number in range(1, 11)),
        }
    )


def match(path, line, content):
    return {"path": path, "line": line, "content": content}


def test_few_matches_are_given_one_by_one(machine, ask):
    """Path as it was asked for, line and text."""
    assert ask(machine, "search_files", pattern="beta|two$", path="s") == {
        "total_count": 2,
        "matches": [match("s/one.txt", 2, "beta"), match("s/one.txt", 3, "alpha two")],
    }


def test_many_matches_are_given_as_one_text(machine, ask):
    """Grouped by file; hidden and binary files are not searched."""
    text = "s/many\n" + "".join(f"  {number}: alpha{number}\n" for number in range(1, 8))

    assert ask(machine, "search_files", pattern="alpha", path="s") == {
        "total_count": 10,
        "matches_format": FORMAT,
        "matches_text": f"{text}s/one.txt\n  1: alpha\n  3: alpha two\ns/t/two.py\n  1: alpha",
    }


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("s/t", "s/t/two.py"),
        ("s/t/", "s/t/two.py"),
        ("./s/t", "./s/t/two.py"),
        ("/workspace/s/t", "/workspace/s/t/two.py"),
        ("s/t/two.py", "s/t/two.py"),
        ("~", "/root/two.py"),
    ],
)
def test_path_is_shown_as_it_was_asked_for(machine, ask, path, shown):
    """Home expanded; a single file is a place, too."""
    machine.files["~/two.py"] = "alpha"

    assert ask(machine, "search_files", pattern="^alpha$", path=path)["matches"] == [match(shown, 1, "alpha")]


def test_default_place_is_the_session_s_directory(machine, ask):
    """Wherever it went."""
    ask(machine, "terminal", command="cd s/t")

    assert ask(machine, "search_files", pattern="alpha")["matches"] == [match("./two.py", 1, "alpha")]


def test_hidden_place_is_searched_when_it_is_named(machine, ask):
    """Only what lies hidden below it is passed over."""
    assert ask(machine, "search_files", pattern="alpha", path="s/.hidden")["total_count"] == 1
    assert ask(machine, "search_files", pattern="alpha", path="s/.hide")["total_count"] == 1


def test_files_and_counts(machine, ask):
    """Instead of lines."""
    results = [ask(machine, "search_files", pattern="alpha", path="s", output_mode=mode) for mode in ("files_only", "count")]

    assert results == [
        {"total_count": 3, "files": ["s/many", "s/one.txt", "s/t/two.py"]},
        {"total_count": 10, "counts": {"s/many": 7, "s/one.txt": 2, "s/t/two.py": 1}},
    ]


@pytest.mark.parametrize(("glob", "total"), [("*.py", 1), ("*.{txt}", 0), ("t/*.py", 1), ("**/*.txt", 2), ("many", 7)])
def test_files_can_be_chosen(machine, ask, glob, total):
    """By name, or by the end of the path."""
    assert ask(machine, "search_files", pattern="alpha", path="s", file_glob=glob)["total_count"] == total


def test_neighbouring_lines_are_rows_of_their_own(machine, ask):
    """Once each, in order."""
    result = ask(machine, "search_files", pattern="row [25]$", path="lines", context=1)

    lines = "\n".join(f"  {number}: row {number}" for number in range(1, 7))
    assert result == {"total_count": 6, "matches_format": FORMAT, "matches_text": f"lines\n{lines}"}


def test_results_are_paged(machine, ask):
    """Only what a page needs is collected, as hermes does."""
    pages = [ask(machine, "search_files", pattern="row", path="lines", limit=3, offset=offset) for offset in (0, 3, 9, 99)]

    assert [page["total_count"] for page in pages] == [3, 6, 10, 10]
    assert [[row["line"] for row in page.get("matches", [])] for page in pages] == [[1, 2, 3], [4, 5, 6], [10], []]


def test_files_are_found_by_name(machine, ask):
    """The last changed first; a bare name is the end of one."""
    machine.files["s/one.txt"] = "changed"

    patterns = ("*", "*.py", "many", "any", "**/*.py", "*.zz")
    results = [ask(machine, "search_files", target="files", pattern=pattern, path="s") for pattern in patterns]

    assert [result.get("files", []) for result in results] == [
        ["s/one.txt", "s/binary", "s/t/two.py", "s/many"],
        ["s/t/two.py"],
        ["s/many"],
        ["s/many"],
        ["s/t/two.py"],
        [],
    ]
    assert results[-1] == {"total_count": 0}


FAILURES = [
    ({"pattern": "x", "path": "nodir"}, {"total_count": 0, "error": "Path not found: nodir"}),
    ({"pattern": "x", "path": "liness"}, {"total_count": 0, "error": "Path not found: liness. Similar paths: ./lines, ./s"}),
    ({"pattern": "x", "path": "s/t/tw"}, {"total_count": 0, "error": "Path not found: s/t/tw. Similar paths: s/t/two.py"}),
    (
        {"pattern": "a(", "path": "s"},
        {
            "total_count": 0,
            "error": "Search failed: rg: regex parse error:\n    a(\n     ^\nerror: missing ), unterminated subpattern",
        },
    ),
    ({"pattern": "nowhere"}, {"total_count": 0}),
    (
        {"pattern": "x", "path": ".env"},
        {
            "error": "Access denied: /workspace/.env is a secret-bearing environment file and cannot be read to prevent credential "
            "leakage. If you need to check the file structure, read .env.example instead. (Defense-in-depth — not a security "
            "boundary; the terminal tool can still bypass.)"
        },
    ),
]


@pytest.mark.parametrize(("arguments", "result"), FAILURES)
def test_search_without_result(machine, ask, arguments, result):
    """And what hermes says about it."""
    assert ask(machine, "search_files", **arguments) == result


def test_empty_file_has_no_line(machine, ask):
    """Not even an empty one; a file with one line break has one."""
    machine.files["s/empty"], machine.files["s/blank"] = "", "\n"

    assert ask(machine, "search_files", pattern="^$", path="s", output_mode="count")["counts"] == {"s/blank": 1}


def test_pattern_that_begins_with_a_dash_is_an_option_to_ripgrep(machine, ask):
    """hermes does not protect it."""
    assert ask(machine, "search_files", pattern="-x", path="s") == {
        "total_count": 0,
        "error": "Search failed: rg: unrecognized flag -x",
    }
