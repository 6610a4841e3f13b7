"""The hints of judges, and the teacher's distribution for the tokens that the student sampled: the same model, which got a hint.

Judges read the turns of a rollout, and say what would have helped the agent at some of them. `AgenticOPDEnv` puts the question of
`judge_messages` to several of them, once for each rollout, and takes the hints that `majority_hints` returns.

Shapes: ``ids`` and ``logprobs`` [position][top_k] of a `Distribution` belong to the tokens at the same positions of the sequence,
as ``masks`` and ``inference_logprobs`` do. Units: nats.

Place in the flow: `AgenticOPDEnv.distill` asks for the `Distribution` of a row, and replaces in it the turns with a hint.

Source: atroposlib 0.4.0, ``ScoredDataGroup.distill_token_ids`` and ``APIServer.get_logprobs``.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import aiohttp

from environments.loop.messages import message_text
from environments.tokens.answer_checks import TokenModeError, without_credentials
from environments.tokens.exact_tokens import ExactServer
from environments.trainer.scoring import IGNORED, transcript


class TeacherError(ValueError):
    """The model server's answer does not have a distribution for each token."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The most likely tokens at each position, the most likely first, and their logprobs."""

    ids: list[list[int]]
    logprobs: list[list[float]]

    def replaced(self, start: int, other: Distribution) -> Distribution:
        """Return this with the last positions of ``other`` from ``start`` on: as many as ``other`` has."""
        stop = start + len(other.ids)
        return Distribution(
            ids=[*self.ids[:start], *other.ids, *self.ids[stop:]],
            logprobs=[*self.logprobs[:start], *other.logprobs, *self.logprobs[stop:]],
        )


def sampled_spans(masks: Sequence[int]) -> list[tuple[int, int]]:
    """Return (start, stop) of each run of positions with a label: the model's turns."""
    runs = [
        (is_sampled, [*run]) for is_sampled, run in itertools.groupby(range(len(masks)), lambda place: masks[place] != IGNORED)
    ]
    return [(run[0], run[-1] + 1) for is_sampled, run in runs if is_sampled]


def hinted_prompt(tokenizer: Any, prompt: Sequence[int], request: str, hint: str) -> list[int] | None:
    """Return a prompt with ``hint`` after the user's ``request``; all else stays as it was sampled. None if the request is not in it.

    The request is where its text comes first: later it would be quoted by the model or a tool.
    """
    text = tokenizer.decode(prompt, skip_special_tokens=False)
    request = request.strip()
    if not request or request not in text:
        return None
    before, _, after = text.partition(request)
    ids: list[int] = tokenizer.encode(f"{before}{request}\n\n[hint]\n{hint}{after}", add_special_tokens=False)
    return ids


async def distribution_of(server: Any, tokens: Sequence[int], *, top_k: int, start: int = 0) -> Distribution:
    """Return the model's distribution for the tokens from ``start`` on, given those before each.

    Nothing comes before the first token of a sequence, and no trainer predicts it: there it is certain.

    Raises: TeacherError unless there are ``top_k`` tokens at each position.
    """
    answer = await server.get_logprobs(input_ids=list(tokens), top_k=top_k)
    rows = list(zip(answer["prompt_topk_token_ids"], answer["prompt_topk_logprobs"], strict=True))
    if len(rows) != len(tokens):
        raise TeacherError(f"the model server returned logprobs of {len(rows)} positions for {len(tokens)} tokens")
    ranked = [sorted(zip(*row, strict=True), key=lambda pair: -pair[1])[:top_k] for row in rows]
    if start == 0:
        ranked[0] = [(tokens[0], 0.0)] * top_k
    short = next((place for place, row in enumerate(ranked[start:], start) if len(row) < top_k), None)
    if short is not None:
        raise TeacherError(f"the model server returned {len(ranked[short])} tokens at position {short}, {top_k} were asked for")
    return Distribution(
        ids=[[token for token, _ in row] for row in ranked[start:]],
        logprobs=[[logprob for _, logprob in row] for row in ranked[start:]],
    )


PROMPT = (10, 20, 30)
"""Ids that every vocabulary has."""


async def teacher_problem(server: ExactServer, top_k: int) -> str:
    """Return why a model server is no teacher, or "": it is asked once, for the logprobs of a short prompt."""
    try:
        once = SimpleNamespace(get_logprobs=server._get_logprobs_wrapper)  # atroposlib's get_logprobs tries three times
        await distribution_of(once, PROMPT, top_k=top_k)
    except (aiohttp.ClientError, OSError, TimeoutError, TokenModeError, TeacherError) as error:
        said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error) or type(error).__name__
        return (
            f"The model server {without_credentials(str(server.config.base_url))} does not return a teacher's distribution.\n"
            f"  expected  the {top_k} likeliest tokens at each position of a prompt\n"
            f"  seen      {server.without_key(said)}\n"
            f"  fix       `vllm serve --max-logprobs {top_k}` (its default is 20), or SGLang's server\n"
            "            or --env.distill_topk with fewer, or --env.opd_enabled false"
        )
    return ""


# ---------------------------------------------------------------------- hints from what followed each turn

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
