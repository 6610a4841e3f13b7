"""How the reasoning of a reply is separated from its content."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from environments.chat_template import ChatTemplate
from environments.model_reply import ReplyReader, opens_thought
from environments.tool_call_parsers.marked_text import EVERY_THINK_TAG

CALL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture
def reader():
    specials = [tag for pair in EVERY_THINK_TAG for tag in pair]
    return ReplyReader(ChatTemplate(SimpleNamespace(all_special_tokens=[*specials, "<|end|>"])), "hermes")


@pytest.mark.parametrize(("opening", "closing"), EVERY_THINK_TAG)
def test_thought_of_every_family_is_reasoning(reader, opening, closing):
    """Opened by the model or by the template; a call in it is thought, not made."""
    inside = f"hm {CALL}{closing}\n\ndone"
    own = reader.read(f"{opening}{inside}<|end|>", end="<|end|>", tools=TOOLS, is_thinking=False)
    opened = reader.read(f"{inside}<|end|>", end="<|end|>", tools=TOOLS, is_thinking=opens_thought(f"<|assistant|>{opening}\n"))

    assert own == opened
    assert (own.reasoning, own.content, own.calls) == (f"hm {CALL}", "done", [])


def test_calls_after_a_thought_are_made(reader):
    """The thought ends at its own tag: another family's is text in it."""
    reply = reader.read(f"[THINK]a</think>b[/THINK]{CALL}", end="", tools=TOOLS, is_thinking=False)

    assert (reply.reasoning, [call["function"]["name"] for call in reply.calls]) == ("a</think>b", ["look"])


@pytest.mark.parametrize("prompt", ["<|assistant|>", "<think></think>", "the tag <think> is text"])
def test_other_prompts_open_no_thought(prompt):
    """Only an opening tag at the end does."""
    assert not opens_thought(prompt)
