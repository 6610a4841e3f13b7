"""What a model server answers is checked against what it was asked; what does not match is never trained."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from environments.tokens.answer_checks import TokenModeError, check_text, without_credentials
from pytest_hermes_env.inference import garbage
from tests.environments.plain_env import PlainEnv

SERVERS = ["vllm", "sglang"]


class Env(PlainEnv):
    """Items are texts; the reward is 1.0."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.was_scored = True
        return 1.0


def answered(make_env: Any, mock_server: Any, server_type: str, change: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Run a rollout whose server says "It is done.", changed by ``change(answer, prompt)``; returns env, group, error."""

    async def scenario() -> tuple[Any, Any, Any]:
        env = make_env(Env, server=mock_server, server_type=server_type, enabled_toolsets=["todo"], group_size=1)
        ids = env.tokenizer.encode("It is done.", add_special_tokens=False)
        end = env.tokenizer.encode("<|im_end|>", add_special_tokens=False)
        reply = good_answer(server_type, [*ids, *end], "It is done.")
        prompts: list[list[int]] = []

        def remember(self: Any, text: str, node: Any) -> list[int]:
            prompts.append(compute(self, text, node))
            return prompts[-1]

        from environments.tokens.token_mode import RolloutServer

        compute = RolloutServer._compute_input_ids
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RolloutServer, "_compute_input_ids", remember)
            mock_server.add(lambda _talk: garbage(json.dumps(change(reply, prompts[-1]))))
            try:
                group, _ = await env.collect_trajectories("x")
            except TokenModeError as error:
                return env, None, str(error)
        return env, group, None

    return asyncio.run(scenario())


def good_answer(server_type: str, ids: list[int], text: str) -> dict[str, Any]:
    """A correct answer in the server's shape."""
    if server_type == "vllm":
        return {
            "text": [text],
            "token_ids": [ids],
            "logprobs": [[[{str(token): -0.5}] for token in ids]],
            "finish_reasons": ["stop"],
        }
    meta = {
        "output_token_logprobs": [[-0.5, token, None] for token in ids],
        "finish_reason": {"type": "stop", "matched": ids[-1]},
        "completion_tokens": len(ids),
    }
    return {"text": text, "output_ids": ids, "meta_info": meta}


def both(vllm: Callable[..., Any], sglang: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {"vllm": vllm, "sglang": sglang}


def _with(answer: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**answer, **fields}


def _meta(answer: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**answer, "meta_info": {**answer["meta_info"], **fields}}


def _logprob(value: float) -> dict[str, Callable[..., Any]]:
    return both(
        lambda a, _: _with(a, logprobs=[[[{str(i): value}] for i in a["token_ids"][0]]]),
        lambda a, _: _meta(a, output_token_logprobs=[[value, i, None] for i in a["output_ids"]]),
    )


def _ids(change: Callable[..., list[int]]) -> dict[str, Callable[..., Any]]:
    """Other ids, each with its logprob, and the same text."""

    def vllm(a: Any, prompt: Any) -> Any:
        ids = change(a["token_ids"][0], prompt)
        return {**good_answer("vllm", ids, a["text"][0])}

    def sglang(a: Any, prompt: Any) -> Any:
        return good_answer("sglang", change(a["output_ids"], prompt), a["text"])

    return both(vllm, sglang)


FAULTS = {
    "prompt was cut": (
        both(
            lambda a, prompt: _with(a, prompt_token_ids=prompt[5:]),
            lambda a, prompt: _meta(a, prompt_tokens=len(prompt) - 5),
        ),
        r"was sent a prompt of \d+ tokens and worked on one of \d+\. Replies to another prompt cannot be trained on",
    ),
    "prompt was extended": (
        both(
            lambda a, prompt: _with(a, prompt_token_ids=[1, *prompt]), lambda a, prompt: _meta(a, prompt_tokens=len(prompt) + 1)
        ),
        r"was sent a prompt of \d+ tokens and worked on one of \d+",
    ),
    "more logprobs than tokens": (
        both(
            lambda a, _: _with(a, logprobs=[[*a["logprobs"][0], a["logprobs"][0][-1]]]),
            lambda a, _: _meta(a, output_token_logprobs=[*a["meta_info"]["output_token_logprobs"], [-0.5, 7, None]]),
        ),
        r"returned \d+ logprobs for \d+ sampled tokens",
    ),
    "logprob of the end twice": (
        both(
            lambda a, _: _with(a, logprobs=[[*a["logprobs"][0], a["logprobs"][0][-1]]]),
            lambda a, _: _meta(
                a, output_token_logprobs=[*a["meta_info"]["output_token_logprobs"], a["meta_info"]["output_token_logprobs"][-1]]
            ),
        ),
        r"returned \d+ logprobs for \d+ sampled tokens",
    ),
    "ids of another text": (_ids(lambda ids, _: ids[::-1]), r"returned the text 'It is done\.' with ids of the text '"),
    "ids cut": (_ids(lambda ids, _: ids[:1]), r"returned the text 'It is done\.' with ids of the text '"),
    "impossible logprob": (
        _logprob(-9999.0),
        r"returned -9999\.0 as the logprob of sampled token 0, id \d+; a token of a probab",
    ),
    "positive logprob": (_logprob(0.5), r"returned 0\.5 as the logprob of sampled token 0; expected a number of at most 0"),
    "negative id": (_ids(lambda ids, _: [-3, *ids]), r"sampled the token id -3, and the tokenizer '.*' knows the ids 0 to \d+"),
    "two completions": (
        both(
            lambda a, _: {name: column * 2 for name, column in a.items()},
            lambda a, _: [a, a],
        ),
        r"returned 2 completions, and 1 was asked for \(n\)",
    ),
    "prompt is echoed in the ids": (
        _ids(lambda ids, prompt: [*prompt, *ids]),
        r"returned (\d+ tokens that begin with all \d+ tokens of the prompt|the text 'It is done)",
    ),
    "prompt is echoed in the text": (
        both(
            lambda a, _: _with(a, text=["<|im_start|>user\ndo x" + a["text"][0]]),
            lambda a, _: _with(a, text="<|im_start|>user\ndo x" + a["text"]),
        ),
        r"returned (a text that begins with the prompt|the text '<\|im_start\|>user)",
    ),
}


@pytest.mark.parametrize("server_type", SERVERS)
@pytest.mark.parametrize("fault", FAULTS)
def test_answer_that_does_not_match_is_an_error(make_env, mock_server, server_type, fault):
    """The message names the server, what was asked and what came back; nothing is scored or trained."""
    changes, words = FAULTS[fault]

    env, group, error = answered(make_env, mock_server, server_type, changes[server_type])

    assert group is None
    assert error.startswith(f"The inference server {mock_server.base_url} (Exact")
    assert re.search(words, error)
    assert not hasattr(env, "was_scored")
    assert env._counts["train/token_mode_errors"] == 1


GOOD = {
    "as it is": both(lambda a, _: a, lambda a, _: a),
    "with the prompt": both(
        lambda a, prompt: _with(a, prompt_token_ids=prompt), lambda a, prompt: _meta(a, prompt_tokens=len(prompt))
    ),
    "without a text": both(lambda a, _: _with(a, text=[""]), lambda a, _: _with(a, text="")),
    "without a text field": both(
        lambda a, _: {k: v for k, v in a.items() if k != "text"}, lambda a, _: {k: v for k, v in a.items() if k != "text"}
    ),
    "with the end in the text": both(
        lambda a, _: _with(a, text=["It is done.<|im_end|>"]), lambda a, _: _with(a, text="It is done.<|im_end|>")
    ),
    "with a stop string left out": both(lambda a, _: _with(a, text=["It is"]), lambda a, _: _with(a, text="It is")),
    "with other white space": both(lambda a, _: _with(a, text=[" It  is done."]), lambda a, _: _with(a, text=" It  is done.")),
    "with the end left out of the ids": both(lambda a, _: a, lambda a, _: _with(a, output_ids=a["output_ids"][:-1])),
}


@pytest.mark.parametrize("server_type", SERVERS)
@pytest.mark.parametrize("way", GOOD)
def test_answer_that_servers_give_is_accepted(make_env, mock_server, server_type, way):
    """What they strip, and what they add, is not a fault."""
    env, group, error = answered(make_env, mock_server, server_type, GOOD[way][server_type])

    assert error is None
    assert group["scores"] == [1.0]
    assert any(label != -100 for label in group["masks"][0])
    assert env._counts["train/rollouts_finished"] == 1


def test_text_of_an_incomplete_character_is_accepted(make_env):
    """A server holds the last bytes back, or shows a replacement character."""

    async def tokenizer() -> Any:
        return make_env(Env, server_type="vllm", enabled_toolsets=["todo"]).tokenizer

    known = asyncio.run(tokenizer())
    ids = known.encode("so 🙂", add_special_tokens=False)[:-1]

    for text in ("so ", "so \ufffd", "so"):
        check_text(None, known, [1], ids, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://bob:KEY@host:1/v1", "http://***@host:1/v1"),
        ("see https://TOKEN@host/x, please", "see https://***@host/x, please"),
        ("http://host/v1?api_key=KEY&x=1#a", "http://host/v1?api_key=***&x=1#a"),
        ("http://host/v1?x=1&X-Amz-Signature=KEY", "http://host/v1?x=1&X-Amz-Signature=***"),
        ("http://host:8000/v1?n=2&keyword=a", "http://host:8000/v1?n=2&keyword=a"),
        ("mailto:a@b.example and git@host:x.git", "mailto:a@b.example and git@host:x.git"),
    ],
)
def test_a_url_is_shown_without_its_credentials(text: str, shown: str) -> None:
    """User, password, token, and parameters that are named like secrets."""
    assert without_credentials(text) == shown
