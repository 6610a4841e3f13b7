"""Runs a rollout again that failed for reasons that are not the model's: the only place where rollouts are repeated.

Place in the flow: `HermesAgentBaseEnv.collect_trajectory` and evaluations make each attempt in a new sandbox.
`HermesAgentBaseEnv.collect_trajectories` does the same for an override of ``collect_trajectory``; where the override calls the
base class, the rollout is final.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from environments.loop.end import RolloutEnd, RolloutRecord, current_record, recording
from environments.rollout.hosted import is_hosted, never_ending
from environments.rollout.recorder import place_in_group
from environments.tokens.answer_checks import TokenModeError
from environments.trainer.scoring import left_out

logger = logging.getLogger(__name__)

FailedRollouts = Literal["drop_group", "mask"]
"""Treatment of a rollout that failed in every attempt: its group is not trained, or goes on without it."""

RewardErrors = Literal["retry", "drop_group", "zero"]
"""Treatment of a reward that failed: the rollout is run again, its group is not trained, or it is scored 0.0."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One run of a rollout. ``end`` is None if the environment ran no agent loop. ``error`` was raised instead of an item."""

    end: RolloutEnd | None
    item: Any = None
    backlog: tuple[Any, ...] = ()
    error: Exception | None = None
    is_final: bool = False
    """Whether it must not be repeated, because what it called has already repeated it."""

    @property
    def has_failed(self) -> bool:
        """Whether the rollout earned no score."""
        return self.end is not None and self.end.is_failure


async def rollout_of_group(env: Any, item: Any) -> Attempt:
    """Run ``env.collect_trajectory``, again if an agent loop in it failed and an override scored the rollout nevertheless.

    Raises: what the last attempt raised, where that drops the group.
    """
    with place_in_group():
        made = await last_rollout(env, lambda: env.collect_trajectory(item), is_override=True)
    if made.error is not None and env.config.failed_rollouts == "drop_group":
        raise made.error
    if made.end is not None and made.has_failed and not made.is_final and isinstance(made.item, dict):
        return replace(made, item=left_out(made.item, made.end))
    return made


async def last_rollout(env: Any, collect: Callable[[], Awaitable[tuple[Any, Any]]], *, is_override: bool = False) -> Attempt:
    """Await ``collect``, which returns an item and a backlog, again if it failed; count each attempt.

    An exception of an override that ran no agent loop is its own business, and final.
    """

    async def attempt() -> Attempt:
        rollout = current_record()
        with recording(RolloutRecord()) as record:
            try:
                item, backlog = await never_ending(collect())
                made = Attempt(end=record.end, item=item, backlog=tuple(backlog), is_final=record.is_final)
            except Exception as error:  # noqa: BLE001 - kept in the attempt, and raised when no further one is made
                is_own = is_override and record.end is None
                made = Attempt(end=_end_of_error(error, record), error=error, is_final=record.is_final or is_own)
            finally:
                rollout.add(record)
        if made.end is RolloutEnd.MODEL_FAILED:
            env._model_watch.failed(made.error or record.failure)
        elif record.end is not None:
            env._model_watch.answered()
        if not record.is_final:
            env._add_to_count("train/texts_made_encodable", record.changed_texts)
            env._add_to_count(f"train/rollouts_{made.end}", made.end is not None)
        return made

    config = env.config
    retries = 0 if is_hosted(env) else config.rollout_retries
    made, retried = await last_attempt(attempt, retries=retries, reward_errors=config.reward_errors)
    env._add_to_count("train/rollouts_retried", retried)
    return made


def _end_of_error(error: Exception, record: RolloutRecord) -> RolloutEnd:
    if isinstance(error, TokenModeError):
        return RolloutEnd.MODEL_FAILED
    return record.end if record.end is not None and record.end.is_failure else RolloutEnd.ENVIRONMENT_FAILED


async def last_attempt(
    attempt: Callable[[], Awaitable[Attempt]], *, retries: int, reward_errors: RewardErrors
) -> tuple[Attempt, int]:
    """Return the first attempt that did not fail, or the last one, and how often the rollout was run again.

    A reward that failed is worth another attempt only with ``reward_errors="retry"``. The record of the rollout around it gets its end.
    """
    for number in range(retries + 1):
        made = await attempt()
        is_repeated = made.end is not RolloutEnd.REWARD_FAILED or reward_errors == "retry"
        if not made.has_failed or made.is_final or not is_repeated or number == retries:
            break
        logger.info("A rollout failed (%s)%s; it is run again", made.end, f": {made.error}" if made.error else "")
    record = current_record()
    record.end, record.is_final = made.end, True
    return made, number
