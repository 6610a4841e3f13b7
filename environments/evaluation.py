"""An evaluation: runs every held-out item and converts the rollouts to samples and metrics.

Place in the flow: ``HermesAgentBaseEnv.evaluate_items`` calls `run_each` with `sample_of`, which runs the agent on one item, and
`metrics_of` with all samples.

A sample has ``prompt``, ``score`` and, once the agent has run, ``turns``, ``finished``, ``tool_errors`` (a count) and
``messages``. An item that failed has the score None, an ``error``, and the ``end`` of its rollout.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tenacity import RetryError
from tqdm import tqdm

from environments.agent_rollout import AgentRollout
from environments.concurrency import all_or_none
from environments.nonblocking_calls import bridged
from environments.rollout_end import RolloutEnd
from environments.scoring import as_reward

__all__ = ["Evaluation", "Sample", "Score", "error_text", "held_out_items", "metrics_of", "run_each", "sample_of"]

logger = logging.getLogger(__name__)

Sample = dict[str, Any]

Score = Callable[[AgentRollout], Awaitable[float | Mapping[str, Any]]]
"""Scores a rollout: returns the score, or fields of the sample with ``score`` among them."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The outcome of an evaluation. ``samples`` has one entry per item, in the order of the items; times are Unix times."""

    metrics: dict[str, Any]
    samples: list[Sample]
    start_time: float
    end_time: float


async def held_out_items(env: Any) -> list[Any]:
    """Return the result of ``env.get_eval_items()``, which may be a coroutine function or a plain one."""
    items = env.get_eval_items()
    return list(await items if inspect.isawaitable(items) else items)


# ---------------------------------------------------------------------- running the items


async def run_each(
    items: Sequence[Any], evaluate_item: Callable[[Any], Awaitable[Sample]], *, max_concurrent: int
) -> list[Sample]:
    """Return one sample per item, in order; at most ``max_concurrent`` items run at once.

    A cancellation cancels every item and waits until all have ended. Raises: ValueError when there are no items.
    """
    if not items:
        raise ValueError(
            "There is nothing to evaluate: evaluate_items requires at least one item, and got none. Set self.eval_items in "
            "setup(), override get_eval_items(), or pass items=[...]"
        )
    if max_concurrent < 1:
        raise ValueError(
            f"max_concurrent must be at least 1, got {max_concurrent}: no item would ever run. Without this argument it is the "
            "setting max_eval_workers"
        )
    free = asyncio.Semaphore(max_concurrent)
    with _progress_bar(len(items)) as advance:

        async def limited(item: Any) -> Sample:
            async with free:
                sample = await evaluate_item(item)
            advance()
            return sample

        return await all_or_none([limited(item) for item in items])


class _ProgressBar(tqdm):
    monitor_interval = 0
    """Seconds; 0 starts no thread that would outlive the bar."""


@contextmanager
def _progress_bar(total: int) -> Iterator[Callable[[], Any]]:
    """Show a progress bar where stderr is a terminal; yields the function that advances it by one."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda: None
        return
    with _ProgressBar(total=total, desc="evaluate", unit="item", file=sys.stderr) as bar:
        yield bar.update


# ---------------------------------------------------------------------- one item


async def sample_of(
    item: Any,
    *,
    format_prompt: Callable[[Any], str],
    rollout_of: Callable[[Any, str], AbstractAsyncContextManager[AgentRollout]],
    score: Score,
    item_fields: Callable[[Any], Mapping[str, Any]] | None,
) -> Sample:
    """Return the sample of one item, with an ``error`` when a step of it failed."""
    sample: Sample = {"prompt": None, "score": None}
    end = RolloutEnd.ENVIRONMENT_FAILED
    try:
        sample.update(item_fields(item) if item_fields else {})
        sample["prompt"] = prompt = format_prompt(item)
        async with rollout_of(item, prompt) as rollout:
            sample.update(_agent_fields(rollout))
            end = rollout.end if rollout.end.is_failure else RolloutEnd.REWARD_FAILED
            sample.update(await bridged(_score_fields)(score, rollout))
    except Exception as error:
        logger.exception("Evaluating an item failed; it is counted in eval/errors. The item: %.200r", item)
        sample |= {"error": error_text(error), "end": end.value}
    return sample


def _agent_fields(rollout: AgentRollout) -> Sample:
    result = rollout.result
    return {
        "turns": result.turns_used,
        "finished": result.finished_naturally,
        "tool_errors": len(result.tool_errors),
        "messages": result.messages,
    }


async def _score_fields(score: Score, rollout: AgentRollout) -> Sample:
    """Return the score, with the other fields that ``score`` returned.

    Raises: the error of the model server or the tools when that ended the rollout; ValueError when the score is not a finite number.
    """
    if rollout.failure is not None:
        raise rollout.failure
    if rollout.end.is_failure:
        raise RuntimeError(f"the rollout ended without an answer of the model: {rollout.end}")
    returned: Any = score(rollout)
    value = await returned if inspect.isawaitable(returned) else returned
    fields = dict(value) if isinstance(value, Mapping) else {"score": value}
    return {**fields, "score": as_reward(fields.get("score"))}


def error_text(error: Exception) -> str:
    """Return the type and message of an error: the last attempt's, where a call was retried."""
    cause = error.last_attempt.exception() if isinstance(error, RetryError) else None
    return f"{type(cause or error).__name__}: {cause or error}"


# ---------------------------------------------------------------------- all items


def metrics_of(
    samples: Sequence[Sample],
    *,
    pass_score: float | None,
    more: Callable[[list[Sample]], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the counts, and the means over the items that were scored; there are no means if every item failed.

    ``eval/pass_rate`` is the share of scores of at least ``pass_score``; None omits it. ``more`` returns further metrics of
    the samples that were scored.
    """
    scored = [sample for sample in samples if "error" not in sample]
    metrics: dict[str, Any] = {"eval/items": len(samples), "eval/errors": len(samples) - len(scored)}
    if not scored:
        return metrics
    metrics["eval/mean_reward"] = fmean(sample["score"] for sample in scored)
    if pass_score is not None:
        metrics["eval/pass_rate"] = fmean(sample["score"] >= pass_score for sample in scored)
    metrics["eval/mean_turns"] = fmean(sample["turns"] for sample in scored)
    metrics["eval/finished_rate"] = fmean(sample["finished"] for sample in scored)
    metrics["eval/mean_tool_errors"] = fmean(sample["tool_errors"] for sample in scored)
    return metrics | dict(more(scored) if more else {})
