"""A fake sandbox as a machine and as a world of rollouts: what it refuses, what it remembers, and what verify tells."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_hermes_env.errors import LeftoverAnswers, UnexpectedToolCall, UsageError
from pytest_hermes_env.sandbox.fake import AnsweredCall, FakeSandbox

WAY_OUT = "real_tools='confined' where the test creates the sandbox, else --hermes-real-tools=confined"


def terminal(machine, command):
    return json.loads(machine.call("terminal", {"command": command}))


def refused(machine, command):
    with pytest.raises(UnexpectedToolCall) as caught:
        terminal(machine, command)
    return str(caught.value)


def test_files_are_there_for_commands_and_tools():
    """Relative names lead from the first directory; text and bytes are taken."""
    sandbox = FakeSandbox({"a.txt": "one\n", "/data/b.bin": b"\xff"}, cwd="/app")

    result = terminal(sandbox, "pwd; cat a.txt; ls /data")

    assert result == {"output": "/app\none\nb.bin", "exit_code": 0, "error": None}
    assert sandbox.files["/app/a.txt"] == "one\n"


def test_directory_of_the_session_persists():
    """From call to call, and for the file tools."""
    sandbox = FakeSandbox({"app/a.txt": "one"})

    terminal(sandbox, "cd app")

    assert terminal(sandbox, "pwd")["output"] == "/workspace/app"
    assert json.loads(sandbox.call("read_file", {"path": "a.txt"}))["content"] == "1|one"
    assert sandbox.cwd == "/workspace/app"


def test_unscripted_command_is_refused_with_the_nearest_scripted_ones(sandbox):
    """The fix can be pasted."""
    sandbox.on("npm run test", optional=True).on(re.compile("^cargo"), optional=True).on(str.isdigit, optional=True).on("make")

    text = refused(sandbox, "npm test -- --ci")

    assert text == (
        "the sandbox was asked to run a line that is neither scripted nor a simple command that it answers in memory.\n"
        "  line      npm test -- --ci\n"
        "  scripted  npm run test, str.isdigit, make, re.compile('^cargo')\n"
        "  real bash is switched off: real_tools='never'\n"
        f"  fix       script the whole line: sandbox.on('npm test -- --ci', output='...'), or {WAY_OUT}"
    )


def test_fix_for_a_long_command_matches_how_it_begins(sandbox):
    """The line that is pasted works, and is a line."""
    command = f"python -c '{'x' * 200}'"

    text = refused(sandbox, command)

    matcher = text.partition("sandbox.on(")[2].removesuffix(f", output='...'), or {WAY_OUT}")
    sandbox.on(eval(matcher), output="matched")
    assert matcher == f"re.compile({re.escape(command[:60])!r})"
    assert terminal(sandbox, command)["output"] == "matched"


def test_many_scripted_commands_are_counted(sandbox):
    """Five are named."""
    for number in range(8):
        sandbox.on(f"tool {number}", optional=True)

    assert "  scripted  tool 7, tool 6, tool 5, tool 4, tool 3 and 3 more\n" in refused(sandbox, "tool x")


def test_line_that_no_shell_runs_is_refused():
    """Where no real program may run."""
    text = refused(FakeSandbox(real_tools="never"), "cat <(echo a) ")

    assert text == (
        "the sandbox was asked to run a line that is neither scripted nor a simple command that it answers in memory.\n"
        "  line      cat <(echo a)\n"
        "  scripted  nothing\n"
        "  real bash is switched off: real_tools='never'\n"
        f"  fix       script the whole line: sandbox.on('cat <(echo a)', output='...'), or {WAY_OUT}"
    )


def test_line_that_no_shell_runs_is_remembered_where_commands_may_be_missing():
    """There it fails as a command does, and the sandbox tells afterwards."""
    sandbox = FakeSandbox(unscripted="not found", real_tools="never")

    result = json.loads(sandbox.call("terminal", {"command": "cat <(echo a)"}))

    assert result["exit_code"] == 127
    assert result["output"].endswith(": not available on this machine")
    assert sandbox.not_found == ("cat <(echo a)",)
    assert [line.line for line in sandbox.refused] == ["cat <(echo a)"]


def test_refused_line_leaves_nothing_behind(sandbox):
    """Neither files nor used answers nor another directory."""
    sandbox.on("make", answers=["made"])

    refused(sandbox, "cd /tmp && touch a && make && unknown")

    assert (list(sandbox.files), sandbox.cwd, terminal(sandbox, "make")["output"]) == ([], "/workspace", "made")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("pytest", "pytest: command not found"),
        ("echo x > a; pytest -q", "echo x > a; pytest -q: not available on this machine"),
    ],
)
def test_unscripted_command_may_be_not_found(command, said):
    """As bash says it; nothing else of its line has an effect."""
    sandbox = FakeSandbox(unscripted="not found", real_tools="never")

    result = terminal(sandbox, command)

    assert result == {"output": f"/usr/bin/bash: line 3: {said}", "exit_code": 127, "error": None}
    assert (list(sandbox.files), sandbox.cwd) == ([], "/workspace")
    sandbox.verify()


def test_what_was_not_found_is_remembered():
    """Lines as they were written, and tools; those of rollouts, too."""
    sandbox = FakeSandbox(unscripted="not found", real_tools="never")
    terminal(sandbox, "cd /tmp && pytest -q | tail")
    sandbox.sandbox_of("one").call("vision_analyze", {})

    assert sandbox.not_found == ("cd /tmp && pytest -q | tail", "vision_analyze")


def test_unscripted_tool_is_refused(sandbox):
    """With what was scripted, and what to write."""
    sandbox.on_tool("memory", {}, optional=True)

    with pytest.raises(UnexpectedToolCall) as caught:
        sandbox.call("vision_analyze", {"image": "a.png"})

    assert str(caught.value) == (
        "the sandbox was asked for the tool `vision_analyze`, which is not scripted.\n"
        '  arguments {"image": "a.png"}\n'
        "  scripted  memory\n"
        "  fix       sandbox.on_tool('vision_analyze', {...}), with a result in hermes' format"
    )


def test_unscripted_tool_may_be_unknown():
    """As hermes' registry says it."""
    assert FakeSandbox(unscripted="not found").call("vision_analyze") == '{"error": "Unknown tool: vision_analyze"}'


def test_calls_are_remembered_with_their_results(sandbox):
    """In order, refused ones with their error."""
    sandbox.call("todo", {})
    text = refused(sandbox, "pytest")

    assert sandbox.calls[0] == AnsweredCall(
        name="todo",
        arguments={},
        result='{"todos": [], "summary": {"total": 0, "pending": 0, "in_progress": 0, "completed": 0, "cancelled": 0}}',
    )
    last = sandbox.calls[1]
    assert (last.name, last.arguments, str(last.result)) == ("terminal", {"command": "pytest"}, text)


def test_files_know_which_tool_wrote_them(sandbox):
    """And what the test itself put there."""
    sandbox.files["own.txt"] = "1"
    sandbox.call("write_file", {"path": "tool.txt", "content": "2"})
    terminal(sandbox, "echo 3 > shell.txt")
    sandbox.files["later.txt"] = "4"

    writers = {path.rpartition("/")[2]: sandbox.files.written_by(path) for path in sandbox.files}

    assert writers == {"own.txt": "environment", "tool.txt": "write_file", "shell.txt": "terminal", "later.txt": "environment"}


def test_rollouts_have_machines_of_their_own():
    """Files, directory, memory of reads, tasks and answers: nothing that one does reaches another or the origin."""
    sandbox = FakeSandbox({"a.txt": "start"}).on("pytest -q", answers=["1 failed", "1 passed"])
    terminal(sandbox, "pytest -q")
    one, two = sandbox.sandbox_of("one"), sandbox.sandbox_of("two")

    terminal(one, "mkdir sub && cd sub && echo changed > ../a.txt")
    one.call("todo", {"todos": [{"id": "1", "content": "x", "status": "pending"}]})
    one.call("read_file", {"path": "/workspace/a.txt"})

    assert [machine.files["/workspace/a.txt"] for machine in (sandbox, one, two)] == ["start", "changed\n", "start"]
    assert [machine.cwd for machine in (sandbox, one, two)] == ["/workspace", "/workspace/sub", "/workspace"]
    assert [terminal(machine, "pytest -q")["output"] for machine in (one, two, sandbox)] == ["1 passed"] * 3
    assert json.loads(two.call("todo", {}))["todos"] == []
    assert json.loads(two.call("read_file", {"path": "/workspace/a.txt"}))["content"] == "1|start"


def test_rollout_is_the_same_machine_each_time(sandbox):
    """By its task_id, and in the list of rollouts."""
    one = sandbox.sandbox_of("one")
    sandbox.sandbox_of("two")

    assert sandbox.sandbox_of("one") is one
    assert list(sandbox.rollouts.items()) == [("one", one), ("two", sandbox.sandbox_of("two"))]


def test_rollout_begins_with_what_is_there_when_it_is_first_asked_for(sandbox):
    """Later files are the origin's alone; later answers are for all."""
    one = sandbox.sandbox_of("one")

    sandbox.files["late.txt"] = ""
    sandbox.on("pytest -q", output="1 passed")

    assert "late.txt" not in one.files
    assert terminal(one, "pytest -q")["output"] == "1 passed"


def test_rollout_can_be_given_answers_of_its_own(sandbox):
    """They come first, and are for it alone."""
    sandbox.on("pytest -q", output="1 passed")
    sandbox.sandbox_of("bad").on("pytest -q", output="1 failed", exit_code=1)

    outputs = [terminal(sandbox.sandbox_of(task_id), "pytest -q")["output"] for task_id in ("good", "bad")]

    assert outputs == ["1 passed", "1 failed"]


def test_machines_are_made_once_when_many_threads_ask():
    """Sixteen threads, one rollout: all have the same machine."""
    sandbox = FakeSandbox({f"{number}.txt": "x" for number in range(200)})
    barrier = threading.Barrier(16)

    def fetch(_number):
        barrier.wait(10)
        return sandbox.sandbox_of("one")

    with ThreadPoolExecutor(16) as pool:
        machines = list(pool.map(fetch, range(16)))

    assert {id(machine) for machine in machines} == {id(sandbox.rollouts["one"])}


def test_calls_from_many_threads_do_not_lose_anything(machine):
    """Appends to one file, and the answers of one sequence."""
    machine.on("next", answers=[str(number) for number in range(64)])

    with ThreadPoolExecutor(16) as pool:
        outputs = list(pool.map(lambda number: terminal(machine, f"next; echo {number} >> log")["output"], range(64)))

    assert sorted(outputs, key=int) == [str(number) for number in range(64)]
    assert len(machine.files["log"].splitlines()) == 64


def test_alias_means_the_first_directory(machine):
    """In paths of tools, in command lines and in working directories; names that only begin alike do not."""
    machine.files["a.txt"] = "one"
    rollout = machine.sandbox_of("one")
    rollout.alias("/tmp/hermes-1/")

    assert terminal(rollout, "cd /tmp/hermes-1 && cat /tmp/hermes-1/a.txt; echo /tmp/hermes-12")["output"] == (
        "one/tmp/hermes-12"
    )
    assert json.loads(rollout.call("read_file", {"path": "/tmp/hermes-1/a.txt"}))["content"] == "1|one"
    assert json.loads(rollout.call("terminal", {"command": "pwd", "workdir": "/tmp/hermes-1"}))["output"] == "/workspace"
    assert rollout.read_bytes("/tmp/hermes-1/a.txt") == b"one"


@pytest.mark.parametrize("prefix", ["relative", "/", "//"])
def test_alias_is_an_absolute_directory(sandbox, prefix):
    """The root would be everything."""
    with pytest.raises(UsageError) as caught:
        sandbox.alias(prefix)

    assert str(caught.value) == (
        "an alias must be an absolute directory other than the root.\n"
        f"  seen      {prefix!r}\n"
        "  fix       sandbox.alias('/tmp/rollout-7')"
    )


def test_what_unscripted_may_be_is_told():
    """A misspelt word is no silent default."""
    with pytest.raises(UsageError) as caught:
        FakeSandbox(unscripted="ignore")

    assert str(caught.value) == (
        "FakeSandbox has no such treatment of unscripted commands.\n"
        "  expected  'refuse' or 'not found'\n"
        "  seen      'ignore'\n"
        "  fix       FakeSandbox(unscripted='not found')"
    )


def test_release_ends_background_sessions(sandbox):
    """Files and journal stay."""
    sandbox.on("serve", output="listening", timed_out=True)
    terminal(sandbox, "echo hi > a.txt")
    sandbox.call("terminal", {"command": "serve", "background": True})

    sandbox.release()

    (session,) = json.loads(sandbox.call("process", {"action": "list"}))["processes"]
    assert (session["status"], session["exit_code"], sandbox.files["a.txt"]) == ("exited", -15, "hi\n")


def test_verify_raises_again_what_a_call_raised(sandbox):
    """Whoever swallowed it at the call."""
    text = refused(sandbox, "pytest -q")

    with pytest.raises(UnexpectedToolCall) as caught:
        sandbox.verify()

    assert str(caught.value) == text


def test_verify_tells_all_problems_of_all_rollouts_in_one_message(sandbox):
    """Equal ones once, with their number, and what was left over not at all: it follows from them."""
    sandbox.on("make").on("npm test", answers=["a", "b", "c"])
    for number in range(8):
        refused(sandbox.sandbox_of(f"rollout {number}"), "pytest -q")
    terminal(sandbox.sandbox_of("rollout 0"), "npm test")
    for _ in range(2):
        terminal(sandbox.sandbox_of("rollout 1"), "npm test")

    with pytest.raises(UnexpectedToolCall) as caught:
        sandbox.verify()

    assert str(caught.value) == (
        "the sandbox was asked to run a line that is neither scripted nor a simple command that it answers in memory.\n"
        "  line      pytest -q\n"
        "  scripted  npm test, make\n"
        "  real bash is switched off: real_tools='never'\n"
        f"  fix       script the whole line: sandbox.on('pytest -q', output='...'), or {WAY_OUT}\n"
        "  repeated  8 times"
    )


def test_answer_that_nobody_asked_for_is_left_over(sandbox):
    """A test that scripts what never happens tests something else."""
    sandbox.on_tool("memory", {"n": 1}, times=2)
    sandbox.call("memory")

    with pytest.raises(LeftoverAnswers) as caught:
        sandbox.verify()

    assert str(caught.value) == (
        "on_tool('memory') has 2 answers, but at most 1 was used.\n"
        "  unused    2. result={'n': 1}\n"
        "  fix       remove it, correct its matcher, add optional=True, or mark the test hermes_allow_leftovers"
    )


def test_leftovers_can_be_allowed():
    """One by one, or all of them."""
    FakeSandbox().on("make", optional=True).on_tool("memory", {}, optional=True).verify()
    FakeSandbox(allow_leftovers=True).on("make").verify()


def test_answer_of_a_rollout_alone_can_be_left_over(sandbox):
    """Its script belongs to the test, too."""
    sandbox.sandbox_of("one").on("make")

    with pytest.raises(LeftoverAnswers):
        sandbox.verify()


def test_answer_asked_for_in_any_rollout_is_not_left_over(sandbox):
    """The origin itself runs nothing in a rollout test."""
    sandbox.on("make")

    terminal(sandbox.sandbox_of("one"), "make")

    sandbox.verify()


def test_nothing_went_wrong(sandbox):
    """verify is silent, and there are no problems."""
    terminal(sandbox, "echo fine")

    sandbox.verify()

    assert (sandbox.problems, sandbox.not_found) == ((), ())
