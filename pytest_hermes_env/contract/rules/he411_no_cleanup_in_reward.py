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
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import Cleaned
from pytest_hermes_env.play.scenario import CASES, PROBES
from pytest_hermes_env.source import Call, ClassSource, Frame, Kind, data_flow, finding_at, must_be, sorted_findings
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLEANS = "cleanup"


def static(source: ClassSource) -> Verdict:
    """Look for a clean-up of the context in compute_reward and in all that it reaches."""
    start = data_flow(source).method("compute_reward")
    if start is None:
        missing = source.unreadable[0] if source.unreadable else "nowhere"
        return Verdict.undecided(f"compute_reward may come from {missing}, which cannot be read")
    frames = data_flow(source).reached("compute_reward", "evaluate")  # an evaluation scores in the context of its rollout
    findings = sorted_findings(finding for frame in frames for finding in _violations(frame))
    return Verdict.of(findings, "compute_reward does not clean up its tool context")


def _violations(frame: Frame) -> Iterator[Finding]:
    name = frame.function.name
    for access in frame.reads:
        if isinstance(access.node, ast.Attribute) and access.node.attr == _CLEANS and must_be(access.base, Kind.CONTEXT):
            message = f"{name} cleans up the tool context that it was given: {ast.unparse(access.node)}"
            yield finding_at(frame.function, access.node, message)
    for call in frame.calls:
        if _asks_for_cleanup(call):
            message = f"{name} cleans up the tool context that it was given: {ast.unparse(call.node)}"
            yield finding_at(frame.function, call.node, message)


def _asks_for_cleanup(call: Call) -> bool:
    if call.name != "getattr" or len(call.node.args) < 2 or not must_be(call.arguments[0], Kind.CONTEXT):  # noqa: PLR2004
        return False
    word = call.node.args[1]
    return isinstance(word, ast.Constant) and word.value == _CLEANS


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
