"""From rollouts and rewards to what the trainer gets: pure functions, no I/O, no state.

Place in the flow: `HermesAgentBaseEnv.collect_trajectory` scores one rollout with `chat_item`; `collect_trajectories` joins the
items of a group with `group_of`.

Shapes: ``tokens [T]`` token ids; ``masks [T]`` -100 where nothing is trained, else the token id; ``inference_logprobs [T]`` in
nats. A group holds a list of each, one entry per rollout.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from typing import Any

from environments.agent_loop import message_text

__all__ = ["IGNORED", "as_reward", "chat_item", "did_work", "group_of", "transcript"]

logger = logging.getLogger(__name__)

IGNORED = -100
"""The label of a position that nothing is trained on."""

PLACEHOLDER = {"placeholder_tokens": True}
"""Marks an item whose tokens are not those that the model sampled: chat mode is for data and evaluation, not for training."""

_PER_ITEM = ("tokens", "masks", "scores")
_OPTIONAL = (
    "messages",
    "inference_logprobs",
    "advantages",
    "ref_logprobs",
    "overrides",
    "images",
    "distill_token_ids",
    "distill_logprobs",
)
_JOINED = {*_PER_ITEM, *_OPTIONAL, "group_overrides"}


_NUMPY_BOOLS = frozenset({"bool", "bool_"})


def as_reward(value: object) -> float:
    """Return ``value`` as a float. Raises: ValueError for what is no reward: None, a bool, text, NaN, infinity."""
    what = f"{type(value).__name__} {str(value)[:80]!r}"
    if isinstance(value, bool) or type(value).__name__ in _NUMPY_BOOLS or not hasattr(value, "__float__"):
        raise ValueError(f"compute_reward must return a number, got {what}")
    try:
        number = float(value)  # type: ignore[arg-type] - it has __float__
    except (TypeError, OverflowError) as error:
        raise ValueError(f"compute_reward must return one number, got {what}: {error}") from error
    if not math.isfinite(number):
        raise ValueError(f"compute_reward must return a finite number, got {number}")
    return number


def did_work(messages: Sequence[dict[str, Any]]) -> bool:
    """Tell whether the model said anything: more came back than system and user messages."""
    return any(message.get("role") not in {"system", "user"} for message in messages)


def chat_item(tokenizer: Any, messages: list[dict[str, Any]], reward: float) -> dict[str, Any]:
    """Return the ScoredDataItem of a chat-mode rollout, with placeholder tokens.

    The whole conversation is tokenised; every label but the first is its token, or none when the model said nothing. The item
    is marked with ``overrides["placeholder_tokens"]``: these are not the tokens that were sampled.
    """
    tokens = list(tokenizer.encode(transcript(messages)))
    masks = [IGNORED, *tokens[1:]][: len(tokens)] if did_work(messages) else [IGNORED] * len(tokens)
    return {
        "tokens": tokens,
        "masks": masks,
        "scores": reward,
        "messages": messages,
        "overrides": dict(PLACEHOLDER),
    }


def transcript(messages: Sequence[dict[str, Any]]) -> str:
    """Return a conversation as plain text: contents and tool calls, one per line."""
    lines: list[str] = []
    for message in messages:
        lines.append(message_text(message.get("content")))
        for call in message.get("tool_calls") or ():
            function = call["function"]
            lines.append(json.dumps({"name": function["name"], "arguments": function["arguments"]}, ensure_ascii=False))
    return "\n".join(line for line in lines if line)


def group_of(items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the items of one group into a ScoredDataGroup; every list has one entry per item.

    An optional column is kept when all items have it. A column that only some have is an error, because its entries could not
    be told apart afterwards. A key that a group has no place for is left out, with a warning. Raises: ValueError.
    """
    unknown = sorted({key for item in items for key, value in item.items() if value is not None} - _JOINED)
    if unknown:
        logger.warning("A group has no place for %s of its items; it is left out", unknown)
    group: dict[str, Any] = {name: [item[name] for item in items] for name in _PER_ITEM}
    for name in _OPTIONAL:
        values = [item.get(name) for item in items]
        missing = sum(value is None for value in values)
        if missing not in {0, len(items)} and name != "overrides":
            raise ValueError(f"{missing} of {len(items)} items of the group have no {name!r}; all must have it, or none")
        if name == "overrides":
            values = [value or {} for value in values] if missing < len(items) else []
        group[name] = values if missing < len(items) else None
    group["group_overrides"] = {}
    for item in items:
        group["group_overrides"].update(item.get("group_overrides") or {})
    return group
