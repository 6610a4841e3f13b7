"""``terminal`` and ``process``: hermes' shapes around what a command says."""

from __future__ import annotations

import json

import pytest

from pytest_hermes_env.sandbox.fake import FakeSandbox

REFUSALS = [
    (
        {"command": 5},
        {"output": "", "exit_code": -1, "error": "Invalid command: expected string, got int", "status": "error"},
    ),
    (
        {},
        {"output": "", "exit_code": -1, "error": "Invalid command: expected string, got NoneType", "status": "error"},
    ),
    (
        {"command": "echo x", "timeout": 5000},
        {
            "error": "Foreground timeout 5000s exceeds the maximum of 600s. Use background=true with notify_on_complete=true for "
            "long-running commands."
        },
    ),
    (
        {"command": "sleep 1 &"},
        {
            "output": "",
            "exit_code": -1,
            "error": "Foreground command uses '&' backgrounding. Use terminal(background=true) for long-lived processes, then run "
            "health checks and tests in follow-up terminal calls.",
            "status": "error",
        },
    ),
    (
        {"command": "nohup python app.py"},
        {
            "output": "",
            "exit_code": -1,
            "error": "Foreground command uses shell-level background wrappers (nohup/disown/setsid). Use terminal(background=true) "
            "so Hermes can track the process, then run readiness checks and tests in separate commands.",
            "status": "error",
        },
    ),
    (
        {"command": "npm run dev"},
        {
            "output": "",
            "exit_code": -1,
            "error": "This foreground command appears to start a long-lived server/watch process. Run it with background=true, "
            "verify readiness (health endpoint/log signal), then execute tests in a separate command.",
            "status": "error",
        },
    ),
    (
        {"command": "echo hi", "workdir": "/tmp;ls"},
        {
            "output": "",
            "exit_code": -1,
            "error": "Blocked: workdir contains disallowed character ';'. Use a simple filesystem path without shell metacharacters.",
            "status": "blocked",
        },
    ),
]


@pytest.mark.parametrize(("arguments", "result"), REFUSALS)
def test_call_that_hermes_refuses_is_refused(sandbox, ask, arguments, result):
    """With hermes' words, and before any script is asked."""
    sandbox.on(lambda text: True, output="never", optional=True)

    assert ask(sandbox, "terminal", **arguments) == result


def test_limit_of_the_foreground_can_be_set(sandbox, ask, monkeypatch):
    """By hermes' own variable."""
    monkeypatch.setenv("TERMINAL_MAX_FOREGROUND_TIMEOUT", "5000")

    assert ask(sandbox, "terminal", command="echo x", timeout=5000)["output"] == "x"


@pytest.mark.parametrize(
    ("command", "exit_code", "meaning"),
    [
        ("rg x", 1, "No matches found (not an error)"),
        ("cat a | /usr/bin/rg x", 1, "No matches found (not an error)"),
        ("curl -s https://a.example", 28, "Operation timed out"),
        ("A=1 git diff", 1, "Non-zero exit (often normal — e.g. 'git diff' returns 1 when files differ)"),
    ],
)
def test_exit_code_that_is_no_error_is_explained(sandbox, ask, command, exit_code, meaning):
    """As hermes does, by the last command of the line."""
    sandbox.on(command, output="out", exit_code=exit_code)

    assert ask(sandbox, "terminal", command=command) == {
        "output": "out",
        "exit_code": exit_code,
        "error": None,
        "exit_code_meaning": meaning,
    }


def test_exit_code_of_an_error_is_not_explained(sandbox, ask):
    """Only the codes that hermes knows."""
    sandbox.on("pytest -q", exit_code=1)

    assert ask(sandbox, "terminal", command="pytest -q") == {"output": "", "exit_code": 1, "error": None}


def test_output_is_stripped_of_space_and_escapes(sandbox, ask):
    """Colours never reach the model."""
    sandbox.on("ls --color", output="\n  \x1b[31mred\x1b[0m \x1b]0;title\x07\r\n  x  \n\n")

    assert ask(sandbox, "terminal", command="ls --color")["output"] == "red \r\n  x"


def test_long_output_is_cut_in_the_middle(sandbox, ask):
    """Two fifths of the beginning, three of the end, and how much is missing."""
    sandbox.on("seq", output="".join(f"{number}\n" for number in range(1, 20001)))

    output = ask(sandbox, "terminal", command="seq")["output"]

    assert output.startswith("1\n2\n3\n")
    assert output.endswith("\n19999\n20000")
    assert "\n\n... [OUTPUT TRUNCATED - 58,968 chars omitted out of 108,894 total] ...\n\n" in output
    assert len(output) == 49_999  # the last line end is stripped


def test_output_that_just_fits_is_whole(sandbox, ask):
    """50,000 characters."""
    sandbox.on("fits", output="x" * 49_999).on("not", output="x" * 50_000)

    outputs = [ask(sandbox, "terminal", command=command)["output"] for command in ("fits", "not")]

    assert (outputs[0] == "x" * 49_999, "[OUTPUT TRUNCATED - " in outputs[1]) == (True, True)


def test_working_directory_of_a_call_stays(ask):
    """As in hermes, where the session goes there."""
    sandbox = FakeSandbox({"app/a.txt": "one"})

    result = ask(sandbox, "terminal", command="cat a.txt", workdir="app")

    assert result["output"] == "one"
    assert ask(sandbox, "terminal", command="pwd")["output"] == "/workspace/app"


@pytest.mark.parametrize(
    ("workdir", "reason"), [("/nonexistent", "No such file or directory"), ("/workspace/a.txt", "Not a directory")]
)
def test_working_directory_that_is_none(ask, workdir, reason):
    """Nothing runs, and the session stays where it was."""
    sandbox = FakeSandbox({"a.txt": ""})

    result = ask(sandbox, "terminal", command="touch b.txt", workdir=workdir)

    assert result == {"output": f"/usr/bin/bash: line 2: cd: {workdir}: {reason}", "exit_code": 126, "error": None}
    assert (ask(sandbox, "terminal", command="pwd")["output"], "b.txt" in sandbox.files) == ("/workspace", False)


def test_command_that_ran_into_the_limit_leaves_the_session_where_it_was(machine, ask):
    """As a killed shell does."""
    machine.on("pytest", timed_out=True)

    ask(machine, "terminal", command="cd /tmp && pytest")

    assert machine.cwd == "/workspace"


def test_empty_command_says_nothing(sandbox, ask):
    """And succeeds."""
    assert ask(sandbox, "terminal", command="") == {"output": "", "exit_code": 0, "error": None}


def start(sandbox, command, **arguments):
    return json.loads(sandbox.call("terminal", {"command": command, "background": True, **arguments}))


def test_background_session_starts(sandbox):
    """With an id, a process number, and hermes' hint where nobody will be told of its end."""
    sandbox.on("make", output="made")

    result = start(sandbox, "make")

    hint = result.pop("hint")
    assert result == {
        "output": "Background process started",
        "session_id": "proc_000000000001",
        "pid": 4001,
        "exit_code": 0,
        "error": None,
    }
    assert hint.startswith(
        "background=true without notify_on_complete=true means this process runs SILENTLY — you will not be told"
    )
    assert hint.endswith("Only ignore this hint for genuine long-lived processes that never exit (servers, watchers, daemons).")


def test_background_session_with_notification(sandbox):
    """Both kinds at once: one is dropped, and the call says so."""
    results = [
        start(sandbox, "true", notify_on_complete=True),
        start(sandbox, "true", watch_patterns=["ready"]),
        start(sandbox, "true", notify_on_complete=True, watch_patterns=["ready"]),
    ]

    common = {"output", "session_id", "pid", "exit_code", "error"}
    assert [{name: value for name, value in result.items() if name not in common} for result in results] == [
        {"notify_on_complete": True},
        {"watch_patterns": ["ready"]},
        {
            "watch_patterns_ignored": "watch_patterns ignored because notify_on_complete=True; these two flags produce duplicate "
            "notifications when combined",
            "notify_on_complete": True,
        },
    ]


def test_background_session_has_a_shell_of_its_own(machine, ask):
    """It begins where the session is, and its cd is its own; its files are everybody's; the script answers in it."""
    machine.on("make", output="made")
    ask(machine, "terminal", command="mkdir app && cd app")

    session = start(machine, "make > a.txt && cd / && pwd")["session_id"]
    ended = ask(machine, "process", action="wait", session_id=session)

    assert (ended["output"], machine.cwd, machine.files["/workspace/app/a.txt"]) == ("/\n", "/workspace/app", "made\n")


def test_foreground_wrappers_are_fine_in_the_background(sandbox):
    """hermes refuses them only in the foreground."""
    sandbox.on("npm run dev", output="ready", timed_out=True)

    assert start(sandbox, "npm run dev")["error"] is None


def test_state_of_an_ended_session(sandbox, ask):
    """poll, log and wait agree."""
    sandbox.on("make", output="one\ntwo", exit_code=2)
    session = start(sandbox, "make", notify_on_complete=True)["session_id"]

    states = {action: ask(sandbox, "process", action=action, session_id=session) for action in ("poll", "log", "wait")}

    end = {"exit_code": 2, "completion_reason": "exited", "termination_source": ""}
    assert states == {
        "poll": {
            "session_id": session,
            "command": "make",
            "status": "exited",
            "pid": 4001,
            "uptime_seconds": 0,
            "output_preview": "one\ntwo\n",
            **end,
        },
        "log": {
            "session_id": session,
            "command": "make",
            "status": "exited",
            "output": "one\ntwo",
            "total_lines": 2,
            "showing": "2 lines",
        },
        "wait": {"status": "exited", "command": "make", **end, "output": "one\ntwo\n"},
    }


def test_list_of_sessions_has_the_running_ones_first(sandbox, ask):
    """With what hermes tells of each."""
    sandbox.on("serve", output="listening on 80", timed_out=True).on("make", output="made")
    start(sandbox, "make", notify_on_complete=True)
    start(sandbox, "serve", watch_patterns=["listening", "x"])

    entries = ask(sandbox, "process", action="list")["processes"]

    times = [entry.pop("started_at") for entry in entries]
    assert all(len(time) == len("2026-01-01T00:00:00") for time in times)
    assert entries == [
        {
            "session_id": "proc_000000000002",
            "command": "serve",
            "cwd": "/workspace",
            "pid": 4002,
            "uptime_seconds": 0,
            "status": "running",
            "output_preview": "listening on 80\n",
            "watch_patterns": ["listening", "x"],
            "watch_hit": True,
        },
        {
            "session_id": "proc_000000000001",
            "command": "make",
            "cwd": "/workspace",
            "pid": 4001,
            "uptime_seconds": 0,
            "status": "exited",
            "output_preview": "made\n",
            "notify_on_complete": True,
            "exit_code": 0,
        },
    ]


def test_running_session_is_waited_for_without_waiting(sandbox, ask, monkeypatch):
    """Time does not pass: the wait is over at once, with hermes' note."""
    monkeypatch.setenv("TERMINAL_TIMEOUT", "60")
    sandbox.on("serve", output="listening", timed_out=True)
    session = start(sandbox, "serve")["session_id"]

    notes = [
        ask(sandbox, "process", action="wait", session_id=session, **limit) for limit in ({}, {"timeout": 5}, {"timeout": 99})
    ]

    common = {"status": "timeout", "command": "serve", "output": "listening\n"}
    assert notes == [
        {**common, "timeout_note": "Waited 60s, process still running"},
        {**common, "timeout_note": "Waited 5s, process still running"},
        {**common, "timeout_note": "Requested wait of 99s was clamped to configured limit of 60s"},
    ]


@pytest.mark.parametrize(
    ("pty", "results"),
    [
        (False, [{"status": "error", "error": "Process stdin not available (non-local backend or stdin closed)"}] * 3),
        (
            True,
            [
                {"status": "ok", "bytes_written": 2},
                {"status": "ok", "bytes_written": 3},
                {"status": "ok", "message": "EOF sent"},
            ],
        ),
    ],
)
def test_input_reaches_a_session_with_a_terminal(sandbox, ask, pty, results):
    """Without one hermes has no way to send it."""
    sandbox.on("python", timed_out=True)
    session = start(sandbox, "python", pty=pty)["session_id"]

    given = [ask(sandbox, "process", action=action, session_id=session, data="hi") for action in ("write", "submit", "close")]

    assert given == results


def test_fault_of_a_background_command(sandbox):
    """Whole results, broken text and exceptions, as in the foreground."""
    sandbox.on("a", result={"error": "no"}).on("b", broken_json=True).on("c", raises=RuntimeError("boom"))

    whole, broken = start(sandbox, "a"), sandbox.call("terminal", {"command": "b", "background": True})

    assert whole == {"error": "no"}
    assert broken.startswith('{"output": "Background process started"')
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken)
    with pytest.raises(RuntimeError, match="boom"):
        start(sandbox, "c")


def test_command_that_is_not_there_ends_its_session(ask):
    """Where commands may be missing."""
    sandbox = FakeSandbox(unscripted="not found", real_tools="never")
    session = start(sandbox, "pytest -q")["session_id"]

    result = ask(sandbox, "process", action="wait", session_id=session)

    assert (result["exit_code"], result["output"]) == (127, "/usr/bin/bash: line 3: pytest: command not found\n")


def test_null_byte_in_a_command_is_hermes_error(sandbox, ask):
    """No shell is started with one."""
    assert ask(sandbox, "terminal", command="echo a\0b") == {
        "output": "",
        "exit_code": -1,
        "error": "Command execution failed: ValueError: embedded null byte",
    }


@pytest.mark.parametrize("pty", [False, True])
def test_end_of_a_session_sends_no_signal_on_the_host(sandbox, ask, monkeypatch, pty):
    """Its process id may be that of any process here."""
    sandbox.on("serve", timed_out=True)
    session = ask(sandbox, "terminal", command="serve", background=True, pty=pty)["session_id"]
    sent = []
    monkeypatch.setattr("os.kill", lambda *signal: sent.append(signal))
    monkeypatch.setattr("os.killpg", lambda *signal: sent.append(signal))

    result = ask(sandbox, "process", action="kill", session_id=session)

    assert (result["status"], sent) == ("killed", [])


def test_argument_of_the_wrong_type_is_an_error_as_hermes_words_it(sandbox, ask):
    """Not an exception in the rollout."""
    session = ask(sandbox, "terminal", command="echo x", background=True)["session_id"]

    result = ask(sandbox, "process", action="log", session_id=session, limit="many")

    assert result["error"].startswith("[TOOL_ERROR] Tool execution failed: TypeError: ")
