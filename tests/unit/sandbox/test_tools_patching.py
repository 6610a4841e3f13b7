"""``patch``: replacements found as hermes finds them, and V4A patches."""

from __future__ import annotations

import sys

import pytest

from pytest_hermes_env.errors import ShadowedModule
from pytest_hermes_env.sandbox.fake import FakeSandbox

CODE = "def f():\n    return 1\n\ndef g():\n    return 1\n"
OK = {"status": "ok", "output": ""}
HINT = "old_string not found. Use read_file to verify the current content, or search_files to locate the text."
NO_TEXT = ("find() argument 1 " if sys.version_info >= (3, 13) else "") + "must be str, not int"
"""What Python says."""
NOT_FOUND = "Could not find a match for old_string in the file"


@pytest.fixture
def machine():
    """A machine with one Python file."""
    return FakeSandbox({"a.py": CODE})


def test_text_is_replaced(machine, ask):
    """With a diff, the check, and the absolute path."""
    result = ask(machine, "patch", path="a.py", old_string="def f():\n    return 1", new_string="def f():\n    return 2")

    assert machine.files["a.py"] == CODE.replace("1", "2", 1)
    assert result == {
        "success": True,
        "diff": "--- a//workspace/a.py\n+++ b//workspace/a.py\n@@ -1,5 +1,5 @@\n def f():\n-    return 1\n+    return 2\n \n"
        " def g():\n     return 1\n",
        "files_modified": ["/workspace/a.py"],
        "lint": OK,
        "resolved_path": "/workspace/a.py",
    }


def test_all_places_are_replaced_when_asked(machine, ask):
    """Otherwise one must be meant."""
    one = ask(machine, "patch", mode="replace", path="a.py", old_string="return ", new_string="yield ")
    every = ask(machine, "patch", mode="replace", path="a.py", old_string="return ", new_string="yield ", replace_all=True)

    assert one == {
        "success": False,
        "error": "Found 2 matches for old_string. Provide more context to make it unique, or use replace_all=True.",
    }
    assert (every["success"], machine.files["a.py"]) == (True, CODE.replace("return", "yield"))


def test_text_is_found_although_its_spaces_differ(machine, ask):
    """By hermes' own strategies; the new text takes the file's indentation."""
    ask(machine, "patch", path="a.py", old_string="  return 1\n\ndef g():", new_string="  return 2\n\ndef g():")

    assert machine.files["a.py"] == CODE.replace("1", "2", 1)


def test_text_that_is_not_there_is_told_with_what_is_near(machine, ask):
    """Or with a hint where nothing is."""
    near = ask(machine, "patch", path="a.py", old_string="    return x1y2z3", new_string="x")
    far = ask(machine, "patch", path="a.py", old_string="zzzzqqqq", new_string="x")

    assert near["error"].startswith(f"{NOT_FOUND}\n\nDid you mean one of these sections?\n")
    assert "_hint" not in near
    assert far == {"success": False, "error": NOT_FOUND, "_hint": HINT}


def test_third_failure_in_a_row_is_advised_to_stop(machine, ask):
    """Until a patch of that file succeeds."""
    wrong = {"path": "a.py", "old_string": "zzzzqqqq", "new_string": "x"}
    hints = [ask(machine, "patch", **wrong)["_hint"] for _ in range(3)]
    ask(machine, "patch", path="a.py", old_string="def f", new_string="def h")
    hints.append(ask(machine, "patch", **wrong)["_hint"])

    assert hints == [
        HINT,
        HINT,
        "This is failure #3 patching 'a.py'. Stop retrying with variations of the same old_string. Either: (1) re-read the file fresh "
        "to verify current content, (2) use a longer / more unique old_string with surrounding context lines, or (3) use write_file "
        "to replace the entire file if the targeted region is hard to anchor.",
        HINT,
    ]


REFUSED = [
    ({"path": "a.py", "old_string": "", "new_string": "x"}, {"success": False, "error": "old_string cannot be empty"}),
    (
        {"path": "a.py", "old_string": "x", "new_string": "x"},
        {"success": False, "error": "old_string and new_string are identical"},
    ),
    ({"path": "a.py", "old_string": "x"}, {"error": "old_string and new_string required"}),
    ({"old_string": "x", "new_string": "y"}, {"error": "path required"}),
    (
        {"path": "nofile", "old_string": "x", "new_string": "y"},
        {"success": False, "error": "Failed to read file: /workspace/nofile"},
    ),
    ({"path": "a.py", "old_string": 1, "new_string": "y"}, {"error": NO_TEXT}),
    (
        {"path": 5, "old_string": "x", "new_string": "y"},
        {"error": "[TOOL_ERROR] Tool execution failed: TypeError: argument of type 'int' is not iterable"},
    ),
    (
        {"path": "/etc/passwd", "old_string": "x", "new_string": "y"},
        {
            "error": "Refusing to write to sensitive system path: /etc/passwd\nUse the terminal tool with sudo if you need to modify "
            "system files."
        },
    ),
    (
        {"path": "~/.npmrc", "old_string": "x", "new_string": "y"},
        {"success": False, "error": "Write denied: '/root/.npmrc' is a protected system/credential file."},
    ),
    ({"mode": "zap"}, {"error": "Unknown mode: zap"}),
    ({"mode": "patch"}, {"error": "patch content required"}),
    (
        {"mode": "patch", "patch": "nothing"},
        {
            "success": False,
            "error": "Patch validation failed (no files were modified):\n  • Patch contains no changes (only context lines were "
            "provided)",
        },
    ),
    (
        {"mode": "patch", "patch": "*** Update File: b.py"},
        {"success": False, "error": "Failed to parse patch: Parse error: UPDATE 'b.py': no hunks found"},
    ),
    (
        {"mode": "patch", "patch": "*** Delete File: zz.py"},
        {
            "success": False,
            "error": "Patch validation failed (no files were modified):\n  • zz.py: file not found for deletion",
        },
    ),
    (
        {"mode": "patch", "patch": "*** Update File: ../b.py\n-a\n+b"},
        {
            "error": "V4A patch header contains '..' traversal: '../b.py'. Use the agent's cwd-relative path (no '..') or an absolute "
            "path in '*** Update File:' / '*** Add File:' / '*** Delete File:' / '*** Move File:' headers."
        },
    ),
    (
        {"mode": "patch", "patch": "***Move File: a.py -> /etc/cron"},
        {
            "error": "Refusing to write to sensitive system path: /etc/cron\nUse the terminal tool with sudo if you need to modify "
            "system files."
        },
    ),
    (
        {"mode": "patch", "patch": "*** Add File: q.json\n+{"},
        {
            "success": False,
            "error": "Apply phase failed (state may be inconsistent — run `git diff` to assess):\n  • Failed to add q.json: Refusing to "
            "write 'q.json': candidate content fails .json syntax validation (JSONDecodeError: Expecting property name enclosed in "
            "double quotes (line 1, column 2)). The file was NOT created or modified. Fix the content and retry.",
        },
    ),
    (
        {"mode": "patch", "patch": "*** Update File: a.py\n-    nope\n+    return 2"},
        {
            "success": False,
            "error": f"Patch validation failed (no files were modified):\n  • a.py: hunk 1 (no hint) not found — {NOT_FOUND}",
            "_hint": HINT,
        },
    ),
]


@pytest.mark.parametrize(("arguments", "result"), REFUSED)
def test_patch_that_cannot_be_applied_changes_nothing(machine, ask, arguments, result):
    """With hermes' words."""
    assert (ask(machine, "patch", **arguments), dict(machine.files)) == (result, {"/workspace/a.py": CODE})


def test_replacement_that_breaks_a_structured_file_is_refused(ask):
    """As a write would be."""
    sandbox = FakeSandbox({"a.json": '{"a": 1}'})

    result = ask(sandbox, "patch", path="a.json", old_string="1}", new_string="1")

    assert result["success"] is False
    assert result["error"].startswith(
        "Failed to write changes: Refusing to write '/workspace/a.json': candidate content fails .json"
    )
    assert sandbox.files["a.json"] == '{"a": 1}'


def test_line_ends_and_mark_of_a_file_stay(ask):
    """The diff shows what changed, not the mark."""
    sandbox = FakeSandbox({"crlf.txt": "a\r\nb\r\n", "bom.py": "\ufeffq = 2\n"})

    dos = ask(sandbox, "patch", path="crlf.txt", old_string="b", new_string="c\nd")
    mark = ask(sandbox, "patch", path="bom.py", old_string="q = 2", new_string="q = 3")

    assert (sandbox.files["crlf.txt"], sandbox.files["bom.py"]) == ("a\r\nc\r\nd\r\n", "\ufeffq = 3\n")
    assert dos["diff"] == "--- a//workspace/crlf.txt\n+++ b//workspace/crlf.txt\n@@ -1,2 +1,3 @@\n a\r\n-b\r\n+c\r\n+d\r\n"
    assert (mark["diff"].endswith("-q = 2\n+q = 3\n"), mark["lint"]) == (True, OK)


def test_patch_of_several_files_is_applied(machine, ask):
    """Changed and added ones, each checked; paths as the patch has them, and resolved."""
    result = ask(
        machine,
        "patch",
        mode="patch",
        patch="*** Begin Patch\n*** Update File: a.py\n@@ def f @@\n def f():\n-    return 1\n+    return 2\n"
        "*** Add File: new/n.py\n+x = 1\n+y = (\n*** End Patch",
    )

    assert dict(machine.files) == {"/workspace/a.py": CODE.replace("1", "2", 1), "/workspace/new/n.py": "x = 1\ny = ("}
    assert result == {
        "success": True,
        "diff": "--- a/a.py\n+++ b/a.py\n@@ -1,5 +1,5 @@\n def f():\n-    return 1\n+    return 2\n \n def g():\n     return 1\n\n"
        "--- /dev/null\n+++ b/new/n.py\n+x = 1\n+y = (",
        "files_modified": ["/workspace/a.py", "/workspace/new/n.py"],
        "files_created": ["new/n.py"],
        "lint": {
            "a.py": OK,
            "new/n.py": {"status": "error", "output": "SyntaxError: '(' was never closed (line 2, column 5)"},
        },
    }


def test_files_are_deleted_and_moved(ask):
    """With what hermes shows for each."""
    sandbox = FakeSandbox({"a.py": CODE, "new/n.py": "x = 1\n", "sub/z": ""})

    result = ask(
        sandbox,
        "patch",
        mode="patch",
        patch="*** Begin Patch\n*** Delete File: new/n.py\n*** Move File: a.py -> b.py\n*** End Patch",
    )

    assert list(sandbox.files) == ["/workspace/b.py", "/workspace/sub/z"]
    assert result == {
        "success": True,
        "diff": "--- a/new/n.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n\n# Moved: a.py -> b.py",
        "files_modified": ["/workspace/new/n.py", "/workspace/a.py", "/workspace/b.py"],
        "files_deleted": ["new/n.py"],
        "lint": {"a.py -> b.py": {"status": "skipped", "message": "Failed to read a.py -> b.py for lint"}},
    }


def test_move_that_is_not_possible_is_told(ask):
    """As mv tells it."""
    sandbox = FakeSandbox({"a.py": ""})

    result = ask(sandbox, "patch", mode="patch", patch="*** Move File: a.py -> missing/b.py")

    assert result == {
        "success": False,
        "error": "Apply phase failed (state may be inconsistent — run `git diff` to assess):\n  • Failed to move a.py: Failed to move "
        "a.py -> missing/b.py: mv: cannot move 'a.py' to 'missing/b.py': No such file or directory\n",
    }


@pytest.mark.parametrize(("operation", "verb"), [("Delete File: ~/.netrc", "Delete"), ("Move File: ~/.netrc -> b", "Move")])
def test_files_with_keys_are_neither_deleted_nor_moved(ask, operation, verb):
    """hermes names what it did not do."""
    sandbox = FakeSandbox({"~/.netrc": "key"})

    result = ask(sandbox, "patch", mode="patch", patch=f"*** {operation}")

    assert f"{verb} denied: '/root/.netrc' is a protected system/credential file." in result["error"]
    assert sandbox.files["/root/.netrc"] == "key"


def test_patch_of_what_was_not_seen_is_warned_of(ask):
    """As a write is, and several warnings in one."""
    sandbox = FakeSandbox({"a.py": "x\ny\n", "b.py": "x\ny\n"})
    for name in ("a.py", "b.py"):
        ask(sandbox, "read_file", path=name, offset=2)

    both = ask(sandbox, "patch", mode="patch", patch="*** Update File: a.py\n-x\n+z\n*** Update File: b.py\n-x\n+z")
    again = ask(sandbox, "patch", path="a.py", old_string="z", new_string="w")

    partial = "{} was last read with offset/limit pagination (partial view). Re-read the whole file before overwriting it."
    assert both["_warning"] == " | ".join(partial.format(f"/workspace/{name}") for name in ("a.py", "b.py"))
    assert "_warning" not in again


def test_project_module_in_the_way_of_hermes_is_named(machine, monkeypatch):
    """The functions that find a text are hermes' own."""
    ours = "pytest_hermes_env.sandbox.fake_tools.operations"
    for name in [name for name in sys.modules if name in {"tools", ours} or name.startswith("tools.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tools", None)

    with pytest.raises(ShadowedModule) as caught:
        machine.call("patch", {"path": "a.py", "old_string": "1", "new_string": "2"})

    assert str(caught.value) == (
        "hermes-agent's module tools.file_operations cannot be imported: No module named 'tools.file_operations'; "
        "'tools' is not a package.\n"
        "  expected  the package `tools` of hermes-agent, not a module of the project\n"
        "  seen      no package of that name\n"
        "  fix       rename the project's module `tools`, or keep its directory off sys.path; is hermes-agent installed?"
    )
