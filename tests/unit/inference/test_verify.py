"""What a script does not cover fails where it happens and once more in `verify`, with its whole text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest

from pytest_hermes_env.errors import HermesEnvError, LeftoverTurns, ScriptError, UnexpectedRequest
from pytest_hermes_env.inference import MockServer, Script, call, call_raw, fail, turn

Ask = Callable[..., httpx.Response]

USER = {"role": "user", "content": "hello"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": '{"output": "", "exit_code": 1}'}


def said(text: str) -> dict[str, object]:
    """Return an assistant message."""
    return {"role": "assistant", "content": text}


def raising(_: object) -> str:
    """Fail, as a script function with a mistake does."""
    raise KeyError("path")


def nonsense(_: object) -> object:
    """Return what is no turn."""
    return {"say": "x"}


@dataclass(frozen=True, kw_only=True)
class Uncovered:
    """A script, the conversation it does not cover (each prefix that ends before an answer is asked), and the error."""

    script: object
    messages: object = "hello"
    tools: object = ...
    error: type[HermesEnvError] = UnexpectedRequest
    text: str


UNCOVERED = {
    "beyond the end": Uncovered(
        script=[call("terminal", command="ls"), "done"],
        messages=[USER, CALL, RESULT, CALL, RESULT],
        text="the model was asked for turn 3 of this conversation, but its script has 2 turns.\n"
        "  script    1. call terminal(command='ls')   2. say 'done'\n"
        "  request   last message: result of `terminal`, exit_code 1\n"
        "  fix       add a third turn, or end the conversation with say(...)",
    ),
    "a judge question beyond the end": Uncovered(
        script=[call("terminal", command="ls")],
        messages=[USER, CALL, RESULT, {"role": "user", "content": "grade this"}],
        tools=None,
        text="the model was asked for turn 2 of this conversation, but its script has 1 turn.\n"
        "  script    1. call terminal(command='ls')\n"
        "  request   last message: user 'grade this'\n"
        "  fix       add a second turn; if this is a judge question (it offers no tools), pass judge=...",
    ),
    "an agent asks who only judges": Uncovered(
        script=Script(judge="0.5"),
        text="the model was asked for turn 1 of a conversation with tools, but its script only answers judge questions.\n"
        "  script    judge questions only: say '0.5'\n"
        "  request   last message: user 'hello'\n"
        "  fix       add turns to the script: Script([say('done')], judge=...)",
    ),
    "nothing matches": Uncovered(
        script=[Script(["x"], when="apple"), Script(["y"], when="pear", name="pears")],
        text="no script matches this conversation.\n"
        "  scripts   script 1: first user message contains 'apple'\n"
        "            script 'pears': first user message contains 'pear'\n"
        "  request   first user message 'hello'\n"
        "  fix       add a Script whose `when` matches that message, or one without `when`, which matches any",
    ),
    "unknown tool": Uncovered(
        script=[call("raed_file", path="a")],
        error=ScriptError,
        text="turn 1 of the script calls the tool 'raed_file', which this request does not offer. Did you mean 'read_file'?\n"
        "  offered   read_file, terminal\n"
        "  fix       call an offered tool, or use unoffered(call(...)) if the model should make this mistake",
    ),
    "unknown tool without tools": Uncovered(
        script=[call_raw("terminal", "{")],
        tools=None,
        error=ScriptError,
        text="turn 1 of the script calls the tool 'terminal', which this request does not offer.\n"
        "  offered   no tools\n"
        "  fix       offer the tool in the request; if this is a judge question, "
        "give the script an answer to it: judge=...",
    ),
    "unknown argument": Uncovered(
        script=Script([call("terminal", comand="ls")], name="typo"),
        error=ScriptError,
        text="turn 1 of the script 'typo' calls the tool 'terminal' with the argument 'comand', "
        "which its schema does not have. Did you mean 'command'?\n"
        "  known     command, timeout\n"
        "  fix       use a known argument, or unoffered(call(...)) if the model should make this mistake",
    ),
    "a function raises": Uncovered(
        script=raising,
        error=ScriptError,
        text="the script function raising at turn 1 raised KeyError: 'path'.\n"
        f"  at        test_verify.py:{raising.__code__.co_firstlineno + 2}\n"
        "  fix       correct the function; it takes the conversation and returns a turn, such as say('done')",
    ),
    "a function returns nonsense": Uncovered(
        script=nonsense,
        error=ScriptError,
        text="the script function nonsense at turn 1 did not return a turn: "
        "a turn is made of steps; got dict {'say': 'x'}.\n"
        "  fix       use say(text), think(text), call(tool, ...), fail(status), hang(seconds), garbage(body), "
        "or a list of them for one turn",
    ),
}


@pytest.mark.parametrize("case", UNCOVERED.values(), ids=UNCOVERED)
def test_an_uncovered_request_fails_twice(ask: Ask, case: Uncovered) -> None:
    """The request gets a 400 with the text, which no client retries; `verify` raises the same text."""
    fields = {} if case.tools is ... else {"tools": case.tools}
    messages = case.messages if isinstance(case.messages, list) else []

    with MockServer(case.script, allow_leftovers=True) as server:  # type: ignore[arg-type]
        for end in range(1, len(messages)):
            if messages[end].get("role") == "assistant":
                ask(server, messages[:end])
        response = ask(server, case.messages, **fields)
        with pytest.raises(case.error) as caught:
            server.verify()

    assert (response.status_code, response.json(), str(caught.value), server.journal[-1].problem) == (
        400,
        {
            "error": {
                "message": f"{case.error.__name__}: {case.text}",
                "type": "invalid_request_error",
                "param": None,
                "code": case.error.__name__,
            }
        },
        case.text,
        f"{case.error.__name__}: {case.text}",
    )


@dataclass(frozen=True, kw_only=True)
class Unread:
    """A request that is none, and what the error says of it."""

    path: str
    content: bytes
    text: str


FIX = "\n  fix       send a request in the format of OpenAI's API: hermes-env docs mock-model"
UNREAD = (
    Unread(
        path="/v1/chat/completions",
        content=b"{nope",
        text="the request to /v1/chat/completions cannot be read: the body is not JSON "
        "(Expecting property name enclosed in double quotes: line 1 column 2 (char 1)).\n  seen      {nope" + FIX,
    ),
    Unread(
        path="/v1/completions",
        content=b'{"prompt": [null]}',
        text="the request to /v1/completions cannot be read: 'prompt' must be a string, token ids, or a list of them.\n"
        "  seen      [None]" + FIX,
    ),
)


@pytest.mark.parametrize("case", UNREAD, ids=lambda case: case.content.decode())
def test_a_request_that_cannot_be_read_fails_twice(case: Unread) -> None:
    """Malformed bodies get a 400 and are kept for `verify`."""
    with MockServer(["x"], allow_leftovers=True) as server:
        status = httpx.post(server.url + case.path, content=case.content).status_code
        with pytest.raises(UnexpectedRequest) as caught:
            server.verify()

    assert (status, str(caught.value)) == (400, case.text)


@pytest.mark.parametrize(
    ("method", "path", "fix"),
    [
        ("POST", "/v1/embeddings", "use one of these; no other endpoint of a model server is played"),
        ("GET", "/v1/chat/completions", "use one of these; no other endpoint of a model server is played"),
        ("POST", "/chat/completion", "point the client at the server's base_url, which ends in /v1"),
        (
            "GET",
            "/v1/models/other",
            "ask for the one model that it has, 'mock-model'; MockServer(model=...) names it otherwise",
        ),
    ],
)
def test_an_unknown_endpoint_is_a_404_or_405_and_fails_in_verify(method: str, path: str, fix: str) -> None:
    """What no endpoint answers is unexpected; a query, which may hold a key, is not repeated."""
    with MockServer() as server:
        status = httpx.request(method, f"{server.url}{path}?api_key=secret").status_code
        with pytest.raises(UnexpectedRequest) as caught:
            server.verify()

    assert (status, str(caught.value)) == (
        405 if path == "/v1/chat/completions" else 404,
        f"the mock model has no endpoint {method} {path}.\n"
        "  expected  POST /v1/chat/completions, POST /v1/completions, POST /generate, POST /inference/v1/generate, GET /v1/models, GET /health\n"
        f"  fix       {fix}",
    )


def test_left_over_turns_fail(ask: Ask) -> None:
    """A turn that no conversation reached is an error."""
    with MockServer([call("terminal", command="ls"), "a", "b"]) as server:
        ask(server)
        with pytest.raises(LeftoverTurns) as caught:
            server.verify()

    assert str(caught.value) == (
        "the script has 3 turns, but no conversation went beyond turn 1.\n"
        "  unused    2. say 'a'   3. say 'b'\n"
        "  fix       remove them, or let the conversation continue; if this is intended, mark the test hermes_allow_leftovers"
    )


def test_left_over_turns_after_a_failure_name_the_likely_intent(ask: Ask) -> None:
    """A script writer who expects the retry to get the next turn is told how to write that."""
    with MockServer([fail(500), "a"]) as server:
        ask(server)
        with pytest.raises(LeftoverTurns) as caught:
            server.verify()

    assert str(caught.value) == (
        "the script has 2 turns, but no conversation went beyond turn 1.\n"
        "  unused    2. say 'a'\n"
        "  fix       turn 1 fails on every attempt; "
        "to let a retry succeed, use turn(fail(500, times=1), ...)"
    )


def test_a_script_that_only_judged_has_left_over_turns(ask: Ask) -> None:
    """An answered judge question uses up no turn."""
    with MockServer(Script(["x"], judge="1.0")) as server:
        ask(server, tools=None)
        with pytest.raises(LeftoverTurns) as caught:
            server.verify()

    assert str(caught.value) == (
        "the script has 1 turn, but it only answered judge questions.\n"
        "  unused    1. say 'x'\n"
        "  fix       remove them, or let the conversation continue; if this is intended, mark the test hermes_allow_leftovers"
    )


def test_a_script_may_only_judge(ask: Ask) -> None:
    """A judge without turns answers what offers no tools, and leaves nothing over; never asked, it was never used."""
    with MockServer([Script(judge="1.0", when="hello"), Script(judge=lambda _: "0.5", when="other")]) as server:
        answer = ask(server, tools=None)
        with pytest.raises(LeftoverTurns) as caught:
            server.verify()

    assert (answer.json()["choices"][0]["message"]["content"], str(caught.value)) == (
        "1.0",
        "the script 2 was never used.\n"
        "  matches   first user message contains 'other'\n"
        "  script    judge questions only: the function <lambda>\n"
        "  seen      'hello'\n"
        "  fix       correct its `when`, remove the script, or mark the test hermes_allow_leftovers",
    )


@pytest.mark.parametrize(("asked", "seen"), [((), "no conversation"), (("a", "ab"), "'a', 'ab'")])
def test_a_script_that_never_spoke_fails(ask: Ask, asked: tuple[str, ...], seen: str) -> None:
    """A script that no conversation matched is an error, which names the conversations that came."""
    with MockServer(Script(["y"], when="z", name="zed"), judge="judged") as server:
        for text in asked:
            ask(server, text, tools=None)
        with pytest.raises(LeftoverTurns) as caught:
            server.verify()

    assert str(caught.value) == (
        "the script 'zed' was never used.\n"
        "  matches   first user message contains 'z'\n"
        "  script    1. say 'y'\n"
        f"  seen      {seen}\n"
        "  fix       correct its `when`, remove the script, or mark the test hermes_allow_leftovers"
    )


def test_all_problems_are_in_one_error_and_equal_ones_once(ask: Ask) -> None:
    """One error, of the class of the first problem, numbers all of them and counts repeats; what was left over follows from them."""
    with MockServer([turn("done"), "more"]) as server:
        for _ in range(3):
            ask(server, [USER, said("a")], tools=None, n=0)
        httpx.get(server.url + "/x")
        ask(server)
        with pytest.raises(UnexpectedRequest) as caught:
            server.verify()

    assert str(caught.value) == (
        "the mock model reports 2 problems.\n"
        "\n"
        "1. UnexpectedRequest: the request to /v1/chat/completions is one that OpenAI refuses with status 400.\n"
        "     field     n\n"
        "     seen      must be from 1 to 128, got 0\n"
        "     fix       correct the request; hermes-env docs mock-model lists what is refused\n"
        "     repeated  3 times\n"
        "\n"
        "2. UnexpectedRequest: the mock model has no endpoint GET /x.\n"
        "     expected  POST /v1/chat/completions, POST /v1/completions, POST /generate, POST /inference/v1/generate, GET /v1/models, GET /health\n"
        "     fix       point the client at the server's base_url, which ends in /v1"
    )


def test_reset_forgets_requests_and_keeps_scripts(ask: Ask) -> None:
    """After a reset the next test starts clean: no journal, no problems, all turns to be asked for again."""
    with MockServer(["done"]) as server:
        ask(server)
        ask(server, [USER, said("a")])
        server.reset()
        forgotten = server.journal
        with pytest.raises(LeftoverTurns):
            server.verify()
        ask(server)
        server.verify()

    assert (forgotten, len(server.journal)) == ((), 1)
