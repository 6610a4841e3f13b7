"""``write_file``: what hermes writes, checks, refuses and warns of."""

from __future__ import annotations

import warnings

import pytest

from pytest_hermes_env.sandbox.fake import FakeSandbox

OK = {"status": "ok", "output": ""}


def written(path, size, lint, **more):
    return {
        "bytes_written": size,
        "dirs_created": True,
        "lint": lint,
        **more,
        "resolved_path": path,
        "files_modified": [path],
    }


WRITES = [
    ("a.py", "x = 1\n", "/workspace/a.py", 6, OK),
    ("sub/dir/b.json", '{"a": 1}', "/workspace/sub/dir/b.json", 8, OK),
    ("~/c.yaml", "a: [1]\n---\nb: !Ref x\n", "/root/c.yaml", 21, OK),
    ("c.toml", "a = 1", "/workspace/c.toml", 5, OK),
    ("/data/ä.txt", "é", "/data/ä.txt", 2, {"status": "skipped", "message": "No linter for .txt files"}),
    ("Makefile", "", "/workspace/Makefile", 0, {"status": "skipped", "message": "No linter for  files"}),
    ("e.js", "x", "/workspace/e.js", 1, {"status": "skipped", "message": "node not available"}),
    ("e.go", "x", "/workspace/e.go", 1, {"status": "skipped", "message": "go not available"}),
    (
        "b.py",
        "x = (\n",
        "/workspace/b.py",
        6,
        {"status": "error", "output": "SyntaxError: '(' was never closed (line 1, column 5)"},
    ),
    ("nul.py", "\0", "/workspace/nul.py", 1, None),
]


@pytest.mark.parametrize(("path", "content", "absolute", "size", "lint"), WRITES)
def test_file_is_written_and_checked(sandbox, ask, path, content, absolute, size, lint):
    """Directories are made; what hermes checks in its own process is checked."""
    result = ask(sandbox, "write_file", path=path, content=content)

    if lint is None:  # the text differs between versions of Python
        lint = result["lint"]
        assert lint["status"] == "error"
    assert result == written(absolute, size, lint)
    assert sandbox.files[absolute] == content


def test_check_is_quiet_about_what_is_only_warned_of(sandbox, ask):
    """An invalid escape is no error, also where warnings are errors; and the filters stay as they were."""
    before = list(warnings.filters)

    result = ask(sandbox, "write_file", path="a.py", content='x = "\\d"\n')

    assert (result["lint"], warnings.filters) == (OK, before)


@pytest.mark.parametrize("path", ["~/.ssh/config", "~/.netrc", "/root/.aws/credentials"])
def test_files_with_keys_are_protected(sandbox, ask, path):
    """hermes says so after it resolved the path."""
    absolute = path.replace("~", "/root")

    assert ask(sandbox, "write_file", path=path, content="x") == {
        "bytes_written": 0,
        "dirs_created": False,
        "error": f"Write denied: '{absolute}' is a protected system/credential file.",
        "resolved_path": absolute,
    }


def test_file_in_the_way_is_an_error(ask):
    """bash's own, about hermes' temporary file."""
    sandbox = FakeSandbox({"a.py": ""})

    assert ask(sandbox, "write_file", path="a.py/x", content="q") == {
        "bytes_written": 0,
        "dirs_created": False,
        "error": "Failed to write file: /usr/bin/bash: line 3: /workspace/a.py/.hermes-tmp.1: Not a directory\n",
        "resolved_path": "/workspace/a.py/x",
    }


def test_directory_takes_hermes_temporary_file(ask):
    """hermes renames over the path it was given, and does not see that it is a directory."""
    sandbox = FakeSandbox({"sub/a.txt": ""})

    result = ask(sandbox, "write_file", path="sub", content="q")

    assert result == written("/workspace/sub", 0, {"status": "skipped", "message": "No linter for  files"})
    assert list(sandbox.files) == ["/workspace/sub/.hermes-tmp.1", "/workspace/sub/a.txt"]


def test_line_ends_and_mark_of_a_file_stay(ask):
    """hermes gives the model neither, so it puts them back."""
    sandbox = FakeSandbox({"dos.txt": "a\r\nb\r\n", "bom.py": "\ufeffq = 1\n"})

    results = [
        ask(sandbox, "write_file", path="dos.txt", content="x\ny\n"),
        ask(sandbox, "write_file", path="bom.py", content="q = 2\n"),
    ]

    assert (sandbox.files["dos.txt"], sandbox.files["bom.py"]) == ("x\r\ny\r\n", "\ufeffq = 2\n")
    assert results == [
        written("/workspace/dos.txt", 6, {"status": "skipped", "message": "No linter for .txt files"}),
        written(
            "/workspace/bom.py",
            9,
            {
                "status": "error",
                "output": "SyntaxError: invalid non-printable character U+FEFF (line 1, column 1)",
                "message": "Pre-existing lint errors — this edit didn't introduce new ones but the file is still broken.",
            },
        ),
    ]


def test_write_out_of_the_session_s_directory_is_warned_of(sandbox, ask):
    """Where a relative path leads there; not for absolute ones."""
    results = [ask(sandbox, "write_file", path=path, content="") for path in ("../out.txt", "/tmp/out.txt", "sub/../in.txt")]

    assert [result.get("_warning") for result in results] == [
        "Relative path '../out.txt' resolved to '/out.txt', which is OUTSIDE the active workspace ('/workspace'). The edit will land "
        "in a different directory than the terminal's cwd. If this is not intended (e.g. a git-worktree session writing into the main "
        "checkout), pass an absolute path under the workspace instead.",
        None,
        None,
    ]


def test_write_over_what_was_not_seen_is_warned_of(ask):
    """Changed since it was read, or read in part; a tool's own write is seen."""
    sandbox = FakeSandbox({"a.py": "x = 1\ny = 2\n"})

    def warning():
        return ask(sandbox, "write_file", path="a.py", content="x = 1\ny = 2\n").get("_warning")

    unread = warning()
    ask(sandbox, "read_file", path="a.py", offset=2)
    partly = warning()
    own = warning()
    ask(sandbox, "terminal", command="echo z >> a.py")
    changed = warning()

    assert [unread, partly, own, changed] == [
        None,
        "/workspace/a.py was last read with offset/limit pagination (partial view). Re-read the whole file before overwriting it.",
        None,
        "/workspace/a.py was modified since you last read it on disk (external edit or unrecorded writer). Re-read the file before "
        "writing.",
    ]


def test_surrogates_are_the_bytes_that_they_stand_for(sandbox, ask):
    """A file name or text that is no UTF-8 survives."""
    ask(sandbox, "write_file", path="a.txt", content="\udcff")

    assert sandbox.files.read("a.txt") == b"\xff"
