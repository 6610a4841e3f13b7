"""A tool context for reward tests: the real one's methods and results, over a machine."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading

import pytest

from pytest_hermes_env.errors import CleanupFailed, UnexpectedToolCall, UseAfterCleanup
from pytest_hermes_env.sandbox.context import FakeToolContext
from pytest_hermes_env.sandbox.fake import FakeSandbox

FILE = {"total_lines": 2, "file_size": 22, "truncated": False, "is_binary": False, "is_image": False}
CODE = "def f():\n    return 1\n"


@pytest.fixture
def machine():
    """A machine with one file."""
    return FakeSandbox({"a.py": CODE})


@pytest.fixture
def ctx(machine):
    """A context over it."""
    return FakeToolContext(machine)


def test_methods_are_the_real_context_s():
    """Names, parameters, defaults."""
    from environments.tool_context import ToolContext

    def methods(cls):
        functions = inspect.getmembers(cls, inspect.isfunction)
        public = {name: inspect.signature(function) for name, function in functions if not name.startswith("_")}
        return {name: (list(found.parameters.values())[1:], found.return_annotation) for name, found in public.items()}

    own = methods(FakeToolContext)
    assert {name: own[name] for name in methods(ToolContext)} == methods(ToolContext)
    assert set(own) - set(methods(ToolContext)) == {"verify"}


def test_one_call_per_method(machine, ctx):
    """With the arguments of the real one."""
    machine.on("ls", output="a.py").web({"https://a.example": "a"}, searches={"q": []}).on_tool("anything", "as it is")

    results = [
        ctx.terminal("ls", 5),
        ctx.terminal("ls"),
        ctx.write_file("b.txt", "b"),
        ctx.search("return", "a.py"),
        ctx.web_search("q"),
        ctx.web_extract(["https://a.example"]),
        ctx.browser_navigate("https://a.example"),
        ctx.browser_snapshot(),
    ]

    assert [json.loads(call.result) for call in machine.calls] == results
    assert [(call.name, call.arguments) for call in machine.calls] == [
        ("terminal", {"command": "ls", "timeout": 5}),
        ("terminal", {"command": "ls", "timeout": 180}),
        ("write_file", {"path": "b.txt", "content": "b"}),
        ("search_files", {"pattern": "return", "path": "a.py"}),
        ("web_search", {"query": "q"}),
        ("web_extract", {"urls": ["https://a.example"]}),
        ("browser_navigate", {"url": "https://a.example"}),
        ("browser_snapshot", {}),
    ]
    assert ctx.call_tool("anything", {"a": 1}) == "as it is"


@pytest.mark.parametrize("text", ["Traceback: oops", '["a list"]', ""])
def test_answer_that_is_no_json_object_becomes_one(sandbox, text):
    """As in the real context."""
    sandbox.on_tool("terminal", text).on_tool("browser_snapshot", text)
    ctx = FakeToolContext(sandbox)

    assert (ctx.terminal("ls"), ctx.browser_snapshot()) == ({"exit_code": -1, "output": text}, {"error": text})


def test_file_is_read_whole_and_as_often_as_one_likes(ctx):
    """The file's own text, and hermes' view of it; never "unchanged"."""
    whole = {**FILE, "content": CODE, "numbered_content": "1|def f():\n2|    return 1\n3|"}

    assert [ctx.read_file("a.py") for _ in range(5)] == [whole] * 5


def test_long_file_is_read_whole(machine, ctx):
    """Page by page; long lines are whole in its own text, and the mark of UTF-8 is there."""
    text = "\ufeff" + "".join(f"line {number}\n" for number in range(1, 4501)) + "x" * 3000
    machine.files["long.txt"] = text

    first, second = ctx.read_file("long.txt"), ctx.read_file("long.txt")

    assert (first["content"], second["content"]) == (text, text)
    assert first["truncated"] is False
    assert first["numbered_content"].endswith("\n4500|line 4500\n4501|" + "x" * 2000 + "... [truncated]")
    assert second["numbered_content"].count("\n") == 4500


ABSENT = {"content": "", "total_lines": 0, "file_size": 0, "truncated": False, "is_binary": False, "is_image": False}


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("b.py", {**ABSENT, "error": "File not found: b.py", "similar_files": ["./a.py"]}),
        ("/nowhere/b", {**ABSENT, "error": "File not found: /nowhere/b"}),
        (
            "a.png",
            {
                "error": "Cannot read binary file 'a.png' (.png). Use vision_analyze for images, or terminal to inspect binary files."
            },
        ),
    ],
)
def test_file_that_cannot_be_read_gives_hermes_error(ctx, path, result):
    """A dict, and no exception."""
    assert ctx.read_file(path) == result


def test_file_that_was_never_there_stays_an_error(ctx):
    """However often it is asked for."""
    errors = [ctx.read_file("b.py").get("error") for _ in range(6)]

    assert errors == ["File not found: b.py"] * 6


def test_size_limit_names_itself(ctx, tmp_path):
    """As in the real context."""
    ctx.write_file("five", "12345")

    error = "Cannot read five: it exceeds the limit of 4 bytes; max_bytes= raises the limit"
    assert ctx.read_file("five", max_bytes=4) == {"error": error}
    assert ctx.download_file("five", str(tmp_path / "x"), max_bytes=4) == {"success": False, "error": error}
    assert ctx.read_file("five", max_bytes=5)["content"] == "12345"


def test_directory_is_no_regular_file(ctx):
    """As in the real context."""
    ctx.terminal("mkdir d")

    assert ctx.read_file("d") == {"error": "Cannot read d: it is not a regular file"}


def test_limit_holds_for_all_files_of_a_directory_together(machine, tmp_path):
    """As in the real context."""
    for name in "abc":
        machine.files[f"in/{name}"] = "x" * 400

    results = FakeToolContext(machine).download_dir("in", str(tmp_path), max_bytes=1_000)

    assert [entry["success"] for entry in results] == [True, True, False]
    assert results[2]["error"] == "Cannot read in/c: it exceeds the limit of 200 bytes; max_bytes= raises the limit"


def test_name_with_a_dash_is_no_option(machine, ctx):
    """As in the real context."""
    ctx.write_file("-rf", "x")

    assert ctx.read_file("-rf")["content"] == "x"
    assert ctx.search("x", "-rf")["matches"] == [{"path": "./-rf", "line": 1, "content": "x"}]


def test_default_search_is_in_the_session_s_directory(machine, ctx):
    """With absolute paths, as the real context asks."""
    ctx.terminal("mkdir sub && cd sub && echo alpha > a.txt")

    assert ctx.search("alpha") == {
        "total_count": 1,
        "matches": [{"path": "/workspace/sub/a.txt", "line": 1, "content": "alpha"}],
    }


def test_command_may_take_longer_than_hermes_foreground(machine, ctx):
    """It is a background session then."""
    whole = "\n".join(["made"] * 1000)  # longer than what a wait shows
    machine.on("make", output=whole, exit_code=4)

    assert ctx.terminal("make", timeout=700) == {"output": whole, "exit_code": 4, "error": None}
    assert [call.name for call in machine.calls] == ["terminal", "process", "process"]


def test_command_that_never_ends_is_killed(machine, ctx, monkeypatch):
    """After the time that it was given, which does not pass here."""
    monkeypatch.setenv("TERMINAL_TIMEOUT", "180")
    machine.on("serve", output="listening", timed_out=True)

    result = ctx.terminal("serve", timeout=700)

    assert result == {"exit_code": 124, "output": "", "error": "Command timed out after 700 seconds"}
    waits = [call.arguments["timeout"] for call in machine.calls if call.arguments.get("action") == "wait"]
    assert waits == [700, 520, 340, 160]
    assert machine.calls[-1].arguments["action"] == "kill"


def test_command_that_does_not_start_is_told(machine, ctx):
    """As hermes tells it."""
    machine.on("make", result={"error": "no"})

    assert ctx.terminal("make", timeout=700) == {"error": "no"}


def test_files_are_copied_into_the_machine(machine, ctx, tmp_path):
    """Byte for byte, directories made; what does not go is told."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.bin").write_bytes(b"\x00\xff")
    (tmp_path / "sub" / "b").write_bytes(b"")
    local = str(tmp_path / "a.bin")

    one = [ctx.upload_file(local, "in/a.bin"), ctx.upload_file(str(tmp_path / "x"), "x"), ctx.upload_file(local, "a.py/x")]
    several = ctx.upload_dir(str(tmp_path), "up")

    assert one == [
        {"exit_code": 0, "output": "2 bytes to in/a.bin", "bytes": 2},
        {
            "exit_code": -1,
            "output": f"Cannot read local file {tmp_path / 'x'}: [Errno 2] No such file or directory: '{tmp_path / 'x'}'",
        },
        {"exit_code": -1, "output": "Cannot write a.py/x: File exists"},
    ]
    assert several == [
        {"path": local, "exit_code": 0, "output": "2 bytes to up/a.bin", "bytes": 2},
        {"path": str(tmp_path / "sub" / "b"), "exit_code": 0, "output": "0 bytes to up/sub/b", "bytes": 0},
    ]
    assert ctx.upload_dir(local, "up") == [{"exit_code": -1, "output": f"Local directory not found: {local}"}]
    assert (machine.read_bytes("in/a.bin"), machine.read_bytes("up/sub/b")) == (b"\x00\xff", b"")


def test_files_are_copied_out_of_the_machine(machine, ctx, tmp_path):
    """Byte for byte, directories made; what does not go is told, and leaves nothing."""
    machine.files["out/a.bin"] = b"\x00\xff"
    machine.files["out/sub/b"] = ""

    one = [
        ctx.download_file("out/a.bin", str(tmp_path / "new" / "a.bin")),
        ctx.download_file("missing", str(tmp_path / "x")),
        ctx.download_file("out", str(tmp_path / "x")),
    ]
    several = ctx.download_dir("out", str(tmp_path / "down"))

    assert one == [
        {"success": True, "bytes": 2},
        {"success": False, "error": "Cannot read missing: No such file or directory"},
        {"success": False, "error": "Cannot read out: it is not a regular file"},
    ]
    assert several == [{"path": "a.bin", "success": True, "bytes": 2}, {"path": "sub/b", "success": True, "bytes": 0}]
    assert ctx.download_dir("missing", str(tmp_path)) == [
        {"success": False, "path": "missing", "error": "Cannot list missing: No such file or directory"}
    ]
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert files == ["down/a.bin", "down/sub/b", "new/a.bin"]


def test_download_that_cannot_be_written_leaves_nothing(machine, ctx, tmp_path):
    """A directory stands where the file should be."""
    (tmp_path / "taken").mkdir()

    result = ctx.download_file("a.py", str(tmp_path / "taken"))

    assert result["success"] is False
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_download_never_leaves_its_directory(tmp_path):
    """Whatever a machine lists."""

    class Hostile(FakeSandbox):
        def list_files(self, directory):
            return ["../outside", "."]

    ctx = FakeToolContext(Hostile({"outside": "x"}))

    results = ctx.download_dir(".", str(tmp_path / "down"))

    root = tmp_path / "down"
    assert results == [
        {"path": name, "success": False, "error": f"Refused: the listed name {name!r} leads outside {root}"}
        for name in ("../outside", ".")
    ]
    assert list(tmp_path.iterdir()) == [root]


def test_clean_up_is_counted_and_releases_once(machine):
    """Twice is as good as once."""
    released = []
    machine.release = lambda: released.append(True)
    ctx = FakeToolContext(machine, "my-rollout")

    ctx.cleanup()
    ctx.cleanup()

    assert (ctx.cleanups, released, ctx.task_id) == (2, [True], "my-rollout")
    ctx.verify()


USES = [
    (lambda ctx: ctx.terminal("ls"), "terminal('ls')"),
    (lambda ctx: ctx.read_file("a"), "read_file('a')"),
    (lambda ctx: ctx.write_file("a", ""), "write_file('a')"),
    (lambda ctx: ctx.upload_file("a", "b"), "upload_file('a')"),
    (lambda ctx: ctx.upload_dir("a", "b"), "upload_dir('a')"),
    (lambda ctx: ctx.download_file("a", "b"), "download_file('a')"),
    (lambda ctx: ctx.download_dir("a", "b"), "download_dir('a')"),
    (lambda ctx: ctx.search("q"), "search('q')"),
    (lambda ctx: ctx.web_search("q"), "web_search('q')"),
    (lambda ctx: ctx.web_extract(["u"]), "web_extract(['u'])"),
    (lambda ctx: ctx.browser_navigate("u"), "browser_navigate('u')"),
    (lambda ctx: ctx.browser_snapshot(), "browser_snapshot()"),
    (lambda ctx: ctx.call_tool("x", {}), "call_tool('x')"),
]


@pytest.mark.parametrize(("use", "shown"), USES)
def test_use_after_clean_up_is_refused_and_told_again(machine, ctx, use, shown):
    """A reward function may swallow it: verify raises it once more."""
    ctx.cleanup()

    with pytest.raises(UseAfterCleanup) as caught:
        use(ctx)
    with pytest.raises(UseAfterCleanup) as again:
        ctx.verify()

    assert (
        str(caught.value)
        == str(again.value)
        == (
            f"{shown} was called on a tool context that had been cleaned up.\n"
            "  seen      1 cleanup before; in a rollout, its sandbox no longer exists\n"
            "  fix       call cleanup() after the last use, for example in `finally`"
        )
    )
    assert machine.calls == ()


def test_several_problems_are_told_in_one_message(ctx):
    """Equal ones once."""
    ctx.cleanup()
    ctx.cleanup()
    for use in (lambda: ctx.terminal("ls"), lambda: ctx.terminal("ls"), ctx.browser_snapshot):
        with pytest.raises(UseAfterCleanup):
            use()

    with pytest.raises(UseAfterCleanup) as caught:
        ctx.verify()

    assert str(caught.value) == (
        "the tool context reports 2 problems.\n"
        "\n"
        "1. UseAfterCleanup: terminal('ls') was called on a tool context that had been cleaned up.\n"
        "     seen      2 cleanups before; in a rollout, its sandbox no longer exists\n"
        "     fix       call cleanup() after the last use, for example in `finally`\n"
        "     repeated  2 times\n"
        "\n"
        "2. UseAfterCleanup: browser_snapshot() was called on a tool context that had been cleaned up.\n"
        "     seen      2 cleanups before; in a rollout, its sandbox no longer exists\n"
        "     fix       call cleanup() after the last use, for example in `finally`"
    )


def test_clean_up_never_raises(machine):
    """What fails is told by verify."""

    def fail():
        raise OSError("stuck")

    machine.release = fail
    ctx = FakeToolContext(machine)

    ctx.cleanup()

    with pytest.raises(CleanupFailed) as caught:
        ctx.verify()
    assert str(caught.value) == (
        "the sandbox of this tool context could not be released: OSError.\n"
        "  seen      stuck\n"
        "  fix       fix release() of the sandbox"
    )


def test_context_works_inside_and_outside_of_a_loop(ctx):
    """In the calling thread, and no other is started."""
    before = threading.active_count()

    async def reward():
        return ctx.terminal("cat a.py")["output"]

    outputs = [ctx.terminal("cat a.py")["output"], asyncio.run(reward())]

    assert (outputs, threading.active_count()) == ([CODE.strip()] * 2, before)


def test_unscripted_call_is_raised_in_the_reward(ctx):
    """It never looks like a failed command."""
    with pytest.raises(UnexpectedToolCall):
        ctx.terminal("surely_no_such_command -q")


def test_problems_can_be_looked_at(ctx):
    """Before verify raises them."""
    assert ctx.problems == ()
    ctx.cleanup()
    with pytest.raises(UseAfterCleanup):
        ctx.browser_snapshot()

    assert [problem.error for problem in ctx.problems] == [UseAfterCleanup]
