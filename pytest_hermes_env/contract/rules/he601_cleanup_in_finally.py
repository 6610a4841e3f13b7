"""HE601 cleanup-in-finally
Every sandbox that the class opens is released on every way out: an `agent_rollout` by its `async with` block, a
`ToolContext` in a `finally`.

What: In training and in evaluation, also when the loop, the tools, the reward or the judge fail and when they are
cancelled, each `agent_rollout` that is entered is left, and each `ToolContext` of the class's own code is cleaned up
once. An `evaluate` that drives its own `HermesAgentLoop` opens a `ToolContext` for the same `task_id` and cleans it up. The
base cleans up the context that it passes to `compute_reward`.

Why: A sandbox is a process, a container or a rented virtual machine. A leaked one lives until its lifetime ends (an
hour by default). An evaluation of 100 items in which the judge fails half the time leaves 50 sandboxes behind: the
machine runs out of memory, or the cloud sends the bill.

Fix: Write `async with self.agent_rollout(item, temperature=0.0) as rollout:`. By hand: `ctx = ToolContext(task_id)`,
then at once `try: ... finally: ctx.cleanup()`. Everything that can raise or be awaited goes inside the `try`, including
the loop's run. Before the first tool call or await there is no sandbox yet: code that only builds the prompt may come
before it.

Source: `environments.hermes_base_env`, `agent_rollout`; `environments.tool_context.ToolContext.cleanup`.
"""

from __future__ import annotations

import linecache
from collections import Counter

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict, finding_in, one_per_place
from pytest_hermes_env.play.journal import Cleaned, ContextOpened, LoopStarted, Place
from pytest_hermes_env.play.scenario import CASES
from pytest_hermes_env.source import LAYER_AGENT_ROLLOUT

SCENARIOS = (
    "happy",
    "reward_raises",
    "cancelled_in_loop",
    "cancelled_in_tool",
    "cancelled_in_reward",
    "evaluate",
    "evaluate_reward_raises",
    "evaluate_loop_raises",
    "evaluate_tools_fail",
    "evaluate_cancelled_in_loop",
    "evaluate_cancelled",
)


def dynamic(evidence: Evidence) -> Verdict:
    """Count, for every ToolContext and every loop of the class's own code, how often its sandbox was released."""
    ran = [*evidence.scenarios(*SCENARIOS), *evidence.played_cases]
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    findings: list[Finding] = []
    opened = 0
    for scenario in ran:
        cleaned = Counter(event.number for event in scenario.of(Cleaned))
        released = {event.task_id for event in scenario.of(Cleaned)}
        findings += [
            finding_in(scenario.name, event.left_open_by, "this cleanup of a ToolContext leaves its sandbox open")
            for event in scenario.of(Cleaned)
            if event.left_open_by is not None
        ]
        contexts = [event for event in scenario.of(ContextOpened) if not event.by_layer]
        loops = [event for event in scenario.of(LoopStarted) if not event.by_layer]
        entered = [event for event in scenario.of(ContextOpened) if event.by_layer and _is_rollout(event.place)]
        opened += len(contexts) + len(loops) + len(entered)
        findings += [
            _of_the_layer(evidence, event.place, scenario.name)
            for event in scenario.of(ContextOpened)
            if event.by_layer and event.number not in cleaned
        ]
        findings += [
            finding_in(scenario.name, event.place, f"the ToolContext opened here was {_times(cleaned[event.number])}")
            for event in contexts
            if cleaned[event.number] != 1
        ]
        owners = {event.task_id for event in scenario.of(ContextOpened)}
        findings += [
            finding_in(scenario.name, event.place, "the sandbox of the agent loop started here was never released")
            for event in loops
            if event.task_id not in released | owners and scenario.name == "evaluate"
        ]
    if not opened and not findings:
        return Verdict.not_applicable(
            "the class opens no ToolContext and no agent loop of its own; the layer releases what it opens"
        )
    return Verdict.of(one_per_place(findings), f"{opened} sandboxes of the class's own code were each released once")


def _of_the_layer(evidence: Evidence, place: Place, scenario: str) -> Finding:
    """Return the finding of a sandbox that the layer opened: at the class's agent_rollout, else at the base, whose fault it is."""
    cls = evidence.cls
    is_ours = cls.base_module.startswith("environments.")  # it releases what it opens: somebody else keeps the block open
    if is_ours or _is_rollout(place):
        message = "the sandbox of the agent_rollout entered here was never released"
        return evidence.recorded_finding(message, place, "evaluate", scenario=scenario)
    message = f"{cls.base}, the base of the class, opens the sandbox of a rollout and never releases it"
    return finding_in(scenario, cls.base_place, message)


def _is_rollout(place: Place) -> bool:
    """Tell whether an agent_rollout is entered at a line."""
    return LAYER_AGENT_ROLLOUT in linecache.getline(place.path, place.line)


def _times(count: int) -> str:
    return "never cleaned up" if count == 0 else f"cleaned up {count} times"


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(*SCENARIOS, CASES))
