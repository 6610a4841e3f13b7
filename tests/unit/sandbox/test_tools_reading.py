"""``read_file``: hermes' pages of numbered lines, its refusals, and its memory of what was read."""

from __future__ import annotations

import json

import pytest

from pytest_hermes_env.sandbox.fake import FakeSandbox

EMPTY = {"content": "", "total_lines": 0, "file_size": 0, "truncated": False, "is_binary": False, "is_image": False}


def page(content, total_lines, file_size, **more):
    return {**EMPTY, "content": content, "total_lines": total_lines, "file_size": file_size, **more}


TEXTS = [
    (b"def f():\n    return 1\n", {}, page("1|def f():\n2|    return 1\n3|", 2, 22)),
    (b"no newline", {}, page("1|no newline", 0, 10)),
    (b"", {}, page("1|", 0, 0)),
    (b"a\nb\n", {"offset": 2}, page("2|b\n3|", 2, 4)),
    (b"a\nb\n", {"offset": 9}, page("9|", 2, 4)),
    (b"a\nb\n", {"offset": 0, "limit": 9999}, page("1|a\n2|b\n3|", 2, 4)),
    (b"\xef\xbb\xbfbom\r\nx\r\n", {}, page("1|bom\r\n2|x\r\n3|", 2, 11)),
    (b"caf\xe9 x\n", {}, page("1|caf\ufffd x\n2|", 1, 7)),
    (
        b"a\nb\nc\n",
        {"limit": 1},
        page("1|a\n2|", 3, 6, truncated=True, hint="Use offset=2 to continue reading (showing 1-1 of 3 lines)"),
    ),
    (
        b"a\nb\nc\n",
        {"offset": "x", "limit": -4},
        page("1|a\n2|", 3, 6, truncated=True, hint="Use offset=2 to continue reading (showing 1-1 of 3 lines)"),
    ),
    (b"a\nb\nc", {"offset": 2, "limit": 1}, page("2|b\n3|", 2, 5)),
    (b"x" * 2001, {}, page("1|" + "x" * 2000 + "... [truncated]", 0, 2001)),
]


@pytest.mark.parametrize(("data", "arguments", "result"), TEXTS)
def test_text_is_given_with_line_numbers(ask, data, arguments, result):
    """What hermes gives for the same bytes."""
    sandbox = FakeSandbox({"a.txt": data})

    assert ask(sandbox, "read_file", path="a.txt", **arguments) == result


def test_page_is_cut_to_what_hermes_gives_at_most(ask):
    """100,000 characters, at the end of a line, with where to go on."""
    sandbox = FakeSandbox({"huge": ("x" * 5000 + "\n") * 400})

    result = ask(sandbox, "read_file", path="huge")

    content = result.pop("content")
    assert (len(content), content[-20:]) == (98_921, "xxxxx... [truncated]")
    assert result == {
        "total_lines": 400,
        "file_size": 2_000_400,
        "truncated": True,
        "is_binary": False,
        "is_image": False,
        "truncated_by": "bytes",
        "next_offset": 50,
        "hint": "Output truncated at the 100,000-char read budget after 49 line(s) (showing lines 1-49 of 400). Use offset=50 to "
        "continue.",
        "_hint": "This file is large (2,000,400 bytes). Consider reading only the section you need with offset and limit to keep "
        "context usage efficient.",
    }


SIMILAR = [
    ("subdir", ["./sub"]),
    ("A.PY", ["./a.py", "./a.js"]),
    ("sub/a.p", ["sub/a.py"]),
    ("/workspace/sub/b.py", ["/workspace/sub/a.py"]),
    ("nothere/a.py", None),
    ("sub", ["./sub"]),
    ("", ["./a.js", "./a.py", "./sub"]),
    ("~/a.py", None),
]


@pytest.mark.parametrize(("path", "similar"), SIMILAR)
def test_what_is_no_file_is_not_found(ask, path, similar):
    """Directories are none; the path is shown as it was asked for, home expanded."""
    sandbox = FakeSandbox({"a.py": "", "a.js": "", "sub/a.py": "", ".hidden": ""})

    result = ask(sandbox, "read_file", path=path)

    shown = path.replace("~", "/root")
    assert result == {**EMPTY, "error": f"File not found: {shown}", **({"similar_files": similar} if similar else {})}


REFUSED = [
    (
        "pic.png",
        "Cannot read binary file 'pic.png' (.png). Use vision_analyze for images, or terminal to inspect binary files.",
    ),
    (
        "missing.ZIP",
        "Cannot read binary file 'missing.ZIP' (.zip). Use vision_analyze for images, or terminal to inspect binary files.",
    ),
    (
        "doc.docx",
        "Cannot read binary file 'doc.docx' (.docx). Use vision_analyze for images, or terminal to inspect binary files.",
    ),
    ("/dev/zero", "Cannot read '/dev/zero': this is a device file that would block or produce infinite output."),
    ("/proc/1/environ", "Cannot read '/proc/1/environ': this is a device file that would block or produce infinite output."),
    (
        ".env",
        "Access denied: /workspace/.env is a secret-bearing environment file and cannot be read to prevent credential leakage. If "
        "you need to check the file structure, read .env.example instead. (Defense-in-depth — not a security boundary; the "
        "terminal tool can still bypass.)",
    ),
    ("a\0b", "embedded null byte"),
]


@pytest.mark.parametrize(("path", "error"), REFUSED)
def test_what_hermes_does_not_read_is_refused(ask, path, error):
    """By the look of the path."""
    sandbox = FakeSandbox({"pic.png": "text", "doc.docx": "x", ".env": "KEY=1"})

    assert ask(sandbox, "read_file", path=path) == {"error": error}


def test_binary_content_is_not_shown(ask):
    """By its first thousand bytes."""
    sandbox = FakeSandbox({"data": bytes(300)})

    assert ask(sandbox, "read_file", path="data") == {
        **EMPTY,
        "file_size": 300,
        "is_binary": True,
        "error": "Binary file - cannot display as text. Use appropriate tools to handle this file type.",
    }


def test_notebook_is_shown_as_its_cells(ask):
    """Numbered, in pages; a broken one is text."""
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "x = 1\n"},
        {"cell_type": "raw", "source": 5},
        {"cell_type": "unknown"},
    ]
    data = json.dumps({"cells": cells})
    old = json.dumps({"worksheets": [{"cells": cells[1:2]}]})
    sandbox = FakeSandbox({"a.ipynb": data, "old.ipynb": old, "broken.ipynb": "{", "list.ipynb": "[]"})

    pages = [ask(sandbox, "read_file", path="a.ipynb", limit=2), ask(sandbox, "read_file", path="a.ipynb", offset=3)]

    common = {"total_lines": 8, "file_size": len(data), "extracted_document": True}
    assert pages == [
        {
            "content": "1|# ── Markdown cell 1 ──\n2|# Title",
            **common,
            "truncated": True,
            "hint": "Use offset=3 to continue reading (showing 1-2 of 8 lines)",
        },
        {"content": "3|text\n4|\n5|# ── Code cell 1 ──\n6|x = 1\n7|\n8|# ── Raw cell ──", **common, "truncated": False},
    ]
    assert ask(sandbox, "read_file", path="old.ipynb")["content"] == "1|# ── Code cell 1 ──\n2|x = 1"
    assert ask(sandbox, "read_file", path="broken.ipynb")["content"] == "1|{"
    assert ask(sandbox, "read_file", path="list.ipynb")["content"] == "1|[]"


UNCHANGED = {
    "status": "unchanged",
    "message": "File unchanged since last read. The content from the earlier read_file result in this conversation is still current "
    "— refer to that instead of re-reading.",
    "path": "a.py",
    "dedup": True,
    "content_returned": False,
}


def blocked(times):
    return {
        "error": f"BLOCKED: You have called read_file on this exact region {times} times and the file has NOT changed. STOP calling "
        "read_file for this path — the content from your earlier read_file result in this conversation is still current. Proceed "
        "with your task using the information you already have.",
        "path": "a.py",
        "already_read": times,
    }


def test_second_equal_read_is_answered_with_unchanged_and_the_third_is_blocked(ask):
    """And the fourth; another tool in between takes it back to "unchanged"."""
    sandbox = FakeSandbox({"a.py": "x = 1\n"})

    results = [ask(sandbox, "read_file", path="a.py") for _ in range(4)]
    ask(sandbox, "terminal", command="true")
    results.append(ask(sandbox, "read_file", path="a.py"))

    assert results == [page("1|x = 1\n2|", 1, 6), UNCHANGED, blocked(3), blocked(4), UNCHANGED]


CHANGES = [
    lambda sandbox: sandbox.call("write_file", {"path": "a.py", "content": "x = 1\n"}),
    lambda sandbox: sandbox.call("patch", {"path": "a.py", "old_string": "1", "new_string": "2"}),
    lambda sandbox: sandbox.call("terminal", {"command": "echo more >> a.py"}),
    lambda sandbox: sandbox.files.__setitem__("a.py", "by hand"),
    lambda sandbox: sandbox.call("read_file", {"path": "a.py", "limit": 7}) and sandbox.files.__setitem__("a.py", "x"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_file_that_changed_is_given_again(ask, change):
    """However it changed."""
    sandbox = FakeSandbox({"a.py": "x = 1\n"})
    ask(sandbox, "read_file", path="a.py")

    change(sandbox)

    assert ask(sandbox, "read_file", path="a.py")["content"].startswith("1|")


def test_rollout_forgets_what_hermes_is_told_to_forget(ask):
    """The real ToolContext tells hermes, not the sandbox, that a verifier reads."""
    from tools.file_tools import notify_other_tool_call, reset_file_dedup

    rollout = FakeSandbox({"a.py": "x"}).sandbox_of("one")
    contents = []

    for _ in range(6):
        contents.append(ask(rollout, "read_file", path="a.py").get("content"))
        reset_file_dedup("one")
        notify_other_tool_call("one")

    assert contents == ["1|x"] * 6


def test_memory_of_a_rollout_ends_with_its_sandbox(ask):
    """Another sandbox may have a rollout of that name, and a machine without a rollout has a memory of its own."""
    first, second = (FakeSandbox({"a.py": "x"}).sandbox_of("one") for _ in range(2))
    alone = FakeSandbox({"a.py": "x"})

    results = [ask(machine, "read_file", path="a.py") for machine in (first, second, second, alone, alone)]

    assert results == [page("1|x", 0, 1), page("1|x", 0, 1), UNCHANGED, page("1|x", 0, 1), UNCHANGED]
