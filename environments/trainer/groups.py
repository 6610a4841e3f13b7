"""What is sent to the trainer for a group: its size, a label in every row, the sampling parameters, and no score without a reward.

Place in the flow: `HermesAgentBaseEnv.handle_send_to_api` passes every group through here, also those that an environment builds
itself. Pure functions.

Source: atroposlib 0.4.0, ``api/server.py`` (accepts groups of the registered size only) and ``example_trainer/data.py`` and
``training.py`` (normalises the scores of a group, reads ``set_advantage_to_zero`` and ``temperature``, and crashes on a micro-batch
without a label).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from environments.loop.end import RolloutEnd
from environments.trainer.scoring import (
    ADVANTAGE_TO_ZERO,
    IGNORED,
    OPTIONAL,
    PER_ITEM,
    SplitRollouts,
    UnearnedScore,
    cut,
    filler,
    is_left_out,
    overrides_of,
    rollouts_of,
    trains,
)

Group = dict[str, Any]

ROW_SAMPLING = ("temperature", "top_p")
"""Sampling parameters that a row's overrides may have."""


# ---------------------------------------------------------------------- what may be sent


def is_scored(group: Mapping[str, Any]) -> bool:
    """Return whether every score is a finite number."""
    try:
        return all(math.isfinite(float(score)) for score in group.get("scores") or ())
    except (TypeError, ValueError, OverflowError):
        return False


def failed_rows(group: Mapping[str, Any]) -> list[bool]:
    """Return for each row whether it is left out because its rollout failed."""
    return [_has_failed(group, row) for row in range(len(group.get("scores") or ()))]


def is_failed_item(item: Any) -> bool:
    """Return whether an item is that of a rollout that failed and is left out of its group."""
    if not isinstance(item, dict) or "scores" not in item:
        return False
    return _has_failed({"scores": [item["scores"]], "overrides": [item.get("overrides")]}, 0)


def _has_failed(group: Mapping[str, Any], row: int) -> bool:
    end = overrides_of(group, row).get("end")
    is_failure = end in set(RolloutEnd) and RolloutEnd(end).is_failure
    return is_left_out(group, row) and (is_failure or (end is None and isinstance(group["scores"][row], UnearnedScore)))


def too_long(group: Mapping[str, Any], max_token_len: int) -> list[int]:
    """Return the lengths, in tokens, of the rows whose length makes atroposlib drop the whole group."""
    return [len(row) for row in group.get("tokens", ()) if len(row) >= max_token_len] if max_token_len > 0 else []


def add_sampling(group: Group, params: Mapping[str, Any]) -> None:
    """Add the sampling parameters to a group that does not name its temperature."""
    overrides = group["group_overrides"] = group.get("group_overrides") or {}
    if not group.get("generation_params") and "temperature" not in overrides:
        group["generation_params"] = dict(params)
        group["group_overrides"] = {**params, **overrides}


# ---------------------------------------------------------------------- what is sent


def groups_to_send(group: Group, group_size: int, *, split_rollouts: SplitRollouts) -> list[Group]:
    """Return the groups to send for ``group``, each of the trainer's size and with a label in every row.

    A rollout of several sequences sends one of them, or with ``split_rollouts="keep"`` all of them, in several groups. A group that
    has no label in any row is not sent.
    """
    parts = layers_of(group, group_size) if split_rollouts == "keep" else [one_row_each(group, group_size)]
    return [_labelled(part) for part in parts if any(trains(row) for row in _rows(part))]


def one_row_each(group: Group, group_size: int) -> Group:
    """Return the group with one row for each rollout, so that rollouts weigh the same.

    The row is drawn by the rollout's id, among those with labels: over many rollouts every sequence is drawn equally often.
    """
    rollouts = rollouts_of(group)
    if all(len(rows) == 1 for rows in rollouts):
        return group
    return _with_rows(group, [_row(group, _drawn(group, rows)) for rows in rollouts], group_size)


def _drawn(group: Group, rows: Sequence[int]) -> int:
    candidates = [row for row in rows if trains(_row(group, row))] or rows
    rollout_id = str(overrides_of(group, rows[0]).get("rollout_id", rows[0]))
    return candidates[zlib.crc32(rollout_id.encode()) % len(candidates)]


def layers_of(group: Group, group_size: int) -> list[Group]:
    """Return the groups to send for ``group``: itself, or several when a rollout in it has several rows.

    The trainer's queue accepts only groups of ``group_size`` rows; a larger one would stay in its buffer forever. The n-th
    group therefore has the n-th row of every rollout. A rollout without an n-th row is represented by a filler of two masked
    tokens with its score: each group has the scores of all rollouts, and advantages are the same as for the whole.
    """
    rollouts = rollouts_of(group)
    depth = max((len(rows) for rows in rollouts), default=0)
    if depth <= 1:
        return [group]
    return [
        _with_rows(
            group,
            [_row(group, rows[number]) if number < len(rows) else filler(_row(group, rows[0])) for rows in rollouts],
            group_size,
        )
        for number in range(depth)
    ]


def _with_rows(group: Group, rows: Sequence[Mapping[str, Any]], group_size: int) -> Group:
    """Return the group with these rows; its ``group_size`` is set where it differs from the configured one."""
    overrides = {name: value for name, value in (group.get("group_overrides") or {}).items() if name != "group_size"}
    if len(rows) != group_size:
        overrides["group_size"] = len(rows)
    return {**group, **{name: [row[name] for row in rows] for name in _columns(group)}, "group_overrides": overrides}


def _labelled(group: Group) -> Group:
    """Return the group with a stand-in for each row without a label, on which the trainer would crash.

    A stand-in is the start of another row, up to its first label, with an advantage of zero: it trains on nothing, and its only
    label has the right logprob.
    """
    rows = _rows(group)
    if all(map(trains, rows)):
        return group
    donor = min((row for row in rows if trains(row)), key=_first_label)
    start = cut(donor, _first_label(donor) + 1)
    filled = [row if trains(row) else _stand_in(row, start) for row in rows]
    columns = [*_columns(group), *([] if "overrides" in _columns(group) else ["overrides"])]
    return {
        **group,
        **{name: [row.get(name) or {} if name == "overrides" else row[name] for row in filled] for name in columns},
    }


def _first_label(row: Mapping[str, Any]) -> int:
    return next(place for place, label in enumerate(row["masks"]) if place and label != IGNORED)


def _stand_in(row: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in (row.get("overrides") or {}).items() if name not in ROW_SAMPLING}
    sampling = {name: value for name, value in (start.get("overrides") or {}).items() if name in ROW_SAMPLING}
    kept = {name: row[name] for name in ("scores", "messages", "images") if name in row}
    advantages = {"advantages": [0.0] * len(start["tokens"])} if "advantages" in row else {}
    return {**start, **kept, **advantages, "overrides": {**own, **sampling, **ADVANTAGE_TO_ZERO, "stand_in": True}}


def _columns(group: Mapping[str, Any]) -> list[str]:
    """Return the columns that have an entry for every row."""
    return [name for name in (*PER_ITEM, *OPTIONAL) if len(group.get(name) or ()) == len(group["tokens"])]


def _rows(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [_row(group, row) for row in range(len(group["tokens"]))]


def _row(group: Mapping[str, Any], row: int) -> dict[str, Any]:
    return {name: group[name][row] for name in _columns(group)}


# ---------------------------------------------------------------------- sampling parameters

_CHANGE_THE_DISTRIBUTION = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)


def sampling_params(temperature: float, extra_body: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the temperature, and each other parameter that changes the sampled distribution and is set in ``extra_body``.

    ``extra_body`` overrides the temperature, as it does in the request.
    """
    given = {"temperature": temperature, **(extra_body or {})}
    return {name: given[name] for name in _CHANGE_THE_DISTRIBUTION if given.get(name) is not None}
