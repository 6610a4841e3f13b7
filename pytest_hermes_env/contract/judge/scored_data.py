"""Rows of scored data as rules look at them: the sequences of a group, the items before they were joined, what is expected.

Place in the flow: rules take these through `evidence`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.play.journal import ItemScored
from pytest_hermes_env.play.sampling import SampledReply
from pytest_hermes_env.play.scenario import Scenario

IGNORED = -100
"""The label of a position that nothing is trained on."""

OF_ITEMS = ("collect_trajectory", "collect_trajectories", "postprocess_histories")
OF_GROUPS = ("collect_trajectories", "collect_trajectory", "postprocess_histories")
"""Where the cause of a fault in a row, and in a group, may be: the likeliest method first."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One sequence: ``tokens [T]``, ``masks [T]``, ``logprobs [T]`` or None. ``name`` says where it stands, for messages.

    ``is_left_out``: the base marked it as one of a rollout that failed and has no score of its own.
    """

    name: str
    tokens: tuple[int, ...]
    masks: tuple[int, ...]
    logprobs: tuple[float | None, ...] | None = None
    is_left_out: bool = False

    @property
    def trained(self) -> tuple[int, ...]:
        """The positions that are trained on."""
        return tuple(position for position, mask in enumerate(self.masks) if mask != IGNORED)

    @property
    def has_matching_masks(self) -> bool:
        """Whether each mask is -100 or its token, as many as tokens."""
        return len(self.masks) == len(self.tokens) and all(
            mask in (IGNORED, token) for mask, token in zip(self.masks, self.tokens, strict=True)
        )


def groups_of(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the groups that collect_trajectories gave; one that is not a dict is left out."""
    group = scenario.group
    return [part for part in (group if isinstance(group, list) else [group]) if isinstance(part, dict)]


def rows_of(scenario: Scenario) -> list[Row]:
    """Return the sequences of all groups of a scenario."""
    return [row for group in groups_of(scenario) for row in _rows(group)]


def _rows(group: dict[str, Any]) -> Iterator[Row]:
    masks, logprobs = _listed(group.get("masks")), _listed(group.get("inference_logprobs"))
    scores, scored = _listed(group.get("scores")), unmarked_rows(group)
    for number, tokens in enumerate(_listed(group.get("tokens"))):
        yield Row(
            name=f"sequence {number} of the group",
            tokens=_listed(tokens),
            masks=_listed(masks[number]) if number < len(masks) else (),
            logprobs=_listed(logprobs[number]) if number < len(logprobs) and logprobs[number] is not None else None,
            is_left_out=number < len(scores) and number not in scored,
        )


def _listed(value: Any) -> tuple[Any, ...]:
    """Return a column or a row as it stands; what is not a list has nothing in it."""
    return tuple(value) if isinstance(value, list | tuple) else ()


def items_of(scenario: Scenario) -> list[Row]:
    """Return the items that collect_trajectory gave, before they were joined; further sequences of an item are not in it."""
    return [
        Row(
            name="the item of collect_trajectory",
            tokens=item.tokens,
            masks=item.masks,
            logprobs=item.logprobs,
            is_left_out=_is_of_failed_rollout(item.score),
        )
        for item in scenario.of(ItemScored)
    ]


def is_rejected(scenario: Scenario) -> bool:
    """Tell whether a rollout was kept out of training on purpose, and marked so."""
    overrides = [override for group in groups_of(scenario) for override in _listed(group.get("overrides"))]
    return any(override.get("rejected") for override in overrides if isinstance(override, dict))


def unmarked_rows(group: dict[str, Any]) -> list[int]:
    """Return the rows that have a score of their own: the base marks those of a failed rollout in their overrides and scores."""
    overrides = _listed(group.get("overrides"))
    return [
        number
        for number, score in enumerate(_listed(group.get("scores")))
        if not _is_of_failed_rollout(score)
        and not (number < len(overrides) and isinstance(overrides[number], dict) and overrides[number].get("left_out"))
    ]


def _is_of_failed_rollout(score: object) -> bool:
    """Tell whether a score is the base's for a failed rollout; the class is found by name, because there are several layers."""
    return type(score).__name__ == "UnearnedScore"


def reported_sampling(group: dict[str, Any], name: str) -> set[Any]:
    """Return what a group tells the trainer of one sampling parameter, in the trainer's order; nothing if it tells nothing."""
    common = next(
        (
            part[name]
            for part in (group.get("generation_params"), group.get("group_overrides"))
            if isinstance(part, dict) and name in part
        ),
        None,
    )
    rows = [override for override in _listed(group.get("overrides")) if isinstance(override, dict)]
    told = [row.get(name, common) for row in rows] or [common]
    return {value for value in told if value is not None}


def told_ends(group: dict[str, Any]) -> list[Any]:
    """Return the end that a group names for each of its rows; None where it names none."""
    return [row.get("end") if isinstance(row, dict) else None for row in _listed(group.get("overrides"))]


def sequence_fault(scenario: Scenario) -> str:
    """Return how the sequences of a scenario differ from what was sampled, or nothing where they hold it token by token.

    Every reply must stand behind its own prompt, as often as it was sampled: rollouts of one group may say the same.
    """
    rows = rows_of(scenario) or items_of(scenario)
    lost = _first_lost(scenario.sampled, rows)
    if lost is not None:
        return _how_lost(lost, rows)
    for row in rows:
        for reply in scenario.sampled:
            if _begins(row, reply) and _is_doubled(row, reply, scenario.sampled):
                return (
                    f"{row.name} has token {reply.output[-1]}, the last one of a reply, twice: at positions "
                    f"{len(reply.sequence) - 1} and {len(reply.sequence)}"
                )
    return ""


def misplaced_score(scenario: Scenario) -> str:
    """Return how a group gives a rollout the score of another one, or nothing.

    Only scores that the rollouts earned are judged: a group may change them for an advantage or a penalty of its own.
    """
    earned = {item.tokens: item.score for item in scenario.of(ItemScored)}
    for group in groups_of(scenario):
        columns = (_listed(group.get(name)) for name in ("tokens", "scores"))
        given = {_listed(tokens): score for tokens, score in zip(*columns, strict=False)}
        if given.keys() == earned.keys() and sorted(map(str, given.values())) == sorted(map(str, earned.values())):
            wrong = next((tokens for tokens, score in given.items() if str(score) != str(earned[tokens])), None)
            if wrong is not None:
                return (
                    f"a rollout that earned {earned[wrong]} has the score {given[wrong]} of another one in the group: "
                    "scores and tokens are in different orders"
                )
    return ""


def misplaced_logprobs(scenario: Scenario) -> str:
    """Return how a group gives a rollout the logprobs of another one, or nothing."""
    sampled = {item.tokens: item.logprobs for item in scenario.of(ItemScored) if item.logprobs is not None}
    known = {*sampled.values()}
    for group in groups_of(scenario):
        columns = (_listed(group.get(name)) for name in ("tokens", "inference_logprobs"))
        for tokens, logprobs in zip(*columns, strict=False):
            given = _listed(logprobs)
            if sampled.get(_listed(tokens), given) != given and given in known:
                return (
                    "a rollout has the inference_logprobs of another one in the group: they and tokens are in different orders"
                )
    return ""


def repeated_rollout(scenario: Scenario) -> str:
    """Return how a group repeats a rollout's sequence more often than rollouts gave it, or nothing."""
    given = Counter(item.tokens for item in scenario.of(ItemScored))
    for group in groups_of(scenario):
        times = Counter(_listed(tokens) for tokens in _listed(group.get("tokens")))
        tokens = next((tokens for tokens in times if 0 < given[tokens] < times[tokens]), None)
        if tokens is not None:
            what = "one rollout" if given[tokens] == 1 else f"{given[tokens]} rollouts"
            return f"{what} gave a sequence of {len(tokens)} tokens, and the group has it {times[tokens]} times"
    return ""


def weight_fault(scenario: Scenario) -> str:
    """Return how the overrides of a group misname its rollouts where one has several sequences, or nothing.

    The base sends one sequence for each rollout that the overrides name: without them, each weighs as much as a whole rollout.
    """
    items = scenario.of(ItemScored)
    longest = max((item.sequences for item in items), default=1)
    named = {
        override.get("rollout_id", (place, row))
        for place, group in enumerate(groups_of(scenario))
        for row, override in enumerate(_row_overrides(group))
    }
    if longest == 1 or not named or len(named) == len(items):
        return ""
    return (
        f"the overrides of the group name {len(named)} rollouts, and {len(items)} were collected, one of them with {longest} "
        f"sequences: rollouts do not weigh the same"
    )


def _row_overrides(group: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the overrides of every row of a group, empty where it has none."""
    overrides = _listed(group.get("overrides"))
    padded = [*overrides, *[None] * (len(_listed(group.get("tokens"))) - len(overrides))]
    return [override if isinstance(override, dict) else {} for override in padded]


def _first_lost(replies: Sequence[SampledReply], rows: Sequence[Row]) -> SampledReply | None:
    times = Counter(reply.sequence for reply in replies)
    return next(
        (reply for reply in replies if sum(_begins(row, reply) for row in rows) < times[reply.sequence]),
        None,
    )


def _how_lost(reply: SampledReply, rows: Sequence[Row]) -> str:
    what = f"a reply of {len(reply.output)} tokens after a prompt of {len(reply.prompt)} tokens is missing from the sequences"
    nearest = max((row for row in rows if not _begins(row, reply)), key=lambda row: _common(row, reply), default=None)
    if nearest is None:
        return f"{what}: {len(rows)} contain it"
    at = _common(nearest, reply)
    if at == len(nearest.tokens):
        return f"{what}: {nearest.name} ends at {at} tokens"
    token, sampled = nearest.tokens[at], reply.sequence[at]
    if at and token == nearest.tokens[at - 1]:
        return f"{what}: {nearest.name} has token {token} twice, at positions {at - 1} and {at}"
    return f"{what}: {nearest.name} has token {token} at position {at}, where the model saw or sampled {sampled}"


def _begins(row: Row, reply: SampledReply) -> bool:
    return row.tokens[: len(reply.sequence)] == reply.sequence


def _common(row: Row, reply: SampledReply) -> int:
    pairs = zip(row.tokens, reply.sequence, strict=False)
    shorter = min(len(row.tokens), len(reply.sequence))
    return next((place for place, (token, sampled) in enumerate(pairs) if token != sampled), shorter)


def _is_doubled(row: Row, reply: SampledReply, replies: Sequence[SampledReply]) -> bool:
    """Tell whether the token that ends turns follows itself; a token that also stands within replies is not one that ends."""
    after = row.tokens[len(reply.sequence) : len(reply.sequence) + 1]
    is_end = all(reply.output[-1] not in other.output[:-1] for other in replies)
    return is_end and after == reply.output[-1:]


def sampled_in(row: Row, replies: Iterable[SampledReply]) -> dict[int, float | None]:
    """Return what was sampled in a row: position -> the logprob that the server gave for it, None where it gave none."""
    places: dict[int, float | None] = {}
    for reply in replies:
        if _begins(row, reply):
            own = [*reply.logprobs, *[None] * (len(reply.output) - len(reply.logprobs))]
            places.update(zip(range(len(reply.prompt), len(reply.sequence)), own, strict=True))
    return places
