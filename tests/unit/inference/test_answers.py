"""What a mock server answers, asked over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest

from pytest_hermes_env.inference import (
    Conversation,
    MockServer,
    Script,
    TurnLike,
    call,
    call_raw,
    empty_choices,
    fail,
    garbage,
    hang,
    think,
    turn,
    unoffered,
)

Ask = Callable[..., httpx.Response]


def message(response: httpx.Response) -> dict[str, object]:
    """Return the message of the first choice."""
    found: dict[str, object] = response.json()["choices"][0]["message"]
    return found


def after(*answers: str) -> list[dict[str, object]]:
    """Return the messages of a conversation that had these answers."""
    rest: list[dict[str, object]] = [
        {"role": role, "content": text} for a in answers for role, text in (("assistant", a), ("user", "go on"))
    ]
    return [{"role": "user", "content": "hello"}, *rest]


def test_a_function_answers_from_the_conversation(ask: Ask) -> None:
    """A script function sees messages, turn, tools and sampling, and has no left-over turns."""

    def policy(conversation: Conversation) -> TurnLike:
        return f"{conversation.turn} {conversation.first_user} {[*conversation.tools]} {conversation.sampling}"

    with MockServer(policy) as server:
        said = message(ask(server, after("a"), temperature=0.5, max_tokens=7))["content"]
        server.verify()

    assert said == "0 hello ['terminal', 'read_file'] {'temperature': 0.5, 'max_tokens': 7}"


def test_the_first_script_that_matches_speaks(ask: Ask) -> None:
    """Scripts for different items stand side by side, the general one last."""
    scripts = [Script(["A"], when="apple"), Script(["B"], when=re.compile("^b")), Script(["any"])]

    with MockServer(scripts) as server:
        said = [message(ask(server, text))["content"] for text in ("an apple", "banana", "cherry", "apple b")]
        server.verify()

    assert said == ["A", "B", "any", "A"]


def test_scripts_can_be_added_while_the_server_runs(ask: Ask) -> None:
    """An added script speaks where no earlier one does."""
    with MockServer(Script(["A"], when="apple")) as server:
        server.add(["added"]).add(Script(["late"], when="x"))
        server.allow_leftovers = True
        said = [message(ask(server, text))["content"] for text in ("apple", "else")]
        server.verify()

    assert said == ["A", "added"]


def test_a_judge_question_has_an_answer_of_its_own(ask: Ask) -> None:
    """A request that offers no tools is answered by the judge and uses up no turn."""
    script = Script([call("terminal", command="ls"), "done"], judge=lambda c: f"graded {c.first_user}")

    with MockServer(script) as server:
        question = message(ask(server, "grade this", tools=None))["content"]
        finished = ask(server).json()["choices"][0]["finish_reason"]
        done = message(ask(server, after("a")))["content"]
        server.verify()
        kinds = [exchange.kind for exchange in server.journal]

    assert (question, finished, done, kinds) == (
        "graded grade this",
        "tool_calls",
        "done",
        ["judge", "chat", "chat"],
    )


def test_the_servers_judge_answers_where_no_script_matches(ask: Ask) -> None:
    """A judge given to the server serves all scripts, also for questions that no script is for."""
    with MockServer(Script(["A"], when="apple"), judge="0.5") as server:
        said = [message(ask(server, text, tools=tools))["content"] for text, tools in (("apple", None), ("other", None))]

    assert said == ["0.5", "0.5"]


def test_several_steps_make_one_answer(ask: Ask) -> None:
    """Reasoning, calls and text of one turn come in one message, n times with ids of their own."""
    with MockServer([turn(think("hm"), call("terminal", command="ls"), call("read_file", path="a"), "go")]) as server:
        response = ask(server, n=2).json()

    seen = [
        (
            choice["message"]["reasoning_content"],
            choice["message"]["content"],
            [one["function"]["arguments"] for one in choice["message"]["tool_calls"]],
            choice["finish_reason"],
        )
        for choice in response["choices"]
    ]
    ids = {one["id"] for choice in response["choices"] for one in choice["message"]["tool_calls"]}

    assert (seen, len(ids)) == ([("hm", "go", ['{"command": "ls"}', '{"path": "a"}'], "tool_calls")] * 2, 4)


def test_mistakes_of_a_model_are_sent_when_they_are_meant(ask: Ask) -> None:
    """Unoffered tools, unknown arguments and malformed arguments text go out as written."""
    meant = turn(unoffered(call("nope", x=1)), unoffered(call("terminal", cmd="ls")), call_raw("terminal", "{bad"))

    with MockServer([meant]) as server:
        calls = message(ask(server))["tool_calls"]
        server.verify()

    assert [(one["function"]["name"], one["function"]["arguments"]) for one in calls] == [  # type: ignore[attr-defined]
        ("nope", '{"x": 1}'),
        ("terminal", '{"cmd": "ls"}'),
        ("terminal", "{bad"),
    ]


def test_a_failure_has_its_status_and_openais_error_shape(ask: Ask) -> None:
    """`fail` answers with an HTTP error, each time the turn is asked for, and is no problem."""
    with MockServer([fail(503, "overloaded")]) as server:
        seen = [(r.status_code, r.json()) for r in (ask(server), ask(server))]
        server.verify()

    error = {"message": "overloaded", "type": "fail", "param": None, "code": "503"}
    assert seen == [(503, {"error": error})] * 2


@pytest.mark.parametrize(
    ("said", "text"), [(hang(0.01), ""), (turn(hang(0.005), "late", hang(0.005)), "late")], ids=["alone", "with text"]
)
def test_a_hanging_turn_answers_after_its_delay(ask: Ask, said: TurnLike, text: str) -> None:
    """`hang` delays the rest of its turn; alone it answers with empty text. The journal shows the delay."""
    with MockServer([said]) as server:
        answer = message(ask(server))["content"]
        (exchange,) = server.journal

    assert (answer, (exchange.ended_s or 0) - exchange.started_s >= 0.01) == (text, True)


def test_garbage_and_empty_choices_are_answers_with_status_200(ask: Ask) -> None:
    """Broken proxies and overloaded providers answer 200 with nothing useful."""
    with MockServer([Script([garbage("<html>")], when="g"), Script([empty_choices()], when="e")]) as server:
        broken, empty = ask(server, "g"), ask(server, "e")

    assert (broken.status_code, broken.text, empty.status_code, empty.json()["choices"]) == (200, "<html>", 200, [])


def test_the_small_endpoints_answer() -> None:
    """Models and health are there, each with and without /v1, and chat works without /v1 as well."""
    body = {"messages": [{"role": "user", "content": "x"}]}

    with MockServer(["done"], model="tiny") as server:
        paths = ("/v1/models", "/models", "/health", "/v1/health")
        small = [httpx.get(server.url + path) for path in paths]
        chat = httpx.post(server.url + "/chat/completions", json=body)
        server.verify()

    names = [response.json().get("status") or response.json()["data"][0]["id"] for response in small]
    assert (names, chat.json()["model"]) == (["tiny", "tiny", "ok", "ok"], "tiny")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}),
        ("/completions", {"prompt": "hi", "max_tokens": 1}),
    ],
)
def test_the_health_probe_of_atropos_is_no_conversation(path: str, body: dict[str, object]) -> None:
    """Atropos asks 'hi' with one token each second; it gets an answer, uses no turn and is no problem."""
    with MockServer(Script(["done"], when="item")) as server:
        server.allow_leftovers = True
        status = httpx.post(server.base_url + path, json={"model": "m", **body}).status_code
        server.verify()
        kinds = [(exchange.kind, exchange.turn) for exchange in server.journal]

    assert (status, kinds) == (200, [("health", None)])


def test_a_text_completion_may_echo_its_prompt() -> None:
    """Each choice begins with its own prompt."""
    with MockServer(lambda seen: f"[{seen.first_user}]") as server:
        body = {"prompt": ["a", "b"], "echo": True, "n": 2}
        choices = httpx.post(f"{server.base_url}/completions", json=body).json()["choices"]

    assert [choice["text"] for choice in choices] == ["a[a]", "a[a]", "b[b]", "b[b]"]


def test_a_text_completion_of_vllm_is_cut_without_token_ids() -> None:
    """Limit and logprobs hold although no ids are asked for."""
    with MockServer(["one two three four"], engine="vllm", template="chatml") as server:
        answer = httpx.post(f"{server.base_url}/completions", json={"prompt": "x", "max_tokens": 2, "logprobs": 0}).json()

    choice = answer["choices"][0]
    assert (choice["finish_reason"], len(choice["logprobs"]["tokens"]), answer["usage"]["completion_tokens"]) == (
        "length",
        2,
        2,
    )
