"""Probes one environment's reward on a table of small results, each in a form that a rollout can leave.

Place in the flow: the scenario ``reward_probes`` calls `probe_reward`. Each trial runs on the scenario's event loop, where the
environment's clients live.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable
from typing import Any

from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.probing.free_rewards import canaries_of
from pytest_hermes_env.play.probing.record import Probe, RewardProbes
from pytest_hermes_env.play.probing.transcripts import Candidate, candidates
from pytest_hermes_env.play.probing.trial import RewardRunner
from pytest_hermes_env.play.raised import described, is_from_outside
from pytest_hermes_env.strategies.reward_check import start_of
from pytest_hermes_env.types import RealToolsUse

MOST_HANGS = 2
"""Rewards that did not end, after which probing ends early; the record says so."""
MOST_WITH_PROGRAMS = 8
"""Results on which a reward is tried that runs real programs for each of them, and gives the same each time: it reads the sandbox alone.

Content of another form is tried besides: a metric may read it."""


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
        for candidate in candidates(start, tool, arguments, self._runner.reward_constants.claim):
            if self._is_late:
                break
            if candidate.is_foreign or not self._is_of_programs:
                self._probes.append(await self._probe(candidate))
        canaries = () if self._is_late else await canaries_of(self._runner, start, worked, self._item, self._prompt())
        cut = f"probing ended after {MOST_HANGS} rewards that did not end" if self._is_late else ""
        return RewardProbes(cut=cut, item=repr(picture(self._item)), probes=tuple(self._probes), canaries=canaries)

    def _prompt(self) -> str:
        prompt = self._env.format_prompt(copy.deepcopy(self._item))
        return prompt if isinstance(prompt, str) else ""

    @property
    def _is_late(self) -> bool:
        return sum(probe.trial.is_timeout for probe in self._probes) >= MOST_HANGS

    @property
    def _is_of_programs(self) -> bool:
        same = len({probe.trial.shown for probe in self._probes}) == 1
        return self._runner.runs_programs and same and len(self._probes) >= MOST_WITH_PROGRAMS

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


def _a_tool(schemas: Iterable[Any]) -> tuple[str, dict[str, Any]]:
    """Return a tool that the environment offers, preferably the terminal, with valid arguments."""
    from pytest_hermes_env.play.auto_script import arguments_for  # noqa: PLC0415 - loads the mock model

    offered = {str(schema["function"]["name"]): schema["function"].get("parameters") or {} for schema in schemas}
    name = "terminal" if "terminal" in offered or not offered else next(iter(offered))
    return name, arguments_for(name, offered.get(name, {"properties": {"command": {}}}))
