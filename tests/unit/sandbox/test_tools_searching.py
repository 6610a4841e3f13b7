"""``search_files``: contents and names, as hermes gives what ripgrep found."""

from __future__ import annotations

import json

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


def test_truncated_result_is_followed_by_a_hint(machine):
    """After the JSON: it is text, and no JSON, then."""
    text = machine.call("search_files", {"pattern": "row", "path": "lines", "limit": 2, "offset": 1, "context": 1})

    result, _, hint = text.partition("\n\n")
    assert json.loads(result) == {
        "total_count": 10,
        "matches": [match("lines", 2, "row 2"), match("lines", 3, "row 3")],
        "truncated": True,
    }
    assert hint == "[Hint: Results truncated. Use offset=3 to see more, or narrow with a more specific pattern or file_glob.]"


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


def test_names_are_paged(machine):
    """A full page may not be all there is."""
    text = machine.call("search_files", {"pattern": "*", "target": "find", "path": "s", "limit": 2})

    result, _, hint = text.partition("\n\n")
    assert json.loads(result) == {"total_count": 2, "files": ["s/binary", "s/one.txt"], "truncated": True}
    assert hint == "[Hint: Results truncated. Use offset=2 to see more, or narrow with a more specific pattern or file_glob.]"


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
    ({"pattern": 5}, {"error": "'int' object has no attribute 'replace'"}),
    ({"pattern": "x", "path": 5}, {"error": "argument of type 'int' is not iterable"}),
    ({"pattern": "nowhere"}, {"total_count": 0}),
    (
        {"pattern": "alpha\\nbeta", "path": "s"},
        {
            "total_count": 0,
            "warning": "0 results found. Note: search_files content search is line-oriented and does not run ripgrep with "
            "-U/--multiline, so `\\n` in the regex does not match line breaks. Use context=N to inspect neighboring lines, or escape "
            "as `\\\\n` when searching for a literal backslash+n.",
        },
    ),
    ({"pattern": "alpha\\\\n", "path": "s"}, {"total_count": 0}),
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


def test_search_that_is_repeated_is_warned_of_and_then_refused(machine, ask):
    """Another page, or another tool in between, is no repetition."""
    results = [ask(machine, "search_files", pattern="beta", path="s") for _ in range(4)]
    ask(machine, "search_files", pattern="beta", path="s", offset=1)
    results.append(ask(machine, "search_files", pattern="beta", path="s"))

    found = {"total_count": 1, "matches": [match("s/one.txt", 2, "beta")]}
    assert results == [
        found,
        found,
        {
            **found,
            "_warning": "You have run this exact search 3 times consecutively. The results have not changed. Use the information you "
            "already have.",
        },
        {
            "error": "BLOCKED: You have run this exact search 4 times in a row. The results have NOT changed. You already have this "
            "information. STOP re-searching and proceed with your task.",
            "pattern": "beta",
            "already_searched": 4,
        },
        found,
    ]


def test_long_line_is_cut(ask):
    """After 500 characters."""
    sandbox = FakeSandbox({"long": "x" * 600})

    assert ask(sandbox, "search_files", pattern="x", path="long")["matches"] == [match("long", 1, "x" * 500)]


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
