"""Turns rollouts and rewards into data for the trainer: pure functions, no I/O, no state.

Place in the flow: `HermesAgentBaseEnv.collect_trajectory` scores one rollout with `chat_item` or `token_item`;
`collect_trajectories` joins the items of a group with `group_of`; `handle_send_to_api` splits it with `layers_of`.

Shapes: ``tokens [T]`` token ids; ``masks [T]`` -100 where nothing is trained, else the token id; ``inference_logprobs [T]`` in
nats, 1.0 where masked. A group holds a list of each, one row per rollout; a rollout that became several sequences has several.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from typing import Any, Literal

from environments.agent_loop import message_text

__all__ = [
    "IGNORED",
    "SplitRollouts",
    "as_reward",
    "chat_item",
    "did_work",
    "group_of",
    "layers_of",
    "token_item",
    "too_long",
    "transcript",
]

logger = logging.getLogger(__name__)

IGNORED = -100
"""The label of a position that is not trained on."""

FILLER_LOGPROB = 1.0
"""The value in ``inference_logprobs`` where nothing was sampled. Source: atroposlib 0.4.0, ManagedServer."""

SplitRollouts = Literal["keep", "reject"]
"""Treatment of a rollout that became several sequences: all of them train, or none."""

MORE_ROWS = "more_rows"
"""The key of an item for the further sequences of its rollout."""

PLACEHOLDER = {"placeholder_tokens": True}
"""Marks an item whose tokens are not the sampled ones: chat mode is for data and evaluation, not for training."""

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
_JOINED = {*_PER_ITEM, *_OPTIONAL, "group_overrides", MORE_ROWS}

_NUMPY_BOOLS = frozenset({"bool", "bool_"})


def as_reward(value: object) -> float:
    """Return ``value`` as a float. Raises: ValueError for anything that is not a reward: None, a bool, text, NaN, infinity."""
    what = f"{type(value).__name__} {str(value)[:80]!r}"
    if isinstance(value, bool) or type(value).__name__ in _NUMPY_BOOLS or not hasattr(value, "__float__"):
        raise ValueError(f"compute_reward must return a number, got {what}")
    try:
        number = float(value)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"compute_reward must return one number, got {what}: {error}") from error
    if not math.isfinite(number):
        raise ValueError(f"compute_reward must return a finite number, got {number}")
    return number


def did_work(messages: Sequence[dict[str, Any]]) -> bool:
    """Return whether the model returned anything: whether there are messages other than system and user messages."""
    return any(message.get("role") not in {"system", "user"} for message in messages)


def chat_item(tokenizer: Any, messages: list[dict[str, Any]], reward: float) -> dict[str, Any]:
    """Return the ScoredDataItem of a chat-mode rollout, with placeholder tokens.

    The whole conversation is tokenised; every label but the first is its token, and all are masked if the model returned nothing.
    The item is marked with ``overrides["placeholder_tokens"]``: these are not the sampled tokens.
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


def token_item(
    nodes: Sequence[Any],
    messages: list[dict[str, Any]],
    reward: float,
    *,
    rollout_id: str,
    prompt_tokens: Sequence[int] = (),
    split_rollouts: SplitRollouts = "keep",
) -> dict[str, Any]:
    """Return the ScoredDataItem of a token-mode rollout: exactly the sampled tokens, with their logprobs.

    ``nodes`` are ManagedServer's. If there are several, the item is the first, with the others under ``more_rows``: `group_of`
    makes a row of each, all with the rollout's reward and with its id in ``overrides``; ``split_rollouts="reject"`` keeps only the
    first row, with every label masked, so that the rollout still counts in the group's mean. If the model returned nothing,
    the item is ``prompt_tokens``, all masked.
    """
    if not did_work(messages):
        tokens = list(nodes[0].tokens if nodes else prompt_tokens)
        return _masked({"tokens": tokens, "scores": reward, "messages": messages})
    if not nodes:
        raise ValueError(f"Rollout {rollout_id} has replies of the model, but its server has no tokens of them")
    rows = [_row(node, messages, reward, rollout_id) for node in nodes]
    if len(rows) == 1:
        return rows[0]
    for number, row in enumerate(rows):
        row["overrides"] = {"rollout_id": rollout_id, "sequence": number, "sequences": len(rows)}
    if split_rollouts == "reject":
        return _masked({**rows[0], "overrides": {**rows[0]["overrides"], "rejected": "split"}})
    return {**rows[0], MORE_ROWS: rows[1:]}


def _row(node: Any, messages: list[dict[str, Any]], reward: float, rollout_id: str) -> dict[str, Any]:
    columns = {"tokens": node.tokens, "masks": node.masked_tokens, "inference_logprobs": node.logprobs}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"The columns of a sequence of rollout {rollout_id} have different lengths: {lengths}")
    return {**{name: list(column) for name, column in columns.items()}, "scores": reward, "messages": messages}


def _masked(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with every label masked."""
    count = len(row["tokens"])
    return {**row, "masks": [IGNORED] * count, "inference_logprobs": [FILLER_LOGPROB] * count}


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
    """Join the items of one group into a ScoredDataGroup; every list has one entry per row.

    An item is one row, plus one for each of its ``more_rows``; ``group_overrides.group_size`` is then the number of rows, which
    atroposlib requires. An optional column is kept when all rows have it. A column that only some rows have is an error, because
    its entries could not be assigned to rows. A key that a group cannot hold is left out, with a warning.
    Raises: ValueError.
    """
    rollouts = len(items)
    items = [row for item in items for row in (item, *item.get(MORE_ROWS, ()))]
    unknown = sorted({key for item in items for key, value in item.items() if value is not None} - _JOINED)
    if unknown:
        logger.warning("A group cannot hold %s of its items; it is left out", unknown)
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
    if len(items) != rollouts:
        group["group_overrides"]["group_size"] = len(items)
    return group


# ---------------------------------------------------------------------- groups for the trainer


def layers_of(group: dict[str, Any], group_size: int) -> list[dict[str, Any]]:
    """Return the groups to send for ``group``: itself, or several when a rollout in it has several rows.

    The trainer's queue accepts only groups of ``group_size`` rows; a larger one would stay in its buffer forever. The n-th
    group therefore has the n-th row of every rollout. A rollout without an n-th row is represented by a filler of two masked
    tokens with its score: each group has the scores of all rollouts, and advantages are the same as for the whole.
    """
    rollouts = _rows_by_rollout(group)
    depth = max((len(rows) for rows in rollouts), default=0)
    if depth <= 1:
        return [group]
    overrides = {name: value for name, value in (group.get("group_overrides") or {}).items() if name != "group_size"}
    if len(rollouts) != group_size:
        overrides["group_size"] = len(rollouts)
    columns = [name for name in (*_PER_ITEM, *_OPTIONAL) if group.get(name) is not None]
    layers = []
    for number in range(depth):
        rows = [
            _columns_of(group, columns, rows[number]) if number < len(rows) else _filler(_columns_of(group, columns, rows[0]))
            for rows in rollouts
        ]
        layer = {**group, **{name: [row[name] for row in rows] for name in columns}, "group_overrides": dict(overrides)}
        layers.append(layer)
    return layers


def _rows_by_rollout(group: dict[str, Any]) -> list[list[int]]:
    """Return the row numbers of each rollout; a row without a rollout id is a separate rollout."""
    overrides = group.get("overrides") or [{}] * len(group.get("tokens", ()))
    rollouts: dict[Any, list[int]] = {}
    for row, override in enumerate(overrides):
        rollouts.setdefault((override or {}).get("rollout_id", row), []).append(row)
    return list(rollouts.values())


def _columns_of(group: dict[str, Any], columns: Sequence[str], row: int) -> dict[str, Any]:
    return {name: group[name][row] for name in columns}


FILLER_TOKENS = 2
"""The length of a filler: trainers predict each token from the one before, so a single token would be an empty sequence."""

_PER_TOKEN = ("tokens", "masks", "inference_logprobs", "advantages", "ref_logprobs", "distill_token_ids", "distill_logprobs")


def _filler(row: dict[str, Any]) -> dict[str, Any]:
    """Return a masked row that represents a rollout by its score."""
    short = {
        name: value[:FILLER_TOKENS] if name in _PER_TOKEN and isinstance(value, list) else value for name, value in row.items()
    }
    masked = {**short, **{name: value for name, value in _masked(short).items() if name in row}}
    return {**masked, "overrides": {**(row.get("overrides") or {}), "filler": True}}


def too_long(group: dict[str, Any], max_token_len: int) -> list[int]:
    """Return the lengths, in tokens, of the rows whose length makes atroposlib drop the whole group."""
    return [len(row) for row in group.get("tokens", ()) if len(row) >= max_token_len] if max_token_len > 0 else []
