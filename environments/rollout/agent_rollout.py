"""One run of the agent, the settings that it may be given, and what a reward makes of it: the item for the trainer. Nothing is repeated here.

Place in the flow: ``HermesAgentBaseEnv.agent_rollout`` yields an `AgentRollout`; each attempt of
``HermesAgentBaseEnv.collect_trajectory`` is one `scored_rollout`.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from environments.agent_loop import AgentResult
from environments.loop.end import RolloutEnd, current_record, end_of_result
from environments.loop.log_once import log_once
from environments.rollout.hosted import makes_rows, recording_reward_errors
from environments.sandbox.nonblocking_calls import bridged
from environments.tokens.sampled_turns import LONG_TEXT
from environments.tool_context import ToolContext
from environments.trainer import scoring
from environments.trainer.scoring import UnearnedScore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AgentRollout:
    """One run of the agent on one item. ``ctx`` is its sandbox, which is released when the ``async with`` block ends; then it raises."""

    item: Any
    prompt: str
    """The user message."""
    result: AgentResult
    ctx: ToolContext
    server: Any
    """The model server that the agent loop talked to."""
    failure: Exception | None = None
    """The error of the model server, or of the tool pool, that ended the loop early; None when every turn was answered."""
    generation_params: Mapping[str, Any] = field(default_factory=dict)
    """The sampling parameters of the agent's requests, as the trainer reads them."""

    @property
    def end(self) -> RolloutEnd:
        """How the agent's run ended."""
        return end_of_result(self.result, self.failure)

    @property
    def task_id(self) -> str:
        """The id of the rollout's session in hermes."""
        return self.ctx.task_id


async def scored_rollout(env: Any, item: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return the item of one run of the agent of ``env``, and no backlog. The current record gets the end."""
    async with env.rollout_server() as server, env.agent_rollout(item, server=server) as rollout:
        end: RolloutEnd = rollout.end
        reward: float = UnearnedScore()
        if not end.is_failure:
            end, reward = await _reward_of(env, rollout)
    current_record().end = end
    env._remember_tool_errors(rollout.result)
    scored = scoring.described(await _item_of(env, rollout, reward, server), end, rollout.generation_params)
    logger.info("Rollout %s ended: %s, score %s", rollout.task_id, end, reward)
    is_unscored = end.is_failure and not (end is RolloutEnd.REWARD_FAILED and env.config.reward_errors == "zero")
    is_dropped = end is RolloutEnd.CUT_BY_LENGTH and env.config.truncated_turns == "drop"
    if is_dropped:
        env._counts["train/rollouts_left_out"] += 1
    return (scoring.left_out(scored, end) if is_unscored or is_dropped else scored), []


async def _reward_of(env: Any, rollout: AgentRollout) -> tuple[RolloutEnd, float]:
    """Return the rollout's end and reward: 0.0 if the model returned nothing, or ``compute_reward`` fails."""
    result, ctx = rollout.result, rollout.ctx
    if not scoring.did_work(result.messages):
        logger.warning("The model returned nothing in rollout %s; its reward is 0.0, and it is not trained on", ctx.task_id)
        return rollout.end, 0.0
    compute_reward = recording_reward_errors(bridged(env.compute_reward))  # a test may have replaced the class's
    try:
        return rollout.end, scoring.as_reward(await compute_reward(rollout.item, result, ctx))
    except Exception as error:  # noqa: BLE001 - it is logged, and is the end of the rollout
        current_record().reward_error = error
        log_once(logger, error, "compute_reward failed in rollout %s; counted as a reward error", ctx.task_id)
        return RolloutEnd.REWARD_FAILED, 0.0


async def _item_of(env: Any, rollout: AgentRollout, reward: float, server: Any) -> dict[str, Any]:
    """Return the rollout's item: with the sampled tokens in token mode, with placeholders in chat mode."""
    result, policy = rollout.result, env.config.split_rollouts
    mask_incomplete = rollout.end is RolloutEnd.CUT_BY_LENGTH and env.config.truncated_turns != "train"
    if mask_incomplete:
        env._counts["train/truncated_turns_masked"] += 1
    if server is env.server or result.managed_state is None:
        complete = scoring.without_last_reply(result.messages) if mask_incomplete else None
        # tokens of a megabyte take a second; a served environment may have no tokenizer, and placeholders are not trained on
        tokenizer = getattr(env.tokenizer, "of_placeholders", env.tokenizer) if makes_rows(env) else None
        item_of = functools.partial(scoring.chat_item, tokenizer, result.messages, reward, complete=complete)
        is_long = len(scoring.transcript(result.messages)) > LONG_TEXT  # then the event loop serves other rollouts meanwhile
        return await asyncio.to_thread(item_of) if is_long else item_of()
    nodes = result.managed_state.get("nodes") or []
    if len(nodes) > 1:
        env._counts["train/split_rollouts"] += 1
        env._counts["train/split_rollouts_rejected"] += policy == "reject"
    prompt = getattr(server, "prompt_tokens", None) or env.tokenizer.encode(scoring.transcript(result.messages))
    return scoring.token_item(
        nodes,
        result.messages,
        reward,
        rollout_id=rollout.task_id,
        prompt_tokens=prompt,
        split_rollouts=policy,
        mask_incomplete=mask_incomplete,
    )


# ---------------------------------------------------------------------- checks of the settings of one call, before anything runs


def check_count(name: str, value: object) -> None:
    """Check a limit. Raises: TypeError unless it is an integer, ValueError when it is less than 1."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:  # an array has an index, which fails
        raise TypeError(f"{name} must be an integer, got {_shown(value)}") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {_shown(value)}")
    if number < 1:
        raise ValueError(f"{name} must be at least 1, got {number}: nothing would run")


def check_prompt(prompt: Any) -> Any:
    """Return what format_prompt gave. Raises: TypeError where it must be awaited, since nobody does that."""
    if inspect.iscoroutine(prompt):
        prompt.close()
        raise TypeError("format_prompt must return the prompt, but it is async: write `def format_prompt(self, item)`")
    return prompt


def check_sampling(
    *,
    temperature: object = None,
    max_turns: object = None,
    max_tokens: object = None,
    extra_body: object = None,
    system_prompt: object = None,
) -> None:
    """Check the settings of a rollout; None is the value of the configuration. Raises: TypeError or ValueError, naming the setting."""
    for name, count in (("max_turns", max_turns), ("max_tokens", max_tokens)):
        if count is not None:
            check_count(name, count)
    if temperature is not None:
        check_number("temperature", temperature)
        if float(temperature) < 0:  # type: ignore[arg-type]
            raise ValueError(f"temperature must be 0 or more, got {temperature}")
    if not isinstance(extra_body, (Mapping, type(None))):
        raise TypeError(f"extra_body must be a mapping of fields of the request, got {_shown(extra_body)}")
    if not isinstance(system_prompt, (str, type(None))):
        raise TypeError(f"system_prompt must be text, got {_shown(system_prompt)}")


def check_number(name: str, value: object) -> None:
    """Check a number. Raises: TypeError unless it is one, ValueError unless it is finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {_shown(value)}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value}")


def _shown(value: object) -> str:
    return f"{type(value).__name__} {str(value)[:80]!r}"
