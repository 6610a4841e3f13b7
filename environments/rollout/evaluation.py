"""An evaluation: runs the agent on every held-out item, again where it failed, and logs samples and metrics.

Place in the flow: `evaluate_items` is a method of `HermesAgentBaseEnv`; a benchmark calls `run_each` with `evaluated` itself.

A sample has ``prompt``, ``score`` and, once the agent has run, ``turns``, ``finished``, ``tool_errors`` (a count) and
``messages``; then the fields of ``item_fields`` and ``score``. An item that failed has the score None, an ``error``, and the
``end`` of its rollout.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from environments.loop.end import RolloutEnd
from environments.loop.log_once import cause_of, log_once
from environments.rollout.agent_rollout import AgentRollout, check_count, check_number, check_sampling
from environments.rollout.attempts import Attempt, last_attempt
from environments.rollout.concurrency import all_or_none, progress_bar
from environments.rollout.hosted import StoppedByCode, never_ending
from environments.rollout.recorder import note_reward, place_in_group, recorded_group
from environments.sandbox.nonblocking_calls import bridged
from environments.trainer.scoring import as_reward

logger = logging.getLogger(__name__)

Sample = dict[str, Any]

Score = Callable[[AgentRollout], Awaitable[float | Mapping[str, Any]]]
"""Scores a rollout: returns the score, or fields of the sample with ``score`` among them."""

MoreMetrics = Callable[[list[Sample]], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
"""Computes further metrics of the samples that were scored."""

ItemFields = Callable[[Any], Mapping[str, Any]]
"""Returns further fields of an item's sample."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The outcome of an evaluation. ``samples`` has one entry per item, in the order of the items; times are Unix times."""

    metrics: dict[str, Any]
    samples: list[Sample]
    start_time: float
    end_time: float


async def evaluate_items(
    self: Any,
    items: Sequence[Any] | None = None,
    *,
    score: Score | None = None,
    metrics: MoreMetrics | None = None,
    item_fields: ItemFields | None = None,
    pass_score: float | None = 1.0,
    max_concurrent: int | None = None,
    temperature: float = 0.0,
    **settings: Any,
) -> Evaluation:
    """Run the agent on every item, score the rollouts, log metrics and samples with `evaluate_log`, and return them.

    An item that fails (its prompt, the tools, the model server, the score) is run again as a rollout is (``rollout_retries``),
    which is counted in ``eval/retries``. If it fails in every attempt, it is logged, counted in ``eval/errors`` and left out of
    the means; the others continue. Training metrics do not change. The module's docstring lists the fields of a sample.

    Args:
        self: The environment, whose method this is.
        items: The items to evaluate; `get_eval_items` by default.
        score: ``async (rollout) -> float``, or fields of the sample with ``score`` among them; `compute_reward` by default.
            Its synchronous tool calls do not block the event loop.
        metrics: Returns further metrics of the samples that were scored; not called when every item failed. If it fails, the
            evaluation is logged without them.
        item_fields: Returns further fields of an item's sample, from the item alone.
        pass_score: The score from which an item counts in ``eval/pass_rate``; None omits this metric.
        max_concurrent: How many items run at once; the setting ``max_eval_workers`` by default.
        temperature: The sampling temperature.
        **settings: Further arguments of `agent_rollout`, except ``prompt``, which is each item's. Take a limit that differs
            from training's from a field of the configuration with "eval" in its name, such as ``eval_max_turns``.

    Raises: ValueError when there are no items; TypeError or ValueError for an invalid argument, before any item runs;
        RuntimeError when ``metrics`` failed, after the rest was logged.
    """
    _check_settings(self, settings, temperature)
    if pass_score is not None:
        check_number("pass_score", pass_score)
    retried: Counter[str] = Counter()
    start_time = time.time()
    held_out = await held_out_items(self) if items is None else _item_list(items, "items must be the items to evaluate")
    if items is None and not held_out and (meant := _other_items(self)):
        raise ValueError(
            f"There is nothing to evaluate: evaluate_items reads self.eval_items, and the items are in self.{meant}"
        )
    samples = await run_each(
        held_out,
        lambda item: evaluated(
            self, item, score=score, item_fields=item_fields, retried=retried, temperature=temperature, **settings
        ),
        max_concurrent=self.config.max_eval_workers if max_concurrent is None else max_concurrent,
    )
    evaluation = Evaluation(
        metrics={**_metrics_of(samples, pass_score=pass_score), **retried},
        samples=samples,
        start_time=start_time,
        end_time=time.time(),
    )
    failure: Exception | None = None
    try:
        if metrics is not None and (scored := _scored(samples)):
            returned: Any = metrics(scored)
            evaluation.metrics.update(_fields("metrics", await returned if inspect.isawaitable(returned) else returned))
    except Exception as error:  # noqa: BLE001 - raised below, after the log
        failure = error
    logger.info("Evaluated %d items: %s", len(samples), evaluation.metrics)
    generation = {"temperature": temperature, "max_new_tokens": settings.get("max_tokens") or self.config.max_token_length}
    await self.evaluate_log(**vars(evaluation), generation_parameters=generation)
    self._failed_evaluation = ""
    if not _scored(samples):
        self._failed_evaluation = f"Each of the {len(samples)} items failed, the last one with {samples[-1].get('error')}"
    if failure is not None:
        raise RuntimeError(
            f"The metrics function of evaluate_items failed with {type(failure).__name__}: {failure}. The evaluation of "
            f"{len(samples)} items is finished and was logged, without its metrics"
        ) from failure
    return evaluation


def _check_settings(env: Any, settings: dict[str, Any], temperature: float) -> None:
    """Check the arguments for `agent_rollout`: a misspelt setting is not a failure of each item."""
    if "prompt" in settings:
        raise TypeError("evaluate_items takes no prompt: each item's is that of format_prompt. Override format_prompt(item)")
    inspect.signature(env.agent_rollout).bind(None, **settings)
    names = inspect.signature(check_sampling).parameters
    check_sampling(**{name: value for name, value in settings.items() if name in names})
    check_number("temperature", temperature)
    check_sampling(temperature=temperature)


# ---------------------------------------------------------------------- the items


def _other_items(env: Any) -> str:
    """Return the one attribute that holds items and is called as held-out ones are; empty where none is, or several are."""
    named = [
        name
        for name, value in vars(env).items()
        if isinstance(value, list | tuple)
        and value
        and isinstance(value[0], Mapping)
        and re.search(r"(?:^|_)(?:eval\w*|held|valid\w*|test|dev)(?:_|$)", name)
    ]
    return named[0] if len(named) == 1 else ""


async def held_out_items(env: Any) -> list[Any]:
    """Return the items of ``env.get_eval_items()``: a coroutine function, a plain one, or a generator of either kind.

    Raises: TypeError when it returns no collection of items.
    """
    items = env.get_eval_items()
    items = await items if inspect.isawaitable(items) else items
    if isinstance(items, AsyncIterable):
        return [item async for item in items]
    return _item_list(items, "get_eval_items() must return the held-out items")


def _item_list(items: object, requirement: str) -> list[Any]:
    """Return a collection as a list. Raises: TypeError for None, text, a mapping, and what cannot be iterated over."""
    if isinstance(items, (str, bytes, Mapping)) or not (isinstance(items, Iterable) or hasattr(items, "__getitem__")):
        raise TypeError(f"{requirement}, as a list or another sequence, got {type(items).__name__} {str(items)[:80]!r}")
    return list(items)  # type: ignore[call-overload,no-any-return]  # a data set may have __getitem__ alone


async def run_each(
    items: Sequence[Any], evaluate_item: Callable[[Any], Awaitable[Sample]], *, max_concurrent: int
) -> list[Sample]:
    """Return one sample per item, in order; at most ``max_concurrent`` items run at once.

    A cancellation cancels every item and waits until all have ended. Raises: ValueError when there are no items or
    ``max_concurrent`` is less than 1; TypeError when it is not an integer.
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


async def evaluated(
    env: Any,
    item: Any,
    *,
    score: Score | None = None,
    item_fields: ItemFields | None = None,
    retried: Counter[str],
    **settings: Any,
) -> Sample:
    """Return the sample of one item, which is run again as a rollout is; ``retried`` counts that. ``settings`` are `agent_rollout`'s."""

    async def reward_of(rollout: AgentRollout) -> float:
        return as_reward(await env.compute_reward(rollout.item, rollout.result, rollout.ctx))

    async def attempt() -> Attempt:
        """Return the sample, and the error of the step that failed, if one did."""
        sample: Sample = {"prompt": None, "score": None}
        end = RolloutEnd.ENVIRONMENT_FAILED
        try:
            sample = {**(_fields("item_fields", item_fields(item)) if item_fields else {}), **sample}
            sample["prompt"] = prompt = env.format_prompt(item)
            async with env.agent_rollout(item, prompt=prompt, **settings) as rollout:
                result = rollout.result
                facts = {
                    "turns": result.turns_used,
                    "finished": result.finished_naturally,
                    "tool_errors": len(result.tool_errors),
                }
                sample |= {**facts, "messages": result.messages}
                end = rollout.end if rollout.end.is_failure else RolloutEnd.REWARD_FAILED
                fields = await never_ending(bridged(_score_fields)(score or reward_of, rollout))
                if score is not None:
                    note_reward(getattr(rollout.ctx, "_record_draft", None), fields["score"], "score", fields)
                sample |= {**fields, **facts}
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - logged when the item is not run again
            error = raised if isinstance(raised, Exception) else StoppedByCode(f"SystemExit: {raised}")
            cause = cause_of(error)
            sample |= {"score": None, "error": f"{type(cause).__name__}: {cause}", "end": end.value}
            return Attempt(end=end, item=sample, error=error)
        return Attempt(end=None, item=sample)

    config = env.config
    with recorded_group(env, "evaluate"), place_in_group():
        made, count = await last_attempt(attempt, retries=config.rollout_retries, reward_errors=config.reward_errors)
    if count:
        retried["eval/retries"] += count
    if made.error is not None:
        log_once(logger, made.error, "Evaluating an item failed; it is counted in eval/errors. The item: %.200r", item)
    sample: Sample = made.item
    return sample


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


# ---------------------------------------------------------------------- metrics


def _metrics_of(samples: Sequence[Sample], *, pass_score: float | None) -> dict[str, Any]:
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


def _scored(samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample["score"] is not None]
