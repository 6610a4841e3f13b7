"""`/generate`, as atroposlib's own servers ask it and read it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tokenizers import Tokenizer

from pytest_hermes_env.errors import UnexpectedRequest
from pytest_hermes_env.inference import TEMPLATES, MockServer, Script, empty_choices, fail, garbage, sampled, turn
from pytest_hermes_env.inference.generate import alternatives, logprob, seed_of
from pytest_hermes_env.inference.tokens import tokenizer_json

Connect = Callable[..., Any]
KINDS = ("vllm", "sglang")
TOKENIZER = Tokenizer.from_str(tokenizer_json(TEMPLATES["chatml"]))
SIZE = TOKENIZER.get_vocab_size()
END = TOKENIZER.token_to_id("<|im_end|>")
PROMPT = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
PROMPT_IDS = TOKENIZER.encode(PROMPT).ids
ANSWER_IDS = [*TOKENIZER.encode("The answer").ids, END]


def ask(connect: Connect, kind: str, script: object, **fields: Any) -> Any:
    """Return what the server class makes of the answer: prompt ids, ids, logprobs and finish reasons of each choice."""
    with MockServer(script, template="chatml") as mock:
        server = connect(mock, kind)
        return asyncio.run(server.tokens_and_logprobs_completion(**{"input_ids": PROMPT_IDS, "prompt": PROMPT, **fields}))


def post(mock: MockServer, body: object) -> Any:
    """Return the body of the answer to one request."""
    return httpx.post(f"{mock.url}/generate", json=body).json()


def odds(mock: MockServer, ids: list[int], start: int = len(PROMPT_IDS)) -> list[float]:
    """Return the logprobs that these ids have after the prompt."""
    conversation = mock.journal[0].conversation
    assert conversation is not None
    return [logprob(seed_of(conversation.id), place, token) for place, token in enumerate(ids, start=start)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_is_sampled(connect: Connect, kind: str) -> None:
    """Prompt, ids with the end token, a logprob for each, and the finish reason in the words of the server."""
    with MockServer(["The answer"], template="chatml") as mock:
        server = connect(mock, kind)
        seen = asyncio.run(server.tokens_and_logprobs_completion(input_ids=PROMPT_IDS, max_tokens=99, temperature=0.5, n=1))
        mock.verify()
        finish = "stop" if kind == "vllm" else {"type": "stop", "matched": END}

        assert seen == (PROMPT_IDS, [ANSWER_IDS], [odds(mock, ANSWER_IDS)], [finish])


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_answer_finishes_with_length(connect: Connect, kind: str) -> None:
    """The request's max_tokens holds, under the name that each server class gives it."""
    _, ids, logprobs, finish = ask(connect, kind, ["The answer"], max_tokens=1)

    assert (ids, len(logprobs[0]), finish) == (
        [ANSWER_IDS[:1]],
        1,
        ["length" if kind == "vllm" else {"type": "length", "length": 1}],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_without_choices(connect: Connect, kind: str) -> None:
    """The server classes see no completion at all."""
    assert ask(connect, kind, [empty_choices()]) == (PROMPT_IDS, [], [], [])


SHORT = {
    "short": ([ANSWER_IDS[:-1]], len(ANSWER_IDS) - 1),
    "null": ([ANSWER_IDS], len(ANSWER_IDS)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("logprobs", SHORT)
def test_logprobs_may_be_short_or_null(connect: Connect, kind: str, logprobs: str) -> None:
    """Both server classes take the ids from the logprobs, so a missing logprob costs its token; null stands for no number."""
    _, ids, seen, _ = ask(connect, kind, [turn("The answer", sampled(logprobs=logprobs))])  # type: ignore[arg-type]

    assert (ids, [len(row) for row in seen], None in seen[0]) == (SHORT[logprobs][0], [SHORT[logprobs][1]], logprobs == "null")


def test_missing_logprobs_are_missing(connect: Connect) -> None:
    """vLLM's class fails on them; SGLang's makes an empty completion out of them."""
    script = [turn("The answer", sampled(logprobs="missing"))]
    with pytest.raises(KeyError, match="logprobs"):
        ask(connect, "vllm", script)

    assert ask(connect, "sglang", script)[1:3] == ([[]], [[]])


@pytest.mark.parametrize("kind", KINDS)
def test_failures_are_seen_once(connect: Connect, kind: str) -> None:
    """A scripted failure is an HTTP error that is not retried, and garbage is no JSON."""
    with MockServer([fail(503)], template="chatml") as mock:
        server = connect(mock, kind)
        with pytest.raises(Exception, match="503"):
            asyncio.run(server.tokens_and_logprobs_completion(input_ids=PROMPT_IDS))
        statuses = [exchange.status for exchange in mock.journal]
    with pytest.raises(Exception, match="Expecting value"):
        ask(connect, kind, [garbage("<html>")])

    assert statuses == [503]


def test_vllm_answers_whole() -> None:
    """All that vLLM's server of Atropos gives, with one runner-up at each place."""
    with MockServer(["The answer"], template="chatml") as mock:
        seen = post(mock, {"prompt": {"prompt_token_ids": PROMPT_IDS}, "logprobs": 2, "max_tokens": 99})
        own = odds(mock, ANSWER_IDS)
        rows = [[(token, one), *alternatives(one, token, 1, SIZE)] for token, one in zip(ANSWER_IDS, own, strict=True)]

        assert seen == {
            "text": ["The answer"],
            "prompt": PROMPT,
            "finish_reasons": ["stop"],
            "token_ids": [ANSWER_IDS],
            "prompt_token_ids": PROMPT_IDS,
            "logprobs": [[[{str(token): one for token, one in row}] for row in rows]],
        }


def test_sglang_answers_whole() -> None:
    """All that SGLang gives."""
    with MockServer(["The answer"], template="chatml") as mock:
        seen = post(mock, {"input_ids": PROMPT_IDS, "return_logprob": True, "return_text_in_logprobs": False})
        conversation = mock.journal[0].conversation
        assert conversation is not None

        assert seen == {
            "text": "The answer",
            "output_ids": ANSWER_IDS,
            "meta_info": {
                "id": f"{conversation.id}:0:0",
                "finish_reason": {"type": "stop", "matched": END},
                "prompt_tokens": len(PROMPT_IDS),
                "completion_tokens": len(ANSWER_IDS),
                "cached_tokens": 0,
                "output_token_logprobs": [
                    [one, token, None] for one, token in zip(odds(mock, ANSWER_IDS), ANSWER_IDS, strict=True)
                ],
            },
        }


OTHER_IDS = TOKENIZER.encode("<|im_start|>user\nbye<|im_end|>\n<|im_start|>assistant\n").ids


@pytest.mark.parametrize("n", [1, 2])
def test_sglang_takes_lists_of_prompts(n: int) -> None:
    """One answer for each prompt and each of its samples, in the order of the prompts; a list of one prompt is a list."""
    by_prompt = [Script(["hello yourself"], when="hello"), Script(["see you"], when="bye")]
    with MockServer(by_prompt, template="chatml") as mock:
        asked = {"sampling_params": {"n": n}, "return_prompt_token_ids": True}
        several = post(mock, {"input_ids": [PROMPT_IDS, OTHER_IDS], **asked})
        mock.verify()
    with MockServer(["alone"], template="chatml") as mock:
        one = post(mock, {"text": [PROMPT]})

    told = [(PROMPT_IDS, "hello yourself")] * n + [(OTHER_IDS, "see you")] * n
    assert [(answer["prompt_token_ids"], answer["text"]) for answer in several] == told
    assert [(answer["text"], "prompt_token_ids" in answer) for answer in one] == [("alone", False)]


def test_completions_take_lists_of_prompts_with_ids() -> None:
    """The choices of all prompts are numbered through, and usage is their sum."""
    by_prompt = [Script(["hello yourself"], when="hello"), Script(["see you"], when="bye")]
    with MockServer(by_prompt, template="chatml", engine="vllm") as mock:
        body = {"model": mock.model, "prompt": [PROMPT_IDS, OTHER_IDS], "n": 2, "return_token_ids": True, "logprobs": 0}
        seen = httpx.post(f"{mock.base_url}/completions", json={**body, "max_tokens": 99}).json()
        mock.verify()

    assert [(one["index"], one["text"]) for one in seen["choices"]] == [
        (0, "hello yourself"),
        (1, "hello yourself"),
        (2, "see you"),
        (3, "see you"),
    ]
    assert [one["prompt_token_ids"] for one in seen["choices"][1:3]] == [PROMPT_IDS, OTHER_IDS]
    lengths = [len(one["token_ids"]) for one in seen["choices"]]
    assert seen["usage"]["completion_tokens"] == sum(lengths)
    assert [len(one["logprobs"]["token_logprobs"]) for one in seen["choices"]] == lengths


def test_a_failure_of_one_prompt_is_that_of_the_request() -> None:
    """As a server that answers all of them, or none."""
    by_prompt = [Script(["hello yourself"], when="hello"), Script([turn(fail(503, times=1), "see you")], when="bye")]
    with MockServer(by_prompt, template="chatml") as mock:
        first = httpx.post(f"{mock.url}/generate", json={"input_ids": [PROMPT_IDS, OTHER_IDS]})
        again = post(mock, {"input_ids": [PROMPT_IDS, OTHER_IDS]})

    assert (first.status_code, [answer["text"] for answer in again]) == (503, ["hello yourself", "see you"])


def test_a_list_of_prompts_is_refused_where_one_of_them_cannot_be_read() -> None:
    """As one request."""
    with MockServer(["x"], template="chatml") as mock:
        post(mock, {"input_ids": [PROMPT_IDS, [1, -2]]})
        with pytest.raises(UnexpectedRequest, match="'input_ids' must be token ids"):
            mock.verify()


def test_without_logprobs_there_are_only_ids() -> None:
    """Logprobs come when they are asked for."""
    with MockServer(["The answer"], template="chatml") as mock:
        vllm = post(mock, {"prompt": PROMPT})
        sglang = post(mock, {"text": PROMPT, "sampling_params": {"max_new_tokens": 99}})

    assert (sorted(vllm), vllm["token_ids"], sorted(sglang["meta_info"]), sglang["output_ids"]) == (
        ["finish_reasons", "prompt", "prompt_token_ids", "text", "token_ids"],
        [ANSWER_IDS],
        ["cached_tokens", "completion_tokens", "finish_reason", "id", "prompt_tokens"],
        ANSWER_IDS,
    )


def test_vllm_takes_a_prompt_in_three_forms() -> None:
    """Text, an object with text, and an object with ids are one prompt."""
    forms = [PROMPT, {"prompt": PROMPT}, {"prompt_token_ids": PROMPT_IDS}]
    with MockServer(["The answer"], template="chatml") as mock:
        seen = [post(mock, {"prompt": form, "logprobs": 0}) for form in forms]

    assert seen == [seen[0]] * 3


def test_vllm_scores_a_prompt(connect: Connect) -> None:
    """get_logprobs gives what sampling gave, for the same tokens at the same places, and takes no turn of the script."""
    with MockServer(["The answer"], template="chatml") as mock:
        server = connect(mock, "vllm")
        _, ids, logprobs, _ = asyncio.run(server.tokens_and_logprobs_completion(input_ids=PROMPT_IDS))
        whole = [*PROMPT_IDS, *ids[0]]
        seen = asyncio.run(server.get_logprobs(input_ids=whole, top_k=2))
        mock.verify()
        kinds = [exchange.kind for exchange in mock.journal]
        own = odds(mock, whole, start=0)

    rows = [[(token, one), *alternatives(one, token, 1, SIZE)] for token, one in zip(whole[1:], own[1:], strict=True)]

    assert (seen, own[len(PROMPT_IDS) :], kinds) == (
        {
            "prompt_tokens": whole,
            "prompt_topk_token_ids": [[], *([token for token, _ in row] for row in rows)],
            "prompt_topk_logprobs": [[], *([one for _, one in row] for row in rows)],
        },
        logprobs[0],
        ["generate", "score"],
    )


def test_scoring_begins_no_conversation() -> None:
    """A trainer that asks for logprobs of a whole conversation first does not shift the turns of the rollout."""
    whole = f"{PROMPT}The answer<|im_end|>\n"
    with MockServer(["The answer", "More."], template="chatml") as mock:
        post(mock, {"prompt": whole, "prompt_logprobs": 0, "max_tokens": 1})
        said = [post(mock, {"prompt": prompt})["text"] for prompt in (PROMPT, whole + PROMPT)]
        mock.verify()

    assert said == [["The answer"], ["More."]]


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A body that means nothing, what is wrong with it, and what of it is shown."""

    body: dict[str, object]
    what: str
    seen: str


PROMPT_FORMS = "'prompt' must be a string, or an object with 'prompt_token_ids' or 'prompt', and not empty"
UNREADABLE = (
    Unreadable(
        body={"model": "m", "api_key": "secret"},
        what="the body has neither 'prompt' (vLLM) nor 'input_ids' or 'text' (SGLang)",
        seen="{'model': 'm', 'api_key': '[redacted]'}",
    ),
    Unreadable(
        body={"prompt": "x", "stream": True},
        what="'stream' is not supported, and neither VLLMServer nor SGLangServer streams",
        seen="{'prompt': 'x', 'stream': True}",
    ),
    Unreadable(body={"prompt": ["a", "b"]}, what=PROMPT_FORMS, seen="['a', 'b']"),
    Unreadable(body={"prompt": {"prompt_token_ids": []}}, what=PROMPT_FORMS, seen="[]"),
    Unreadable(body={"prompt": {"prompt_token_ids": [1, -1]}}, what=PROMPT_FORMS, seen="[1, -1]"),
    Unreadable(body={"prompt": {"prompt_token_ids": [True]}}, what=PROMPT_FORMS, seen="[True]"),
    Unreadable(body={"prompt": {}}, what=PROMPT_FORMS, seen="None"),
    Unreadable(
        body={"input_ids": [[1], 2]}, what="'input_ids' must be token ids, of one prompt, and not empty", seen="[[1], 2]"
    ),
    Unreadable(body={"text": ""}, what="'text' must be a string, of one prompt, and not empty", seen="''"),
    Unreadable(body={"text": "x", "sampling_params": [{}]}, what="'sampling_params' must be an object", seen="[{}]"),
    Unreadable(
        body={"text": "x", "logprob_start_len": 5},
        what="'logprob_start_len' is not supported, and SGLangServer does not send it",
        seen="5",
    ),
)


@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: case.what[:40])
def test_a_body_that_means_nothing_is_refused(case: Unreadable) -> None:
    """The error says what was wrong and what was seen, where it happens and again in verify."""
    with MockServer(["The answer"], template="chatml", allow_leftovers=True) as mock:
        answer = post(mock, case.body)
        with pytest.raises(UnexpectedRequest) as caught:
            mock.verify()

    expected = (
        f"the request to /generate cannot be read: {case.what}.\n"
        f"  seen      {case.seen}\n"
        "  fix       send a request like VLLMServer or SGLangServer of atroposlib: hermes-env docs mock-model"
    )

    assert (str(caught.value), answer["error"]["message"]) == (expected, f"UnexpectedRequest: {expected}")


def test_a_model_without_a_tokenizer_says_how_to_get_one() -> None:
    """Token mode is off until somebody names a template or a tokenizer."""
    with MockServer(["The answer"], allow_leftovers=True) as mock:
        post(mock, {"prompt": "x", "api_key": "secret"})
        with pytest.raises(UnexpectedRequest) as caught:
            mock.verify()

    assert str(caught.value) == (
        "the model was asked for tokens at /generate, but it has no tokenizer.\n"
        "  request   {'prompt': 'x', 'api_key': '[redacted]'}\n"
        "  fix       pass a chat template, MockServer(script, template='chatml'), or a tokenizer: tokenizer=path"
    )


def test_ids_of_another_tokenizer_are_refused(paths: dict[str, Path]) -> None:
    """A client with another tokenizer than the mock's shows at its first id that does not exist."""
    with MockServer(["The answer"], tokenizer=paths["chatml"], allow_leftovers=True) as mock:
        post(mock, {"input_ids": [1, 151_644]})
        with pytest.raises(UnexpectedRequest) as caught:
            mock.verify()

    assert str(caught.value) == (
        "the request to /generate contains the token id 151644, which the mock model's tokenizer does not have.\n"
        f"  expected  ids up to {SIZE - 1} (template chatml)\n"
        "  fix       use one tokenizer on both sides: MockServer(tokenizer=path), and tokenizer_name=path for the client"
    )


@pytest.mark.parametrize("path", ["/health", "/health_generate", "/v1/health"])
def test_the_server_is_healthy(path: str) -> None:
    """Both kinds of server have their own path for it, and neither takes a turn."""
    with MockServer(template="chatml") as mock:
        answer = httpx.get(mock.url + path)
        mock.verify()

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("kind", KINDS)
def test_the_health_checks_of_the_server_classes_pass(connect: Connect, kind: str) -> None:
    """atroposlib looks every second: vLLM at /health, SGLang with a completion that no script has to cover."""
    with MockServer(["The answer"], template="chatml", allow_leftovers=True) as mock:
        server = connect(mock, kind)
        server.server_healthy = False

        async def look() -> bool:
            task = asyncio.create_task(server.check_server_status_task(chat_completion=False))
            while not mock.journal or mock.journal[0].status is None or not server.server_healthy:
                await asyncio.sleep(0)
            task.cancel()
            return bool(server.server_healthy)

        healthy = asyncio.run(look())
        mock.verify()

    assert (healthy, [exchange.kind for exchange in mock.journal]) == (True, ["health"])
