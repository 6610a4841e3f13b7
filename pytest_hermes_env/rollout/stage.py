"""One environment instance on its own mock model, and the scenarios that run on it.

Place in the flow: the driver creates a stage for each family of scenarios; the family plays its scenarios on it, one after the
other, and each becomes a frozen record. Several stages run concurrently in one event loop: the current journal tells them apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import traceback
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.rollout.auto_script import brief_policy
from pytest_hermes_env.rollout.buffers import copied, snapshot
from pytest_hermes_env.rollout.cases import Cases
from pytest_hermes_env.rollout.event_loop import Hung
from pytest_hermes_env.rollout.faults import Fault, Faults
from pytest_hermes_env.rollout.journal import Asked, Journal, current_rollout, note, recording
from pytest_hermes_env.rollout.sampling import replies_of
from pytest_hermes_env.rollout.scenario import Scenario
from pytest_hermes_env.rollout.server_kind import CHAT
from pytest_hermes_env.rollout.unavailable import Cause, ErrorKind, Unavailable, kind_of
from pytest_hermes_env.types import RealToolsUse

__all__ = ["Policy", "Stage"]

CLOSING = ("aclose", "close", "shutdown", "teardown")
"""Names of methods that close an environment; Atropos itself defines none."""

SETTLE_S = 3.0
"""Seconds that tasks which outlive their scenario get to end by themselves."""

Policy = Callable[[Any], Any]

_WHERE: dict[str, str] = {
    "loop_hangs": "the end of an agent loop",
    "tool_hangs": "a tool in a thread of its own",
    "reward_hangs": "compute_reward",
}


@dataclass
class Stage:
    """``env`` sends requests to ``mock``, which answers with the policy of the current scenario; ``world`` answers tool calls.

    ``thorough`` is the policy that uses every tool; ``names`` are the scenarios of this stage.
    """

    env: Any
    mock: Any
    world: Any
    server_type: str
    timeout_s: float
    thorough: Policy
    names: tuple[str, ...]
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    policy: Policy | None = None
    item: Any = None
    building: Journal = field(default_factory=Journal)
    """What happened while the environment was built; the record of `setup` starts with it."""
    cases: Cases | None = None
    """What the author declared, if anything."""
    real_tools: RealToolsUse = "confined"
    """When in-memory machines may run real programs."""

    @property
    def has_tokens(self) -> bool:
        """Whether rollouts run in token mode."""
        return self.server_type != CHAT

    def answer(self, conversation: Any) -> Any:
        """Return the answer of the current scenario's policy; the mock model calls this."""
        task_id, phase = current_rollout.get()
        note(
            Asked(
                task_id=task_id,
                phase=phase,
                has_tools=bool(conversation.tools),
                conversation=conversation.id,
                turn=conversation.turn,
            )
        )
        return (self.policy or self.thorough)(conversation)

    def skip(self, reason: Unavailable, *names: str) -> None:
        """Mark scenarios as unavailable: the named ones, else all that were not played yet."""
        for name in names or self.names:
            self.scenarios.setdefault(name, Scenario(name=name, unavailable=reason))

    async def prepare(self, name: str = "setup", *, needs_item: bool = False) -> bool:
        """Set the environment up and take the first item.

        False: that failed, or there is no item and ``needs_item``; all scenarios are then marked unavailable.
        """
        record = await self.play(name, self.take_first_item)
        self.scenarios[name] = record = replace(record, events=(*self.building.events, *record.events))
        if record.error:
            self.skip(Unavailable(Cause.SETUP_FAILED, record.error))
            return False
        if needs_item and self.item is None:
            self.skip(Unavailable(Cause.NOTHING_TO_TRAIN))
            return False
        return True

    async def take_first_item(self) -> None:
        """Set the environment up and take the first item."""
        await self.env.setup()
        self.item = await self.next_item()

    async def next_item(self) -> Any:
        """Return the next training item; None at the end, or where the method is a benchmark's stub that raises."""
        try:
            return await self.env.get_next_item()
        except NotImplementedError:
            return None

    async def close(self) -> None:
        """Call the environment's closing methods."""
        for name in CLOSING:
            method = getattr(self.env, name, None)
            if inspect.ismethod(method):
                await self.play(f"{name} at the end", method)

    async def fill_buffers(self) -> Scenario:
        """Collect one training group to fill the metric buffers. Other scenarios report its errors."""
        return await self.collect("a training group before", policy=brief_policy)

    async def collect(self, name: str, *, policy: Policy | None = None, fault: Fault = "none") -> Scenario:
        """Play one group of the first item; the scenario is unavailable if there is none."""
        if self.item is None:
            self.skip(Unavailable(Cause.NOTHING_TO_TRAIN), name)
            return self.scenarios[name]
        return await self.play(name, lambda: self.env.collect_trajectories(self.item), policy=policy, fault=fault)

    async def play(
        self,
        name: str,
        act: Callable[[], Any],
        *,
        policy: Policy | None = None,
        fault: Fault = "none",
        faults: Faults | None = None,
        is_logging: bool = False,
        more: Callable[[Journal], dict[str, Any]] = lambda _: {},
    ) -> Scenario:
        """Play one scenario and return its frozen record, which includes what the environment raises.

        ``policy`` answers for the model, ``fault`` is the step that fails. ``is_logging`` switches wandb on. ``more`` returns
        further fields of the record.
        """
        before, asked = snapshot(self.env), len(self.mock.journal)
        self.policy = policy
        faults = faults or Faults(fault=fault)
        faults.loop = asyncio.get_running_loop()
        logged: list[dict[str, Any]] = []
        outcome, error, line = None, "", 0
        kind: ErrorKind | None = None
        running = asyncio.all_tasks()
        journal = Journal(faults=faults, world=self.world, log=logged.append if is_logging else None)
        with recording(journal), self._wandb(is_on=is_logging):
            try:
                outcome = await self._ended(act)
            except TimeoutError:
                error = f"no end within {self.timeout_s:g} s"
            except KeyboardInterrupt:
                raise
            except BaseException as raised:
                if _is_cancelled_from_outside(raised):
                    raise
                cause = _first_error(raised)
                error, line = _described(cause), _line_of(cause, type(self.env))
                kind = kind_of(cause)
            await _settle(set(journal.tasks) & (asyncio.all_tasks() - running))
        group = outcome[0] if isinstance(outcome, tuple) and outcome else None
        exchanges = self.mock.journal[asked:]
        record = Scenario(
            name=name,
            error=error,
            error_kind=kind,
            error_line=line,
            events=tuple(journal.events),
            tool_calls=tuple(journal.tool_calls),
            requests=tuple(dict(exchange.request) for exchange in exchanges),
            judge_questions=sum(talk is not None and not talk.tools for talk in (one.conversation for one in exchanges)),
            sampled=replies_of(exchanges),
            group=copied(group),
            refusal=_refusal(group),
            before=before,
            after=snapshot(self.env),
            logged=tuple(logged),
            warnings=tuple(journal.warnings),
            **more(journal),
        )
        self.scenarios[name] = record
        return record

    async def cancel(
        self,
        name: str,
        act: Callable[[], Any],
        *,
        fault: Fault,
        policy: Policy | None = None,
        is_needed: bool = True,
    ) -> Scenario:
        """Play a scenario that is cancelled as soon as it reaches the step that hangs.

        ``is_needed``: the scenario is unavailable if that step was not reached.
        """
        faults = Faults(fault=fault)

        async def cancelled() -> None:
            running = asyncio.ensure_future(act())
            reached = asyncio.ensure_future(faults.reached.wait())
            try:
                await asyncio.wait({running, reached}, return_when=asyncio.FIRST_COMPLETED)
                reached.cancel()
                running.cancel()
            finally:
                faults.tool_released.set()
            await asyncio.gather(running, return_exceptions=True)

        record = await self.play(name, cancelled, policy=policy, faults=faults)
        if is_needed and not faults.reached.is_set():
            ended = f": {record.error}" if record.error else ""
            reason = Unavailable(Cause.NOT_REACHED, f"{_WHERE[fault]}{ended}")
            self.scenarios[name] = Scenario(name=name, unavailable=reason)
        return self.scenarios[name]

    async def _ended(self, act: Callable[[], Any]) -> Any:
        """Await what ``act`` returns, if it is awaitable, in its own task, which can be cancelled."""
        answer = act()
        if not hasattr(answer, "__await__"):
            return None
        try:
            return await asyncio.wait_for(_caught(answer), self.timeout_s)
        finally:
            del answer

    @contextlib.contextmanager
    def _wandb(self, *, is_on: bool) -> Iterator[None]:
        """Switch the environment's setting for wandb on."""
        config = getattr(self.env, "config", None)
        if not is_on or config is None:
            yield
            return
        was_on = config.use_wandb
        config.use_wandb = True
        try:
            yield
        finally:
            config.use_wandb = was_on


class _Exit(Exception):
    """An environment raised SystemExit, which would end the event loop."""


async def _caught(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except SystemExit as error:
        raise _Exit(str(error.code)) from error


def _is_cancelled_from_outside(error: BaseException) -> bool:
    """Return whether the scenario's own task is being cancelled, and not a task inside of it."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and bool(task.cancelling())


async def _settle(tasks: set[asyncio.Task[Any]]) -> None:
    """Let tasks that the environment left running end, as they would in a longer run; then cancel the rest.

    ``asyncio.gather`` returns at its first failing child, and the others release their sandboxes a moment later.
    """
    if tasks:
        _, pending = await asyncio.wait(tasks, timeout=SETTLE_S)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=SETTLE_S)


def _refusal(group: Any) -> str:
    """Return why run-api would reject a group, in one line; empty when it accepts it."""
    groups = group if isinstance(group, list) else [group]
    for part in groups:
        if isinstance(part, dict):
            from atroposlib.api.server import ScoredData  # noqa: PLC0415 - heavy

            try:
                ScoredData.model_validate_json(json.dumps(part, allow_nan=False))
            except (TypeError, ValueError) as error:
                return shorten(str(error))
    return ""


def _first_error(error: BaseException) -> BaseException:
    """Return the first error inside of an exception group, which a TaskGroup raises."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error.__cause__ if isinstance(error, _Exit) and error.__cause__ is not None else error


def _described(error: BaseException) -> str:
    if isinstance(error, Hung):
        return "it kept the event loop from running until it was interrupted"
    return f"{type(error).__name__}: {shorten(str(error))}"


def _line_of(error: BaseException, env_class: type) -> int:
    """Return the last line of the traceback that lies in the class's own file, or 0."""
    path = inspect.getsourcefile(env_class)
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else 0
