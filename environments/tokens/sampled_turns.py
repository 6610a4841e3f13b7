"""The replies that were sampled in a rollout, and why a prompt does not continue them: it then starts a new sequence.

Place in the flow: `token_mode.RolloutServer` keeps a `Turn` for every reply. Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
Tools = list[dict[str, Any]] | None

LONG_TEXT = 32_768
"""Characters above which a conversation is tokenised in a thread, in parts of this length: about 0.1 s each."""

INCOMPLETE = "incomplete"
"""The key in a node's metadata for the positions, from and to, of replies that the server did not finish."""

CONTEXT = 40
"""Characters shown on both sides of the position where a rollout split."""


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """A sampled text with its prompt; ``end`` is the token that ended it, which may be empty."""

    prompt: str
    text: str
    end: str
    finish_reason: Any
    prompt_tokens: Sequence[int] = ()
    tokens: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Turn(Sampled):
    """One sampled reply: ``asked`` and ``tools`` are its request, ``reply`` is its message in the conversation."""

    asked: tuple[str, ...]
    tools: Tools
    reply: str

    @property
    def position(self) -> int:
        """The index of the reply in the conversation."""
        return len(self.asked)

    @property
    def spoken(self) -> str:
        """The sampled text without the token that ended it."""
        return self.text[: len(self.text) - len(self.end)]

    def continued(self, rest: str) -> str:
        """Return prompt, reply and ``rest``, without a second end of the turn.

        If ``rest`` does not begin with the token that ended the reply, the sampled text stays complete.
        """
        start = rest.lstrip()
        if self.end and start.startswith(self.end):
            rest = start[len(self.end) :]
        return self.prompt + self.text + rest


def fingerprint(message: Message) -> str:
    """Return the parts of a message that identify it. Reasoning is left out: the sampled text has it, or the template adds none."""
    calls = [
        (call.get("id"), call.get("function", {}).get("name"), call.get("function", {}).get("arguments"))
        for call in message.get("tool_calls") or ()
    ]
    parts = [message.get("role"), message.get("content") or "", calls, message.get("tool_call_id"), message.get("name")]
    return json.dumps(parts, ensure_ascii=False, default=str)


def cause_of_split(
    turn: Turn, messages: Sequence[Message], tools: Tools, node_texts: Sequence[str], *, rendering: str, template: str
) -> tuple[str, str]:
    """Return why the prompt of ``messages`` does not continue a turn, and what to do about it."""
    changed = _changed_message(turn, messages)
    if changed is not None:
        return f"message {changed} has changed since the model answered", "Only append to a conversation."
    if (turn.tools or None) != (tools or None):
        return "the offered tools have changed", "Offer the same tools in every turn."
    if turn.position >= len(messages) or all(text != turn.prompt + turn.text for text in node_texts):
        return "the conversation went back to an earlier turn", "Each continuation becomes a separate sequence."
    if rendering == "template":
        return (
            f"the chat template of {template!r} renders earlier turns differently from what was sampled",
            'history_rendering="sampled" keeps the sampled text, in one sequence.',
        )
    return (
        f"the chat template of {template!r} does not mark where a reply ends",
        "A template that ends the last reply like the others keeps one sequence.",
    )


def first_difference(turn: Turn, prompt: str) -> str:
    """Return where a prompt stops to continue a turn, with both texts around that character."""
    text = turn.prompt + turn.text
    at = next((i for i, pair in enumerate(zip(text, prompt, strict=False)) if pair[0] != pair[1]), min(len(text), len(prompt)))
    return f"The prompts differ first at character {at}: so far {_around(text, at)!r}, now {_around(prompt, at)!r}."


def _changed_message(turn: Turn, messages: Sequence[Message]) -> int | None:
    """Return the index of the first message that has changed since the turn; None when none has."""
    seen = (*turn.asked, turn.reply)
    now = tuple(map(fingerprint, messages))
    return next((i for i in range(min(len(seen), len(now))) if seen[i] != now[i]), None)


def _around(text: str, at: int) -> str:
    return text[max(0, at - CONTEXT) : at + CONTEXT]
