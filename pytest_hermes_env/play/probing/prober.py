"""Probes one environment's reward: first on a table of small results, then on generated ones; each violation is shrunk.

Place in the flow: the scenario ``reward_probes`` calls `probe_reward`. hypothesis runs in a thread, and each of its trials runs on
the scenario's event loop, where the environment's clients live.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any

from pytest_hermes_env.errors import HermesEnvError
from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.probing.free_rewards import canaries_of
from pytest_hermes_env.play.probing.record import Probe, RewardProbes, as_number
from pytest_hermes_env.play.probing.transcripts import Candidate, candidates, plain
from pytest_hermes_env.play.probing.trial import RewardRunner
from pytest_hermes_env.play.raised import described, is_from_outside
from pytest_hermes_env.strategies.reward_check import drawn, smallest_failure, start_of
from pytest_hermes_env.strategies.rollouts import USUAL_TOOLS, agent_results
from pytest_hermes_env.types import RealToolsUse

GENERATED, GENERATED_IF_SLOW = 12, 3
"""Numbers of generated results: probing a fast reward takes less than half a second. One that asks a judge or runs programs is slow."""
SHRINKING = 60
"""The number of results that are drawn to find a smaller one with the same violation."""
MOST_HANGS = 2
"""Rewards that did not end, after which probing ends early; the record says so."""
MOST_TURNS = 3
MANY = 8
"""Calls of a rollout that is long enough for rewards which ask for some work first."""


async def probe_reward(
    env: Any,
    item: Any,
    asked: Callable[[], int],
    *,
    real_tools: RealToolsUse = "confined",
    begun: Callable[[], None] = lambda: None,
) -> RewardProbes:
    """Return the results of probing compute_reward of ``env`` with ``item``. ``asked`` counts the requests to its model.

    ``real_tools``: when the machines may run real programs. ``begun`` is called before each reward.

    The environment's buffers change as they do in training.
    """
    with contextlib.closing(RewardRunner(env, item, asked=asked, real_tools=real_tools, begun=begun)) as runner:
        return await _Probing(env, item, runner).run()


class _Probing:
    """The probes of one environment."""

    def __init__(self, env: Any, item: Any, runner: RewardRunner) -> None:
        self._env, self._item = env, item
        self._runner = runner
        self._probes: list[Probe] = []
        self._reads_text = True
        self._shapes: set[Any] = set()

    async def run(self) -> RewardProbes:
        try:
            start = start_of(self._env, self._item)
            schemas, _ = self._env._resolve_tools_for_group()  # noqa: SLF001 - the layer's own name for it
        except BaseException as error:
            if is_from_outside(error):
                raise
            return RewardProbes(unavailable=f"no result could be built: {described(error)}")
        tool, arguments = _a_tool(schemas)
        worked = start.call(tool, **arguments).returns({"output": "", "exit_code": 0})
        self._reads_text = await self._reads_work(worked, in_sandbox=False)
        for candidate in candidates(start, tool, arguments, self._runner.reward_constants.claim):
            if self._is_new(candidate.result):
                self._probes.append(await self._probe(candidate))
            if self._is_late:
                break
        canaries = () if self._is_late else await canaries_of(self._runner, start, worked, self._item, self._prompt())
        if self._is_worth_generating and not self._is_late:
            await self._generate(schemas, start)
        cut = f"probing ended after {MOST_HANGS} rewards that did not end" if self._is_late else ""
        has_two_rewards = len({probe.trial.number for probe in self._probes}) > 1
        return RewardProbes(
            cut=cut,
            item=repr(picture(self._item)),
            probes=tuple(self._probes),
            canaries=canaries,
            reads_work=self._is_late or has_two_rewards or await self._reads_work(worked, in_sandbox=True),
        )

    def _is_new(self, result: Any) -> bool:
        """Whether a result may earn another reward: where no text is read, one with another number of turns, messages or errors."""
        shape = _shape(result)
        is_known = shape in self._shapes
        self._shapes.add(shape)
        return self._reads_text or not is_known

    async def _reads_work(self, worked: Any, *, in_sandbox: bool) -> bool:
        """Return whether compute_reward reads anything of a short or a long rollout."""
        longer = functools.reduce(
            lambda made, _: made.call("terminal", command="ls").returns({"output": ""}), range(MANY), worked
        )
        answers = [answer for answer in ("The task is done.", self._runner.reward_constants.claim) if answer]
        for made in (longer, worked):
            for answer in answers:
                if await self._runner.reads_work(plain(made.say(answer)), in_sandbox=in_sandbox):
                    return True
        return False

    def _prompt(self) -> str:
        prompt = self._env.format_prompt(copy.deepcopy(self._item))
        return prompt if isinstance(prompt, str) else ""

    @property
    def _is_late(self) -> bool:
        return sum(probe.trial.is_timeout for probe in self._probes) >= MOST_HANGS

    @property
    def _is_worth_generating(self) -> bool:
        """Whether generated results can show anything, which they cannot when every reward fails or none reads a text."""
        return self._reads_text and any(probe.trial.number is not None for probe in self._probes)

    async def _probe(self, candidate: Candidate) -> Probe:
        trial = await self._runner.trial(candidate.result)
        again = None
        if not trial.error and not trial.judged:
            again = await self._runner.trial(candidate.result, is_watched=True)
        elif not self._probes:
            trial = await self._runner.trial(candidate.result, is_watched=True)
        return Probe(
            name=candidate.name,
            expression=candidate.expression,
            trial=trial,
            again=again,
            is_foreign=candidate.is_foreign,
            has_calls=any(message.get("tool_calls") for message in candidate.result.messages),
        )

    async def _generate(self, schemas: Any, start: Any) -> None:
        """Try generated results; each violation that they show for the first time is shrunk."""
        try:
            strategy = agent_results(list(schemas)[:2] or USUAL_TOOLS, max_turns=MOST_TURNS, start=start)
        except HermesEnvError:
            strategy = agent_results(USUAL_TOOLS, max_turns=MOST_TURNS, start=start)
        is_slow = self._runner.runs_programs or any(probe.trial.judged for probe in self._probes)
        count = GENERATED_IF_SLOW if is_slow else GENERATED
        shown = {_kind(probe) for probe in self._probes}
        for result in await asyncio.to_thread(drawn, strategy, count):
            candidate = Candidate(name="a generated rollout", result=result)
            probe = await self._probe(candidate)
            kind = _kind(probe)
            if kind and kind not in shown:
                shown.add(kind)
                probe = await self._smallest(strategy, kind) or probe
            self._probes.append(probe)
            if self._is_late:
                return

    async def _smallest(self, strategy: Any, kind: str) -> Probe | None:
        """Return the smallest generated result with a violation of this kind, or None when none shows it again."""
        loop = asyncio.get_running_loop()

        def shown(result: Any) -> Probe | None:
            if self._is_late:
                return None
            candidate = Candidate(name="a generated rollout", result=result)
            probe = asyncio.run_coroutine_threadsafe(self._probe(candidate), loop).result()
            return probe if _kind(probe) == kind else None

        return await asyncio.to_thread(smallest_failure, strategy, shown, _kind, examples=SHRINKING)


def _shape(result: Any) -> tuple[Any, ...]:
    """Return what is left of a result without its texts and calls."""
    messages = tuple((message.get("role"), len(message.get("tool_calls") or ())) for message in result.messages)
    return messages, result.turns_used, result.finished_naturally, len(result.tool_errors)


def _a_tool(schemas: Iterable[Any]) -> tuple[str, dict[str, Any]]:
    """Return a tool that the environment offers, preferably the terminal, with valid arguments."""
    from pytest_hermes_env.play.auto_script import arguments_for  # noqa: PLC0415 - loads the mock model

    offered = {str(schema["function"]["name"]): schema["function"].get("parameters") or {} for schema in schemas}
    name = "terminal" if "terminal" in offered or not offered else next(iter(offered))
    return name, arguments_for(name, offered.get(name, {"properties": {"command": {}}}))


def _is_steady(probe: Probe) -> bool:
    return probe.again is None or _same(probe.trial.value, probe.again.value)


def _same(one: Any, other: Any) -> bool:
    return as_number(one) == as_number(other)


def _kind(probe: Probe) -> str:
    """Return the kind of violation that a reward shows; empty without one."""
    trial = probe.trial
    if trial.error:
        return f"raised {trial.error.partition(':')[0]} {trial.place.line}"
    number = trial.number
    if number is None:
        return "no number"
    if not 0.0 <= number <= 1.0:
        return "beyond the unit interval"
    if trial.changed:
        return f"changed {trial.changed}"
    return "" if _is_steady(probe) else "not repeatable"
