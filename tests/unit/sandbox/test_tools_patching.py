"""``patch``: replacements found as hermes finds them, and V4A patches."""

from __future__ import annotations

import sys

import pytest

from pytest_hermes_env.errors import ShadowedModule
from pytest_hermes_env.sandbox.fake import FakeSandbox

CODE = "def f():\n    return 1\n\ndef g():\n    return 1\n"
OK = {"status": "ok", "output": ""}


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
