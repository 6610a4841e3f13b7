r"""Hints from what followed a turn: a judge reads a turn and its next state, and says what would have helped, if anything.

Place in the flow: `AgenticOPDEnv` asks several judges about each turn, with `judge_messages`, and takes the hint that `majority_hint`
returns. `turns_of` finds the turns of a conversation.

Source: the votes (``\boxed{1}``, ``\boxed{-1}``) and the marks of a hint are those of hermes-agent's former environment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from environments.chat_messages import message_text
from environments.scoring import transcript

__all__ = ["Turn", "judge_messages", "majority_hint", "turns_of"]

SHORTEST_HINT = 11
"""Characters; less is no hint."""

_VOTE = re.compile(r"\\boxed\{\s*([+-]?1)\s*\}")
_HINT = re.compile(r"\[HINT_START\](.*?)\[HINT_END\]", re.DOTALL)

_TASK = (
    "You review one turn of an AI agent. You see the turn, and the next state: what came back after it, such as the output of a tool. "
    "Decide whether the next state shows something that would have helped the agent to take a better turn, had it known it before: "
    "an error and its cause, a wrong assumption, a missing step.\n"
    "If it does, write a hint of one to three sentences between [HINT_START] and [HINT_END], concrete and addressed to the agent, and "
    "end with \\boxed{1}. Only write what the next state shows. If it does not, or the turn was right, end with \\boxed{-1}."
)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn of the model: its number among the replies, from 0; its text, and what followed it, which may be empty."""

    number: int
    reply: str
    next_state: str


def turns_of(messages: Sequence[dict[str, Any]]) -> list[Turn]:
    """Return the turns of a conversation."""
    places = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
    ends = [*places[1:], len(messages)]
    return [
        Turn(
            number=number,
            reply=transcript([messages[place]]),
            next_state="\n".join(message_text(message.get("content")) for message in messages[place + 1 : end]).strip(),
        )
        for number, (place, end) in enumerate(zip(places, ends, strict=True))
    ]


def judge_messages(turn: Turn, *, max_chars: int) -> list[dict[str, str]]:
    """Return the question about a turn; the next state is cut to ``max_chars``, in its middle."""
    state = turn.next_state
    if len(state) > max_chars:
        state = f"{state[: max_chars // 2]}\n[...]\n{state[len(state) - max_chars // 2 :]}"
    return [
        {"role": "system", "content": _TASK},
        {"role": "user", "content": f"## Turn\n{turn.reply}\n\n## Next state\n{state}"},
    ]


def majority_hint(answers: Sequence[str]) -> str | None:
    """Return the longest hint, if more than half of the judges gave one."""
    hints = [hint for answer in answers if (hint := _hint_of(answer))]
    return max(hints, key=len) if 2 * len(hints) > len(answers) else None


def _hint_of(answer: str) -> str:
    votes, hints = _VOTE.findall(answer), _HINT.findall(answer)
    hint = hints[-1].strip() if hints else ""
    return hint if votes and int(votes[-1]) == 1 and len(hint) >= SHORTEST_HINT else ""
