"""Puts one environment class through the scenarios, each once, and freezes what happened.

Place in the flow: the contract asks a `Collector` for the scenarios that its rules read. The families that they belong to are
played at the same time in one event loop, each on an environment instance of its own. The model is the mock, the tools pass the
seam to the world that the user chose.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import io
import logging
import os
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.rollout.cases import Cases
from pytest_hermes_env.rollout.collection import Collection
from pytest_hermes_env.rollout.event_loop import Hung, ScenarioLoop
from pytest_hermes_env.rollout.faults import InjectedFault
from pytest_hermes_env.rollout.journal import Journal, current_journal, recording
from pytest_hermes_env.rollout.observer import watch_environment, watching_layer
from pytest_hermes_env.rollout.process_state import OwnCode, Surroundings
from pytest_hermes_env.rollout.scenario import Scenario
from pytest_hermes_env.rollout.scenario_backends import Worlds
from pytest_hermes_env.rollout.scenarios import SCENARIOS, families_of
from pytest_hermes_env.rollout.scenarios.family import Family
from pytest_hermes_env.rollout.stage import CHAT, Stage
from pytest_hermes_env.rollout.tls_context import shared_authorities
from pytest_hermes_env.rollout.unavailable import Cause, Unavailable

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.builder import EnvironmentBuilder

__all__ = ["Collector", "collect"]


class _CannotBuild(Exception):
    """The class's constructor refused; that is a result of the run, not a failure of the harness."""


class Collector:
    """Plays the families of scenarios that are asked for, each once, and keeps their records.

    ``sandbox``: ``fake`` is an in-memory machine, ``local`` lets hermes' own terminal and file tools run. ``timeout_s`` is for
    each scenario, in seconds. ``server_type`` "vllm" or "sglang" is token mode. ``cases`` are those that the author declared.
    Raises: the class is no environment → BadTarget.
    """

    def __init__(
        self,
        env_class: type,
        *,
        sandbox: str = "fake",
        timeout_s: float = 60.0,
        server_type: str = CHAT,
        cases: Cases | None = None,
    ) -> None:
        self._env_class: Any = env_class
        self._layer = layer_of(env_class)
        self._own_code = OwnCode(env_class, self._layer)
        self._sandbox = sandbox
        self._timeout_s = timeout_s
        self._server_type = server_type
        self._cases = cases
        self._group_size = 0
        self._setup_error = ""
        self._not_found: list[str] = []
        self._world = ""
        self._scenarios: dict[str, Scenario] = {}
        self._config: tuple[Any, str] | None = None

    def collect(self, names: Iterable[str]) -> Collection:
        """Return all scenarios collected so far, the named ones among them. Blocks; may be called inside a running event loop.

        Raises: the sandbox cannot be had → UsageError; an unknown name → KeyError.
        """
        missing = frozenset(names) - self._scenarios.keys()
        if self._config is None:
            with _quiet():
                self._config = self._config_init()
        if families := families_of(missing):
            environment, directory = dict(os.environ), os.getcwd()
            try:
                with _quiet():
                    surroundings = Surroundings(self._own_code)
                    with surroundings.watched():
                        _in_a_loop_of_its_own(functools.partial(self._play, families), self._new_loop)
                    self._note_what_is_left(surroundings)
            finally:
                os.environ.clear()
                os.environ.update(environment)
                os.chdir(directory)
        returned, error = self._config
        return Collection(
            env_class=self._env_class,
            layer=self._layer,
            scenarios=dict(self._scenarios),
            config_init=returned,
            config_init_error=error,
            setup_error=self._setup_error,
            world=self._world,
            server_type=self._server_type,
            group_size=self._group_size,
        )

    def _new_loop(self) -> ScenarioLoop:
        return ScenarioLoop(self._own_code.place, self._timeout_s)

    def _note_what_is_left(self, surroundings: Surroundings) -> None:
        closing = self._scenarios.get("closing")
        if closing is not None and closing.happened:
            self._scenarios["closing"] = replace(closing, left=closing.left + surroundings.left())

    @property
    def world(self) -> str:
        """What answered the tools of the scenarios; empty before any was played."""
        return self._world

    def _config_init(self) -> tuple[Any, str]:
        try:
            returned = self._env_class.config_init()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - judged by a rule
            return None, f"{type(error).__name__}: {shorten(str(error))}"
        if inspect.iscoroutine(returned):
            returned.close()  # or Python would warn of it, in some later test
        return returned, ""

    async def _play(self, families: tuple[Family, ...]) -> None:
        """Play families at the same time, then those that must be alone."""
        from pytest_hermes_env.rollout.builder import EnvironmentBuilder  # noqa: PLC0415 - heavy
        from pytest_hermes_env.rollout.tool_backend import describe, world_of  # noqa: PLC0415
        from pytest_hermes_env.sandbox.seam import ToolSeam  # noqa: PLC0415

        with contextlib.ExitStack() as resources:
            worlds = Worlds(resources.enter_context(world_of(self._sandbox)))
            seam = resources.enter_context(ToolSeam(worlds, record=worlds.record, turns=worlds.turns))
            resources.enter_context(watching_layer(self._layer))
            resources.enter_context(_watching_wandb())
            resources.enter_context(shared_authorities())
            resources.enter_context(_noting_warnings())
            # one for all: what it changes in hermes must stay until the last family has ended
            builder = resources.enter_context(contextlib.closing(EnvironmentBuilder(seam=lambda: seam)))
            together = [family for family in families if not family.is_alone]
            await asyncio.gather(*(self._play_family(family, builder, worlds) for family in together))
            for family in families:
                if family.is_alone:
                    await self._play_family(family, builder, worlds)
            self._not_found += worlds.not_found
            self._world = describe(worlds, self._not_found)

    async def _play_family(self, family: Family, builder: EnvironmentBuilder, worlds: Worlds) -> None:
        """Play one family on a stage of its own, and keep a record of each of its scenarios, whatever happens."""
        names = tuple(family.scenarios)
        played: dict[str, Scenario] = {}
        reason = Unavailable(Cause.EARLIER_FAILURE)
        try:
            with self._stage(family, builder, worlds) as stage:
                played = stage.scenarios
                await family.play(stage)
                await stage.close()
        except _CannotBuild as failure:
            self._setup_error = str(failure)
            reason = Unavailable(Cause.CANNOT_BUILD, str(failure))
        for name in names:
            self._scenarios[name] = played.get(name) or Scenario(name=name, unavailable=reason)

    @contextlib.contextmanager
    def _stage(self, family: Family, builder: EnvironmentBuilder, worlds: Worlds) -> Iterator[Stage]:
        """Build the environment on a mock model, watched, and release everything afterwards."""
        from pytest_hermes_env.inference.server import MockServer  # noqa: PLC0415 - heavy
        from pytest_hermes_env.rollout.auto_script import thinking, tool_using_policy  # noqa: PLC0415
        from pytest_hermes_env.rollout.builder import initial_config  # noqa: PLC0415
        from pytest_hermes_env.rollout.tool_backend import another_world  # noqa: PLC0415

        config = initial_config(self._env_class)
        known = type(config).model_fields
        config = config.model_copy(update={name: value for name, value in family.settings.items() if name in known})
        thorough = tool_using_policy(getattr(config, "max_agent_turns", 30))
        is_chat = self._server_type == CHAT
        stage: Stage

        def policy(conversation: Any) -> Any:
            return stage.answer(conversation)

        with contextlib.ExitStack() as resources:
            mock = MockServer(policy, allow_leftovers=True)
            if not is_chat:
                resources.enter_context(mock)
            building = Journal()
            try:
                with recording(building):
                    env = builder.build(
                        self._env_class, server=mock, config=config, server_type=self._server_type, in_process=is_chat
                    )
            except (Exception, SystemExit) as error:
                raise _CannotBuild(f"{type(error).__name__}: {shorten(str(error))}") from error
            except Hung as hung:
                raise _CannotBuild(f"no end within {self._timeout_s:g} s") from hung
            watch_environment(env, self._layer)
            self._group_size = env.config.group_size
            stage = Stage(
                env=env,
                mock=mock,
                env_class=self._env_class,
                world=worlds.add(another_world(worlds.first)),
                server_type=self._server_type,
                timeout_s=self._timeout_s,
                thorough=thorough if is_chat else thinking(thorough),
                names=tuple(family.scenarios),
                building=building,
                cases=self._cases,
            )
            yield stage


def collect(env_class: type, *, sandbox: str = "fake", timeout_s: float = 60.0, server_type: str = CHAT) -> Collection:
    """Play every scenario of ``env_class`` and return the frozen records; see `Collector`."""
    return Collector(env_class, sandbox=sandbox, timeout_s=timeout_s, server_type=server_type).collect(SCENARIOS)


def _in_a_loop_of_its_own(play: Callable[[], Awaitable[None]], new_loop: Callable[[], ScenarioLoop]) -> None:
    """Run a coroutine function to its end, in this thread if it has no running loop, else in another one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _run(play, new_loop)
        return
    failure: list[BaseException] = []

    def target() -> None:
        try:
            _run(play, new_loop)
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            failure.append(error)

    thread = threading.Thread(target=target, name="hermes-env-scenarios")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


def _run(play: Callable[[], Awaitable[None]], new_loop: Callable[[], ScenarioLoop]) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        loop: Any = runner.get_loop()
        runner.run(loop.guarded(play()))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep injected failures and printed tables out of the test's output: what matters of them is in the records."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(level)


@contextlib.contextmanager
def _watching_wandb() -> Iterator[None]:
    """Lead what a scenario logs to wandb into its record; elsewhere wandb is as it was."""
    import wandb  # noqa: PLC0415 - heavy

    real: Any = wandb.log

    def log(data: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        journal = current_journal.get()
        if journal is None or journal.log is None:
            return real(data, *args, **kwargs)
        if journal.faults is not None and journal.faults.fault == "wandb_raises":
            raise InjectedFault("wandb failed, as this scenario asks")
        return journal.log(dict(data))

    wandb.log = log
    try:
        yield
    finally:
        wandb.log = real


@contextlib.contextmanager
def _noting_warnings() -> Iterator[None]:
    """Write warnings into the record of the scenario in which they come up, and show none."""

    def note(message: Warning | str, *_args: Any, **_kwargs: Any) -> None:
        journal = current_journal.get()
        if journal is not None:
            journal.warnings.append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield
