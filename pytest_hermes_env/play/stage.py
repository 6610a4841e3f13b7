"""One environment instance on its own mock model, and the scenarios that run on it.

Place in the flow: the driver creates a stage for each family of scenarios; the family plays its scenarios on it, one after the
other, and each becomes a frozen record. Several stages run concurrently in one event loop: the current journal tells them apart.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.patches import auditing
from pytest_hermes_env.play.attack_plan import AttackPlan
from pytest_hermes_env.play.auto_script import brief_policy
from pytest_hermes_env.play.buffers import copied, snapshot
from pytest_hermes_env.play.faults import Fault, Faults
from pytest_hermes_env.play.first_setup import FirstSetup
from pytest_hermes_env.play.held_out import HeldOut
from pytest_hermes_env.play.journal import Journal, Place, recording
from pytest_hermes_env.play.raised import described, first_error, is_from_outside, within
from pytest_hermes_env.play.sampling import replies_of
from pytest_hermes_env.play.scenario import Cause, ErrorKind, Scenario, Unavailable, kind_of
from pytest_hermes_env.play.server_kind import CHAT
from pytest_hermes_env.play.watchers.call_site import EnvironmentCode
from pytest_hermes_env.types import RealToolsUse

CLOSING = ("aclose", "close", "shutdown", "teardown")
"""Names of methods that close an environment; Atropos itself defines none."""

LATER_S = 10.0
"""Seconds that a scenario gets after another one did not end, half of them after two, and so on: one hang is enough to know."""

SETTLE_S = 3.0
"""Seconds that tasks which outlive their scenario get to end by themselves."""

Policy = Callable[[Any], Any]
Needs = Literal["nothing", "setup", "item", "group"]
"""What must be there before scenarios can be played."""

_WHERE: dict[str, str] = {
    "loop_hangs": "the end of an agent loop",
    "tool_hangs": "a tool in a thread of its own",
    "reward_hangs": "compute_reward",
}


@dataclass
class Stage:
    """``env`` sends requests to ``mock``, which answers with the policy of the current scenario; ``sandbox`` answers tool calls.

    ``thorough`` is the policy that uses every tool; ``names`` are the scenarios of this stage, and ``needed`` those of them that are
    played; None means all.
    """

    env: Any
    mock: Any
    sandbox: Any
    server_type: str
    timeout_s: float
    thorough: Policy
    names: tuple[str, ...]
    needed: frozenset[str] | None = None
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    policy: Policy | None = None
    item: Any = None
    building: Journal = field(default_factory=Journal)
    """What happened while the environment was built; the record of `setup` starts with it."""
    cases: object = None
    """What the author declared, as `cases.values.Cases`, if anything."""
    effort: int = 1
    """A factor of what is played around gold."""
    attack: AttackPlan = field(default_factory=AttackPlan)
    gold_s: float = 0.0
    """How long the slowest rollout of gold took."""
    first_setup: FirstSetup = field(default_factory=FirstSetup)
    held_out: HeldOut = field(default_factory=HeldOut)
    """The items that evaluations get, the same for all stages of a class."""
    code: EnvironmentCode | None = None
    """The files that belong to the environment, which errors are placed in."""
    nothing_to_train: str = ""
    """Why the class is an evaluation by its own code; empty for a class that is meant to train."""
    is_set_up: bool = False
    is_crowded: bool = False
    """Whether its set-up failed although that of another instance had succeeded."""
    item_error: str = ""
    written: dict[str, None] = field(default_factory=dict)
    """Files of the host that setup wrote."""
    steps: int = 0
    """Parts of a scenario that have begun and that nothing else tells of."""
    real_tools: RealToolsUse = "confined"
    """When in-memory machines may run real programs."""
    begins: Callable[[str], None] = lambda _: None
    """Hears the name of each scenario that begins."""
    keep: Callable[[Scenario], None] = lambda _: None
    """Gets each record as soon as it is made."""

    @property
    def has_tokens(self) -> bool:
        """Whether rollouts run in token mode."""
        return self.server_type != CHAT

    def answer(self, conversation: Any) -> Any:
        """Return the answer of the current scenario's policy; the mock model calls this."""
        return (self.policy or self.thorough)(conversation)

    def step(self) -> None:
        """Note that a further part of the scenario begins."""
        self.steps += 1

    def plays(self, name: str) -> bool:
        """Return whether a scenario is played: one that has a name of its own only if a rule reads it."""
        return self.needed is None or name in self.needed or name not in self.names

    def skip(self, reason: Unavailable, *names: str) -> None:
        """Mark scenarios as unavailable: the named ones, else all that were not played yet."""
        for name in names or self.names:
            self.scenarios.setdefault(name, Scenario(name=name, unavailable=reason))

    async def prepare(self, name: str = "setup", *, needs: Needs = "setup") -> bool:
        """Set the environment up and take the first item. False: something that is needed is missing, and all scenarios are skipped."""
        if not await self.set_up(name, self.take_first_item):
            return False
        reason = {"item": self.without_item, "group": self.without_group}.get(needs)
        if reason is not None:
            self.skip(reason)
        return reason is None

    async def set_up(self, name: str, act: Callable[[], Any] | None = None) -> bool:
        """Play a scenario that sets the environment up, by default that alone. False: it failed, and all scenarios are skipped."""
        async with self.first_setup.passing() as is_first:
            if not self.may_begin():
                return False
            record = await self.play(name, act or self.call_setup)
            record = self.scenarios[name] = replace(record, events=(*self.building.events, *record.events))
            if self.is_set_up:
                return True
            is_sync = record.error_kind is ErrorKind.NOT_AWAITABLE and not record.error_place.line
            cause = Cause.SETUP_NOT_ASYNC if is_sync else Cause.SETUP_FAILED
            reason = record.unavailable or Unavailable(cause, record.error, record.error_place)
            if is_first:
                self.first_setup.reason = reason
            else:
                self.is_crowded = True
            self.scenarios[name] = replace(record, unavailable=reason)
            self.skip(reason)
            return False

    def may_begin(self) -> bool:
        """Return whether no earlier set-up of the class has failed; otherwise skip all scenarios."""
        if self.first_setup.reason is not None:
            self.skip(self.first_setup.reason)
        return self.first_setup.reason is None

    async def call_setup(self) -> None:
        """Set the environment up, and note which files it writes."""

        def opened(_: str, given: tuple[Any, ...]) -> None:
            path, mode = given[:2]
            if isinstance(path, str | os.PathLike) and isinstance(mode, str) and not {*"wax+"}.isdisjoint(mode):
                self.written[os.path.realpath(path)] = None

        with auditing("open", opened):
            await self.env.setup()
        self.is_set_up = True

    async def take_first_item(self) -> None:
        """Set the environment up and take the first item; what get_next_item raises is the error of the scenario `items`."""
        await self.call_setup()
        try:
            self.item = await self.next_item()
        except BaseException as error:
            if is_from_outside(error):
                raise
            self.item_error = f"get_next_item raised {described(first_error(error))}"

    @property
    def without_item(self) -> Unavailable | None:
        """Why there is no training item; None where there is one."""
        if self.item is not None:
            return None
        if self.nothing_to_train:
            return self.without_group
        return Unavailable(Cause.NO_ITEM, self.item_error or "get_next_item returned None")

    @property
    def without_group(self) -> Unavailable | None:
        """Why no group can be collected; None where one can."""
        return Unavailable(Cause.NOTHING_TO_TRAIN, self.nothing_to_train) if self.nothing_to_train else self.without_item

    async def next_item(self) -> Any:
        """Return the next training item; None at the end, or where the method is a benchmark's stub that raises."""
        try:
            return await self.env.get_next_item()
        except NotImplementedError:
            self.nothing_to_train = self.nothing_to_train or "get_next_item is a stub that raises NotImplementedError"
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
        """Play one group of the first item, up to what the trainer would get; the scenario is unavailable if there is no item."""
        if (reason := self.without_group) is not None:
            self.skip(reason, name)
            return self.scenarios[name]
        return await self.play(name, lambda: self.group_for_the_trainer(self.item), policy=policy, fault=fault)

    async def group_for_the_trainer(self, item: Any) -> Any:
        """Collect a group and postprocess it, as ``BaseEnv.handle_env`` of atroposlib 0.4.0 does."""
        collected = await self.env.collect_trajectories(item)
        if not isinstance(collected, tuple) or len(collected) != len(("group", "backlog")) or not collected[0]:
            return collected
        return await self.env.postprocess_histories(collected[0]), collected[1]

    async def play(
        self,
        name: str,
        act: Callable[[], Any],
        *,
        policy: Policy | None = None,
        fault: Fault = "none",
        faults: Faults | None = None,
        is_logging: bool = False,
        is_compared: bool = True,
        more: Callable[[Journal], dict[str, Any]] = lambda _: {},
    ) -> Scenario:
        """Play one scenario and return its frozen record, which includes what the environment raises; an empty one if nobody needs it.

        ``policy`` answers for the model, ``fault`` is the step that fails. ``is_logging`` records what goes to wandb, ``is_compared`` what
        the environment holds before and after. ``more`` returns
        further fields of the record.
        """
        if not self.plays(name):
            return Scenario(name=name)
        self.begins(name)
        before, asked = snapshot(self.env) if is_compared else {}, len(self.mock.journal)
        self.policy = policy
        faults = faults or Faults(fault=fault)
        faults.loop = asyncio.get_running_loop()
        logged: list[dict[str, Any]] = []
        outcome, error, place = None, "", Place()
        kind: ErrorKind | None = None
        running = asyncio.all_tasks()
        journal = Journal(faults=faults, sandbox=self.sandbox, log=logged.append if is_logging else None, model=self.mock)
        with recording(journal):
            try:
                outcome = await self._ended(act, journal)
            except BaseException as raised:
                if is_from_outside(raised):
                    raise
                cause = first_error(raised)
                error, kind = described(cause), kind_of(cause, [one.__name__ for one in type(self.env).__mro__])
                place = self.code.raised_at(cause) if self.code is not None else Place()
            await _settle(set(journal.tasks) & (asyncio.all_tasks() - running))
        group = outcome[0] if isinstance(outcome, tuple) and outcome else None
        exchanges = self.mock.journal[asked:]
        record = Scenario(
            name=name,
            error=error,
            error_kind=kind,
            error_place=place,
            events=tuple(journal.events),
            tool_calls=tuple(journal.tool_calls),
            requests=tuple(_slim(exchange.request) for exchange in exchanges),
            sampled=replies_of(exchanges),
            group=copied(group),
            returned=_shape(outcome),
            refusal=_refusal(group),
            before=before,
            after=snapshot(self.env) if is_compared else {},
            logged=tuple(logged),
            warnings=tuple(journal.warnings),
            **more(journal),
        )
        self.scenarios[name] = record
        if name in self.names:
            self.keep(record)
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
                faults.plan.released.set()
            await asyncio.gather(running, reached, return_exceptions=True)

        record = await self.play(name, cancelled, policy=policy, faults=faults)
        if name in self.scenarios and is_needed and not faults.reached.is_set():
            ended = f": {record.error}" if record.error else ""
            reason = Unavailable(Cause.NOT_REACHED, f"{_WHERE[fault]}{ended}")
            self.scenarios[name] = Scenario(name=name, unavailable=reason)
        return self.scenarios.get(name, record)

    async def _ended(self, act: Callable[[], Any], journal: Journal) -> Any:
        """Await what ``act`` returns, if it is awaitable, in its own task, which can be cancelled."""
        answer = act()
        if not hasattr(answer, "__await__"):
            return None

        def late() -> None:
            journal.is_late = True
            self.first_setup.hangs += 1

        limit_s = min(self.timeout_s, LATER_S / self.first_setup.hangs) if self.first_setup.hangs else self.timeout_s

        def progress() -> tuple[int, ...]:
            work = int(time.process_time() / limit_s * 10)  # a process that waits for nothing but a processor is at work
            return work, self.steps, len(journal.events), len(journal.tool_calls), len(self.mock.journal)

        try:
            return await within(limit_s, answer, late=late, progress=progress)
        finally:
            if inspect.iscoroutine(answer) and inspect.getcoroutinestate(answer) == inspect.CORO_CREATED:
                answer.close()  # its task was cancelled before it began
            del answer


def configure(env: Any, **settings: Any) -> None:
    """Change those of the settings that the environment's configuration has."""
    config = getattr(env, "config", None)
    for name, value in settings.items():
        if hasattr(config, name):
            setattr(config, name, value)


def _slim(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with the names of its tools in place of their schemas, which are the same 12 KB in all requests."""
    tools = [tool.get("function", {}).get("name") for tool in request.get("tools") or ()]
    return {**request, "tools": tools} if tools else dict(request)


def _shape(outcome: Any) -> str:
    """Return the type of what a method returned, as text."""
    kind = "None" if outcome is None else type(outcome).__name__
    return f"{kind} of {len(outcome)}" if isinstance(outcome, tuple) else kind


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
