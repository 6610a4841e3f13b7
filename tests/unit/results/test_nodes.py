"""The nodes of a built result are those that atroposlib's ManagedServer would hold after the same conversation."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env import agent_result

CALL = '<tool_call>\n{"name": "terminal", "arguments": {"command": "ls"}}\n</tool_call>'
LOOKED = agent_result.user("What is here?").say("I look.").call("terminal", command="ls").returns({"output": "a.txt"})


@pytest.fixture
def tokenizer(hermes_tokenizer: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(hermes_tokenizer)


class SamplingServer:
    """What a ManagedServer asks: gives its texts one after the other, the last one with the token that ends a turn."""

    config = SimpleNamespace(model_name="m")

    def __init__(self, tokenizer: Any, texts: list[str]) -> None:
        self.tokenizer, self.texts = tokenizer, texts

    async def tokens_and_logprobs_completion(self, **request: Any) -> Any:
        output = self.tokenizer.encode(self.texts.pop(0), add_special_tokens=False)
        output += [] if self.texts else [self.tokenizer.eos_token_id]
        return request["input_ids"], [output], [[-0.5] * len(output)], ["stop"]


def sampled(tokenizer: Any, conversation: list[dict[str, Any]]) -> Any:
    """Return the state of a real ManagedServer that was asked for each assistant message of the conversation."""
    from atroposlib.envs.server_handling.managed_server import ManagedServer

    places = [place for place, message in enumerate(conversation) if message["role"] == "assistant"]
    server = SamplingServer(tokenizer, [conversation[place]["content"] for place in places])
    managed = ManagedServer(server=server, tokenizer=tokenizer)

    async def ask() -> None:
        for place in places:
            await managed.chat_completion(messages=conversation[:place], n=1)

    asyncio.run(ask())
    return managed.get_state()


def test_one_node_holds_the_conversation(tokenizer: Any) -> None:
    """Text, tokens and metadata are the real server's; what is trained on is what the assistant said, with its ends of turn."""
    result = LOOKED.say("a.txt").with_nodes(tokenizer)

    tool, answer = result.messages[2:]
    as_written = {"role": "assistant", "content": f"I look.\n{CALL}"}
    (expected,) = sampled(tokenizer, [result.messages[0], as_written, tool, answer])["nodes"]
    (node,) = result.managed_state["nodes"]
    assert (type(node), node.full_text, node.tokens, node.metadata) == (
        type(expected),
        expected.full_text,
        expected.tokens,
        expected.metadata,
    )
    trained = [token for token in node.masked_tokens if token != -100]
    assert tokenizer.decode(trained) == f"I look.\n{CALL}<|im_end|>a.txt<|im_end|>"


def test_masks_and_logprobs_are_as_long_as_the_tokens(tokenizer: Any) -> None:
    """A label is its token or -100; a logprob is negative where there is a label, else the filler 1.0."""
    (node,) = LOOKED.say("a.txt").with_nodes(tokenizer).managed_state["nodes"]

    rows = list(zip(node.tokens, node.masked_tokens, node.logprobs, strict=True))
    assert all(mask in {-100, token} for token, mask, _ in rows)
    assert all(logprob == 1.0 if mask == -100 else -2.0 <= logprob < 0.0 for _, mask, logprob in rows)
    assert len({logprob for _, mask, logprob in rows if mask != -100}) > 10


def test_a_path_is_as_good_as_a_tokenizer(tokenizer: Any, hermes_tokenizer: str) -> None:
    """The fixture hermes_tokenizer gives one, and it is what the expression shows."""
    result = agent_result.say("42").with_nodes(hermes_tokenizer)

    assert result == agent_result.say("42").with_nodes(tokenizer)
    assert repr(result) == f"agent_result.say('42').with_nodes({hermes_tokenizer!r})"
    assert repr(agent_result.say("42").with_nodes(tokenizer)) == repr(result)


def test_a_template_that_rewrites_history_splits_the_nodes(tokenizer: Any) -> None:
    """As it does on the real server: what was said is no longer the beginning of the next prompt."""
    tokenizer.chat_template = "{{ messages | length }}" + tokenizer.chat_template

    result = LOOKED.say("a.txt").with_nodes(tokenizer)

    assert len(result.managed_state["nodes"]) == 2
