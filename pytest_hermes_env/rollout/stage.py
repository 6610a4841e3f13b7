"""One environment instance on a mock model of its own, and the scenarios that it is put through.

Place in the flow: the driver gives each family of scenarios a stage; the family plays its scenarios on it, one after the other;
each becomes a frozen record. Several stages work in one event loop at the same time: what belongs to which is told by the
journal that is current.
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
from pytest_hermes_env.rollout.buffers import copied, snapshot
from pytest_hermes_env.rollout.cases import Cases
from pytest_hermes_env.rollout.event_loop import Hung
from pytest_hermes_env.rollout.faults import Fault, Faults
from pytest_hermes_env.rollout.journal import Asked, Journal, current_journal, current_rollout, recording
from pytest_hermes_env.rollout.sampling import replies_of
from pytest_hermes_env.rollout.scenario import Scenario
from pytest_hermes_env.rollout.unavailable import Cause, ErrorKind, Unavailable, kind_of

__all__ = ["CHAT", "Policy", "Stage"]

CHAT = "openai"
"""The server type of chat mode."""

CLOSING = ("aclose", "close", "shutdown", "teardown")
"""Methods that an environment may have to be closed by; Atropos itself has none."""

SETTLE_S = 3.0
"""How long tasks that outlive their scenario may take to end by themselves, in seconds."""

Policy = Callable[[Any], Any]

_WHERE: dict[str, str] = {
    "loop_hangs": "the end of an agent loop",
    "tool_hangs": "a tool in a thread of its own",
    "reward_hangs": "compute_reward",
}


@dataclass
class Stage:
    """``env`` asks ``mock``, whose answers come from the policy of the scenario that is played; ``world`` answers the tools.

    ``thorough`` is the policy that uses every tool; ``names`` are the scenarios that this stage is to play.
    """

    env: Any
    mock: Any
    env_class: type
    world: Any
    server_type: str
    timeout_s: float
    thorough: Policy
    names: tuple[str, ...]
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    policy: Policy | None = None
    item: Any = None
    building: Journal = field(default_factory=Journal)
    """What happened while the environment was built; the record of `setup` begins with it."""
    cases: Cases | None = None
    """What the author declared, if anything."""

    @property
    def has_tokens(self) -> bool:
        """Whether rollouts run in token mode."""
        return self.server_type != CHAT

    def answer(self, conversation: Any) -> Any:
        """Say what the policy of the running scenario says: the mock model asks this."""
        journal = current_journal.get()
        if journal is not None:
            task_id, phase = current_rollout.get()
            journal.add(
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
        """Say why scenarios cannot be played: the named ones, else all that were not played yet."""
        for name in names or self.names:
            self.scenarios.setdefault(name, Scenario(name=name, unavailable=reason))

    async def prepare(self, name: str = "setup") -> bool:
        """Set the environment up and take the first item. False: setup failed, and every scenario says so."""

        async def take_item() -> None:
            await self.env.setup()
            self.item = await self.next_item()

        record = await self.play(name, take_item)
        self.scenarios[name] = record = replace(record, events=(*self.building.events, *record.events))
        if record.error:
            self.skip(Unavailable(Cause.SETUP_FAILED, record.error))
        return not record.error

    async def next_item(self) -> Any:
        """Return the next training item; None where there is none, or where the method of a benchmark is a stub that raises."""
        try:
            return await self.env.get_next_item()
        except NotImplementedError:
            return None

    async def prepare_item(self) -> bool:
        """Set the environment up. False: it failed, or there is nothing to train on, and every scenario says so."""
        if not await self.prepare():
            return False
        if self.item is None:
            self.skip(Unavailable(Cause.NOTHING_TO_TRAIN))
        return self.item is not None

    async def close(self) -> None:
        """Close the environment, where it has a method for that."""
        for name in CLOSING:
            method = getattr(self.env, name, None)
            if inspect.ismethod(method):
                await self.play(f"{name} at the end", method)

    async def fill_buffers(self) -> None:
        """Collect one training group, so that metric buffers hold something. What is wrong with it shows elsewhere."""
        from pytest_hermes_env.rollout.auto_script import brief_policy  # noqa: PLC0415 - loads the mock model

        if self.item is not None:
            await self.collect("a training group before", policy=brief_policy)

    async def collect(self, name: str, *, policy: Policy | None = None, fault: Fault = "none") -> Scenario:
        """Play one group of the first item."""
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
        """Play one scenario and return its frozen record; what the environment raises is part of it.

        ``policy`` is what the model says, ``fault`` what fails. ``is_logging`` switches wandb on. ``more`` adds fields.
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
                cause = _leaf(raised)
                error, line = _described(cause), _line_of(cause, self.env_class)
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
        """Play a scenario whose action is cancelled as soon as it reaches the step that hangs.

        ``is_needed``: a scenario in which that step was never reached counts as not played.
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
        """Wait for what ``act`` gives, if it can be waited for; without a task of its own nobody can end it from inside."""
        answer = act()
        if not hasattr(answer, "__await__"):
            return None
        try:
            return await asyncio.wait_for(_caught(answer), self.timeout_s)
        finally:
            del answer

    @contextlib.contextmanager
    def _wandb(self, *, is_on: bool) -> Iterator[None]:
        """Let the environment believe that wandb is on."""
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
    """Tell whether the scenario's own task is being cancelled, and not something inside of it."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and bool(task.cancelling())


async def _settle(tasks: set[asyncio.Task[Any]]) -> None:
    """Let tasks that the environment left running come to their end, as they would in a longer run; then stop the rest.

    ``asyncio.gather`` returns at its first failing child, and the others release their sandboxes a moment later.
    """
    if tasks:
        _, pending = await asyncio.wait(tasks, timeout=SETTLE_S)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=SETTLE_S)


def _refusal(group: Any) -> str:
    """Return why run-api would answer a group with an error, in one line; nothing when it takes it."""
    groups = group if isinstance(group, list) else [group]
    for part in groups:
        if isinstance(part, dict):
            from atroposlib.api.server import ScoredData  # noqa: PLC0415 - heavy

            try:
                ScoredData.model_validate_json(json.dumps(part, allow_nan=False))
            except (TypeError, ValueError) as error:
                return shorten(str(error))
    return ""


def _leaf(error: BaseException) -> BaseException:
    """Return the first real error in a group of errors, which is what a TaskGroup raises."""
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
