"""Runs one environment class through the scenarios, each once, and freezes what happened.

Place in the flow: the contract asks a `Collector` for the scenarios that its rules read. The families that they belong to run
concurrently in one event loop, each on its own instance of the environment. The mock answers model requests, and the sandbox
that the user chose answers tool calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import functools
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pytest_hermes_env.errors import BadCases, HermesEnvError
from pytest_hermes_env.inference.server import MockServer
from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.play.advice import advice_for
from pytest_hermes_env.play.attack_plan import AttackPlan
from pytest_hermes_env.play.auto_script import thinking, tool_using_policy
from pytest_hermes_env.play.blocking import watching
from pytest_hermes_env.play.builder import EnvironmentBuilder, config_init_of, initial_config
from pytest_hermes_env.play.cases.values import Cases
from pytest_hermes_env.play.class_record import config_init_record, record_of
from pytest_hermes_env.play.evidence_file import EvidenceWriter
from pytest_hermes_env.play.first_setup import FirstSetup
from pytest_hermes_env.play.held_out import HeldOut
from pytest_hermes_env.play.journal import Journal, Raised, recording
from pytest_hermes_env.play.raised import described, is_from_outside, is_interrupt, noting
from pytest_hermes_env.play.scenario import Cause, Collection, Scenario, Unavailable
from pytest_hermes_env.play.scenarios import families_of
from pytest_hermes_env.play.scenarios.family import Family
from pytest_hermes_env.play.server_kind import CHAT, TOKENS
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tool_backend import SandboxRouter, describe, new_sandbox_like, opened_sandbox
from pytest_hermes_env.play.training_stub import why_configured_to_train_nothing, why_nothing_is_trained
from pytest_hermes_env.play.watchers.call_site import EnvironmentCode
from pytest_hermes_env.play.watchers.environment import watching_environment
from pytest_hermes_env.play.watchers.host_use import watching_host
from pytest_hermes_env.play.watchers.judges import answering_judges
from pytest_hermes_env.play.watchers.layer import watching_layer
from pytest_hermes_env.play.watchers.process import ProcessWatcher
from pytest_hermes_env.play.watchers.services import (
    recording_warnings,
    sending_plain_requests,
    sharing_tls_context,
    watching_wandb,
)
from pytest_hermes_env.sandbox.seam import ToolSeam
from pytest_hermes_env.types import RealToolsUse

MOST_ERRORS = 200
"""Different errors that are noted with their lines."""
ROW_MAKERS = ("collect_trajectory", "collect_trajectories", "postprocess_histories")
"""Methods that make what goes to the trainer."""
BEAT_S = 0.25
"""Seconds between two signs of life of an event loop."""


class _CannotBuild(Exception):
    """The class's constructor failed; that is a result of the run, not a failure of the harness."""


class Collector:
    """Plays the requested families of scenarios, each once, and keeps their records.

    ``sandbox``: ``fake`` is an in-memory machine, with ``real_tools`` as those of `FakeSandbox`; ``local`` runs hermes' own terminal
    and file tools. ``timeout_s`` is the limit of each scenario, in seconds. ``server_type`` "vllm" or "sglang" is token mode. ``cases`` are those that the author declared. ``is_sequential``: one family after the
    other, so that whatever happens belongs to the one that has begun. ``writer`` gets each record as soon as it is made. ``beat``, in a process that
    ends after this, is called by the event loop now and then.
    Raises: the class is not an environment → BadTarget.
    """

    def __init__(
        self,
        env_class: type,
        *,
        sandbox: str = "fake",
        real_tools: RealToolsUse = "confined",
        timeout_s: float = 60.0,
        server_type: str = CHAT,
        cases: Cases | None = None,
        settings: Mapping[str, Any] | None = None,
        effort: int = 1,
        attack: AttackPlan | None = None,
        is_sequential: bool = False,
        writer: EvidenceWriter | None = None,
        beat: Callable[[], None] | None = None,
    ) -> None:
        self._writer = writer
        self._kept: dict[str, Scenario] = {}
        self._beat = beat
        self._is_sequential = is_sequential
        self._env_class: Any = env_class
        self._layer = layer_of(env_class)
        self._environment_code = EnvironmentCode(env_class, self._layer)
        self._sandbox = sandbox
        self._real_tools: RealToolsUse = real_tools
        self._timeout_s = timeout_s
        self._server_type = server_type
        self._cases = cases
        self._settings = {**(cases.settings if cases is not None else {}), **(settings or {})}
        self._effort = effort
        self._attack = attack or AttackPlan()
        self._group_size = 0
        self._answering = ""
        self._scenarios: dict[str, Scenario] = {}
        self._raised: dict[Raised, None] = {}
        self._config: tuple[Any, str, tuple[str, ...] | None] | None = None
        self._first_setup = FirstSetup()
        self._held_out = HeldOut()
        self._nothing_to_train = why_nothing_is_trained(env_class, self._layer.base)

    def collect(self, names: Iterable[str]) -> Collection:
        """Return all scenarios collected so far, including the named ones. Blocks.

        Raises: the sandbox is unavailable → UsageError; an unknown name → KeyError.
        """
        missing = frozenset(names) - self._scenarios.keys()
        if self._config is None:
            self._run(self._call_config_init)
        if families := families_of(missing):
            process = ProcessWatcher(self._environment_code)
            with process.watching(), watching_host(self._environment_code):
                self._run(functools.partial(self._play, families))
            self._add_leaks(process)
        return self._collection()

    def _collection(self) -> Collection:
        cases = self._cases
        return Collection(
            cls=record_of(self._env_class, self._layer),
            scenarios=dict(self._scenarios),
            config_init=config_init_record(*(self._config or (None, ""))),
            cases=cases.rules if cases is not None else None,
            sandbox=self._answering,
            server_type=self._server_type,
            group_size=self._group_size,
            nothing_to_train=self._nothing_to_train,
            fails_beside_another=self._first_setup.blocked_by,
            raised=tuple(self._raised),
        )

    def _note_error(self, text: str, error: BaseException) -> None:
        if len(self._raised) >= MOST_ERRORS:  # their texts may hold what differs each time
            return
        place, advice = self._environment_code.raised_by(error), ""
        with contextlib.suppress(Exception):  # code that has no source, objects that raise when they are looked at
            advice = advice_for(error, place)
        self._raised.setdefault(Raised(text=text, place=place, advice=advice))

    async def _call_config_init(self) -> None:
        self._config = config_init_of(self._env_class)

    def _run(self, play: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine function in a new loop."""
        token = noting.set(self._note_error)
        try:
            if self._beat is None:
                asyncio.run(play())
            else:
                asyncio.Runner().run(self._with_beat(play, self._beat))  # not closed: what resists would keep it from ending
        finally:
            noting.reset(token)

    async def _with_beat(self, play: Callable[[], Coroutine[Any, Any, None]], beat: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            beat()
            loop.call_later(BEAT_S, again)

        again()
        await play()

    def _begins(self, name: str, family: str) -> None:
        """Write that a scenario of a family begins."""
        if self._writer is not None:
            self._writer.write("begins", name, of=family)
        if self._beat is not None:
            self._beat()

    def _add_leaks(self, process: ProcessWatcher) -> None:
        closing = self._scenarios.get("closing")
        if closing is not None and closing.happened:
            self._scenarios["closing"] = replace(closing, left=closing.left + process.leaked())
            self._keep(self._scenarios["closing"])

    async def _play(self, families: Mapping[Family, frozenset[str]]) -> None:
        """Play families concurrently, then those that must run alone."""
        with watching(asyncio.get_running_loop(), self._environment_code.place), contextlib.ExitStack() as resources:
            sandboxes = SandboxRouter(resources.enter_context(opened_sandbox(self._sandbox, self._real_tools)))
            resources.callback(sandboxes.close)
            seam = resources.enter_context(ToolSeam(sandboxes, record=sandboxes.record, turns=sandboxes.turns))
            resources.enter_context(watching_layer(self._layer, sandboxes.journal_of))
            for entered in (watching_wandb, answering_judges, sharing_tls_context, sending_plain_requests, recording_warnings):
                resources.enter_context(entered())
            # one builder for all families: what it changes in hermes must stay until the last family has ended
            builder = resources.enter_context(contextlib.closing(EnvironmentBuilder(seam=lambda: seam)))
            play = functools.partial(self._play_family, builder=builder, sandboxes=sandboxes)
            together = {family: needed for family, needed in families.items() if not (family.is_alone or self._is_sequential)}
            crowded = await asyncio.gather(*(play(family, needed) for family, needed in together.items()))
            for family, needed in families.items():
                if family not in together:
                    await play(family, needed, is_last_try=True)
            for (family, needed), is_crowded in zip(together.items(), crowded, strict=True):
                if is_crowded:  # alone it may work: a port or a file that only one instance can have
                    await play(family, needed, is_last_try=True)

    async def _play_family(
        self,
        family: Family,
        needed: frozenset[str],
        *,
        builder: EnvironmentBuilder,
        sandboxes: SandboxRouter,
        is_last_try: bool = False,
    ) -> bool:
        """Play one family on its own stage, and keep a record of each scenario that is needed, whatever happens.

        Return whether nothing was kept, because the set-up failed while other instances were alive and another try may succeed.
        """
        played: dict[str, Scenario] = {}
        reason = self._first_setup.reason or Unavailable(Cause.EARLIER_FAILURE)
        try:
            if family.has_tokens and self._type_for(family) == self._server_type:
                reason = Unavailable(Cause.CHAT_MODE)
            elif self._first_setup.reason is None:
                with self._stage(family, needed, builder, sandboxes) as stage:
                    played = stage.scenarios
                    await family.play(stage)
                    await stage.close()
                if stage.is_crowded and not is_last_try:
                    self._first_setup.blocked_by = next(item.unavailable for item in played.values() if item.unavailable)
                    return True
        except _CannotBuild as failure:
            cause = failure.__cause__ or failure
            self._first_setup.reason = reason = Unavailable(
                Cause.CANNOT_BUILD, str(failure), self._environment_code.raised_at(cause)
            )
        except BaseException as error:
            if isinstance(error, HermesEnvError) or is_from_outside(error):
                raise
            reason = Unavailable(Cause.EARLIER_FAILURE, described(error), self._environment_code.raised_at(error))
        self._answering = describe(sandboxes)
        for name in needed - self._scenarios.keys():
            self._scenarios[name] = played.get(name) or Scenario(name=name, unavailable=reason)
            self._keep(self._scenarios[name])
        if self._writer is not None:
            self._writer.write("finished", next(iter(family.scenarios)))
            self._writer.write("class", self._collection().without_scenarios())
        return False

    def _type_for(self, family: Family) -> str:
        """Return the type of a family's server: that of training, where it is about tokens and the class makes rows of its own."""
        own, base = self._env_class, self._layer.base
        if self._server_type != CHAT or not family.has_tokens or self._config is None:
            return self._server_type
        makes_rows = any(getattr(own, name, None) is not getattr(base, name, None) for name in ROW_MAKERS)
        made = config_init_record(*self._config)
        declared = {server.server_type for server in made.servers or (made.single,) if server is not None}
        return next((kind for kind in TOKENS if kind in declared and makes_rows), CHAT)

    def _keep(self, record: Scenario) -> None:
        """Write a record, unless it was written as it is."""
        if self._writer is not None and self._kept.get(record.name) is not record:
            self._kept[record.name] = record
            self._writer.write("scenario", record)

    @contextlib.contextmanager
    def _building(self) -> Iterator[None]:
        """Raise _CannotBuild for whatever the class raises."""
        try:
            yield
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise _CannotBuild(described(error)) from error

    @contextlib.contextmanager
    def _stage(
        self, family: Family, needed: frozenset[str], builder: EnvironmentBuilder, sandboxes: SandboxRouter
    ) -> Iterator[Stage]:
        """Build a watched environment on a mock model; release everything at the end."""
        with self._building():
            config = self._env_class.env_config_cls() if self._config and self._config[1] else initial_config(self._env_class)
        known = type(config).model_fields
        if unknown := self._settings.keys() - known.keys():
            near = [name for wanted in sorted(unknown) for name in difflib.get_close_matches(wanted, known, n=2)]
            known_ones = f"{', '.join(near)}, and {len(known) - len(near)} more" if near else ", ".join(known)
            raise BadCases(
                f"the configuration has no {', '.join(sorted(unknown))}, which the settings name.\n  known     {known_ones}"
            )
        with self._building():
            config = type(config).model_validate({**dict(config), **self._settings}) if self._settings else config
        config = config.model_copy(update={name: value for name, value in family.settings.items() if name in known})
        thorough = tool_using_policy(getattr(config, "max_agent_turns", 30))
        server_type = self._type_for(family)
        is_chat = server_type == CHAT
        stage: Stage

        def policy(conversation: Any) -> Any:
            return stage.answer(conversation)

        with contextlib.ExitStack() as resources:
            mock = MockServer(policy, allow_leftovers=True, journal_limit=None)  # the stage reads it by position
            if not is_chat:
                resources.enter_context(mock)
            building = Journal()
            with self._building(), recording(building):
                env = builder.build(self._env_class, server=mock, config=config, server_type=server_type, in_process=is_chat)
            resources.enter_context(watching_environment(env, self._layer))
            self._group_size = env.config.group_size
            self._nothing_to_train = self._nothing_to_train or why_configured_to_train_nothing(env, self._layer.base)
            stage = Stage(
                env=env,
                mock=mock,
                sandbox=sandboxes.add(new_sandbox_like(sandboxes.first)),
                server_type=server_type,
                timeout_s=self._timeout_s,
                thorough=thorough if is_chat else thinking(thorough),
                names=tuple(family.scenarios),
                needed=needed,
                building=building,
                cases=self._cases,
                effort=self._effort,
                attack=self._attack,
                first_setup=self._first_setup,
                held_out=self._held_out,
                code=self._environment_code,
                nothing_to_train=self._nothing_to_train,
                real_tools=self._real_tools,
                begins=functools.partial(self._begins, family=next(iter(family.scenarios))),
                keep=self._keep,
            )
            yield stage
