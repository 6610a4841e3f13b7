"""The requests that real servers refuse: the status, the field that is wrong, and the error at the end of the test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pytest_hermes_env.errors import ScriptError, UnexpectedRequest
from pytest_hermes_env.inference import MockServer, call, fail, say, turn
from pytest_hermes_env.inference.sampled_turn import load_sampler

Ask = Callable[..., httpx.Response]

USER = {"role": "user", "content": "hello"}
RESULT = {"role": "tool", "tool_call_id": "a", "name": "terminal", "content": "x"}


def called(*ids: str) -> dict[str, Any]:
    """Return an assistant message with calls of these ids."""
    function = {"name": "terminal", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": one, "type": "function", "function": function} for one in ids],
    }


def made(**function: Any) -> dict[str, Any]:
    """Return an assistant message with one call of this function."""
    return {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}


MESSAGES: tuple[tuple[str, list[dict[str, Any]], str], ...] = (
    ("result without a call", [USER, RESULT], "messages[1].tool_call_id"),
    ("result after another message", [USER, called("a"), RESULT, USER, RESULT], "messages[4].tool_call_id"),
    ("result of another call", [USER, called("b"), RESULT], "messages[2].tool_call_id"),
    ("two results", [USER, called("a"), RESULT, RESULT], "messages[3].tool_call_id"),
    ("no result", [USER, called("a")], "messages[2].role"),
    ("one result of three", [USER, called("b", "a", "c"), RESULT, USER], "messages[3].role"),
    ("result without an id", [USER, called("a"), {"role": "tool", "content": "x"}], "messages[2].tool_call_id"),
    ("no messages", [], "messages"),
    ("message without a role", [{"content": "x"}], "messages[0].role"),
    ("unknown role", [{"role": "human", "content": "x"}], "messages[0].role"),
    ("no content", [{"role": "user"}], "messages[0].content"),
    ("null content", [USER, {"role": "assistant", "content": None}], "messages[1].content"),
    ("null content of a user", [{"role": "user", "content": None}], "messages[0].content"),
    ("no calls", [USER, {"role": "assistant", "content": "x", "tool_calls": []}], "messages[1].tool_calls"),
    ("arguments as an object", [USER, made(name="x", arguments={})], "messages[1].tool_calls[0].function.arguments"),
    ("call without a name", [USER, made(arguments="{}")], "messages[1].tool_calls[0].function.name"),
    ("number as content", [{"role": "user", "content": 5}], "messages[0].content"),
    ("object as content", [{"role": "user", "content": {"text": "x"}}], "messages[0].content"),
    ("number as a part", [{"role": "user", "content": [5]}], "messages[0].content[0]"),
    ("part without text", [{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
    (
        "image without a URL",
        [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
        "messages[0].content[0].image_url.url",
    ),
    ("unknown part", [{"role": "user", "content": [{"type": "bogus"}]}], "messages[0].content[0].type"),
)
NAMED_NOPE = {"type": "function", "function": {"name": "nope"}}
FIELDS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"n": 0}, "n"),
    ({"temperature": -1}, "temperature"),
    ({"top_p": 1.5}, "top_p"),
    ({"max_tokens": "9"}, "max_tokens"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"tool_choice": "auto", "tools": None}, "tool_choice"),
    ({"parallel_tool_calls": False, "tools": None}, "parallel_tool_calls"),
    ({"tool_choice": "any"}, "tool_choice"),
    ({"tool_choice": NAMED_NOPE}, "tool_choice"),
    ({"response_format": {"type": "yaml"}}, "response_format.type"),
    ({"response_format": {"type": "json_object"}}, "messages"),
    ({"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}}, "response_format.json_schema.name"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": 5}}}}, "response_format"),
    ({"stream": "yes"}, "stream"),
    ({"model": 5}, "model"),
    ({"seed": True}, "seed"),
    ({"logprobs": 3}, "logprobs"),
    ({"stop": 5}, "stop"),
    ({"stop": ["a", 1]}, "stop[1]"),
    ({"tools": "x"}, "tools"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ({"logit_bias": []}, "logit_bias"),
    ({"stream_options": 5}, "stream_options"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"tools": []}, "tools"),
    ({"stop": list("abcde")}, "stop"),
    ({"logit_bias": {"5": -1000}}, "logit_bias.5"),
    ({"max_tokens": 5, "max_completion_tokens": 5}, "max_tokens"),
)


@pytest.mark.parametrize(
    ("messages", "fields", "param"),
    [
        *(pytest.param(messages, {}, param, id=name) for name, messages, param in MESSAGES),
        *(pytest.param([USER], fields, param, id=str(fields)) for fields, param in FIELDS),
    ],
)
def test_what_openai_refuses_is_refused(ask: Ask, messages: list[dict[str, Any]], fields: dict[str, Any], param: str) -> None:
    """The status and the field are OpenAI's; `verify` fails the test once more."""
    with MockServer(["done"], allow_leftovers=True) as server:
        answer = ask(server, messages, **fields)
        with pytest.raises(UnexpectedRequest) as caught:
            server.verify()

    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert str(caught.value).startswith(
        f"the request to /v1/chat/completions is one that OpenAI refuses with status 400.\n  field     {param}\n  seen      "
    )


def test_a_refusal_says_what_was_seen(ask: Ask) -> None:
    """The whole text."""
    with MockServer(["done"], allow_leftovers=True) as server:
        ask(server, [USER], temperature=3)
        with pytest.raises(UnexpectedRequest) as caught:
            server.verify()

    assert str(caught.value) == (
        "the request to /v1/chat/completions is one that OpenAI refuses with status 400.\n"
        "  field     temperature\n"
        "  seen      must be from 0 to 2, got 3\n"
        "  fix       correct the request; hermes-env docs mock-model lists what is refused"
    )


def test_what_openai_accepts_is_answered(ask: Ask) -> None:
    """Results in another order than their calls, a second round, null where a field may be null, limits themselves."""
    results = [{**RESULT, "tool_call_id": "b"}, RESULT]
    messages = [USER, called("a", "b"), *results, {"role": "assistant", "content": ""}, USER, called("a"), RESULT]
    with MockServer(lambda _: "done") as server:
        answer = ask(
            server,
            messages,
            temperature=2,
            top_p=0,
            max_tokens=1,
            tool_choice="auto",
            parallel_tool_calls=True,
            response_format={"type": "text"},
        )
        server.verify()

    assert answer.status_code == 200


def test_what_clients_add_is_answered(ask: Ask) -> None:
    """Parts of every kind, names, reasoning, extras of vLLM; and a choice among some tools."""
    parts = [
        {"type": "text", "text": "look", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f"}},
    ]
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}], "name": "ops"},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "yes", "reasoning_content": "hm", "refusal": None, "audio": None},
        USER,
    ]
    offered = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("f", "g")]
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}
    with MockServer([call("f")]) as server:
        answer = ask(
            server,
            messages,
            tools=offered,
            tool_choice={"type": "allowed_tools", "allowed_tools": allowed},
            stop=["a", "b"],
            seed=0,
            guided_json={"type": "object"},
            chat_template_kwargs={"enable_thinking": False},
        )
        server.verify()

    assert (answer.status_code, answer.json()["choices"][0]["finish_reason"]) == (200, "tool_calls")


def test_a_call_that_the_allowed_tools_exclude_is_a_mistake_of_the_script(ask: Ask) -> None:
    """No server calls it."""
    offered = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("f", "g")]
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}
    with MockServer([call("g")], allow_leftovers=True) as server:
        ask(server, [USER], tools=offered, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
        with pytest.raises(ScriptError, match="calls g, which no server answers to this request"):
            server.verify()


def test_token_ids_are_read_as_their_text() -> None:
    """Where there is a tokenizer; ``when`` and functions see text."""
    with MockServer(lambda conversation: say(conversation.first_user), template="qwen3") as server:
        tokens = list(load_sampler(template="qwen3").encode("hello there"))
        answer = httpx.post(f"{server.base_url}/completions", json={"model": "m", "prompt": tokens})

    assert answer.json()["choices"][0]["text"] == "hello there"


def test_text_completions_have_the_same_limits() -> None:
    """A negative temperature is refused there, too."""
    with MockServer(["done"], allow_leftovers=True) as server:
        answer = httpx.post(f"{server.base_url}/completions", json={"prompt": "x", "temperature": -0.1})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "temperature")


OF_OPENAI_ALONE: tuple[dict[str, Any], ...] = (
    {"tools": []},
    {"stop": list("abcde")},
    {"logit_bias": {"5": -1000}},
    {"max_tokens": 5, "max_completion_tokens": 5},
)


@pytest.mark.parametrize("fields", OF_OPENAI_ALONE, ids=str)
def test_engines_have_no_limits_that_are_openais_alone(fields: dict[str, Any]) -> None:
    """They answer."""
    with MockServer(["done"], engine="vllm") as server:
        answer = httpx.post(f"{server.base_url}/chat/completions", json={"messages": [USER], **fields})

    assert answer.json()["choices"][0]["message"]["content"] == "done"


OF_VLLM: tuple[tuple[dict[str, Any], str], ...] = (
    ({"top_p": 0}, "top_p"),
    ({"top_k": -7}, "top_k"),
    ({"min_p": 3}, "min_p"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"min_tokens": 9, "max_tokens": 3}, "min_tokens"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
)


@pytest.mark.parametrize(("fields", "field"), OF_VLLM, ids=str)
@pytest.mark.parametrize("body", [{"messages": [USER]}, {"prompt": "x"}], ids=["chat", "completions"])
def test_vllm_refuses_sampling_beyond_its_limits(body: dict[str, Any], fields: dict[str, Any], field: str) -> None:
    """At its OpenAI endpoints, too."""
    path = "chat/completions" if "messages" in body else "completions"
    with MockServer(["done"], engine="vllm", template="chatml", allow_leftovers=True) as server:
        answer = httpx.post(f"{server.base_url}/{path}", json={**body, **fields})

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(field)


@pytest.mark.parametrize(("engine", "status"), [("vllm", 400), ("sglang", 400), ("any", 200)])
def test_an_engine_reads_no_form(engine: Any, status: int) -> None:
    """A client that encodes JSON itself must say so."""
    with MockServer(["done"], engine=engine, allow_leftovers=True) as server:
        answer = httpx.post(f"{server.base_url}/completions", content=b'{"prompt": "x"}')

    assert answer.status_code == status
    assert ("content-type" in answer.text) is (status == 400)


VLLM: tuple[tuple[dict[str, Any], str], ...] = (
    ({"tool_choice": "auto"}, "tool_choice"),
    ({"sampling_params": {}}, "sampling_params"),
    ({"temperature": -1}, "temperature"),
    ({"temperature": 2.5}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_p": None}, "top_p"),
    ({"temperature": 0, "n": 2}, "n"),
    ({"min_tokens": 10}, "min_tokens"),
    ({"top_k": 1.5}, "top_k"),
    ({"stop": ["a", ""]}, "stop"),
    ({"stop": "a", "detokenize": False}, "stop"),
    ({"logprobs": -2}, "logprobs"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"max_tokens": 0}, "max_tokens"),
)
SGLANG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"max_tokens": 9}, "max_tokens"),
    ({"temperature": -0.5}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"top_p": 2}, "top_p"),
    ({"presence_penalty": 3}, "presence_penalty"),
    ({"max_new_tokens": -1}, "max_new_tokens"),
    ({"top_k": 0}, "top_k"),
    ({"min_new_tokens": 200}, "min_new_tokens"),
    ({"regex": "a", "ebnf": "b"}, "ebnf"),
    ({"json_schema": {}}, "json_schema"),
    ({"stop": ["a", 1]}, "stop"),
    ({"stop_token_ids": [None]}, "stop_token_ids"),
    ({"logit_bias": {"5": "a"}}, "logit_bias"),
)


@pytest.mark.parametrize(
    ("server_name", "body", "status", "field"),
    [
        *(("vLLM", {"prompt": "x", "max_tokens": 9, **fields}, 500, field) for fields, field in VLLM),
        *(("SGLang", {"text": "x", "sampling_params": fields}, 400, field) for fields, field in SGLANG),
    ],
)
def test_what_generate_refuses_is_refused(server_name: str, body: dict[str, Any], status: int, field: str) -> None:
    """vLLM's server fails on what its SamplingParams do not take, and names nothing; SGLang's names the field."""
    with MockServer(["done"], template="chatml", allow_leftovers=True) as server:
        answer = httpx.post(f"{server.url}/generate", json=body)
        with pytest.raises(UnexpectedRequest) as caught:
            server.verify()

    assert (answer.status_code, answer.text if status == 500 else field in answer.json()["error"]["message"]) == (
        status,
        "Internal Server Error" if status == 500 else True,
    )
    assert f"{server_name} refuses with status {status}.\n  field     {field}\n" in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        {
            "prompt": "x",
            "max_tokens": 1,
            "temperature": 2,
            "top_p": 1,
            "top_k": -1,
            "n": 1,
            "stop": ["a"],
            "logprobs": 0,
            "seed": None,
        },
        {"prompt": "x", "temperature": 0, "repetition_detection": None, "stop": None, "max_tokens": None},
        {"text": "x", "sampling_params": {"temperature": 0, "top_k": 0, "max_new_tokens": 0}},
        {
            "text": "x",
            "sampling_params": {"temperature": None, "top_p": None, "n": 1, "stop": "a", "json_schema": "", "regex": "a"},
        },
    ],
)
def test_what_generate_accepts_is_answered(body: dict[str, Any]) -> None:
    """Limits themselves, and null where the server takes it."""
    with MockServer(["done"], template="chatml", allow_leftovers=True) as server:
        answer = httpx.post(f"{server.url}/generate", json=body)
        server.verify()

    assert answer.status_code == 200


LS, CAT = call("terminal", command="ls"), call("read_file", path="a")
JSON_ASKED = [{"role": "user", "content": "answer in JSON"}]
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
WITH_SCHEMA = {"type": "json_schema", "json_schema": {"name": "grade", "schema": SCHEMA}}
NAMED = {"type": "function", "function": {"name": "terminal"}}


@pytest.mark.parametrize(
    ("said", "fields", "reason"),
    [
        (LS, {"tool_choice": "none"}, "calls terminal"),
        ("done", {"tool_choice": "required"}, "calls no tool"),
        ("done", {"tool_choice": NAMED}, "calls no tool"),
        (CAT, {"tool_choice": NAMED}, "calls read_file"),
        ("done", {"response_format": {"type": "json_object"}}, "it is not JSON"),
        ("[1]", {"response_format": {"type": "json_object"}}, "is not of type 'object'"),
        ('{"score": "high"}', {"response_format": WITH_SCHEMA}, "'high' is not of type 'number'"),
    ],
)
def test_a_turn_that_no_server_answers_is_a_mistake_of_the_script(
    ask: Ask, said: Any, fields: dict[str, Any], reason: str
) -> None:
    """The server would have made the model obey, so the script cannot say it."""
    with MockServer([said], allow_leftovers=True) as server:
        answer = ask(server, JSON_ASKED, **fields)
        with pytest.raises(ScriptError) as caught:
            server.verify()

    assert (answer.status_code, reason in str(caught.value)) == (400, True)


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        (LS, {"tool_choice": "required"}),
        ("done", {"tool_choice": "none"}),
        ('{"score": 1}', {"response_format": WITH_SCHEMA}),
        ('{"a": 1}', {"response_format": {"type": "json_object"}}),
        (LS, {"response_format": {"type": "json_object"}}),
    ],
)
def test_a_turn_that_obeys_is_answered(ask: Ask, said: Any, fields: dict[str, Any]) -> None:
    """A response_format is about text: a call may be made in spite of it."""
    with MockServer([said]) as server:
        answer = ask(server, JSON_ASKED, **fields)
        server.verify()

    assert answer.status_code == 200


def test_a_failure_needs_no_obedience(ask: Ask) -> None:
    """A server fails whatever the request demands."""
    with MockServer([turn(fail(503))]) as server:
        answer = ask(server, tool_choice="required")
        server.verify()

    assert answer.status_code == 503


def test_without_parallel_calls_only_the_first_is_made(ask: Ask) -> None:
    """Like vLLM, which drops the others; the journal says what was answered."""
    with MockServer([turn(say("two"), LS, CAT)]) as server:
        choice = ask(server, parallel_tool_calls=False).json()["choices"][0]
        said = server.journal[0].said

    assert [one["function"]["name"] for one in choice["message"]["tool_calls"]] == ["terminal"]
    assert (choice["finish_reason"], "read_file" in said) == ("tool_calls", False)


def test_a_named_tool_ends_with_stop(ask: Ask) -> None:
    """As at OpenAI and vLLM, where only free calls end with tool_calls."""
    with MockServer([LS]) as server:
        choice = ask(server, tool_choice=NAMED).json()["choices"][0]

    assert (choice["finish_reason"], len(choice["message"]["tool_calls"])) == ("stop", 1)
