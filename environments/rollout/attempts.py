"""Runs a rollout again that failed for reasons that are not the model's.

Place in the flow: `HermesAgentBaseEnv.collect_trajectory` makes each attempt in a sandbox of its own, and
`HermesAgentBaseEnv.collect_trajectories` does the same for environments that override it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from environments.loop.end import RolloutEnd, RolloutRecord, current_record, recording
from environments.tokens.answer_checks import TokenModeError

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


async def recorded_attempt(collect: Callable[[], Awaitable[tuple[Any, Any]]]) -> tuple[Attempt, RolloutRecord]:
    """Await ``collect``, which returns an item and a backlog; return the attempt, and what the agent loops in it recorded."""
    rollout = current_record()
    with recording(RolloutRecord()) as record:
        try:
            item, backlog = await collect()
        except Exception as error:  # noqa: BLE001 - kept in the attempt, and raised when no further one is made
            end = _end_of_error(error, record)
            return Attempt(end=end, error=error, is_final=record.is_final), record
        finally:
            rollout.add(record)
    return Attempt(end=record.end, item=item, backlog=tuple(backlog), is_final=record.is_final), record


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
