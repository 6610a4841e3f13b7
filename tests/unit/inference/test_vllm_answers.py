"""Token ids and logprobs of chat completions, of prompts, and of `/inference/v1/generate`, in the fields of each server."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest
from transformers import AutoTokenizer

from hermes_env_shared.prompt_logprobs import prompt_logprobs_body, read_prompt_logprobs
from hermes_env_shared.token_servers import ATROPOS, SGLANG, VLLM, BadAnswer, Wire
from pytest_hermes_env.errors import UnexpectedRequest, UsageError
from pytest_hermes_env.inference import MockServer, call, sampled, say, think, turn
from pytest_hermes_env.play.builder import shared_tokenizer

IDS = [2857, 82, 1680]
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "terminal",
            "description": "Run it.",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
]
HELLO: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
WORK = [turn(think("Look."), call("terminal", command="ls")), "There is nothing."]


def chat(mock: MockServer, messages: Any = HELLO, **fields: Any) -> Any:
    """The answer, by the openai client, as plain data."""
    client = openai.OpenAI(base_url=mock.base_url, api_key="unused", max_retries=0)
    names = ("tools", "logprobs", "top_logprobs", "temperature", "max_tokens", "stream")
    known = {name: fields.pop(name) for name in names if name in fields}
    with client:
        answer: Any = client.chat.completions.create(model=mock.model, messages=messages, extra_body=fields, **known)
        return answer.model_dump(mode="json")


# ---------------------------------------------------------------------- chat completions


def test_usage_counts_the_ids_of_the_answer() -> None:
    """Also where a limit cut it."""
    with MockServer([say("several words of a long answer")], template="qwen3", engine="vllm") as mock:
        answer = chat(mock, max_tokens=2, logprobs=True, return_token_ids=True)

    usage, ids, prompt = answer["usage"], answer["choices"][0]["token_ids"], answer["prompt_token_ids"]
    assert (len(ids), usage["completion_tokens"], usage["prompt_tokens"]) == (2, 2, len(prompt))
    assert usage["total_tokens"] == 2 + len(prompt)


@pytest.mark.parametrize("template", ["chatml", "qwen3", "mistral", "llama3", "kimi"])
@pytest.mark.parametrize("has_directory", [False, True])
def test_chat_returns_the_ids_of_prompt_and_reply(template: str, has_directory: bool) -> None:
    """The prompt is what the tokenizer's template makes of the messages; the reply is the text of the model, with its last token."""
    tokenizer = AutoTokenizer.from_pretrained(shared_tokenizer(template))
    model = {"tokenizer": shared_tokenizer(template)} if has_directory else {"template": template}
    script = [turn(call("terminal", command="ls")), "There is nothing."]

    with MockServer(script, engine="vllm", **model) as mock:  # type: ignore[arg-type]
        first = chat(mock, tools=TOOLS, return_token_ids=True)
        said = first["choices"][0]["message"]
        (made,) = said["tool_calls"]
        reply = {"role": "assistant", "content": said["content"], "tool_calls": [made]}
        messages = [*HELLO, reply, {"role": "tool", "tool_call_id": made["id"], "content": "x"}]
        second = chat(mock, messages, tools=TOOLS, return_token_ids=True)
        mock.verify()

    if template == "mistral":  # whose calls have ids of nine letters
        made, messages[-1] = {**made, "id": made["id"][-9:]}, {**messages[-1], "tool_call_id": made["id"][-9:]}
    called = {**made, "function": {"name": "terminal", "arguments": {"command": "ls"}}}
    for answer, asked in ((first, HELLO), (second, [*HELLO, {**reply, "tool_calls": [called]}, messages[-1]])):
        text = tokenizer.apply_chat_template(asked, tools=TOOLS, tokenize=False, add_generation_prompt=True)
        assert answer["prompt_token_ids"] == tokenizer.encode(text, add_special_tokens=False)
    text = tokenizer.decode(second["choices"][0]["token_ids"])
    assert text.startswith("There is nothing.")
    assert text != "There is nothing."


def test_chat_returns_a_logprob_for_each_token() -> None:
    """In OpenAI's form, thoughts and calls included; the likeliest tokens first."""
    with MockServer(WORK, template="chatml", engine="vllm") as mock:
        answer = chat(mock, tools=TOOLS, logprobs=True, top_logprobs=2, return_token_ids=True)["choices"][0]
        mock.allow_leftovers = True

    content = answer["logprobs"]["content"]
    assert len(content) == len(answer["token_ids"])
    assert "".join(one["token"] for one in content).startswith("<think>\nLook.\n</think>\n<tool_call>")
    for one in content:
        assert bytes(one["bytes"]).decode() == one["token"]
        assert [one["token"], one["logprob"]] == [one["top_logprobs"][0]["token"], one["top_logprobs"][0]["logprob"]]
        assert one["logprob"] >= one["top_logprobs"][1]["logprob"]
        assert len(one["top_logprobs"]) == 2


@pytest.mark.parametrize("said", ["There is nothing.", "", turn(think("Look."), call("terminal", command="ls"))])
@pytest.mark.parametrize(
    "asked", [{"logprobs": True}, {"return_token_ids": True}, {"logprobs": True, "return_token_ids": True}]
)
def test_streamed_tokens_add_up_to_the_whole_answer(said: Any, asked: dict[str, bool]) -> None:
    """Each in its place: text comes token by token, and the ids of the prompt once, at the beginning."""
    with MockServer([said], template="chatml", engine="vllm") as mock:
        whole = chat(mock, tools=TOOLS, **asked)
    with (
        MockServer([said], template="chatml", engine="vllm") as mock,
        openai.OpenAI(base_url=mock.base_url, api_key="unused", max_retries=0) as client,
    ):
        extra = {"return_token_ids": asked.get("return_token_ids", False)}
        question: Any = {"model": "mock-model", "messages": HELLO, "tools": TOOLS, "logprobs": asked.get("logprobs", False)}
        chunks = list(client.chat.completions.create(**question, stream=True, extra_body=extra))

    (choice,), parts = whole["choices"], [chunk.choices[0] for chunk in chunks]
    logged = [one.model_dump(exclude_unset=True) for part in parts if part.logprobs for one in part.logprobs.content or []]
    assert logged == (choice["logprobs"] or {"content": []})["content"]
    ids = [number for part in parts for number in (part.model_extra or {}).get("token_ids", [])]
    assert ids == choice.get("token_ids", [])
    assert [getattr(chunk, "prompt_token_ids", None) for chunk in chunks][1:] == [None] * (len(chunks) - 1)
    assert getattr(chunks[0], "prompt_token_ids", None) == whole.get("prompt_token_ids")
    assert "".join(part.delta.content or "" for part in parts) == (choice["message"]["content"] or "")
    for part in parts:
        if isinstance(said, str) and part.logprobs and part.delta.content:
            assert [one.token for one in part.logprobs.content or []] == [part.delta.content]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_streamed_text_completion_has_its_tokens(engine: Any) -> None:
    """In one part, as the whole answer has them, and then the usage."""
    seen: list[Any] = []
    for stream in (False, True):
        with (
            MockServer(["said"], template="chatml", engine=engine) as mock,
            openai.OpenAI(base_url=mock.base_url, api_key="unused", max_retries=0) as client,
        ):
            how: Any = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
            asked: Any = {"model": "mock-model", "prompt": IDS, "logprobs": 1, "extra_body": {"return_token_ids": True}}
            answer = client.completions.create(**asked, **how)
            seen.append(list(answer) if stream else answer)
    whole, (part, usage) = seen

    assert part.choices == whole.choices
    assert part.choices[0].token_ids
    assert (part.usage, usage.usage, usage.choices) == (None, whole.usage, [])


def test_sglang_streams_no_ids() -> None:
    """As its own server answers."""
    mock = MockServer(["said"], template="chatml", engine="sglang", allow_leftovers=True)
    with mock, pytest.raises(openai.BadRequestError, match="asks to stream token ids"):
        chat(mock, stream=True, return_token_ids=True)


def test_chat_returns_no_other_tokens_unless_asked() -> None:
    """The list is there, and empty."""
    with MockServer(["said"], template="chatml", engine="vllm") as mock:
        (choice,) = chat(mock, logprobs=True)["choices"]

    assert [one["top_logprobs"] for one in choice["logprobs"]["content"]] == [[]] * 4


def test_chat_logprobs_follow_the_mode_and_name_ids() -> None:
    """Processed ones are of the request's temperature; a token can be written as its id."""

    def told(mode: Any, temperature: float) -> list[Any]:
        with MockServer(["said"], template="chatml", engine="vllm", logprobs_mode=mode) as mock:
            asked = {"logprobs": True, "temperature": temperature, "return_token_ids": True, "return_tokens_as_token_ids": True}
            (choice,) = chat(mock, **asked)["choices"]
        assert [one["token"] for one in choice["logprobs"]["content"]] == [f"token_id:{token}" for token in choice["token_ids"]]
        return [one["logprob"] for one in choice["logprobs"]["content"]]

    assert told("raw_logprobs", 0.5) == told("raw_logprobs", 1.0) == told("processed_logprobs", 1.0)
    assert all(cold > warm for cold, warm in zip(told("processed_logprobs", 0.5), told("raw_logprobs", 1.0), strict=True))


def test_sglang_names_the_ids_of_chat_otherwise() -> None:
    """Both in the choice."""
    with MockServer(["said"], template="chatml", engine="sglang") as mock:
        answer = chat(mock, return_token_ids=True)

    (choice,) = answer["choices"]
    assert ("prompt_token_ids" in answer, "token_ids" in choice) == (False, False)
    assert (len(choice["prompt_token_ids"]) > 5, len(choice["response_token_ids"])) == (True, 4)


@pytest.mark.parametrize(("version", "asked"), [("0.33.0", False), ("0.10.1", True)])
def test_ids_come_where_they_are_asked_for(version: str, asked: bool) -> None:
    """And from vLLM 0.10.2 on; before, the field is unknown and ignored."""
    with MockServer(["said"], template="chatml", engine="vllm", version=version) as mock:
        answer = chat(mock, return_token_ids=asked)

    assert ("prompt_token_ids" in answer, "token_ids" in answer["choices"][0]) == (False, False)
    assert answer["choices"][0]["logprobs"] is None


@pytest.mark.parametrize("cut", [{"max_tokens": 2}, {}])
def test_a_cut_reply_is_cut_in_ids_and_text(cut: dict[str, int]) -> None:
    """By the request, or by the script."""
    script = [turn(say("There is nothing."), sampled(max_tokens=None if cut else 2))]

    with MockServer(script, template="chatml", engine="vllm") as mock:
        (choice,) = chat(mock, return_token_ids=True, **cut)["choices"]

    assert (len(choice["token_ids"]), choice["finish_reason"]) == (2, "length")
    assert "There is nothing.".startswith(choice["message"]["content"]) > 0
    assert len(choice["message"]["content"]) < len("There is nothing.")


@pytest.mark.parametrize(
    ("template", "fields", "said"),
    [
        ("chatml", {"top_logprobs": 2}, "top_logprobs\n  seen      requires logprobs: true"),
        (
            "qwen3_5",
            {"return_token_ids": True, "messages": HELLO[:1]},
            "the chat template qwen3_5 refuses these messages",
        ),
    ],
)
def test_what_chat_refuses(template: str, fields: dict[str, Any], said: str) -> None:
    """With the field, or the template's own words."""
    mock = MockServer(["said"], template=template, engine="vllm", allow_leftovers=True)
    with mock, pytest.raises(openai.BadRequestError):
        chat(mock, **fields)

    with pytest.raises(UnexpectedRequest, match=said):
        mock.verify()


# ---------------------------------------------------------------------- /inference/v1/generate


def tokens_of(version: str, **fields: Any) -> Any:
    body = {"token_ids": IDS, "sampling_params": {"max_tokens": 1, "logprobs": 1, "unknown": 1}, "unknown": 1, **fields}
    with MockServer(["said"], template="chatml", engine="vllm", version=version) as mock:
        return httpx.post(f"{mock.url}/inference/v1/generate", json=body).json()


@pytest.mark.parametrize("version", ["0.33.0", "0.32.0", "0.31.0", "0.30.0", "0.20.2", "0.11.1"])
def test_tokens_in_tokens_out_in_the_form_of_the_version(version: str) -> None:
    """Ids in the logprobs are numbers from 0.32 on, ids of the prompt come from 0.30 on; unknown fields are ignored."""
    minor = int(version.split(".")[1])

    answer = tokens_of(version, return_token_ids=True)

    (choice,) = answer["choices"]
    (token,) = choice["token_ids"]
    (entry,) = choice["logprobs"]["content"]
    own = {"logprob": entry["logprob"]}
    own |= {"token_id": token, "rank": 1} if minor >= 32 else {"token": f"token_id:{token}"}
    expected: Any = {"index": 0, "token_ids": [token], "finish_reason": "length"}
    expected["logprobs"] = {"content": [{**own, "top_logprobs": [own]}]}
    expected |= {"stop_reason": None} if minor >= 32 else {}
    assert choice == expected
    assert answer.get("prompt_token_ids") == (IDS if minor >= 30 else None)
    assert answer["prompt_logprobs"] is None


@pytest.mark.parametrize(
    ("version", "fields", "said"),
    [
        ("0.11.0", {}, {"detail": "Not Found"}),
        (
            "0.33.0",
            {"sampling_params": {"logprobs": 21}},
            "Requested sample logprobs of 21, which is greater than max allowed: 20",
        ),
        ("0.33.0", {"sampling_params": {"temperature": 3}}, "temperature: input should be less than or equal to 2, got 3"),
        ("0.33.0", {"sampling_params": [1]}, "'sampling_params' must be an object"),
        ("0.33.0", {"token_ids": "text"}, "'token_ids' must be token ids, and not empty"),
    ],
)
def test_tokens_in_tokens_out_refuses(version: str, fields: dict[str, Any], said: Any) -> None:
    """What vLLM refuses; before 0.11.1 there is no such endpoint."""
    answer = tokens_of(version, **fields)

    assert answer == said if isinstance(said, dict) else said in answer["error"]["message"]


@pytest.mark.parametrize("engine", ["sglang", "atropos"])
def test_other_servers_have_no_such_endpoint(engine: Any) -> None:
    """Their own 404, no mistake of a test."""
    with MockServer(template="chatml", engine=engine) as mock:
        assert httpx.post(f"{mock.url}/inference/v1/generate", json={}).status_code == 404


def test_a_version_is_numbers() -> None:
    """A word is a usage error."""
    with pytest.raises(UsageError, match="MockServer has no version 'latest'"):
        MockServer(version="latest")


# ---------------------------------------------------------------------- logprobs of a prompt


def prompt_logprobs(engine: Any, wire: Wire, top: int = 3) -> Any:
    """What the layer's own reader makes of the answer; it uses no turn."""
    with MockServer(["said"], template="chatml", engine=engine, allow_leftovers=True) as mock:
        answer = httpx.post(wire.url(mock.base_url), json=prompt_logprobs_body(wire, mock.model, IDS, top)).json()
        mock.verify()
        assert [exchange.kind for exchange in mock.journal] == ["score"]
    return read_prompt_logprobs(wire, answer, IDS)


def test_prompts_have_the_same_logprobs_on_each_server() -> None:
    """Of every position but the first, as many as asked for, the token's own among them."""
    read = [prompt_logprobs("vllm", VLLM), prompt_logprobs("sglang", SGLANG), prompt_logprobs("any", ATROPOS)]

    assert read[0] == read[1] == read[2]
    assert [len(row) for row in read[0]] == [0, 3, 3]
    assert [token in row for token, row in zip(IDS, read[0], strict=True)] == [False, True, True]


def test_atropos_server_returns_no_logprobs_of_a_prompt() -> None:
    """As its own code: only sampled tokens have some."""
    with pytest.raises(BadAnswer, match="returned no logprobs of the prompt"):
        prompt_logprobs("atropos", ATROPOS)


def test_sglang_ignores_the_field_of_vllm() -> None:
    """It answers with a turn, and nothing of the prompt."""
    with MockServer(["said"], template="chatml", engine="sglang") as mock:
        answer = httpx.post(f"{mock.base_url}/completions", json={"prompt": "x", "prompt_logprobs": 3}).json()
        mock.verify()

    assert (answer["choices"][0]["text"], "prompt_logprobs" in answer["choices"][0]) == ("said", False)


def test_vllm_refuses_too_many_logprobs_of_a_prompt() -> None:
    """With its own words."""
    with MockServer(template="chatml", engine="vllm") as mock:
        answer = httpx.post(f"{mock.base_url}/completions", json=prompt_logprobs_body(VLLM, mock.model, IDS, 21))

    said = "Requested prompt logprobs of 21, which is greater than max allowed: 20"
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, said)


@pytest.mark.parametrize(("temperature", "status"), [(0, 400), (0.01, 200)])
@pytest.mark.parametrize("path", ["completions", "chat/completions"])
def test_vllm_takes_one_likeliest_answer(path: str, temperature: float, status: int) -> None:
    """Several would be the same."""
    prompt: dict[str, Any] = {"prompt": IDS} if path == "completions" else {"messages": HELLO}
    with MockServer(["said"], template="chatml", engine="vllm", allow_leftovers=True) as mock:
        body = {"model": mock.model, **prompt, "n": 2, "temperature": temperature, "return_token_ids": True}
        answer = httpx.post(f"{mock.base_url}/{path}", json=body)

    assert answer.status_code == status


# ---------------------------------------------------------------------- the reader


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"choices": [{"prompt_logprobs": None}]}, "returned no logprobs of the prompt"),
        (
            {"choices": [{"prompt_logprobs": [None, {"82": {"logprob": -1}}]}]},
            "returned logprobs of 2 positions for a prompt of 3 tokens",
        ),
        (
            {"choices": [{"prompt_logprobs": [None, {"1680": {"logprob": -1}}, {"82": {"logprob": -1}}]}]},
            "returned logprobs at position 1 of the prompt without that of its token, id 82",
        ),
    ],
)
def test_rows_that_are_not_of_the_prompt_are_refused(answer: Any, said: str) -> None:
    """A shift by one position would teach every token the answer of its neighbour."""
    with pytest.raises(BadAnswer, match=said):
        read_prompt_logprobs(VLLM, answer, IDS)
