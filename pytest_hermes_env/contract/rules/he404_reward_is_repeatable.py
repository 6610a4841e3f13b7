"""HE404 reward-is-repeatable
The same item, transcript and sandbox have the same reward.

What: Each probe calls `compute_reward` twice, on equal copies of item and result and on machines with the same files,
and both rewards are equal. Where the code reads a clock, hashes, iterates over a set, or keeps random numbers of `setup`
or the import, another process calls it too, with another `PYTHONHASHSEED` and on another day. In addition, as warnings: repeating a tool call does not raise the reward, removing the
final answer does not raise it, and the order of independent tool results does not change it. A reward may pay for the
use of a tool, therefore the extra call is added only where there was one. A wrong answer may score below no answer,
therefore an answer is removed only where the reward was not negative. Two rewards of 0 prove nothing: where there are no others,
the rule is not exercised until a good transcript is declared, which is played twice.

Why: Within a group all rollouts share one item, and the differences of their rewards are the training signal. A random
or time-dependent part is noise that the optimiser follows. A policy finds a reward that rises with padding within
hours: it calls the same tool ten times, or stops answering.

Fix: Seed random parts from the item, read no clock, and iterate over sorted values instead of sets. Scale rewards by their
history in `postprocess_histories` or leave it to the trainer. Count distinct calls instead of all calls, and credit brevity only where there is an answer.

Source: atroposlib 0.4.0, `envs/base.py` (scores of one group are compared with each other).
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.play.probing.record import Relation
from pytest_hermes_env.play.scenario import CASES, ELSEWHERE, PROBES
from pytest_hermes_env.source import ClassSource, Function, finding_at, last_name, reach_of

_CLOCKS = frozenset({"time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.strftime", "time.ctime"})
_DATES = frozenset({"now", "utcnow", "today"})
_SETS = (ast.Set, ast.SetComp)
_ORDERED = frozenset(
    {"list", "tuple", "iter", "next", "enumerate", "join", "zip", "map", "filter", "reduce", "max", "min", "pop"}
)
"""What a set is handed to where its order may matter."""
_RANDOM = frozenset({"random", "secrets", "uuid", "urandom", "default_rng", "Random", "uuid4", "token_hex", "time", "datetime"})
NEEDS_A_CASE = "every reward that was computed twice was 0, which shows nothing: declare a good transcript (hermes-env init)"

Place = tuple[Function, ast.AST, str]


def dynamic(evidence: Evidence) -> Verdict:
    """Compare both rewards of each probe, then the rewards of results that differ in what should not count."""
    cases = list(_of_cases(evidence))
    if not cases and (missing := evidence.without_probes()):
        return missing
    twice = [probe for probe in evidence.probes.probes if probe.again is not None and not probe.trial.is_foreign]
    if not twice and not cases:
        asks = evidence.probes.asks_a_judge
        reason = "every reward calls a judge, whose answers are not scripted" if asks else "compute_reward raised every time"
        return Verdict.not_exercised(reason, "HE403", "HE301", acceptable_gap=asks)
    steady = [*_unsteady(evidence), *cases]
    elsewhere, compared = _elsewhere(evidence) if not steady else ([], "")
    findings = [*steady, *elsewhere, *(_related(evidence, relation) for relation in evidence.probes.relations)]
    if not findings and not _is_earned(evidence):
        return Verdict.not_exercised(NEEDS_A_CASE, "HE405", "HE403", "HE301", acceptable_gap=True)
    note = f"{len(twice)} results got the same reward twice{compared}"
    return Verdict.of(
        findings, f"{note}; rewards that call a judge were not compared" if evidence.probes.asks_a_judge else note
    )


def _is_earned(evidence: Evidence) -> bool:
    """Tell whether a reward other than 0 was computed twice: only such a one shows what the history does to it."""
    return any(rung.reward for rung in evidence.rungs if rung.again is not None) or any(
        probe.trial.number for probe in evidence.probes.probes if probe.again is not None
    )


def _unsteady(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for the smallest result that got two rewards."""
    probe = evidence.probes.unsteady
    if probe is not None and probe.again is not None:
        message = f"compute_reward returned {probe.trial.shown} and then {probe.again.shown} for equal inputs"
        yield evidence.finding(message, "compute_reward", seen=probe.expression, scenario=PROBES)


def _elsewhere(evidence: Evidence) -> tuple[list[Finding], str]:
    """Return one finding for the smallest result that got another reward in another process, and why none was compared.

    Both are empty where nothing in the reward may depend on its process.
    """
    places = list(process_dependent(evidence.source)) if evidence.source is not None else []
    if not places or not evidence.probes.numbers:
        return [], ""
    other = evidence.scenario(ELSEWHERE).probes
    if other is None or other.unavailable:
        return [], f"; not compared with another process: {other.unavailable if other else 'none was started'}"
    if other.item != evidence.probes.item:
        return [], "; not compared with another process, whose first item was another one"
    rewards = {probe.expression: probe.trial.number for probe in other.probes}
    for probe in sorted(evidence.probes.probes, key=lambda probe: len(probe.expression)):
        number, again = probe.trial.number, rewards.get(probe.expression)
        if number is not None and again is not None and number != again:
            function, node, what = places[0]
            message = (
                f"compute_reward returned {number!r}, and {again!r} in another process on another day: it depends on {what}"
            )
            found = finding_at(function, node, message)
            return [dataclasses.replace(found, seen=probe.expression, scenario=ELSEWHERE)], ""
    return [], f", also {len(rewards)} in another process"


def _of_cases(evidence: Evidence) -> Iterator[Finding]:
    """Yield the declared cases that were played twice and got two rewards."""
    for rung in evidence.rungs:
        if rung.reward is not None and not rung.is_foreign and (rung.again_error or rung.again not in (None, rung.reward)):
            again = rung.again_error or f"{rung.again:g}"
            message = f"{rung.name} of {rung.item} got {rung.reward:g}, and then {again}, for the same transcript"
            yield evidence.finding(message, "compute_reward", seen=" / ".join(rung.transcript), scenario=CASES)


def _related(evidence: Evidence, relation: Relation) -> Finding:
    return evidence.finding(
        f"{relation.law}: here it went from {relation.before.trial.number:g} to {relation.after.trial.number:g}",
        "compute_reward",
        seen=f"before: {relation.before.expression}  after: {relation.after.expression}",
        scenario=PROBES,
        severity=Severity.WARNING,
    )


def _more_scenarios(source: ClassSource) -> tuple[str, ...]:
    """Return the probes in another process where something in the reward may depend on its process."""
    return (ELSEWHERE,) if any(True for _ in process_dependent(source)) else ()


def process_dependent(source: ClassSource) -> Iterator[Place]:
    """Yield the places in what compute_reward runs that may give something else in another process, and what they depend on.

    They decide whether a second process is worth its time, and nothing else: sets and clocks are harmless in most rewards.
    """
    for function in reach_of(source).functions("compute_reward"):
        for call in reach_of(source).calls_in(function):
            if call.dotted in _CLOCKS or (call.name in _DATES and "date" in ast.unparse(call.node.func)):
                yield function, call.node, "the clock"
            elif call.name == "hash" and isinstance(call.node.func, ast.Name):
                yield function, call.node, "a hash, which PYTHONHASHSEED changes"
        for node in function.own_nodes():
            if _uses_order(function, node):
                yield function, node, "the order of a set, which PYTHONHASHSEED changes"
            elif what := _drawn_earlier(source, function, node):
                yield function, node, what


def _uses_order(function: Function, node: ast.AST) -> bool:
    """Whether ``node`` goes through a set, or hands one to something that does."""
    if isinstance(node, ast.For | ast.comprehension):
        return _is_set(function, node.iter)
    if not isinstance(node, ast.Call) or last_name(node.func) not in _ORDERED:
        return False
    receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return any(_is_set(function, part) for part in (*receiver, *node.args))


def _is_set(function: Function, node: ast.AST, depth: int = 0) -> bool:
    if isinstance(node, _SETS):
        return True
    if isinstance(node, ast.Call):
        return last_name(node.func) in {"set", "frozenset"} or (
            last_name(node.func) == "iter" and _is_set(function, node.args[0])
        )
    if isinstance(node, ast.BinOp):
        return _is_set(function, node.left) or _is_set(function, node.right)
    if not isinstance(node, ast.Name) or depth:
        return False
    values = [
        item.value
        for item in function.own_nodes()
        if isinstance(item, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in item.targets)
    ]
    values += [item.node for item in function.module.names.get(node.id, ()) if not item.module]  # type: ignore[misc]
    return any(_is_set(function, value, depth + 1) for value in values)


def _drawn_earlier(source: ClassSource, function: Function, node: ast.AST) -> str:
    """Return what was drawn at random where ``node`` is an attribute of self or a name of the module that holds it."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in function.positional:
        bound = [item.node for item in function.module.names.get(node.id, ()) if not item.module]
        return f"{node.id}, which is drawn when the module is imported" if any(map(_is_random, bound)) else ""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in function.positional[:1]:
        for name in ("__init__", "setup"):
            method = source.methods.get(name)
            if method is not None and any(_sets(item, node.attr) and _is_random(item) for item in method.own_nodes()):
                return f"self.{node.attr}, which {name} draws"
    return ""


def _sets(node: ast.AST, attribute: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(part, ast.Attribute) and part.attr == attribute for target in targets for part in ast.walk(target))


def _is_random(node: ast.AST) -> bool:
    """Whether an expression calls a source of random numbers, or a clock."""
    return any(
        isinstance(part, ast.Call) and not isinstance(part.func, ast.Call) and _RANDOM & set(ast.unparse(part.func).split("."))
        for part in ast.walk(node)
    )


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(PROBES, CASES), more_scenarios=_more_scenarios)
