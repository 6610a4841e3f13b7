"""Evaluates an environment: checks the arguments, runs the items, again where they failed, and logs metrics and samples.

Place in the flow: `HermesAgentBaseEnv.evaluate_items` is `evaluate_items`; `evaluation` makes the samples and the metrics.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from environments.evaluation.samples import (
    Evaluation,
    MoreMetrics,
    Sample,
    Score,
    check_function,
    further_metrics,
    held_out_items,
    item_list,
    metrics_of,
    run_each,
    sample_of,
)
from environments.loop.end import RolloutEnd
from environments.loop.log_once import log_once
from environments.rollout.agent_rollout import AgentRollout
from environments.rollout.attempts import Attempt, last_attempt
from environments.rollout.limits import check_number, check_sampling
from environments.trainer.scoring import as_reward

logger = logging.getLogger(__name__)


async def evaluate_items(
    env: Any,
    items: Sequence[Any] | None,
    *,
    score: Score | None,
    metrics: MoreMetrics | None,
    item_fields: Callable[[Any], Mapping[str, Any]] | None,
    pass_score: float | None,
    max_concurrent: int | None,
    temperature: float,
    settings: dict[str, Any],
) -> Evaluation:
    """Return the logged evaluation; `HermesAgentBaseEnv.evaluate_items` describes the arguments and the errors."""
    _check_settings(env, settings, temperature)
    check_function("score", score, "the rollout")
    check_function("metrics", metrics, "the samples")
    check_function("item_fields", item_fields, "the item")
    if pass_score is not None:
        check_number("pass_score", pass_score)
    retried: Counter[str] = Counter()
    start_time = time.time()
    samples = await run_each(
        await held_out_items(env) if items is None else item_list(items, "items must be the items to evaluate"),
        lambda item: evaluated(
            env, item, score=score, item_fields=item_fields, retried=retried, temperature=temperature, **settings
        ),
        max_concurrent=env.config.max_eval_workers if max_concurrent is None else max_concurrent,
    )
    evaluation = Evaluation(
        metrics={**metrics_of(samples, pass_score=pass_score), **retried},
        samples=samples,
        start_time=start_time,
        end_time=time.time(),
    )
    failure: Exception | None = None
    try:
        evaluation.metrics.update(await further_metrics(metrics, samples))
    except Exception as error:  # noqa: BLE001 - raised below, after the log
        failure = error
    logger.info("Evaluated %d items: %s", len(samples), evaluation.metrics)
    generation = {"temperature": temperature, "max_new_tokens": settings.get("max_tokens") or env.config.max_token_length}
    await env.evaluate_log(**vars(evaluation), generation_parameters=generation)
    if failure is not None:
        raise RuntimeError(
            f"The metrics function of evaluate_items failed with {type(failure).__name__}: {failure}. The evaluation of "
            f"{len(samples)} items is finished and was logged, without its metrics"
        ) from failure
    return evaluation


async def evaluated(
    env: Any,
    item: Any,
    *,
    score: Score | None = None,
    item_fields: Callable[[Any], Mapping[str, Any]] | None = None,
    retried: Counter[str],
    **settings: Any,
) -> Sample:
    """Return the sample of one item, which is run again as a rollout is; ``retried`` counts that. ``settings`` are `agent_rollout`'s."""

    async def reward_of(rollout: AgentRollout) -> float:
        return as_reward(await env.compute_reward(rollout.item, rollout.result, rollout.ctx))

    async def attempt() -> Attempt:
        sample, error = await sample_of(
            item,
            format_prompt=env.format_prompt,
            rollout_of=lambda item, prompt: env.agent_rollout(item, prompt=prompt, **settings),
            score=score or reward_of,
            item_fields=item_fields,
        )
        return Attempt(end=None if error is None else RolloutEnd(sample["end"]), item=sample, error=error)

    config = env.config
    made, count = await last_attempt(attempt, retries=config.rollout_retries, reward_errors=config.reward_errors)
    if count:
        retried["eval/retries"] += count
    if made.error is not None:
        log_once(logger, made.error, "Evaluating an item failed; it is counted in eval/errors. The item: %.200r", item)
    sample: Sample = made.item
    return sample


def _check_settings(env: Any, settings: dict[str, Any], temperature: float) -> None:
    """Check the arguments for `agent_rollout`: a misspelt setting is not a failure of each item."""
    if "prompt" in settings:
        raise TypeError("evaluate_items takes no prompt: each item's is that of format_prompt. Override format_prompt(item)")
    inspect.signature(env.agent_rollout).bind(None, **settings)
    names = inspect.signature(check_sampling).parameters
    check_sampling(**{name: value for name, value in settings.items() if name in names})
    check_number("temperature", temperature)
    check_sampling(temperature=temperature)
