"""An evaluation: runs every held-out item and converts the rollouts to samples and metrics.

Place in the flow: `evaluation_run` calls `run_each` with `sample_of`, which runs the agent on one item, and
`metrics_of` with all samples.

A sample has ``prompt``, ``score`` and, once the agent has run, ``turns``, ``finished``, ``tool_errors`` (a count) and
``messages``; then the fields of ``item_fields`` and ``score``. An item that failed has the score None, an ``error``, and the
``end`` of its rollout.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tenacity import RetryError

from environments.loop.end import RolloutEnd
from environments.rollout.agent_rollout import AgentRollout
from environments.rollout.concurrency import all_or_none
from environments.rollout.limits import check_count
from environments.rollout.progress import progress_bar
from environments.sandbox.nonblocking_calls import bridged
from environments.trainer.scoring import as_reward

__all__ = [
    "Evaluation",
    "MoreMetrics",
    "Sample",
    "Score",
    "check_function",
    "error_text",
    "further_metrics",
    "held_out_items",
    "item_list",
    "metrics_of",
    "run_each",
    "sample_of",
]

Sample = dict[str, Any]

Score = Callable[[AgentRollout], Awaitable[float | Mapping[str, Any]]]
"""Scores a rollout: returns the score, or fields of the sample with ``score`` among them."""


MoreMetrics = Callable[[list[Sample]], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
"""Computes further metrics of the samples that were scored."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The outcome of an evaluation. ``samples`` has one entry per item, in the order of the items; times are Unix times."""

    metrics: dict[str, Any]
    samples: list[Sample]
    start_time: float
    end_time: float


async def held_out_items(env: Any) -> list[Any]:
    """Return the items of ``env.get_eval_items()``: a coroutine function, a plain one, or a generator of either kind.

    Raises: TypeError when it returns no collection of items.
    """
    items = env.get_eval_items()
    items = await items if inspect.isawaitable(items) else items
    if isinstance(items, AsyncIterable):
        return [item async for item in items]
    return item_list(items, "get_eval_items() must return the held-out items")


def item_list(items: object, requirement: str) -> list[Any]:
    """Return a collection as a list. Raises: TypeError for None, text, a mapping, and what cannot be iterated over."""
    if isinstance(items, (str, bytes, Mapping)) or not (isinstance(items, Iterable) or hasattr(items, "__getitem__")):
        raise TypeError(f"{requirement}, as a list or another sequence, got {type(items).__name__} {str(items)[:80]!r}")
    return list(items)  # type: ignore[call-overload,no-any-return]  # a data set may have __getitem__ alone


def check_function(name: str, function: object, argument: str) -> None:
    """Check a function that `evaluate_items` was given. Raises: TypeError unless it can be called with one argument, or is None."""
    if function is None:
        return
    if not callable(function):
        raise TypeError(f"{name} must be a function of {argument}, got {type(function).__name__} {str(function)[:80]!r}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C may tell no signature
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise TypeError(f"{name} must accept one argument, {argument}; its signature is {signature}: {error}") from None


# ---------------------------------------------------------------------- running the items


async def run_each(
    items: Sequence[Any], evaluate_item: Callable[[Any], Awaitable[Sample]], *, max_concurrent: int
) -> list[Sample]:
    """Return one sample per item, in order; at most ``max_concurrent`` items run at once.

    A cancellation cancels every item and waits until all have ended. Raises: ValueError when there are no items or
    ``max_concurrent`` is less than 1; TypeError when it is no integer.
    """
    if not items:
        raise ValueError(
            "There is nothing to evaluate: evaluate_items requires at least one item, and got none. Set self.eval_items in "
            "setup(), override get_eval_items(), or pass items=[...]"
        )
    check_count("max_concurrent (without this argument, the setting max_eval_workers)", max_concurrent)
    free = asyncio.Semaphore(max_concurrent)
    with progress_bar("evaluate", unit="item", total=len(items)) as bar:

        async def limited(item: Any) -> Sample:
            async with free:
                sample = await evaluate_item(item)
            bar.update()
            return sample

        return await all_or_none([limited(item) for item in items])


# ---------------------------------------------------------------------- one item


async def sample_of(
    item: Any,
    *,
    format_prompt: Callable[[Any], str],
    rollout_of: Callable[[Any, str], AbstractAsyncContextManager[AgentRollout]],
    score: Score,
    item_fields: Callable[[Any], Mapping[str, Any]] | None,
) -> tuple[Sample, Exception | None]:
    """Return the sample of one item, and the error of the step that failed, if one did."""
    sample: Sample = {"prompt": None, "score": None}
    end = RolloutEnd.ENVIRONMENT_FAILED
    try:
        further = _fields("item_fields", item_fields(item)) if item_fields else {}
        sample = {**further, **sample}
        sample["prompt"] = prompt = format_prompt(item)
        async with rollout_of(item, prompt) as rollout:
            result = rollout.result
            facts = {
                "turns": result.turns_used,
                "finished": result.finished_naturally,
                "tool_errors": len(result.tool_errors),
            }
            sample |= {**facts, "messages": result.messages}
            end = rollout.end if rollout.end.is_failure else RolloutEnd.REWARD_FAILED
            sample |= {**await bridged(_score_fields)(score, rollout), **facts}
    except Exception as error:  # noqa: BLE001 - logged when the item is not run again
        return {**sample, "score": None, "error": error_text(error), "end": end.value}, error
    return sample, None


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
    if not isinstance(value, Mapping):
        return {"score": as_reward(value, "score")}
    if "score" not in value:
        raise ValueError(f"score must return a field 'score' among its fields, got {', '.join(map(str, value))[:200]}")
    return {**value, "score": as_reward(value["score"], "score, in its field 'score',")}


def _fields(name: str, value: object) -> Sample:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must return a mapping of fields, got {type(value).__name__} {str(value)[:80]!r}")
    return dict(value)


def error_text(error: Exception) -> str:
    """Return the type and message of an error: the last attempt's, where a call was retried."""
    cause = error.last_attempt.exception() if isinstance(error, RetryError) else None
    return f"{type(cause or error).__name__}: {cause or error}"


# ---------------------------------------------------------------------- all items


def metrics_of(samples: Sequence[Sample], *, pass_score: float | None) -> dict[str, Any]:
    """Return the counts, and the means over the items that were scored; there are no means if every item failed.

    ``eval/pass_rate`` is the share of scores of at least ``pass_score``; None omits it.
    """
    scored = _scored(samples)
    metrics: dict[str, Any] = {"eval/items": len(samples), "eval/errors": len(samples) - len(scored)}
    if not scored:
        return metrics
    metrics["eval/mean_reward"] = fmean(sample["score"] for sample in scored)
    if pass_score is not None:
        metrics["eval/pass_rate"] = fmean(sample["score"] >= pass_score for sample in scored)
    metrics["eval/mean_turns"] = fmean(sample["turns"] for sample in scored)
    metrics["eval/finished_rate"] = fmean(sample["finished"] for sample in scored)
    metrics["eval/mean_tool_errors"] = fmean(sample["tool_errors"] for sample in scored)
    return metrics


async def further_metrics(metrics: MoreMetrics | None, samples: Sequence[Sample]) -> Mapping[str, Any]:
    """Return what ``metrics`` computes from the samples that were scored; nothing without it, or if every item failed.

    Raises: what ``metrics`` raises; TypeError when it returns no mapping.
    """
    scored = _scored(samples)
    if metrics is None or not scored:
        return {}
    returned: Any = metrics(scored)
    return _fields("metrics", await returned if inspect.isawaitable(returned) else returned)


def _scored(samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample["score"] is not None]
