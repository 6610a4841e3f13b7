"""The requests that real servers refuse: the status, the answer, and the error at the end of the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from pytest_hermes_env.errors import ScriptError, UnexpectedRequest
from pytest_hermes_env.inference import MockServer, call, fail, say, turn
from pytest_hermes_env.inference.generate_refusals import SGLANG_FIELDS
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


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A chat request, and what of OpenAI's error the mock answers."""

    name: str
    message: str
    param: str
    code: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=lambda: [USER])
    fields: dict[str, Any] = field(default_factory=dict)


UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
NO_CONTENT = "Invalid type for '{{param}}': expected a string or array of objects, but got {} instead."
MISSING = "Missing required parameter: '{param}'."
MISSED = "missing_required_parameter"
REFUSED = (
    Refused(
        name="result without a call",
        messages=[USER, RESULT],
        message="Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        param="messages.[1].role",
    ),
    Refused(
        name="result after another message",
        messages=[USER, called("a"), RESULT, USER, RESULT],
        message="Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        param="messages.[4].role",
    ),
    Refused(
        name="result of another call",
        messages=[USER, called("b"), RESULT],
        message="Invalid parameter: 'tool_call_id' of 'a' not found in 'tool_calls' of previous message.",
        param="messages.[2].tool_call_id",
    ),
    Refused(
        name="two results",
        messages=[USER, called("a"), RESULT, RESULT],
        message="Duplicate value for 'tool_call_id' of 'a' in message[3]",
        param="messages.[3].tool_call_id",
    ),
    Refused(name="no result", messages=[USER, called("a")], message=f"{UNANSWERED}a", param="messages.[2].role"),
    Refused(
        name="one result of three",
        messages=[USER, called("b", "a", "c"), RESULT, USER],
        message=f"{UNANSWERED}b, c",
        param="messages.[3].role",
    ),
    Refused(
        name="result without an id",
        messages=[USER, called("a"), {"role": "tool", "content": "x"}],
        message="Missing required parameter: 'messages[2].tool_call_id'.",
        param="messages[2].tool_call_id",
        code="missing_required_parameter",
    ),
    Refused(
        name="unknown role",
        messages=[{"role": "human", "content": "x"}],
        message="Invalid value: 'human'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
        param="messages[0].role",
        code="invalid_value",
    ),
    Refused(
        name="null content",
        messages=[USER, {"role": "assistant", "content": None}],
        message="Invalid value for 'content': expected a string, got null.",
        param="messages.[1].content",
    ),
    Refused(
        name="no calls in tool_calls",
        messages=[USER, {"role": "assistant", "content": "x", "tool_calls": []}],
        message="Invalid 'messages[1].tool_calls': empty array. "
        "Expected an array with minimum length 1, but got an empty array instead.",
        param="messages[1].tool_calls",
        code="empty_array",
    ),
    Refused(
        name="arguments that are no text",
        messages=[
            USER,
            {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "x", "arguments": {}}}]},
        ],
        message="Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead.",
        param="messages[1].tool_calls[0].function.arguments",
        code="invalid_type",
    ),
    Refused(
        name="negative temperature",
        fields={"temperature": -1},
        message="Invalid 'temperature': decimal below minimum value. Expected a value >= 0, but got -1 instead.",
        param="temperature",
        code="decimal_below_min_value",
    ),
    Refused(
        name="top_p above 1",
        fields={"top_p": 1.5},
        message="Invalid 'top_p': decimal above maximum value. Expected a value <= 1, but got 1.5 instead.",
        param="top_p",
        code="decimal_above_max_value",
    ),
    Refused(
        name="max_tokens as text",
        fields={"max_tokens": "9"},
        message="Invalid type for 'max_tokens': expected an integer, but got a string instead.",
        param="max_tokens",
        code="invalid_type",
    ),
    Refused(
        name="max_tokens 0",
        fields={"max_tokens": 0},
        message="Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
        param="max_tokens",
        code="integer_below_min_value",
    ),
    Refused(
        name="tool_choice without tools",
        fields={"tool_choice": "auto", "tools": None},
        message="Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
        param="tool_choice",
    ),
    Refused(
        name="parallel_tool_calls without tools",
        fields={"parallel_tool_calls": False, "tools": None},
        message="Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
        param="parallel_tool_calls",
    ),
    Refused(
        name="unknown tool_choice",
        fields={"tool_choice": "any"},
        message="Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
        param="tool_choice",
        code="invalid_value",
    ),
    Refused(
        name="tool_choice of an unknown tool",
        fields={"tool_choice": {"type": "function", "function": {"name": "nope"}}},
        message="Invalid value for 'tool_choice': no function named 'nope' was specified in the 'tools' parameter.",
        param="tool_choice",
    ),
    Refused(
        name="unknown response_format",
        fields={"response_format": {"type": "yaml"}},
        message="Invalid value: 'yaml'. Supported values are: 'json_object', 'json_schema', and 'text'.",
        param="response_format.type",
        code="invalid_value",
    ),
    Refused(
        name="JSON that no message asks for",
        fields={"response_format": {"type": "json_object"}},
        message="'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
        param="messages",
    ),
    Refused(
        name="schema without a name",
        fields={"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        message="Missing required parameter: 'response_format.json_schema.name'.",
        param="response_format.json_schema.name",
        code="missing_required_parameter",
    ),
    *(
        Refused(
            name=f"{param} is {value!r}",
            fields={param: value},
            message=f"Invalid type for '{param}': expected {expected}, but got {seen} instead.",
            param=param,
            code="invalid_type",
        )
        for param, value, expected, seen in (
            ("stream", "yes", "a boolean", "a string"),
            ("model", 5, "a string", "an integer"),
            ("seed", "x", "an integer", "a string"),
            ("seed", True, "an integer", "a boolean"),
            ("logprobs", 3, "a boolean", "an integer"),
            ("stop", 5, "a string or array of strings", "an integer"),
            ("stop", ["a", 1], "a string or array of strings", "an array"),
            ("tools", "x", "an array", "a string"),
            ("logit_bias", [], "an object", "an array"),
            ("stream_options", 5, "an object", "an integer"),
        )
    ),
    *(
        Refused(
            name=f"content {content!r}",
            messages=[{"role": "user", "content": content}],
            message=message.format(param=f"messages[0].content{where}"),
            param=f"messages[0].content{where}",
            code=code,
        )
        for content, where, message, code in (
            (5, "", NO_CONTENT.format("an integer"), "invalid_type"),
            (True, "", NO_CONTENT.format("a boolean"), "invalid_type"),
            ({"text": "x"}, "", NO_CONTENT.format("an object"), "invalid_type"),
            ([5], "[0]", "Invalid type for '{param}': expected an object, but got an integer instead.", "invalid_type"),
            ([{"text": "x"}], "[0].type", MISSING, "missing_required_parameter"),
            ([{"type": "text"}], "[0].text", MISSING, "missing_required_parameter"),
            ([{"type": "image_url"}], "[0].image_url", MISSING, "missing_required_parameter"),
            ([{"type": "image_url", "image_url": {}}], "[0].image_url.url", MISSING, "missing_required_parameter"),
            (
                [{"type": "bogus"}],
                "[0].type",
                "Invalid value: 'bogus'. Supported values are: 'text', 'refusal', 'image_url', 'input_audio', 'file', 'audio_url', "
                "and 'video_url'.",
                "invalid_value",
            ),
        )
    ),
    *(
        Refused(name=f"tools {tools!r}", fields={"tools": tools}, message=MISSING.format(param=param), param=param, code=MISSED)
        for tools, param in (
            ([{"name": "f"}], "tools[0].type"),
            ([{"type": "function"}], "tools[0].function"),
            ([{"type": "function", "function": {}}], "tools[0].function.name"),
        )
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_openai_refuses_is_refused_with_its_error(ask: Ask, case: Refused) -> None:
    """Status and error are OpenAI's; `verify` says who refuses the request, with what."""
    with MockServer(["done"], allow_leftovers=True) as server:
        answer = ask(server, case.messages, **case.fields)
        with pytest.raises(UnexpectedRequest) as caught:
            server.verify()

    error = {"message": case.message, "type": "invalid_request_error", "param": case.param, "code": case.code}
    assert (answer.status_code, answer.json()) == (400, {"error": error})
    assert str(caught.value).startswith(
        f"the request to /v1/chat/completions is one that OpenAI refuses.\n  answer    400: {case.message}\n  fix       "
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


@dataclass(frozen=True, kw_only=True)
class Generate:
    """A request to ``/generate`` that its server refuses."""

    name: str
    body: dict[str, Any]
    status: int
    answer: str | dict[str, Any]
    reason: str


def vllm(name: str, fields: dict[str, Any], reason: str) -> Generate:
    body = {"prompt": "x", "max_tokens": 9, **fields}
    return Generate(name=f"vLLM: {name}", body=body, status=500, answer="Internal Server Error", reason=reason)


def sglang(name: str, fields: dict[str, Any], reason: str) -> Generate:
    answer = {"error": {"message": reason}}
    return Generate(
        name=f"SGLang: {name}", body={"text": "x", "sampling_params": fields}, status=400, answer=answer, reason=reason
    )


def sglang_type(field: str, value: Any, reason: str) -> Generate:
    body = {"text": "x", "sampling_params": {field: value}}
    return Generate(name=f"SGLang: {field} {value}", body=body, status=400, answer={"error": reason}, reason=reason)


UNKNOWN = f"unknown field `max_tokens`, expected one of {', '.join(f'`{name}`' for name in SGLANG_FIELDS)}"
GENERATE = (
    vllm("unknown field", {"tool_choice": "auto"}, "Unexpected keyword argument 'tool_choice'"),
    vllm("field of SGLang", {"sampling_params": {}}, "Unexpected keyword argument 'sampling_params'"),
    vllm("temperature", {"temperature": -1}, "temperature must be non-negative, got -1."),
    vllm("high temperature", {"temperature": 2.5}, "temperature must be in [0, 2], got 2.5."),
    vllm("text for a number", {"temperature": "hot"}, "TypeError: must be real number, not str"),
    vllm("text for a limit", {"max_tokens": "9"}, "TypeError: '>=' not supported between instances of 'str' and 'int'"),
    vllm("null for a number", {"top_p": None}, "TypeError: '<' not supported between instances of 'int' and 'NoneType'"),
    vllm("several greedy answers", {"temperature": 0, "n": 2}, "n must be 1 when using greedy sampling, got 2."),
    vllm("min_tokens", {"min_tokens": 10}, "min_tokens must be less than or equal to max_tokens=9, got 10."),
    vllm("top_k", {"top_k": 1.5}, "top_k must be an integer, got float"),
    vllm("empty stop", {"stop": ["a", ""]}, "stop cannot contain an empty string."),
    vllm("stop without text", {"stop": "a", "detokenize": False}, "stop strings are only supported when detokenize is True."),
    vllm("logprobs", {"logprobs": -2}, "logprobs must be non-negative or -1, got -2."),
    vllm("penalty", {"repetition_penalty": 0}, "repetition_penalty must be greater than zero, got 0."),
    vllm("top_p", {"top_p": 0}, "top_p must be in (0, 1], got 0."),
    vllm("max_tokens", {"max_tokens": 0}, "max_tokens must be at least 1, got 0."),
    sglang("temperature", {"temperature": -0.5}, "temperature must be a non-negative finite number, got -0.5."),
    sglang("top_p", {"top_p": 2}, "top_p must be in (0, 1], got 2."),
    sglang("penalty", {"presence_penalty": 3}, "presence_penalty must be in [-2, 2], got 3."),
    sglang("max_new_tokens", {"max_new_tokens": -1}, "max_new_tokens must be at least 0, got -1."),
    sglang("top_k", {"top_k": 0}, "top_k must be -1 (disable) or at least 1, got 0."),
    sglang("repetition", {"repetition_penalty": 2.1}, "repetition_penalty must be in (0, 2] (1.0 = no penalty), got 2.1."),
    sglang("min_new_tokens", {"min_new_tokens": 200}, "min_new_tokens must be in [0, max_new_tokens(128)], got 200."),
    sglang("two grammars", {"regex": "a", "ebnf": "b"}, "Only one of json_schema, regex, ebnf, or structural_tag can be set."),
    sglang_type("temperature", "hot", 'invalid type: string "hot", expected f64'),
    sglang_type("temperature", True, "invalid type: boolean `true`, expected f64"),
    sglang_type("max_new_tokens", 1.5, "invalid type: floating point `1.5`, expected i64"),
    sglang_type("ignore_eos", 1, "invalid type: integer `1`, expected a boolean"),
    sglang_type("json_schema", {}, "invalid type: map, expected a string"),
    sglang_type("stop", ["a", 1], "invalid type: integer `1`, expected a string"),
    sglang_type("stop", 5, "invalid type: integer `5`, expected a value or an array of values for StringOrList"),
    sglang_type("stop_token_ids", [None], "invalid type: null, expected i64"),
    sglang_type("logit_bias", {"5": "a"}, 'invalid type: string "a", expected f64'),
    sglang_type("n", [1], "invalid type: sequence, expected i64"),
    Generate(
        name="SGLang: field of vLLM",
        body={"text": "x", "sampling_params": {"max_tokens": 9}},
        status=400,
        answer={"error": UNKNOWN},
        reason=UNKNOWN[:80],
    ),
)


@pytest.mark.parametrize("case", GENERATE, ids=lambda case: case.name)
def test_what_generate_refuses_is_refused(case: Generate) -> None:
    """vLLM's server fails on what its SamplingParams do not take; SGLang's names the field."""
    with MockServer(["done"], template="chatml", allow_leftovers=True) as server:
        answer = httpx.post(f"{server.url}/generate", json=case.body)
        with pytest.raises(UnexpectedRequest) as caught:
            server.verify()

    assert (answer.status_code, answer.text if isinstance(case.answer, str) else answer.json()) == (case.status, case.answer)
    assert case.reason in str(caught.value)


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
        (LS, {"tool_choice": "none"}, "calls the tool 'terminal'"),
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
