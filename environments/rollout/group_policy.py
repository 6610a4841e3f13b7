"""What becomes of a group in which rollouts failed: it is trained without them, or not at all; every loss is counted and logged.

Place in the flow: `HermesAgentBaseEnv.collect_trajectories` joins the attempts of a group with `combine`; `handle_send_to_api` passes
every group through `prepared`, also those that an environment builds itself. ``counts`` are the environment's.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from environments.loop.end import RolloutEnd
from environments.rollout.attempts import Attempt
from environments.trainer import groups as trainer_groups
from environments.trainer import scoring
from environments.trainer.groups import sampling_params

logger = logging.getLogger(__name__)

Group = dict[str, Any]


def drop_group(counts: Counter[str], reason: str, count: str = "train/groups_dropped") -> None:
    """Count and log that a group is not trained."""
    counts[count] += 1
    logger.warning("A group is not trained: %s; counted in %s", reason, count)


def combine(attempts: Sequence[Attempt], config: Any, counts: Counter[str]) -> Group | None:
    """Join the rollouts of a group; None when it is dropped.

    A group in which all rollouts failed is returned without a label. Raises: the first error when all of them raised.
    """
    items = [attempt.item for attempt in attempts if attempt.item is not None]
    if without := sum(attempt.item is None and not attempt.has_failed for attempt in attempts):
        drop_group(counts, f"{without} of its {len(attempts)} rollouts returned no item")
        return None
    failed = [attempt for attempt in attempts if attempt.item is None or trainer_groups.is_failed_item(attempt.item)]
    ends = ", ".join(sorted({str(attempt.end) for attempt in failed}))
    if len(failed) == len(attempts):
        drop_group(counts, f"all of its rollouts failed ({ends})")
        if not items:
            if error := next((attempt.error for attempt in attempts if attempt.error), None):
                raise error
            return None
    elif failed and (
        config.failed_rollouts == "drop_group"
        or (config.reward_errors == "drop_group" and any(made.end is RolloutEnd.REWARD_FAILED for made in failed))
    ):
        drop_group(counts, f"{len(failed)} of its {len(attempts)} rollouts failed ({ends})")
        return None
    elif failed:
        counts["train/rollouts_masked"] += len(failed)
        logger.warning("%d of %d rollouts of a group failed (%s); it goes on without them", len(failed), len(attempts), ends)
    return scoring.group_of(
        [attempt.item or scoring.absent_item(items[0], attempt.end or RolloutEnd.ENVIRONMENT_FAILED) for attempt in attempts]
    )


def prepared(
    scored_data: Any, config: Any, counts: Counter[str], max_token_len: int, *, is_sent: bool, logprobs: str = ""
) -> list[Group]:
    """Return the groups to send or to write, one group or a list of them being given; what is left out is counted.

    ``logprobs`` is what is known of the server's, for the trainer. ``max_token_len`` is the trainer's limit, 0 for none. ``is_sent`` is false for groups that are only written.
    """
    given = scored_data if isinstance(scored_data, list) else [scored_data]
    groups = [group for group in given if group is not None and _may_be_sent(group, config, counts)]
    for group in groups:
        _count_if_too_long(group, max_token_len, config, counts)
        if logprobs:
            group["group_overrides"] = {**(group.get("group_overrides") or {}), "logprobs": logprobs}
    return [part for group in groups for part in _sent_of(group, config, counts)] if is_sent else groups


def _may_be_sent(group: Group, config: Any, counts: Counter[str]) -> bool:
    """Return whether every score of a group was earned.

    Rows that are left out get the mean of the others, and the group gets the sampling parameters if it names none.
    """
    if not all(name in group for name in scoring.PER_ITEM):
        return True  # atroposlib refuses it, and says so
    if not trainer_groups.is_scored(group):
        drop_group(counts, f"its scores are not all finite numbers: {str(group['scores'])[:200]}", "train/groups_without_score")
        return False
    rows = range(len(group["scores"]))
    is_dropped = config.failed_rollouts == "drop_group" and any(trainer_groups.failed_rows(group))
    if is_dropped or (rows and all(scoring.is_left_out(group, row) for row in rows)):
        drop_group(counts, "it has rollouts that failed", "train/groups_not_sent")
        return False
    scoring.neutral_scores(group)
    trainer_groups.add_sampling(group, sampling_params(config.agent_temperature, config.extra_body))
    if config.ensure_scores_are_not_same and len(set(group["scores"])) == 1:
        counts["train/groups_of_equal_scores"] += 1
    if len(group["tokens"]) != group["group_overrides"].get("group_size", config.group_size):
        counts["train/groups_of_wrong_size"] += 1
    return True


def counting_errors(postprocess: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``postprocess_histories`` of an environment, which counts a group that it raises for; atroposlib only logs that."""
    if not inspect.iscoroutinefunction(postprocess):
        return postprocess

    @functools.wraps(postprocess)
    async def counted(env: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await postprocess(env, *args, **kwargs)
        except Exception as error:
            if not getattr(error, "is_counted_group", False):  # an override that this one called has counted it
                vars(error)["is_counted_group"] = True
                drop_group(env._counts, f"postprocess_histories raised {type(error).__name__}: {error}")
            raise

    return counted


def _count_if_too_long(group: Group, max_token_len: int, config: Any, counts: Counter[str]) -> None:
    """Count a group whose sequences make atroposlib drop it, and log how to fix that; atroposlib's own warning says neither."""
    if lengths := trainer_groups.too_long(group, max_token_len):
        counts["train/groups_too_long"] += 1
        logger.warning(
            "A group is dropped: its sequences of %s tokens are not shorter than the trainer's max_token_len of %d, and every "
            "group like it will be dropped too. Raise the trainer's max_token_len, or lower max_agent_turns (%d), "
            "max_token_length per turn (%d) or the sizes of tool results (turn_budget_chars %d)",
            lengths,
            max_token_len,
            config.max_agent_turns,
            config.max_token_length,
            config.turn_budget_chars,
        )


def _sent_of(group: Group, config: Any, counts: Counter[str]) -> list[Group]:
    """Return the groups to send for one; none if it has no label."""
    if not all(name in group for name in scoring.PER_ITEM):
        return [group]
    parts = trainer_groups.groups_to_send(group, config.group_size, split_rollouts=config.split_rollouts)
    if not parts:
        drop_group(counts, "it has no label to train on", "train/groups_without_labels")
    elif config.split_rollouts != "keep" and (unsent := len(group["tokens"]) - len(parts[0]["tokens"])):
        counts["train/split_sequences_not_sent"] += unsent
        logger.info("%d sequences of split rollouts are not sent (split_rollouts=%s)", unsent, config.split_rollouts)
    return parts
