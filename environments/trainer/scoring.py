"""Turns rollouts and rewards into data for the trainer: pure functions, no I/O, no state.

Place in the flow: `HermesAgentBaseEnv.collect_trajectory` scores one rollout with `chat_item` or `token_item`;
`collect_trajectories` joins the items of a group with `group_of`; `trainer_groups` makes of it what is sent.

Shapes: ``tokens [T]`` token ids; ``masks [T]`` -100 where nothing is trained, else the token id; ``inference_logprobs [T]`` in
nats, 1.0 where masked. A group holds a list of each, one row per rollout; a rollout that became several sequences has several.
"""

from __future__ import annotations

import functools
import json
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from environments.loop.end import RolloutEnd
from environments.loop.messages import message_text
from environments.tokens.sampled_turns import INCOMPLETE, LONG_TEXT

logger = logging.getLogger(__name__)

IGNORED = -100
"""The label of a position that is not trained on."""

FILLER_LOGPROB = 1.0
"""The value in ``inference_logprobs`` where nothing was sampled. Source: atroposlib 0.4.0, ManagedServer."""

SplitRollouts = Literal["sample", "keep", "reject"]
"""Treatment of a rollout that became several sequences: one of them trains, all of them, or none."""

TruncatedTurns = Literal["mask", "train", "drop"]
"""Treatment of a reply that was cut by length: it is masked, it trains, or its rollout is left out of the group."""


class UnearnedScore(float):
    """The score of a failed rollout, which no reward gave.

    The type survives in groups that an environment builds itself, where ``overrides`` are often lost.
    """


ADVANTAGE_TO_ZERO = {"set_advantage_to_zero": True}
"""Tells Atropos' trainer not to train on a row, whatever its score is."""

MORE_ROWS = "more_rows"
"""The key of an item for the further sequences of its rollout."""

PLACEHOLDER = {"placeholder_tokens": True}
"""Marks an item whose tokens are not the sampled ones: chat mode is for data and evaluation, not for training."""

PER_ITEM = ("tokens", "masks", "scores")
OPTIONAL = (
    "messages",
    "inference_logprobs",
    "advantages",
    "ref_logprobs",
    "overrides",
    "images",
    "distill_token_ids",
    "distill_logprobs",
)
_JOINED = {*PER_ITEM, *OPTIONAL, "group_overrides", "generation_params", MORE_ROWS}

_NUMPY_BOOLS = frozenset({"bool", "bool_"})


def as_reward(value: object, source: str = "compute_reward") -> float:
    """Return ``value``, which ``source`` returned, as a float; a bool is 1.0 or 0.0, with a warning, once for each ``source``.

    Raises: ValueError for anything that is not a reward: None, text, NaN, infinity.
    """
    what = f"{type(value).__name__} {str(value)[:80]!r}"
    if isinstance(value, bool) or type(value).__name__ in _NUMPY_BOOLS:
        _warn_of_bool(source)
        return float(bool(value))
    if not hasattr(value, "__float__"):
        raise ValueError(f"{source} must return a number, got {what}")
    try:
        number = float(value)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{source} must return one number, got {what}: {error}") from error
    if not math.isfinite(number):
        raise ValueError(f"{source} must return a finite number, got {number}")
    return number


@functools.cache
def _warn_of_bool(source: str) -> None:
    logger.warning("%s returned a bool, which is taken as 1.0 or 0.0: return a number (logged once)", source)


def did_work(messages: Sequence[dict[str, Any]]) -> bool:
    """Return whether the model returned anything: whether there are messages other than system and user messages."""
    return any(message.get("role") not in {"system", "user"} for message in messages)


def without_last_reply(messages: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return the messages before the model's last one."""
    last = max((place for place, message in enumerate(messages) if message.get("role") == "assistant"), default=len(messages))
    return messages[:last]


def chat_item(
    tokenizer: Any, messages: list[dict[str, Any]], reward: float, *, complete: Sequence[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the ScoredDataItem of a chat-mode rollout, with placeholder tokens.

    The whole conversation is tokenised; every label but the first is its token, and all are masked if the model returned nothing.
    ``complete`` are the messages before a reply that must not train. The item is marked with ``overrides["placeholder_tokens"]``:
    these are not the sampled tokens.
    """
    tokens = _placeholders(tokenizer, messages)
    item = {"tokens": tokens, "scores": reward, "messages": messages, "overrides": dict(PLACEHOLDER)}
    complete = messages if complete is None else complete
    if not did_work(complete):
        return marked({**item, "masks": [IGNORED] * len(tokens)}, ADVANTAGE_TO_ZERO)
    trained = len(tokens) if complete is messages else len(_placeholders(tokenizer, complete))
    labels = [IGNORED, *tokens[1:trained]][: len(tokens)]
    return {**item, "masks": labels + [IGNORED] * (len(tokens) - len(labels))}


def _placeholders(tokenizer: Any, messages: Sequence[dict[str, Any]]) -> list[int]:
    """Return placeholder tokens, none without a tokenizer. A long text is encoded in parts, so that no call takes long."""
    if tokenizer is None:
        return []
    text = transcript(messages)
    tokens = list(tokenizer.encode(text[:LONG_TEXT]))
    for start in range(LONG_TEXT, len(text), LONG_TEXT):
        tokens += tokenizer.encode(text[start : start + LONG_TEXT], add_special_tokens=False)
    return tokens


def token_item(
    nodes: Sequence[Any],
    messages: list[dict[str, Any]],
    reward: float,
    *,
    rollout_id: str,
    prompt_tokens: Sequence[int] = (),
    split_rollouts: SplitRollouts = "keep",
    mask_incomplete: bool = False,
) -> dict[str, Any]:
    """Return the ScoredDataItem of a token-mode rollout: exactly the sampled tokens, with their logprobs.

    ``nodes`` are ManagedServer's. If there are several, the item is the first, with the others under ``more_rows``: `group_of`
    makes a row of each, all with the rollout's reward and with its id in ``overrides``; ``split_rollouts="reject"`` keeps only the
    first row, with every label masked, so that the rollout still counts in the group's mean. If the model returned nothing,
    the item is ``prompt_tokens``, all masked. ``mask_incomplete`` masks replies that the server did not finish.
    """
    if not did_work(messages):
        tokens = list(nodes[0].tokens if nodes else prompt_tokens)
        return masked({"tokens": tokens, "scores": reward, "messages": messages})
    if not nodes:
        raise ValueError(f"Rollout {rollout_id} has replies of the model, but its server has no tokens of them")
    rows = [_row(node, messages, reward, rollout_id, mask_incomplete=mask_incomplete) for node in nodes]
    if len(rows) == 1:
        return rows[0]
    for number, row in enumerate(rows):
        row["overrides"] = {"rollout_id": rollout_id, "sequence": number, "sequences": len(rows)}
    if split_rollouts == "reject":
        return masked({**rows[0], "overrides": {**rows[0]["overrides"], "rejected": "split"}})
    return {**rows[0], MORE_ROWS: rows[1:]}


def _row(node: Any, messages: list[dict[str, Any]], reward: float, rollout_id: str, *, mask_incomplete: bool) -> dict[str, Any]:
    columns = {"tokens": node.tokens, "masks": node.masked_tokens, "inference_logprobs": node.logprobs}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"The columns of a sequence of rollout {rollout_id} have different lengths: {lengths}")
    row: dict[str, Any] = {name: list(column) for name, column in columns.items()}
    row |= {"scores": reward, "messages": messages}
    if mask_incomplete:
        for start, stop in (getattr(node, "metadata", None) or {}).get(INCOMPLETE, ()):
            row["masks"][start:stop] = [IGNORED] * (stop - start)
            row["inference_logprobs"][start:stop] = [FILLER_LOGPROB] * (stop - start)
    return row if trains(row) else marked(row, ADVANTAGE_TO_ZERO)


def trains(row: Mapping[str, Any]) -> bool:
    """Return whether a trainer sees a label in the row; it predicts each token from the one before, so the first has none."""
    return any(label != IGNORED for label in row["masks"][1:])


def marked(row: dict[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with further overrides."""
    return {**row, "overrides": {**(row.get("overrides") or {}), **overrides}}


def masked(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with every label masked, and marked so that its advantage is zero."""
    count = len(row["tokens"])
    return marked({**row, "masks": [IGNORED] * count, "inference_logprobs": [FILLER_LOGPROB] * count}, ADVANTAGE_TO_ZERO)


def left_out(item: dict[str, Any], end: RolloutEnd) -> dict[str, Any]:
    """Return the item of a rollout that must not influence its group: masked, and without a score of its own."""
    row = {name: value for name, value in item.items() if name != MORE_ROWS}
    hidden = masked(row)
    if row.get("inference_logprobs") is None:
        hidden.pop("inference_logprobs")
    return {**marked(hidden, {"end": end.value, "left_out": True}), "scores": UnearnedScore()}


def absent_item(sibling: Mapping[str, Any], end: RolloutEnd) -> dict[str, Any]:
    """Return the item of a rollout that raised: the start of a sibling's prompt, left out of the group."""
    row = {name: value for name, value in sibling.items() if name not in {MORE_ROWS, "overrides"}}
    messages = list(row.get("messages") or ())
    replies = [place for place, message in enumerate(messages) if message.get("role") not in {"system", "user"}]
    prompt = {"messages": messages[: replies[0] if replies else None]} if "messages" in row else {}
    return left_out({**cut(row, FILLER_TOKENS), **prompt}, end)


def described(item: dict[str, Any], end: RolloutEnd, generation_params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item with its end in the overrides of each row, and the sampling parameters of its rollout."""
    named = marked({**item, "generation_params": dict(generation_params)}, {"end": end.value})
    if MORE_ROWS in item:
        named[MORE_ROWS] = [marked(row, {"end": end.value}) for row in item[MORE_ROWS]]
    return named


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
    sampling = [item.get("generation_params") for item in items]
    items = [row for item in items for row in _rows_of(item, same_sampling=all(params == sampling[0] for params in sampling))]
    unknown = sorted({key for item in items for key, value in item.items() if value is not None} - _JOINED)
    if unknown:
        logger.warning("A group cannot hold %s of its items; it is left out", unknown)
    group: dict[str, Any] = {name: [item[name] for item in items] for name in PER_ITEM}
    for name in OPTIONAL:
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
    if sampling and sampling[0] and all(params == sampling[0] for params in sampling):
        group["generation_params"] = dict(sampling[0])
        group["group_overrides"] = {**sampling[0], **group["group_overrides"]}
    neutral_scores(group)
    return group


def _rows_of(item: dict[str, Any], *, same_sampling: bool) -> list[dict[str, Any]]:
    """Return the rows of an item; each has its own sampling parameters when the rollouts of the group differ in them."""
    rows = [item, *item.get(MORE_ROWS, ())]
    own = item.get("generation_params")
    return rows if same_sampling or not own else [marked(row, own) for row in rows]


# ---------------------------------------------------------------------- rollouts that are left out of their group


def is_left_out(group: Mapping[str, Any], row: int) -> bool:
    """Return whether a row has no score of its own: its rollout failed, or is left out on purpose."""
    return isinstance(group["scores"][row], UnearnedScore) or overrides_of(group, row).get("left_out") is True


def overrides_of(group: Mapping[str, Any], row: int) -> Mapping[str, Any]:
    """Return what a row overrides; nothing where the group has no overrides."""
    overrides = group.get("overrides") or ()
    return (overrides[row] or {}) if row < len(overrides) else {}


def neutral_scores(group: dict[str, Any]) -> None:
    """Give the rows that are left out the mean score of the others, so that they shift nobody's advantage.

    The mean is over rollouts, of which one may have several rows. A group in which every row is left out stays as it is.
    """
    rows = range(len(group["scores"]))
    out = [row for row in rows if is_left_out(group, row)]
    scores = [group["scores"][rollout[0]] for rollout in rollouts_of(group) if rollout[0] not in out]
    if not out or not scores:
        return
    mean = scores[0] if min(scores) == max(scores) else math.fsum(scores) / len(scores)
    group["scores"] = [mean if row in out else group["scores"][row] for row in rows]
    given = group.get("overrides") or [{}] * len(rows)
    group["overrides"] = [
        {**(given[row] or {}), "left_out": True, **ADVANTAGE_TO_ZERO} if row in out else given[row] for row in rows
    ]


def rollouts_of(group: Mapping[str, Any]) -> list[list[int]]:
    """Return the row numbers of each rollout; a row without a rollout id is a separate rollout."""
    overrides = group.get("overrides") or [{}] * len(group.get("tokens", ()))
    rollouts: dict[Any, list[int]] = {}
    for row, override in enumerate(overrides):
        rollouts.setdefault((override or {}).get("rollout_id", row), []).append(row)
    return list(rollouts.values())


FILLER_TOKENS = 2
"""The length of a filler: trainers predict each token from the one before, so a single token would be an empty sequence."""

_PER_TOKEN = ("tokens", "masks", "inference_logprobs", "advantages", "ref_logprobs", "distill_token_ids", "distill_logprobs")


def cut(row: Mapping[str, Any], length: int) -> dict[str, Any]:
    """Return the row with only its first ``length`` tokens."""
    return {name: value[:length] if name in _PER_TOKEN and isinstance(value, list) else value for name, value in row.items()}


def filler(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a short masked row with the score of ``row``."""
    short = cut(row, FILLER_TOKENS)
    hidden = masked(short)
    return {**{name: hidden[name] for name in row}, "overrides": {**hidden["overrides"], "filler": True}}
