"""A thought is reasoning, not content, whatever the family writes it in."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from environments.agent_loop import HermesAgentLoop
from environments.loop.thoughts import THINK_TAGS, opened_thought, split_thought
from environments.tokens.chat_template import ChatTemplate
from environments.tokens.model_reply import ReplyReader

CALL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
HUNYUAN = {"<think:opensource>": "</think:opensource>"}


@pytest.fixture
def reader():
    specials = [*THINK_TAGS, *THINK_TAGS.values(), "<|end|>"]
    return ReplyReader(ChatTemplate(SimpleNamespace(all_special_tokens=specials)), "hermes")


@pytest.mark.parametrize(("opening", "closing"), [*THINK_TAGS.items(), *HUNYUAN.items()])
def test_thought_of_every_family_is_reasoning(reader, opening, closing):
    """Opened by the model or by the template; a call in it is thought, not made."""
    inside = f"hm {CALL}{closing}\n\ndone"
    own = reader.read(f"{opening}{inside}<|end|>", end="<|end|>", tools=TOOLS)
    prompt = f"<|assistant|>{opening}\n"
    opened = reader.read(f"{inside}<|end|>", end="<|end|>", tools=TOOLS, opened=opened_thought(prompt))

    assert own == opened
    assert (own.reasoning, own.content, own.calls) == (f"hm {CALL}", "done", [])


@pytest.mark.parametrize(("opening", "closing"), [*THINK_TAGS.items(), *HUNYUAN.items()])
def test_thought_that_a_chat_server_left_in_the_content_is_reasoning(fake, opening, closing):
    """A server without a reasoning parser. A call in the thought is not made, one after it is."""
    server = fake.server(
        fake.completion(f"{opening}\nhm {CALL}\n{closing}\n\n{CALL}"), fake.completion(f"{opening}so{closing}done")
    )

    result = asyncio.run(HermesAgentLoop(server, [fake.schema("look")], {"look"}, max_turns=2).run([]))

    first, _, last = result.messages
    assert result.reasoning_per_turn == [f"hm {CALL}", "so"]
    assert (first["content"], len(first["tool_calls"]), first["reasoning_content"]) == ("", 1, f"hm {CALL}")
    assert (last["content"], last["reasoning_content"]) == ("done", "so")


@pytest.mark.parametrize("text", ["I <think>hm</think>", "a </think> b", "<thinker>a</thinker>", "<|message|>text"])
def test_other_text_is_content(fake, text):
    """Tags within a reply, half a pair, and tags that only look alike."""
    result = asyncio.run(HermesAgentLoop(fake.server(fake.completion(text)), [], set()).run([]))

    assert (result.messages[-1]["content"], result.reasoning_per_turn) == (text, [None])


def test_reasoning_of_the_server_leaves_the_content_alone(fake):
    """Its reasoning parser has split the reply: what it left is content."""
    server = fake.server(fake.completion("<think>b</think>c", reasoning_content="a"))

    result = asyncio.run(HermesAgentLoop(server, [], set()).run([]))

    assert (result.messages[-1]["content"], result.reasoning_per_turn) == ("<think>b</think>c", ["a"])


def test_calls_after_a_thought_are_made(reader):
    """The thought ends at its own tag: another family's is text in it."""
    reply = reader.read(f"[THINK]a</think>b[/THINK]{CALL}", end="", tools=TOOLS)

    assert (reply.reasoning, [call["function"]["name"] for call in reply.calls]) == ("a</think>b", ["look"])


def test_thought_that_the_template_opened_ends_at_the_tag_of_its_family():
    """The prompt tells which it is."""
    opened = opened_thought("<|im_start|>assistant\n<think>\n")

    assert split_thought("[/THINK] hm</think>done", opened) == ("[/THINK] hm", "done")


@pytest.mark.parametrize("prompt", ["<|assistant|>", "<think></think>", "the tag <think> is text", "<think:a b>"])
def test_other_prompts_open_no_thought(prompt):
    """Only an opening tag at the end does."""
    assert opened_thought(prompt) is None


def test_hostile_text_takes_linear_time():
    """Many openings, none of which is closed."""
    for part in ("<think>", "<think:", "[THINK]"):
        text = part * 100_000
        thought, rest = split_thought(text)
        assert len(thought) + len(rest) <= len(text)
