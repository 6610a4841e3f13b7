"""Puts one environment class through the scenarios, once each, and freezes what happened.

Place in the flow: the contract asks for a `Collection` per class; its rules read it. The model is the mock server, the tools
pass the seam to the world that the user chose.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import io
import json
import logging
import os
import threading
import traceback
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.rollout.buffers import snapshot
from pytest_hermes_env.rollout.journal import Journal, recording
from pytest_hermes_env.rollout.layer import Layer, layer_of
from pytest_hermes_env.rollout.observer import Fault, Faults, watch_environment, watching_layer
from pytest_hermes_env.rollout.sampling import replies_of
from pytest_hermes_env.rollout.scenario import SCENARIOS, Scenario
from pytest_hermes_env.sandbox.seam import ToolCall

__all__ = ["Collection", "collect"]

SETTLE_S = 3.0
"""How long tasks that outlive their scenario may take to end by themselves, in seconds."""

CHAT = "openai"
"""The server type of chat mode."""

PROBE = {"hermes_env/probe": 1.0}
"""Metrics given to wandb_log in the scenario of that name."""


@dataclass(frozen=True, kw_only=True)
class Collection:
    """All scenarios of one class.

    ``config_init`` is what that method returned, or the error that it raised; ``world`` says what answered the tools.
    ``server_type`` is "openai" in chat mode, "vllm" or "sglang" in token mode. ``group_size`` is that of the configuration.
    """

    env_class: type
    layer: Layer
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    config_init: Any = None
    config_init_error: str = ""
    setup_error: str = ""
    world: str = ""
    server_type: str = CHAT
    group_size: int = 0

    @property
    def has_tokens(self) -> bool:
        """Whether the rollouts ran in token mode."""
        return self.server_type != CHAT


def collect(env_class: type, *, sandbox: str = "fake", timeout_s: float = 60.0, server_type: str = CHAT) -> Collection:
    """Run every scenario of ``env_class`` and return the frozen records. Blocks; may be called inside a running event loop.

    ``sandbox``: ``fake`` is an in-memory machine, ``local`` lets hermes' own terminal and file tools run. ``timeout_s`` is for
    each scenario, in seconds. ``server_type`` "vllm" or "sglang" is token mode. Raises: the class is no environment → BadTarget; the sandbox cannot be had → UsageError.
    """
    collector = _Collector(env_class, sandbox, timeout_s, server_type)
    environment = dict(os.environ)
    try:
        with _quiet():
            return _in_a_loop_of_its_own(collector.run)
    finally:
        os.environ.clear()
        os.environ.update(environment)


def _in_a_loop_of_its_own(run: Callable[[], Awaitable[Collection]]) -> Collection:
    """Run a coroutine function to its end, in this thread if it has no running loop, else in another one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())  # type: ignore[arg-type]
    outcome: list[Collection] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(run()))  # type: ignore[arg-type]
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            failure.append(error)

    thread = threading.Thread(target=target, name="hermes-env-scenarios")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep injected failures and printed tables out of the test's output: what matters of them is in the records."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(level)


class _CannotBuild(Exception):
    """The class's constructor refused; that is a result of the run, not a failure of the harness."""


class _Collector:
    """One run through the scenarios."""

    def __init__(self, env_class: type, sandbox: str, timeout_s: float, server_type: str) -> None:
        self.env_class: Any = env_class
        self.layer = layer_of(env_class)
        self.sandbox = sandbox
        self.timeout_s = timeout_s
        self.server_type = server_type
        self.group_size = 0
        self.faults = Faults()
        self.scenarios: dict[str, Scenario] = {}
        self.current = ""
        self.world = ""

    async def run(self) -> Collection:
        returned, error = self._config_init()
        setup_error = ""
        try:
            async with self._environment() as (env, mock):
                await self._all(env, mock)
        except _CannotBuild as failure:
            setup_error = str(failure)
        for name in SCENARIOS:
            reason = f"the environment could not be built: {setup_error}" if setup_error else "an earlier scenario failed"
            self.scenarios.setdefault(name, Scenario(name=name, unavailable=reason))
        return Collection(
            env_class=self.env_class,
            layer=self.layer,
            scenarios=self.scenarios,
            config_init=returned,
            config_init_error=error,
            setup_error=setup_error,
            world=self.world,
            server_type=self.server_type,
            group_size=self.group_size,
        )

    def _config_init(self) -> tuple[Any, str]:
        try:
            returned = self.env_class.config_init()
        except Exception as error:  # noqa: BLE001 - judged by a rule
            return None, f"{type(error).__name__}: {shorten(str(error))}"
        if inspect.iscoroutine(returned):
            returned.close()  # or Python would warn of it, in some later test
        return returned, ""

    @contextlib.asynccontextmanager
    async def _environment(self) -> AsyncIterator[tuple[Any, Any]]:
        """Build the environment on a mock server, watched, and release everything afterwards."""
        from pytest_hermes_env.inference.server import MockServer  # noqa: PLC0415 - heavy
        from pytest_hermes_env.rollout.auto_script import (  # noqa: PLC0415
            brief_policy,
            drifting,
            failing_policy,
            silent_policy,
            thinking,
            tool_using_policy,
        )
        from pytest_hermes_env.rollout.builder import EnvironmentBuilder, initial_config  # noqa: PLC0415
        from pytest_hermes_env.rollout.world import describe, world_of  # noqa: PLC0415
        from pytest_hermes_env.sandbox.seam import ToolSeam  # noqa: PLC0415

        config = initial_config(self.env_class)
        thorough = tool_using_policy(getattr(config, "max_agent_turns", 30))
        if self.server_type != CHAT:
            thorough = thinking(thorough)
        self.journal = Journal()

        def policy(conversation: Any) -> Any:
            if self.current == "silent":
                return silent_policy(conversation)
            if self.current == "speechless":
                return failing_policy(conversation)
            if self.current == "drifting":
                return drifting(thorough)(conversation)
            return (brief_policy if self.faults.fault != "none" else thorough)(conversation)

        with contextlib.ExitStack() as resources:
            mock = resources.enter_context(MockServer(policy, allow_leftovers=True))
            world = resources.enter_context(world_of(self.sandbox))
            seam = resources.enter_context(ToolSeam(world, record=self._note_tool_call))
            builder = resources.enter_context(contextlib.closing(EnvironmentBuilder(seam=lambda: seam)))
            try:
                env = builder.build(self.env_class, server=mock, config=config, server_type=self.server_type)
            except Exception as error:
                raise _CannotBuild(f"{type(error).__name__}: {shorten(str(error))}") from error
            resources.enter_context(watching_layer(self.layer, self.faults))
            watch_environment(env, self.layer, self.faults)
            self.group_size = env.config.group_size
            yield env, mock
            self.world = describe(world)

    def _note_tool_call(self, tool_call: ToolCall) -> None:
        """Write into the journal of the scenario that is running."""
        self.journal.tool_calls.append(tool_call)

    async def _all(self, env: Any, mock: Any) -> None:
        """Run the scenarios in their order: later ones find the buffers that earlier ones filled."""
        from pytest_hermes_env.atropos.wandb_capture import capturing_wandb  # noqa: PLC0415

        item: Any = None

        async def take_item() -> None:
            nonlocal item
            await env.setup()
            item = await env.get_next_item()

        await self._scenario("setup", env, mock, take_item)
        if self.scenarios["setup"].error:
            reason = f"setup failed: {self.scenarios['setup'].error}"
            for name in SCENARIOS:
                self.scenarios.setdefault(name, Scenario(name=name, unavailable=reason))
            return
        if item is None:
            self._without_training("get_next_item gave None: there is nothing to train on")
        else:
            await self._scenario("happy", env, mock, lambda: env.collect_trajectories(item))
            await self._scenario("silent", env, mock, lambda: env.collect_trajectories(item))
            if self.server_type == CHAT:
                self.scenarios["drifting"] = Scenario(name="drifting", unavailable="chat mode has no sampled tokens")
            else:
                await self._scenario("drifting", env, mock, lambda: env.collect_trajectories(item))
            await self._scenario("speechless", env, mock, lambda: env.collect_trajectories(item))
            await self._scenario("reward_raises", env, mock, lambda: env.collect_trajectories(item), fault="reward_raises")
        await self._scenario("evaluate", env, mock, env.evaluate)
        await self._scenario("evaluate_reward_raises", env, mock, env.evaluate, fault="reward_raises")
        await self._scenario("evaluate_loop_raises", env, mock, env.evaluate, fault="loop_raises")
        await self._scenario("evaluate_cancelled", env, mock, lambda: self._cancelled_in_reward(env), fault="reward_hangs")
        for name, call in (
            ("wandb_log", lambda: env.wandb_log(dict(PROBE))),
            ("wandb_log_none", lambda: env.wandb_log(None)),
            ("wandb_log_without", env.wandb_log),
        ):
            with capturing_wandb(env) as logged:
                await self._scenario(name, env, mock, call, logged=logged)

    def _without_training(self, reason: str) -> None:
        for name in ("happy", "silent", "drifting", "speechless", "reward_raises"):
            self.scenarios[name] = Scenario(name=name, unavailable=reason)

    async def _cancelled_in_reward(self, env: Any) -> None:
        """Cancel evaluate() as soon as a reward is being computed in it."""
        self.faults.reached.clear()
        evaluation = asyncio.ensure_future(env.evaluate())
        reached = asyncio.ensure_future(self.faults.reached.wait())
        await asyncio.wait({evaluation, reached}, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        evaluation.cancel()
        await asyncio.gather(evaluation, return_exceptions=True)

    async def _scenario(
        self,
        name: str,
        env: Any,
        mock: Any,
        act: Callable[[], Awaitable[Any]],
        *,
        fault: Fault = "none",
        logged: list[dict[str, Any]] | None = None,
    ) -> None:
        """Run one scenario and freeze its record; what the environment raises is part of it."""
        before, asked = snapshot(env), len(mock.journal)
        self.current, self.faults.fault = name, fault
        outcome, error, line = None, "", 0
        answer: Any = None
        running = asyncio.all_tasks()
        with recording() as journal, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            self.journal = journal
            try:
                answer = act()
                if hasattr(answer, "__await__"):
                    outcome = await asyncio.wait_for(answer, self.timeout_s)
            except TimeoutError:
                error = f"no end within {self.timeout_s:g} s"
            except Exception as raised:  # noqa: BLE001 - the record says it; rules judge it
                cause = _leaf(raised)
                error, line = f"{type(cause).__name__}: {shorten(str(cause))}", _line_of(cause, self.env_class)
            del answer
            await _settle(asyncio.all_tasks() - running)
        self.faults.fault = "none"
        group = outcome[0] if isinstance(outcome, tuple) and outcome else None
        self.scenarios[name] = Scenario(
            name=name,
            error=error,
            error_line=line,
            events=tuple(journal.events),
            tool_calls=tuple(journal.tool_calls),
            requests=tuple(dict(exchange.request) for exchange in mock.journal[asked:]),
            sampled=replies_of(mock.journal[asked:]),
            group=_frozen(group),
            refusal=_refusal(group),
            before=before,
            after=snapshot(env),
            logged=tuple(logged or ()),
            warnings=tuple(str(warning.message) for warning in warned),
        )


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


def _frozen(group: Any) -> Any:
    try:
        return copy.deepcopy(group)
    except Exception:  # noqa: BLE001 - a group of objects that cannot be copied is judged as it is
        return group


def _leaf(error: BaseException) -> BaseException:
    """Return the first real error in a group of errors, which is what a TaskGroup raises."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _line_of(error: BaseException, env_class: type) -> int:
    """Return the last line of the traceback that lies in the class's own file, or 0."""
    import inspect  # noqa: PLC0415

    path = inspect.getsourcefile(env_class)
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else 0
