"""A rollout on a model server that the caller provides: the seam for training engines other than Atropos.

Such an engine samples tokens itself, behind an endpoint of its own for each rollout, and needs the reward instead of a row for
Atropos' trainer. ``HermesAgentBaseEnv.run_rollout`` is that seam; this module decides which server ``self.server`` is meanwhile, and
what the rollout's outcome was.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from environments.agent_loop import ToolError
from environments.loop.end import RolloutEnd, RolloutRecord, current_record, recording
from environments.rollout.recorder import note_reward, recorded_reward
from environments.trainer.scoring import as_reward

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RolloutOutcome:
    """What happened in one rollout."""

    end: RolloutEnd
    reward: float | None = None
    """None if nothing was earned: the rollout failed, or the environment leaves it out."""
    error: Exception | None = None
    """Why there is no reward; None if there is one."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    turns: int = 0
    """Model calls of all agent loops."""
    tool_errors: list[ToolError] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Servers:
    env_id: int
    policy: Any
    judge: Any
    has_rows: bool


_servers: ContextVar[_Servers | None] = ContextVar("hermes_hosted_servers", default=None)
_computes_reward: ContextVar[bool] = ContextVar("hermes_computes_reward", default=False)


def _servers_of(env: object) -> _Servers | None:
    servers = _servers.get()
    return servers if servers is not None and servers.env_id == id(env) else None


def is_hosted(env: object) -> bool:
    """Return whether the current rollout of ``env`` runs on a server that it was given."""
    return _servers_of(env) is not None


def makes_rows(env: object) -> bool:
    """Return whether somebody reads the tokens of the current rollout's row: not where the caller takes the reward from it alone."""
    servers = _servers_of(env)
    return servers is None or servers.has_rows


def given_server(env: object) -> Any:
    """Return the server that the current rollout of ``env`` was given: the policy's, or the judge's while the reward is computed.

    None means the configured one.
    """
    servers = _servers_of(env)
    return servers and (servers.judge if _computes_reward.get() else servers.policy)


class StoppedByCode(RuntimeError):
    """What an environment's code raised to end its process, or a cancellation that nobody asked for: an error of this rollout alone."""


async def never_ending(awaitable: Awaitable[T]) -> T:
    """Await code of an environment. Raises: what it raises; SystemExit, and a CancelledError that nobody asked for → StoppedByCode."""
    try:
        return await awaitable
    except SystemExit as error:
        raise StoppedByCode(f"SystemExit: {error.code}") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise StoppedByCode("CancelledError: what it awaited was cancelled, and the rollout was not") from error


def recording_reward_errors(compute_reward: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Return ``compute_reward`` wrapped so that an error of it stays known, even where an override of the caller swallows it."""
    if not inspect.iscoroutinefunction(compute_reward):
        return compute_reward

    @functools.wraps(compute_reward)
    async def run(*args: Any, **kwargs: Any) -> T:
        if _computes_reward.get():  # called by the override of a subclass, which may handle the error
            return await never_ending(compute_reward(*args, **kwargs))
        token = _computes_reward.set(True)
        try:
            with recorded_reward((*args, *kwargs.values())) as draft:
                reward = await never_ending(compute_reward(*args, **kwargs))
                note_reward(draft, reward)
                return reward
        except Exception as error:
            current_record().reward_error = error
            raise
        finally:
            _computes_reward.reset(token)

    return run


def only_row(group: Any) -> Mapping[str, Any] | None:
    """Return the row of a group with one rollout; None for no group. Raises: ValueError for any other number of rollouts."""
    groups = [one for one in (group if isinstance(group, list) else [group]) if one]
    if not groups:
        return None
    rows = sum(len(one["scores"]) for one in groups)
    if rows != 1:
        raise ValueError(f"collect_trajectories returned {rows} rollouts for group_size 1; a rollout must have one score")
    row = {name: (groups[0].get(name) or [None])[0] for name in ("messages", "overrides")}
    return {**row, "scores": groups[0]["scores"][0]}


async def collect_outcome(
    env: object, collect: Callable[[], Awaitable[Mapping[str, Any] | None]], *, policy: Any, judge: Any, has_rows: bool
) -> RolloutOutcome:
    """Await ``collect``, which returns the row of one rollout, on these servers, and return what happened.

    ``has_rows``: the environment may read the row's tokens.

    An error of the rollout is in the outcome; only what is not an `Exception`, such as a cancellation, is raised.
    """
    row: Mapping[str, Any] | None = None
    raised: Exception | None = None
    token = _servers.set(_Servers(env_id=id(env), policy=policy, judge=judge, has_rows=has_rows))
    with recording(RolloutRecord()) as record:
        try:
            row = await collect()
        except Exception as error:  # noqa: BLE001 - returned in the outcome
            raised = error
        finally:
            _servers.reset(token)
    end, reward, why = _judged(record, row, raised)
    messages = (row or {}).get("messages") or (record.results[-1].messages if record.results else [])
    return RolloutOutcome(
        end=end,
        reward=reward,
        error=why,
        messages=list(messages),
        turns=sum(result.turns_used for result in record.results),
        tool_errors=[failed for result in record.results for failed in result.tool_errors],
    )


def _judged(
    record: RolloutRecord, row: Mapping[str, Any] | None, raised: Exception | None
) -> tuple[RolloutEnd, float | None, Exception | None]:
    """Return the end, and the reward or why there is none. A score that comes with an error was not earned."""
    end = record.end or RolloutEnd.FINISHED
    if record.reward_error is not None:
        return RolloutEnd.REWARD_FAILED, None, record.reward_error
    if end.is_failure:
        return end, None, record.failure or raised or RuntimeError(f"the rollout ended: {end}")
    if raised is not None:
        return RolloutEnd.ENVIRONMENT_FAILED, None, raised
    if row is None:
        return RolloutEnd.ENVIRONMENT_FAILED, None, RuntimeError("the environment returned no item for the rollout")
    if (row.get("overrides") or {}).get("left_out"):
        return end, None, RuntimeError(f"the environment leaves out a rollout that ends as {end}; see truncated_turns")
    try:
        return end, as_reward(row["scores"], "the environment"), None
    except (LookupError, ValueError) as error:
        return RolloutEnd.REWARD_FAILED, None, error
