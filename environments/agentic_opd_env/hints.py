"""Hints from what followed each turn: judges read the turns of a rollout, and say what would have helped the agent at some of them.

Place in the flow: `AgenticOPDEnv` puts the question of `judge_messages` to several judges, once for each rollout, and takes the hints
that `majority_hints` returns. `turns_of` finds the turns of a conversation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from environments.loop.messages import message_text
from environments.trainer.scoring import transcript

SHORTEST_HINT = 11
"""Characters that a hint must have."""

_HINT = re.compile(r"\[HINT_START (\d{1,4})\](.*?)\[HINT_END\]", re.DOTALL)

_TASK = (
    "You review the turns of an AI agent. After each turn you see its next state: what came back after it, such as the output of a "
    "tool. For each turn, decide whether its next state shows something that would have helped the agent to take a better turn, had it "
    "known it before: an error and its cause, a wrong assumption, a missing step.\n"
    "If it does, write a hint of one to three sentences, concrete and addressed to the agent, after [HINT_START n], where n is the "
    "number of the turn, and before [HINT_END]. Only write what the next state of that turn shows. Write nothing about turns that were "
    "right; if all were, answer NONE."
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
    ends = [*places[1:], len(messages)][: len(places)]
    return [
        Turn(
            number=number,
            reply=transcript([messages[place]]),
            next_state="\n".join(message_text(message.get("content")) for message in messages[place + 1 : end]).strip(),
        )
        for number, (place, end) in enumerate(zip(places, ends, strict=True))
    ]


def judge_messages(turns: Sequence[Turn], *, max_chars: int) -> list[dict[str, str]]:
    """Return the question about turns; each next state is cut to ``max_chars``, in its middle."""
    parts = [
        f"## Turn {turn.number}\n{turn.reply}\n\n## Next state of turn {turn.number}\n{_cut(turn.next_state, max_chars)}"
        for turn in turns
    ]
    return [{"role": "system", "content": _TASK}, {"role": "user", "content": "\n\n".join(parts)}]


def _cut(text: str, max_chars: int) -> str:
    half = max_chars // 2
    return text if len(text) <= max_chars else f"{text[:half]}\n[...]\n{text[len(text) - half :]}"


def majority_hints(answers: Sequence[str], *, votes: int) -> dict[int, str]:
    """Return the hints by the numbers of their turns: the longest one, if more than half of ``votes`` judges gave one for the turn.

    A judge whose answer is missing, because a server ignores ``n``, gave none.
    """
    given: dict[int, list[str]] = defaultdict(list)
    for answer in answers:
        for number, hint in {int(number): hint.strip() for number, hint in _HINT.findall(answer)}.items():
            if len(hint) >= SHORTEST_HINT:
                given[number].append(hint)
    return {number: max(hints, key=len) for number, hints in given.items() if 2 * len(hints) > votes}
