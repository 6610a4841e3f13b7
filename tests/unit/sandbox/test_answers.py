"""What a script matches, in which order it answers, and the faults that it makes on purpose."""

from __future__ import annotations

import json
import re
import time

import pytest

from pytest_hermes_env.errors import NotAToolResult, UnexpectedToolCall, UsageError
from pytest_hermes_env.sandbox.answers import Answer, CommandCall, Outcome
from pytest_hermes_env.sandbox.fake import FakeSandbox


def said(sandbox, command="pytest -q", **arguments):
    return json.loads(sandbox.call("terminal", {"command": command, **arguments}))


def plain(output, exit_code=0):
    return {"output": output, "exit_code": exit_code, "error": None}


@pytest.mark.parametrize(
    "matcher",
    [
        "pytest -q",
        "  pytest   -q ",
        "pytest '-q'",
        re.compile(r"^pytest"),
        re.compile("-q$"),
        lambda text: text.startswith("pytest"),
    ],
)
def test_command_is_matched_by_text_pattern_or_function(sandbox, matcher):
    """Text is compared as words, a pattern is searched, a function decides."""
    sandbox.on(matcher, output="1 passed")

    assert said(sandbox) == plain("1 passed")


@pytest.mark.parametrize("matcher", ["pytest", "pytest -q tests", re.compile("^-q"), lambda text: False])
def test_other_commands_are_not_matched(sandbox, matcher):
    """Exact text is the whole command."""
    sandbox.on(matcher, output="1 passed")

    with pytest.raises(UnexpectedToolCall):
        said(sandbox)


def test_scripted_command_works_inside_a_composed_line(machine):
    """Real bash runs the line around it: directories, pipes, lists."""
    machine.on("pytest -q", output="line 1\nline 2\n1 passed", exit_code=1)
    machine.files["/workspace/app/a.py"] = ""

    result = said(machine, "cd app && pytest -q 2>&1 | tail -n 1; pwd")

    assert result == plain("1 passed\n/workspace/app")


def test_exact_text_may_be_a_whole_line(sandbox):
    """A line that the shell would take apart is answered as one when that is what was scripted."""
    sandbox.on("make && ./run --fast", output="fast")

    assert said(sandbox, "make && ./run --fast") == plain("fast")


def test_pattern_answers_a_whole_line_if_it_matches_none_of_its_commands(sandbox):
    """Otherwise real bash runs what the pattern does not match."""
    sandbox.on(re.compile("make .*&& ./run"), output="ran")

    assert said(sandbox, "make all && ./run") == plain("ran")


def test_scripted_commands_stand_wherever_a_function_may(machine):
    """In lists, pipes, loops and conditions; both of their streams are redirected as those of a program are."""
    machine.on("tool", output=Outcome(output="it's\nout\n", errors="err\n", exit_code=3))

    outputs = [
        said(machine, line)["output"]
        for line in (
            "X=1 tool 2>&1 | wc -l",
            "tool > x 2> y || echo $?; cat y",
            "for i in 1 2; do tool 2> z; done | grep -c out; if tool > z; then :; else { echo no; }; fi",
        )
    ]

    assert outputs == ["3", "3\nerr", "2\nerr\nno"]
    assert machine.files["x"] == "it's\nout\n"


def test_answer_of_a_command_that_did_not_run_stays_unused(machine):
    """A sequence answers what is run."""
    machine.on("build", exit_code=1).on("check", answers=["1 failed", "1 passed"])

    outputs = [said(machine, line)["output"] for line in ("build && check", "check; check")]

    assert outputs == ["", "1 failed\n1 passed"]


@pytest.mark.parametrize("line", ["echo $(pytest -q)", "pytest -q <<< x", "pytest -q > a b"])
def test_line_that_is_not_taken_apart_is_refused_if_it_names_a_scripted_command(machine, line):
    """bash could not ask for the answer, and the machine may have another program of that name."""
    machine.on("pytest -q", optional=True).on("pytest -q b", optional=True)

    with pytest.raises(UnexpectedToolCall, match="real bash cannot ask the script for `pytest -q"):
        said(machine, line)


def test_last_answer_said_is_given_first_as_long_as_it_has_one_left(sandbox):
    """A limited answer on top of an endless one is an exception to it."""
    sandbox.on("pytest -q", output="1 passed")
    sandbox.on("pytest -q", output="1 failed", exit_code=1, times=2)

    results = [said(sandbox)["output"] for _ in range(3)]

    assert results == ["1 failed", "1 failed", "1 passed"]


def test_pattern_said_later_is_asked_before_an_exact_text(machine):
    """How an entry matches makes no difference."""
    machine.on("pytest -q", output="1 passed", optional=True)
    machine.on(re.compile("^pytest"), output="1 failed", times=2)

    outputs = [said(machine, command)["output"] for command in ("pytest -q", "cd . && pytest -q", "pytest -q")]

    assert outputs == ["1 failed", "1 failed", "1 passed"]


def test_line_that_is_scripted_whole_is_not_taken_for_a_command_in_it(sandbox):
    """A pattern for one of its commands is for that command."""
    sandbox.on("make && make install", output="whole").on(re.compile("^make"), output="part", optional=True)

    assert said(sandbox, "make && make install") == plain("whole")


def test_endless_answer_replaces_an_earlier_one_for_the_same_command(sandbox):
    """Saying it again corrects it: the earlier one is not left over."""
    sandbox.on("pytest -q", output="old").on("pytest -q", output="new")

    assert said(sandbox) == plain("new")
    sandbox.verify()


def test_sequence_is_answered_in_order(sandbox):
    """Each answer once; faults, functions and whole results may be among them."""
    answers = [
        "1 failed",
        Outcome(output="2 failed\n", exit_code=2),
        Answer(exit_code=3),
        {"error": "as it is"},
        lambda call: f"{call.text} in {call.sandbox.cwd}",
    ]
    sandbox.on("pytest -q", answers=answers)

    results = [said(sandbox) for _ in answers]

    assert results == [
        plain("1 failed"),
        plain("2 failed", 2),
        plain("", 3),
        {"error": "as it is"},
        plain("pytest -q in /workspace"),
    ]


def test_sequence_that_is_used_up_is_an_error(sandbox):
    """Loudly, with the whole sequence and what to do."""
    sandbox.on("pytest -q", answers=["1 failed", Answer(output="2 failed", exit_code=1)])
    said(sandbox)
    said(sandbox)

    with pytest.raises(UnexpectedToolCall) as caught:
        said(sandbox)

    assert str(caught.value) == (
        "the sandbox was asked for pytest -q 3 times, but its script has 2 answers.\n"
        "  script    on('pytest -q')\n"
        "  answers   1. '1 failed'   2. '2 failed' exit_code=1\n"
        "  fix       add a third answer, or leave out `times` to repeat one answer"
    )


def test_function_gets_the_call_and_gives_text_an_outcome_or_a_whole_result(machine):
    """It sees the words, the tool's arguments and the machine."""
    seen: list[CommandCall] = []

    def answer(call):
        seen.append(call)
        return {"output": call.sandbox.files["/workspace/a.txt"], "exit_code": 7}

    machine.files["a.txt"] = "content"
    machine.on(re.compile("^tool "), output=answer)

    result = said(machine, "tool 'a b' > out.txt", timeout=5)

    assert result == {"output": "content", "exit_code": 7}
    assert seen == [
        CommandCall(
            text=seen[0].text,
            words=("tool", "a b"),
            arguments={"command": "tool 'a b' > out.txt", "timeout": 5},
            sandbox=machine,
        )
    ]


def test_result_is_the_whole_raw_result(machine):
    """Whatever else the line does."""
    machine.on("rm -rf /", result={"output": "", "exit_code": -1, "error": "denied", "status": "blocked"})

    result = said(machine, "echo first; rm -rf /")

    assert result == {"output": "", "exit_code": -1, "error": "denied", "status": "blocked"}


@pytest.mark.parametrize(("timeout", "seconds"), [({}, 180), ({"timeout": 5}, 5)])
def test_timeout_is_hermes_own(sandbox, timeout, seconds, monkeypatch):
    """What was said until then, hermes' marker, and exit code 124."""
    monkeypatch.delenv("TERMINAL_TIMEOUT", raising=False)
    sandbox.on("pytest -q", output="collecting", timed_out=True)

    result = said(sandbox, **timeout)

    assert result == plain(f"collecting\n\n[Command timed out after {seconds}s]", 124)


def test_timeout_without_output(sandbox):
    """Only the marker."""
    sandbox.on("pytest -q", timed_out=True)

    assert said(sandbox, timeout=1) == plain("[Command timed out after 1s]", 124)


def test_broken_json_is_a_result_cut_off(sandbox):
    """The first half of the text that would have come."""
    sandbox.on("pytest -q", output="1 passed", broken_json=True)
    whole = json.dumps(plain("1 passed"))

    result = sandbox.call("terminal", {"command": "pytest -q"})

    assert result == whole[: len(whole) // 2]


@pytest.mark.parametrize("fault", [OSError("disk on fire"), ConnectionError])
def test_scripted_exception_is_raised_by_the_call(machine, fault):
    """Also one that the shell itself would take for a command's failure; it is no problem of the test."""
    machine.on("pytest -q", raises=fault)
    kind = fault if isinstance(fault, type) else type(fault)

    with pytest.raises(kind):
        said(machine, "pytest -q || true")

    assert machine.calls[0].result.__class__ is kind
    machine.verify()


def test_slow_answer_takes_its_time(sandbox):
    """At least the seconds that were asked for."""
    sandbox.on("pytest -q", output="1 passed", slow_s=0.02)
    started = time.monotonic()

    said(sandbox)

    assert time.monotonic() - started >= 0.02


def test_command_leaves_files_behind(machine):
    """Relative paths lead from the directory in which the line begins."""
    machine.files["app/a.py"] = ""
    machine.on("make", output="done", writes={"out/app.bin": b"\x00\x01", "/tmp/log": "made"})

    said(machine, "cd app && make")

    assert machine.files.read("/workspace/out/app.bin") == b"\x00\x01"
    assert machine.files["/tmp/log"] == "made"
    assert machine.files.written_by("/tmp/log") == "terminal"


@pytest.mark.parametrize("given", [None, 5, ["a"], b"bytes"])
def test_function_that_gives_no_result_is_an_error(sandbox, given):
    """Named, with what it gave; and once more at the end."""

    def tell(call):
        return given

    sandbox.on("pytest -q", output=tell)

    with pytest.raises(NotAToolResult) as caught:
        said(sandbox)

    name = "test_function_that_gives_no_result_is_an_error.<locals>.tell"
    assert str(caught.value) == (
        f"the function {name}, which answers a command, returned {type(given).__name__}, which is not a tool result.\n"
        "  expected  text, an Outcome, or a dict as the complete tool result\n"
        f"  seen      {given!r}\n"
        "  fix       fix the return value of the handler"
    )
    with pytest.raises(NotAToolResult):
        sandbox.verify()


def test_function_that_raises_is_an_error(sandbox):
    """A broken handler never looks like a scripted fault."""

    def broken(call):
        return {}["key"]

    sandbox.on("pytest -q", output=broken)

    with pytest.raises(NotAToolResult) as caught:
        said(sandbox)

    assert str(caught.value) == (
        "the function test_function_that_raises_is_an_error.<locals>.broken, which answers a command, raised KeyError.\n"
        "  asked     pytest -q\n"
        "  seen      'key'\n"
        "  fix       fix the handler; to answer with an exception, use raises=..."
    )


@pytest.mark.parametrize("name", ["terminal", "memory"])
def test_handler_may_call_the_sandbox_and_its_refusal_comes_through(sandbox, name):
    """What it says is about that call."""

    def handler(call):
        return sandbox.call("vision_analyze", {})

    sandbox.on("pytest -q", output=handler, optional=True).on_tool("memory", handler, optional=True)

    with pytest.raises(UnexpectedToolCall, match="the sandbox was asked for the tool `vision_analyze`"):
        sandbox.call(name, {"command": "pytest -q"})


def test_predicate_that_raises_is_an_error(sandbox):
    """A function that cannot tell which commands it is for."""

    def broken(text):
        return text[99]

    sandbox.on(broken, output="never", optional=True)

    with pytest.raises(UsageError) as caught:
        said(sandbox)

    assert str(caught.value) == (
        "the function test_predicate_that_raises_is_an_error.<locals>.broken, which matches commands, "
        "raised IndexError.\n"
        "  command   pytest -q\n"
        "  seen      string index out of range\n"
        "  fix       return True or False for any text"
    )


IMPOSSIBLE = [
    (
        lambda sandbox: sandbox.on(5),
        "a command must be matched by its text, a compiled text pattern or a function of its text.\n"
        "  seen      5\n"
        "  fix       sandbox.on('pytest -q', ...), sandbox.on(re.compile('^pytest'), ...) or sandbox.on(lambda text: ..., ...)",
    ),
    (
        lambda sandbox: sandbox.on(" "),
        "a command must be matched by its text, a compiled text pattern or a function of its text.\n"
        "  seen      ' '\n"
        "  fix       sandbox.on('pytest -q', ...), sandbox.on(re.compile('^pytest'), ...) or sandbox.on(lambda text: ..., ...)",
    ),
    (
        lambda sandbox: sandbox.on("ls", output=["a"]),
        "the output of an answer must be text, an Outcome or a function.\n"
        "  seen      ['a']\n"
        "  fix       use result={...} for a complete tool result, answers=[...] for several answers",
    ),
    (
        lambda sandbox: sandbox.on("ls", "a", result={"output": "b"}),
        "an answer has both `result`, the complete tool result, and parts of a result.\n"
        "  seen      result={'output': 'b'} with 'a'\n"
        "  fix       give either result={...} or output, exit_code and timed_out",
    ),
    (
        lambda sandbox: sandbox.on("ls", times=0),
        "`times`, how often an answer is given, must be an integer from 1.\n"
        "  seen      times=0\n"
        "  fix       leave it out to repeat the answer; use optional=True if the answer may stay unused",
    ),
    (
        lambda sandbox: sandbox.on("ls", answers=[]),
        "`answers` must be a list with at least one answer.\n"
        "  seen      []\n"
        "  fix       answers=['1 failed', '1 passed'], or one answer without `answers` to repeat it",
    ),
    (
        lambda sandbox: sandbox.on("ls", "x", answers=["a"]),
        "`answers` is the complete sequence, each given once; it excludes output, faults and times.\n"
        "  seen      answers=['a'] with 'x'\n"
        "  fix       put them into the sequence: answers=['1 failed', Answer(timed_out=True), '1 passed']",
    ),
    (
        lambda sandbox: sandbox.on("ls", answers=["a"], times=2),
        "`answers` is the complete sequence, each given once; it excludes output, faults and times.\n"
        "  seen      answers=['a'] with times=2\n"
        "  fix       put them into the sequence: answers=['1 failed', Answer(timed_out=True), '1 passed']",
    ),
    (
        lambda sandbox: sandbox.on_tool("", {}),
        "on_tool requires the name of a tool.\n"
        "  seen      ''\n"
        "  fix       sandbox.on_tool('vision_analyze', {'success': True, 'analysis': '...'})",
    ),
    (
        lambda sandbox: sandbox.on_tool("memory", 5),
        "the output of an answer must be text, an Outcome or a function.\n"
        "  seen      5\n"
        "  fix       use result={...} for a complete tool result, answers=[...] for several answers",
    ),
    (
        lambda sandbox: sandbox.on_tool("memory", lambda: "no arguments"),
        "a function that answers the tool `memory` must take the arguments, and optionally the sandbox.\n"
        "  seen      <lambda>()\n"
        "  fix       def handler(arguments): ... or def handler(arguments, sandbox): ...",
    ),
]


@pytest.mark.parametrize(("say", "text"), IMPOSSIBLE)
def test_what_cannot_be_meant_is_refused_when_it_is_said(sandbox, say, text):
    """Not when a rollout comes to it."""
    with pytest.raises(UsageError) as caught:
        say(sandbox)

    assert str(caught.value) == text


TOOL_ANSWERS = [
    ({"success": True, "analysis": "ä cat"}, '{"success": true, "analysis": "ä cat"}'),
    ("plain text", "plain text"),
    (lambda arguments: {"got": arguments}, '{"got": {"image": "a.png"}}'),
    (lambda arguments, sandbox: sandbox.files["a.txt"], "of this machine"),
    (Answer(output="slowly"), "slowly"),
]


@pytest.mark.parametrize(("answer", "text"), TOOL_ANSWERS)
def test_any_tool_is_answered_by_a_dict_text_or_a_function(answer, text):
    """A dict becomes JSON as hermes writes it; a function may take the machine, too."""
    sandbox = FakeSandbox({"a.txt": "of this machine"}).on_tool("vision_analyze", answer)

    assert sandbox.call("vision_analyze", {"image": "a.png"}) == text


def test_tool_is_answered_by_a_sequence(sandbox):
    """Each answer once, then it is used up."""
    sandbox.on_tool("memory", [{"n": 1}, "two", ValueError("three")])

    assert [sandbox.call("memory"), sandbox.call("memory")] == ['{"n": 1}', "two"]
    with pytest.raises(ValueError, match="three"):
        sandbox.call("memory")
    with pytest.raises(UnexpectedToolCall) as caught:
        sandbox.call("memory")
    assert str(caught.value) == (
        "the sandbox was asked for the tool `memory` 4 times, but its script has 3 answers.\n"
        "  script    on_tool('memory')\n"
        "  answers   1. result={'n': 1}   2. 'two'   3. raises=ValueError('three')\n"
        "  fix       add a fourth answer, or leave out `times` to repeat one answer"
    )


def test_script_answers_before_the_machines_own_tool(sandbox):
    """Every tool can be answered by hand, terminal included."""
    sandbox.on_tool("read_file", {"content": "scripted"}).on_tool("terminal", "no JSON")

    assert [sandbox.call("read_file", {"path": "x"}), sandbox.call("terminal", {})] == ['{"content": "scripted"}', "no JSON"]


@pytest.mark.parametrize("answer", [{"success": True}, '{"success": true}', lambda arguments: {"success": True}])
def test_tool_result_can_be_cut_off(sandbox, answer):
    """As for commands."""
    sandbox.on_tool("memory", answer, broken_json=True)

    assert sandbox.call("memory") == '{"succes'


def test_tool_can_raise_and_be_slow(sandbox):
    """As commands can."""
    sandbox.on_tool("memory", raises=TimeoutError, slow_s=0.02)
    started = time.monotonic()

    with pytest.raises(TimeoutError):
        sandbox.call("memory")

    assert time.monotonic() - started >= 0.02


NO_RESULTS = [
    (None, "returned NoneType, which is not a tool result.\n  expected  a JSON-serializable dict, or text\n  seen      None"),
    (7, "returned int, which is not a tool result.\n  expected  a JSON-serializable dict, or text\n  seen      7"),
    ([1], "returned list, which is not a tool result.\n  expected  a JSON-serializable dict, or text\n  seen      [1]"),
    (
        {"a": {1}},
        "returned dict that JSON cannot represent (Object of type set is not JSON serializable), which is not a tool result.\n"
        "  expected  a JSON-serializable dict, or text\n  seen      {'a': {1}}",
    ),
    (
        {"_multimodal": True, "content": []},
        "returned dict with images, which is not a tool result.\n"
        "  expected  text; a sandbox returns no images\n  seen      {'_multimodal': True, 'content': []}",
    ),
]


@pytest.mark.parametrize(("given", "text"), NO_RESULTS)
def test_handler_that_gives_no_tool_result_is_an_error(sandbox, given, text):
    """hermes' registry would turn it into an error for the model; here it is the test's."""

    def handler(arguments):
        return given

    sandbox.on_tool("memory", handler)

    with pytest.raises(NotAToolResult) as caught:
        sandbox.call("memory")

    name = "test_handler_that_gives_no_tool_result_is_an_error.<locals>.handler"
    assert str(caught.value) == (
        f"the function {name}, which answers the tool `memory`, {text}\n  fix       fix the return value of the handler"
    )


def test_handler_that_raises_is_an_error(sandbox):
    """With what it was asked."""

    def handler(arguments):
        return arguments["missing"]

    sandbox.on_tool("memory", handler)

    with pytest.raises(NotAToolResult) as caught:
        sandbox.call("memory", {"action": "add"})

    assert str(caught.value) == (
        "the function test_handler_that_raises_is_an_error.<locals>.handler, which answers the tool `memory`, raised KeyError.\n"
        '  asked     {"action": "add"}\n'
        "  seen      'missing'\n"
        "  fix       fix the handler; to answer with an exception, use raises=..."
    )
