"""HE411 no-cleanup-in-reward
`compute_reward` leaves the cleanup of its tool context to the code that opened it.

What: Neither `compute_reward` nor code that it calls cleans up the tool context that it receives: no `ctx.cleanup()`,
no callback that does it. The same holds for the `ctx` of an `agent_rollout`, which `evaluate` and the `score` function
of `evaluate_items` receive. A `ToolContext` that the reward opens for itself is subject to HE601.

Why: The sandbox belongs to the rollout. The layer reads from it after the reward, and releases it on every way out.
After an early cleanup later reads find a fresh, empty machine, which looks like an agent that did nothing. In
evaluation the same context is often scored a second time.

Fix: Remove the call. Where `compute_reward` needs another machine, open a `ToolContext` with a new `task_id` and clean
that one up in a `finally`.

Source: `environments.hermes_base_env.HermesAgentBaseEnv.agent_rollout`: the layer cleans up in a `finally`.
"""

from __future__ import annotations

import ast

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import Cleaned
from pytest_hermes_env.play.scenario import CASES, PROBES
from pytest_hermes_env.source import LAYER_CONTEXT, ClassSource, finding_at, reach_of


def static(source: ClassSource) -> Verdict:
    """Look for the clean-up of a context that a method was given, in what compute_reward leads to.

    It complements the rollouts: these may never reach the line, such as one for long rollouts.
    """
    findings = [
        finding_at(function, node, f"{function.name} cleans up the tool context that it was given: {ast.unparse(node)}")
        for function in reach_of(source).functions("compute_reward", "evaluate")
        for node in function.nodes
        if isinstance(node, ast.Attribute) and node.attr == "cleanup" and isinstance(node.value, ast.Name)
        if node.value.id
        in {*function.annotated_as(LAYER_CONTEXT), *(function.positional[3:4] if function.name == "compute_reward" else ())}
    ]
    return Verdict.of_source(findings, "compute_reward does not clean up its tool context")


def dynamic(evidence: Evidence) -> Verdict:
    """Count how often the contexts that the probes gave to compute_reward had been cleaned up when it came back."""
    findings = [
        evidence.finding("compute_reward cleaned up the tool context that it was given", "compute_reward", scenario=record.name)
        for record in evidence.played_cases
        if any(event.in_reward for event in record.of(Cleaned))
    ]
    if not findings and (missing := evidence.without_probes()):
        return missing
    findings += [
        evidence.finding(
            "compute_reward cleaned up the tool context that it was given",
            "compute_reward",
            seen=probe.expression,
            scenario=PROBES,
        )
        for probe in evidence.probes.probes
        if probe.trial.cleanups
    ]
    return Verdict.of(findings[:1], f"{len(evidence.probes.probes)} tool contexts were not cleaned up")


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, dynamic=dynamic, scenarios=(PROBES, CASES))
