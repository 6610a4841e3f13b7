"""The calls that every sandbox must answer in the same way.

A step is a method of ToolContext and its arguments; ``tool`` is short for ``call_tool``. ``{local}`` in a text stands for a
directory of this machine with the files of `local_files`, ``{session}`` for the background process that was started last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Step:
    """One call of a method of ToolContext."""

    method: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Steps in one rollout, on a machine that is empty at first."""

    name: str
    steps: tuple[Step, ...]
    has_own_words: bool = False
    """Whether texts depend on the machine or the sandbox, so that only the shapes can be compared."""


def do(method: str, *args: Any, **kwargs: Any) -> Step:
    """Call a method of ToolContext."""
    return Step(method=method, args=args, kwargs=kwargs)


def tool(name: str, **arguments: Any) -> Step:
    """Call a tool by its name, as the agent would."""
    return Step(method="call_tool", args=(name, arguments))


def case(name: str, *steps: Step) -> Case:
    """Name some steps."""
    return Case(name=name, steps=steps)


def in_own_words(name: str, *steps: Step) -> Case:
    """Name some steps whose answers have the same shape everywhere, but not the same text."""
    return Case(name=name, steps=steps, has_own_words=True)


def local_files(directory: Path) -> None:
    """Create the files that uploads read."""
    (directory / "tree" / "deep").mkdir(parents=True)
    (directory / "text.txt").write_text("two\nlines\n")
    (directory / "empty.txt").write_bytes(b"")
    (directory / "binary.bin").write_bytes(bytes(range(256)) * 400)
    (directory / "tree" / "a.txt").write_text("a")
    (directory / "tree" / "deep" / "it's b.txt").write_text("b\n")


PYTHON = "def double(number):\n    return number * 2\n\n\ndef triple(number):\n    return number * 3\n"
LONG = "".join(f"line {number}\n" for number in range(1, 1201))
UPDATE = """*** Begin Patch
*** Update File: maths.py
@@ def double(number): @@
 def double(number):
-    return number * 2
+    return 2 * number
*** Add File: added.txt
+new
+file
*** End Patch"""

TERMINAL = (
    case("a command's output", do("terminal", "echo hello")),
    case("an exit code", do("terminal", "exit 3"), do("terminal", "false"), do("terminal", "true")),
    case("standard error is output", do("terminal", "echo out; echo err >&2")),
    case("an unknown command", do("terminal", "surely_no_such_command --flag")),
    case("a missing file", do("terminal", "cat missing.txt"), do("terminal", "ls missing")),
    case("no output", do("terminal", ":")),
    case("unicode", do("terminal", "echo 'grüße 日本 🎉'")),
    case("blank lines around the output", do("terminal", "echo; echo middle; echo; echo")),
    case("files last", do("terminal", "echo one > a.txt && echo two >> a.txt"), do("terminal", "cat a.txt; wc -l < a.txt")),
    case("the directory lasts", do("terminal", "mkdir -p d/e && cd d/e"), do("terminal", "pwd"), do("terminal", "cd .. && ls")),
    case("variables last", do("terminal", "export GREETING=hi"), do("terminal", 'echo "$GREETING"')),
    case("pipes and lists", do("terminal", "printf '3\\n1\\n2\\n' | sort | head -n 2; true && echo yes || echo no")),
    case("no match of grep", do("terminal", "echo a > f; grep b f"), do("terminal", "grep -c a f")),
    case("diff of two files", do("terminal", "echo a > f; echo b > g; diff f g > /dev/null")),
    case("a directory for one command", do("terminal", "mkdir sub"), tool("terminal", command="pwd", workdir="sub")),
    case("an empty command", tool("terminal", command="")),
    case("no command", tool("terminal")),
    case("a backgrounding ampersand", tool("terminal", command="sleep 0 &")),
    case("nohup", tool("terminal", command="nohup true")),
    case("a timeout that is too long", tool("terminal", command="true", timeout=100_000)),
    in_own_words("long output", do("terminal", "seq 1 20000")),
    in_own_words(  # a login shell without a terminal may print a remark, which hermes only removes from the first chunk of output
        "a background process",
        tool("terminal", command="echo done", background=True),
        tool("process", action="wait", session_id="{session}", timeout=100),
        tool("process", action="list"),
    ),
    case("no background process", tool("process", action="list")),
    in_own_words(
        "waiting for a background process",
        tool("terminal", command="echo done", background=True),
        tool("process", action="wait", session_id="{session}", timeout=100),
        tool("process", action="poll", session_id="{session}"),
        tool("process", action="log", session_id="{session}"),
        tool("process", action="log", session_id="{session}", offset=0, limit=1),
        tool("process", action="kill", session_id="{session}"),
    ),
    case(
        "an unknown background process",
        *(tool("process", action=action, session_id="proc_unknown") for action in ("poll", "log", "wait", "kill", "write")),
    ),
    case("an unknown action of process", tool("process", action="dance"), tool("process", action="poll")),
    case("a command beyond the foreground limit", do("terminal", "echo slow; exit 4", timeout=700)),
)

FILES = (
    case("writing and reading", do("write_file", "notes.txt", "one\ntwo\n"), do("read_file", "notes.txt")),
    case("writing into new directories", do("write_file", "a/b/c.txt", "deep"), do("terminal", "cat a/b/c.txt")),
    case("overwriting", do("write_file", "f.txt", "one"), do("write_file", "f.txt", "two"), do("read_file", "f.txt")),
    case("an empty file", do("write_file", "empty.txt", ""), do("read_file", "empty.txt")),
    case("no line break at the end", do("write_file", "f.txt", "a\nb"), do("read_file", "f.txt")),
    case("unicode in files", do("write_file", "ü 日.txt", "grüße\n"), do("read_file", "ü 日.txt")),
    case(
        "a file that is not there",
        do("write_file", "notes.txt", "x"),
        do("read_file", "note.txt"),
        do("read_file", "zzz/q.bin"),
        do("read_file", "zzz/q.txt"),
    ),
    case("reading a directory", do("terminal", "mkdir d"), do("read_file", "d")),
    case("reading twice", do("write_file", "f.txt", "a\n"), do("read_file", "f.txt"), do("read_file", "f.txt")),
    case(
        "the agent reads twice",
        do("terminal", "echo a > f.txt"),
        tool("read_file", path="f.txt"),
        tool("read_file", path="f.txt"),
        tool("read_file", path="f.txt"),
        tool("read_file", path="f.txt"),
        tool("terminal", command="echo b >> f.txt"),
        tool("read_file", path="f.txt"),
    ),
    case("numbered lines", do("write_file", "f.txt", "a\n\nc\n"), tool("read_file", path="f.txt")),
    case(
        "a part of a file",
        do("write_file", "long.txt", LONG),
        tool("read_file", path="long.txt", offset=5, limit=3),
        tool("read_file", path="long.txt"),
        tool("read_file", path="long.txt", offset=5000),
    ),
    case("a whole long file", do("write_file", "long.txt", LONG * 2), do("read_file", "long.txt")),
    case(
        "a very long line",
        do("write_file", "f.txt", "x" * 5000 + "\nend\n"),
        do("read_file", "f.txt"),
        tool("read_file", path="f.txt"),
    ),
    case(
        "a binary file",
        do("upload_file", "{local}/binary.bin", "b.bin"),
        do("read_file", "b.bin"),
        tool("read_file", path="b.bin"),
    ),
    case("python that does not parse", do("write_file", "broken.py", "def f(:\n"), do("write_file", "fine.py", "x = 1\n")),
    case("json that does not parse", do("write_file", "broken.json", "{"), do("write_file", "fine.json", "{}\n")),
    case("a path that begins with a dash", do("write_file", "-n.txt", "a\n"), do("read_file", "-n.txt")),
    case("no path", tool("read_file"), tool("write_file", path="f.txt"), tool("write_file", content="x")),
    case(
        "replacing",
        do("write_file", "maths.py", PYTHON),
        tool("patch", mode="replace", path="maths.py", old_string="number * 2", new_string="2 * number"),
        do("read_file", "maths.py"),
    ),
    case(
        "replacing what is not there",
        do("write_file", "maths.py", PYTHON),
        tool("patch", mode="replace", path="maths.py", old_string="nothing like it", new_string="x"),
        tool("patch", mode="replace", path="missing.py", old_string="a", new_string="b"),
        tool("patch", mode="replace", path="maths.py"),
        tool("patch", mode="dance"),
    ),
    case(
        "replacing what is there twice",
        do("write_file", "maths.py", PYTHON),
        tool("patch", mode="replace", path="maths.py", old_string="return", new_string="yield"),
        tool("patch", mode="replace", path="maths.py", old_string="return", new_string="yield", replace_all=True),
        do("read_file", "maths.py"),
    ),
    case(
        "replacing with other indentation",
        do("write_file", "maths.py", PYTHON),
        tool("patch", path="maths.py", mode="replace", old_string="return number * 2", new_string="return 2 * number"),
        tool("patch", path="maths.py", mode="replace", old_string="  return number  *  3", new_string="  return 3 * number"),
        do("terminal", "cat maths.py"),
    ),
    case(
        "a patch of several files",
        do("write_file", "maths.py", PYTHON),
        tool("patch", mode="patch", patch=UPDATE),
        do("terminal", "cat maths.py added.txt"),
    ),
    case("a patch that does not fit", tool("patch", mode="patch", patch=UPDATE), tool("patch", mode="patch", patch="nonsense")),
)

SEARCH_TREE = (
    do("write_file", "src/one.py", "import os\n\nneedle = 1\n"),
    do("write_file", "src/two.txt", "a needle\nno\nneedle again\n"),
    do("write_file", "readme.md", "nothing here\n"),
)

SEARCH = (
    case("searching", *SEARCH_TREE, do("search", "needle")),
    case("searching a directory", *SEARCH_TREE, do("search", "needle", "src"), do("search", "need.e again", "src/two.txt")),
    case("searching in vain", *SEARCH_TREE, do("search", "haystack")),
    case("searching where nothing is", do("search", "needle", "missing")),
    in_own_words("a pattern that is none", *SEARCH_TREE, do("search", "[")),
    case(
        "the ways of searching",
        *SEARCH_TREE,
        tool("search_files", pattern="needle", path="src", output_mode="files_only"),
        tool("search_files", pattern="needle", path="src", output_mode="count"),
        tool("search_files", pattern="needle", path="src", file_glob="*.py"),
        tool("search_files", pattern="again", path="src", context=1),
        tool("search_files", pattern="needle", path="src/two.txt", limit=1),
        tool("search_files", pattern="needle", path="src/two.txt", limit=1, offset=1),
    ),
    case(
        "searching for files",
        *SEARCH_TREE,
        tool("search_files", pattern="*.py", target="files", path="src"),
        tool("search_files", pattern="*.rs", target="files", path="src"),
    ),
)

TRANSFERS = (
    case("uploading", do("upload_file", "{local}/text.txt", "in.txt"), do("terminal", "cat in.txt")),
    case(
        "uploading bytes",
        do("upload_file", "{local}/binary.bin", "d/b.bin"),
        do("terminal", "wc -c < d/b.bin; sha256sum d/b.bin"),
    ),
    case("uploading nothing", do("upload_file", "{local}/empty.txt", "e.txt"), do("terminal", "wc -c < e.txt")),
    case("uploading what is not there", do("upload_file", "{local}/missing", "x"), do("upload_dir", "{local}/missing", "x")),
    in_own_words("uploading onto a directory", do("terminal", "mkdir d"), do("upload_file", "{local}/text.txt", "d")),
    case("uploading a tree", do("upload_dir", "{local}/tree", "t"), do("terminal", "find t -type f | sort")),
    case("downloading", do("write_file", "out.txt", "content\n"), do("download_file", "out.txt", "{local}/out/got.txt")),
    case("downloading nothing", do("terminal", ": > e"), do("download_file", "e", "{local}/got-empty")),
    in_own_words(
        "downloading what is not there",
        do("download_file", "missing", "{local}/got"),
        do("download_dir", "missing", "{local}/got-dir"),
    ),
    case("there and back", do("upload_file", "{local}/binary.bin", "b.bin"), do("download_file", "b.bin", "{local}/back.bin")),
    case(
        "downloading a tree",
        do("upload_dir", "{local}/tree", "t"),
        do("terminal", "mkdir t-extra; echo x > t-extra/x"),
        do("download_dir", "t", "{local}/got-tree"),
    ),
)

WEB = (
    in_own_words("the web without a key", do("web_search", "weather"), do("web_extract", ["https://example.invalid/"])),
    in_own_words("the browser without a browser", do("browser_navigate", "https://example.invalid/"), do("browser_snapshot")),
    case("a tool that does not exist", tool("surely_no_such_tool")),
    case("terminals of a desktop", tool("read_terminal"), tool("close_terminal")),
)

CLEANUP = (case("cleaning up twice", do("terminal", "echo x > f"), do("cleanup"), do("cleanup")),)

CASES: tuple[Case, ...] = (*TERMINAL, *FILES, *SEARCH, *TRANSFERS, *WEB, *CLEANUP)
