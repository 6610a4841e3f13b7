"""HE403 reward-never-raises
`compute_reward` does not raise on any legal `AgentResult`.

What: `compute_reward` is called with results of every form that a rollout can have: no tool call, an empty answer, a
server error, the turn limit, malformed arguments, a tool that raised, results that are not JSON, odd and very long
text, content that is None or a list of parts (found in older layers, recorded data and other chat APIs). Nor does it ask an item for a key that no item has.
What a table raises only with a carriage return within a value is a warning: models hardly write one.

Why: An exception in `compute_reward` costs the rollout a second run, and then its whole group; older layers make it
0.0. It hits the unusual rollouts: the first turns of a weak model, which answers nothing or calls tools wrongly. These
are never learned from, or look like failures of the agent, and the IndexError behind a flat learning curve stays hidden.

Fix: Paste the shown result into a test and fix the function until it passes. Read `message.get("content") or ""`, guard
indices and divisions, and parse inside try/except with a named error. Where the sandbox itself is broken and nothing
can be decided, raising is right: the base never scores such a rollout.

Source: `environments.agent_loop.HermesAgentLoop.run` (the results of a rollout); `environments.hermes_base_env` (score
of a failed reward).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict, finding_in
from pytest_hermes_env.play.journal import Reward, UnknownRead
from pytest_hermes_env.play.probing.record import Probe
from pytest_hermes_env.play.scenario import CASES, PROBES, ItemsEnd, Scenario
from pytest_hermes_env.source import ClassSource, Function, finding_at, last_name, reach_of

ITEMS = "items"
SCENARIOS = ("happy", "silent", "evaluate")
_PLAINEST = 2
"""When the reward fails on so many of the plainest results, it is not their form that it fails for."""

_DEPTH = 3
_OF_A_LONE_RETURN = "new-line character seen in unquoted field"
"""What `csv` raises for a carriage return within a value."""
_OF_KEYS = frozenset({"KeyError", "LookupError"})


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what was raised in rollouts and for probes, one finding per line of the reward."""
    raised = [*_in_rollouts(evidence), *_of_unknown_keys(evidence)]
    if not raised and (missing := evidence.without_probes()):
        return missing
    probes = [probe for probe in evidence.probes.probes if not probe.trial.is_foreign]
    if not raised and _needs_a_real_machine(probes):
        trial = probes[0].trial
        reason = f"every reward fails on the in-memory machine ({trial.error}), which has no {', '.join(trial.absent)}"
        return Verdict.not_exercised(reason)
    probed = [
        _finding(evidence, probe)
        for probe in sorted(probes, key=lambda probe: (probe.is_foreign, len(probe.expression)))
        if probe.trial.error and not _only_without_commands(probe, probes)
    ]
    findings: dict[tuple[str, int, str], Finding] = {}
    for finding in (*probed, *raised):
        key = finding.path, finding.line, "" if finding.line else finding.message
        findings.setdefault(key, finding)
    note = f"compute_reward raised for none of {len(probes)} results"
    return Verdict.of(findings.values(), f"{note}; {evidence.probes.cut}" if evidence.probes.cut else note)


def _of_unknown_keys(evidence: Evidence) -> Iterator[Finding]:
    """Yield reads of a key that no item has: they raise where good work comes to them, or are caught and cost its reward."""
    seen = evidence.scenario(ITEMS)
    if evidence.source is None or not seen.happened:
        return
    items = [item.value for item in (*seen.items, *seen.held_out)]
    severity = Severity.ERROR if seen.items_end in {ItemsEnd.REPEATED, ItemsEnd.NONE} else Severity.WARNING
    for function, node, key in _unknown_keys(evidence.source, items):
        message = f"{function.name} reads item[{key!r}], and none of {len(items)} items has that key"
        found = finding_at(function, node, message)
        yield replace(found, severity=severity, seen=f"the keys are {', '.join(sorted(map(str, items[0])))}")


def _in_rollouts(evidence: Evidence) -> Iterator[Finding]:
    """Yield what compute_reward raised in the rollouts of the cases and scenarios; what HE301 reports is left out."""
    for scenario in (*evidence.played_cases, *evidence.scenarios(*SCENARIOS)):
        reads = {read.place for read in scenario.of(UnknownRead)}
        for reward in scenario.of(Reward):
            if reward.error and not reward.injected and reward.place not in reads and not _lacked_a_command(scenario):
                what = reward.error if reward.error.startswith("did not return") else f"raised {reward.error}"
                severity = Severity.WARNING if _OF_A_LONE_RETURN in what else Severity.ERROR
                yield replace(finding_in(scenario.name, reward.place, f"compute_reward {what}"), severity=severity)


def _lacked_a_command(scenario: Scenario) -> bool:
    """Tell whether the verifier of a case asked the machine for a command that it does not have: then the machine may be why."""
    asked = [call for call in scenario.tool_calls if not call.by_agent]
    return scenario.name not in SCENARIOS and any("command not found" in str(call.result) for call in asked)


def _needs_a_real_machine(probes: list[Probe]) -> bool:
    """Tell whether the plainest results fail already, and commands were missing: then the machine may be why."""
    plain = probes[:_PLAINEST]
    return bool(plain) and all(probe.trial.error and probe.trial.absent for probe in plain)


def _only_without_commands(probe: Probe, probes: list[Probe]) -> bool:
    """Tell whether the reward fails at this line only where the in-memory machine lacked a command."""
    same = [other for other in probes if other.trial.error and other.trial.place == probe.trial.place]
    return all(other.trial.absent for other in same)


def _finding(evidence: Evidence, probe: Probe) -> Finding:
    place = probe.trial.place
    path, line = (place.path, place.line) if place.line else evidence.at_method("compute_reward")
    verb = "timed out:" if probe.trial.is_timeout else "raised"
    what = f"compute_reward {verb} {probe.trial.error}"
    message, fix = f"{what}, for {probe.name}", RULE.section("Fix")  # such results are legal, whatever the line meant
    if probe.trial.judged:
        message += ", after a judge was asked"
        fix = f"The judge's answer may be the cause: put its call and the parsing of its answer into one `try`. Else: {fix}"
    return Finding(message=message, path=path, line=line, seen=probe.expression, scenario=PROBES, fix=fix)


def _unknown_keys(source: ClassSource, items: Sequence[Any]) -> Iterator[tuple[Function, ast.Subscript, str]]:
    """Yield each ``item["key"]`` in compute_reward and what it calls whose key no item has; only dicts are judged.

    A key that the code also looks for in another way (``in``, ``get``, a handler for KeyError) may be missing on purpose.
    """
    function = source.methods.get("compute_reward")
    if function is None or not items or not all(type(item) is dict for item in items):
        return
    positional = function.positional[0 if function.is_static else 1 :]
    known = {key for item in items for key in item}
    if positional:
        for inner, node, key in dict.fromkeys(_reads(source, function, positional[0], 0)):
            if key not in known and not _is_optional(source, key):
                yield inner, node, key


def _reads(source: ClassSource, function: Function, item: str, depth: int) -> Iterator[tuple[Function, ast.Subscript, str]]:
    nodes = list(function.own_nodes())
    if any(isinstance(node, ast.Name) and node.id == item and not isinstance(node.ctx, ast.Load) for node in nodes):
        return  # from somewhere on the name holds something else
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_name(node.value, item):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(key, str) and not _is_guarded(function, node):
                yield function, node, key
    if depth == _DEPTH:
        return
    for call in reach_of(source).calls_in(function):
        if isinstance(call.target, Function) and call.target is not function:
            for given, name in zip(call.node.args, call.target.positional_without_self, strict=False):
                if _is_name(given, item):
                    yield from _reads(source, call.target, name, depth + 1)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_guarded(function: Function, node: ast.AST) -> bool:
    """Tell whether a handler for missing keys, a lambda or a condition is around a read."""
    for child, parent in function.ancestors(node):
        if isinstance(parent, ast.If | ast.IfExp | ast.While) and child is not parent.test:
            return True
        if isinstance(parent, ast.Lambda | ast.Match):
            return True
        if isinstance(parent, ast.Try):
            kinds = [kind for handler in parent.handlers for kind in _kinds(handler.type)]
            if _OF_KEYS & {last_name(kind) for kind in kinds}:
                return True
    return False


def _kinds(node: ast.expr | None) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node] if node is not None else []


def _is_optional(source: ClassSource, key: str) -> bool:
    """Tell whether the module names the key anywhere but in a read, such as in a test, an assignment or a table of names."""
    for module in source.modules:
        reads = {
            node.slice for node in ast.walk(module.tree) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        }
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and node.value == key and node not in reads:
                return True
    return False


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(ITEMS, *SCENARIOS, CASES, PROBES))
