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


def test_errors_that_were_there_before_are_told_apart(ask):
    """An edit is not blamed for them."""
    sandbox = FakeSandbox({"a.py": "x = (\n"})

    same = ask(sandbox, "write_file", path="a.py", content="x = (\n\ny")["lint"]
    other = ask(sandbox, "write_file", path="a.py", content="def :\n")["lint"]

    assert same == {
        "status": "error",
        "output": "SyntaxError: '(' was never closed (line 1, column 5)",
        "message": "Pre-existing lint errors — this edit didn't introduce new ones but the file is still broken.",
    }
    assert other["status"] == "error"
    assert other["output"].startswith(
        "New lint errors introduced by this edit (pre-existing errors filtered out):\nSyntaxError: "
    )


def refusal(path, error):
    return (
        f"Refusing to write '{path}': candidate content fails .{path.rpartition('.')[2]} syntax validation ({error}). The file was "
        "NOT created or modified. Fix the content and retry."
    )


BROKEN = [
    ("c.json", "{", "JSONDecodeError: Expecting property name enclosed in double quotes (line 1, column 2)"),
    (
        "c.yml",
        "a: [",
        "YAMLError: while parsing a flow node\nexpected the node content, but found '<stream end>'\n"
        '  in "<unicode string>", line 1, column 5:\n    a: [\n        ^',
    ),
    ("c.toml", "a = ", "TOMLDecodeError: Invalid value (at end of document)"),
]


@pytest.mark.parametrize(("path", "content", "error"), BROKEN)
def test_structured_file_that_does_not_parse_is_not_written(sandbox, ask, path, content, error):
    """hermes refuses it before anything is touched."""
    absolute = f"/workspace/{path}"

    result = ask(sandbox, "write_file", path=path, content=content)

    assert result == {"bytes_written": 0, "dirs_created": False, "error": refusal(absolute, error), "resolved_path": absolute}
    assert path not in sandbox.files


@pytest.mark.parametrize(("path", "depth"), [("deep.json", 200_000), ("deep.toml", 5000)])
def test_nesting_that_is_too_deep_is_refused_and_no_crash(sandbox, ask, path, depth):
    """A model may write anything."""
    content = "[" * depth if path.endswith("json") else "a = " + "[" * depth + "]" * depth

    result = ask(sandbox, "write_file", path=path, content=content)

    assert "syntax validation (" in result["error"]


REFUSED = [
    (
        {"content": "x"},
        "write_file: missing required field 'path'. Re-emit the tool call with both 'path' and 'content' set.",
    ),
    (
        {"path": 5, "content": "x"},
        "write_file: missing required field 'path'. Re-emit the tool call with both 'path' and 'content' set.",
    ),
    (
        {"path": "f.txt"},
        "write_file: missing required field 'content'. The tool call included a path but no content argument — this is almost always "
        "a dropped-arg bug under context pressure. Re-emit the tool call with the full content payload, or use execute_code with "
        "hermes_tools.write_file() for very large files.",
    ),
    ({"path": "f.txt", "content": 5}, "write_file: 'content' must be a string, got int."),
    ({"path": "f\0.txt", "content": ""}, "[TOOL_ERROR] Tool execution failed: ValueError: embedded null byte"),
    (
        {"path": "/etc/foo", "content": ""},
        "Refusing to write to sensitive system path: /etc/foo\nUse the terminal tool with sudo if you need to modify system files.",
    ),
    (
        {"path": "../etc/foo", "content": ""},
        "Refusing to write to sensitive system path: ../etc/foo\nUse the terminal tool with sudo if you need to modify system files.",
    ),
    *(
        (
            {"path": "f.txt", "content": content},
            "Refusing to write internal read_file display text as file content. Strip read_file line-number prefixes or reconstruct "
            "the intended file contents before writing.",
        )
        for content in (
            "1|a\n2|b\n3|c",
            "Note: File unchanged since last read. The content from the earlier read_file result in this conversation is still current "
            "— refer to that instead of re-reading.",
        )
    ),
]


@pytest.mark.parametrize(("arguments", "error"), REFUSED)
def test_call_that_hermes_refuses_is_refused(sandbox, ask, arguments, error):
    """With hermes' words; nothing is written."""
    assert (ask(sandbox, "write_file", **arguments), list(sandbox.files)) == ({"error": error}, [])


@pytest.mark.parametrize("content", ["1|a\n", "7|x\n2|y\n", "1|a\nb\nc\nd\n"])
def test_text_with_bars_is_no_display(sandbox, ask, content):
    """One numbered line, or numbers in no order, are somebody's data."""
    assert "error" not in ask(sandbox, "write_file", path="f.txt", content=content)


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
