"""HE702 eval-rolls-back-buffers
`evaluate` leaves the training buffers on self as they were, also when it raises.

What: An attribute of self that training changes in place (from `compute_reward`, `collect_trajectory` or
`get_next_item`) and that `evaluate` changes too, most often by calling `compute_reward`, is restored by `evaluate` in a
`finally`. Entries that training adds while an evaluation runs must survive it: restoring a buffer as a whole loses
them, which is a warning.

Why: The buffers become the training curves in `wandb_log`. Evaluation runs at temperature 0 on other items; when its
rewards stay in the training buffers, `train/` metrics jump at every evaluation. People have tuned learning rates and
thrown away good checkpoints, days of GPU time each, because of a step that only the bookkeeping made.

Fix: Keep `compute_reward` free of bookkeeping, and append where training collects (`collect_trajectory`, or
`collect_trajectories`). Where it must stay in `compute_reward`, remember the state before the loop (`n =
len(self.rewards_buffer)`) and restore it in a `finally` (`del self.rewards_buffer[n:]`). That also removes entries that
training added meanwhile; a ContextVar that `evaluate` sets does not: `token = EVALUATING.set(True)` before the loop,
`EVALUATING.reset(token)` in the `finally`, and `if not EVALUATING.get(): self.rewards_buffer.append(...)` in
`compute_reward`.

Source: atroposlib 0.4.0, `envs/base.py`: `evaluate` runs as a task beside training (`env_step_checks`), and `wandb_log`
reads the same object.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rollout_blocks import without_evaluate
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.training_buffers import EvaluationReach, Site, adds_to
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.buffers import changed, growth
from pytest_hermes_env.play.journal import LoopStarted, Reward
from pytest_hermes_env.play.scenario import Scenario
from pytest_hermes_env.source import (
    Change,
    ClassSource,
    Frame,
    Kind,
    calls_in,
    data_flow,
    finding_at,
    last_name,
    sorted_findings,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODE = re.compile(
    r"(^|_)(evals?|evaluat(e|ing|ion)|held_?out|mode|phase|record(ing)?|split|train(ing)?)(_|$)",
    re.IGNORECASE,
)
_REGISTERS = frozenset({"callback", "push_async_callback"})


def static(source: ClassSource) -> Verdict:
    """Compare what evaluate changes on self with what training keeps there, and look for what puts it back."""
    start = data_flow(source).method("evaluate")
    if start is None:
        return without_evaluate(source)
    reach = EvaluationReach(source=source, start=start)
    if not reach.kept:
        if source.unreadable:
            return Verdict.undecided(f"training may keep buffers in {source.unreadable[0]}, which cannot be read")
        return Verdict.not_applicable("training keeps no buffers on self")
    if not reach.sites:
        unread = next((call for call in calls_in(reach.own) if _scores_elsewhere(call.name, call.callee)), None)
        if unread is not None:
            return Verdict.undecided(f"line {unread.node.lineno} calls compute_reward of an object that cannot be followed")
        return Verdict.passed("evaluate leaves the training buffers alone")
    findings = sorted_findings(finding for site in reach.sites for finding in _check(reach, site))
    if not findings:
        return Verdict.passed(f"evaluate restores {_names(frozenset().union(*(site.attributes for site in reach.sites)))}")
    doubt = _doubt(reach)
    return Verdict.undecided(doubt) if doubt else Verdict.failed(findings)


def _check(reach: EvaluationReach, site: Site) -> Iterator[Finding]:
    never, late = set(), set()
    for attribute in site.attributes:
        restores = reach.puts_back(attribute)
        if not restores:
            never.add(attribute)
        elif not any(_is_sure(reach, site, frame, change) for frame, change in restores):
            late.add(attribute)
    how = f"calls {site.calls}, which changes" if site.calls else "changes"
    name = site.frame.function.name
    if never:
        message = f"{name} {how} {_names(never)} of training; nothing restores it"
        yield finding_at(site.frame.function, site.node, message)
    if late:
        message = f"{name} {how} {_names(late)} of training; not rolled back when evaluation raises"
        yield finding_at(site.frame.function, site.node, message)


def _is_sure(reach: EvaluationReach, site: Site, frame: Frame, change: Change) -> bool:
    """Whether ``change`` is made in a finally, or on an exit stack, around ``site``."""
    for holder, node in _ways_to(reach, frame, change.node):
        found = holder.function.finally_of(node)
        if found is not None and _covers(reach, holder, found, site):
            return True
        parent = holder.function.parents.get(node)
        for call in holder.calls:
            if call.name in _REGISTERS and (node is call.node or parent is call.node):
                return True
        scope = holder.function.scope_of(node)
        for call in holder.calls:
            handed = any(value.kind is Kind.LOCAL and value.node is scope for item in call.every_argument for value in item)
            called = any(value.kind is Kind.LOCAL and value.node is scope for value in call.callee)
            if handed and call.name in _REGISTERS:
                return True
            if called and (outer := holder.function.finally_of(call.node)) and _covers(reach, holder, outer, site):
                return True
    return False


def _ways_to(reach: EvaluationReach, frame: Frame, node: ast.AST) -> Iterator[tuple[Frame, ast.AST]]:
    """Yield the place itself and the places in evaluate's own code from which it is called."""
    pending = [(frame, node)]
    seen: set[tuple[int, int]] = set()
    while pending:
        holder, place = pending.pop()
        if (id(holder), id(place)) in seen:
            continue
        seen.add((id(holder), id(place)))
        yield holder, place
        pending += [(caller, edge) for caller in reach.own for edge, target in caller.edges if target is holder]


def _covers(reach: EvaluationReach, holder: Frame, found: ast.Try, site: Site) -> bool:
    """Whether the body of a try holds the site, a call that leads to it, or the yield of a context manager."""
    inside = {item for part in (found.body, found.handlers, found.orelse) for block in part for item in ast.walk(block)}
    if holder.function is site.frame.function and site.node in inside:
        return True
    if any(isinstance(item, (ast.Yield, ast.YieldFrom)) for item in inside):
        return True
    return any(
        edge in inside and any(item.function is site.frame.function for item in data_flow(reach.source).reached_from(target))
        for edge, target in holder.edges
    ) or (holder.function is site.frame.function and _is_in_called_scope(holder, inside, site.node))


def _is_in_called_scope(holder: Frame, inside: set[ast.AST], node: ast.AST) -> bool:
    """Whether ``node`` stands in a nested function that is used inside the try."""
    scope = holder.function.scope_of(node)
    for call in holder.calls:
        if call.node in inside:
            every = [call.callee, *call.every_argument]
            if any(value.kind is Kind.LOCAL and value.node is scope for values in every for value in values):
                return True
    return False


def _doubt(reach: EvaluationReach) -> str:
    """Return why violations that were seen may be none."""
    for _, change in reach.restores:
        if change.attribute == "*":
            return f"line {getattr(change.node, 'lineno', 0)} sets attributes whose names are computed at run time"
    flags = {change.attribute for _, change in reach.restores if change.how == "set"} - reach.kept
    for frame in reach.training:
        for change in frame.changes:
            if change.attribute in reach.kept and adds_to(change) and (word := _guard(frame, flags, reach.kept)):
                return f"what training keeps seems to depend on {word}"
    return ""


def _guard(frame: Frame, flags: set[str], kept: frozenset[str]) -> str:
    """Return the words of a test in ``frame`` that asks whether this is an evaluation, or an empty string."""
    for node in ast.walk(frame.function.node):
        if not isinstance(node, (ast.If, ast.IfExp)):
            continue
        text_methods = {
            part.func for part in ast.walk(node.test) if isinstance(part, ast.Call) and last_name(part.func) == "split"
        }
        for part in ast.walk(node.test):
            if part in text_methods:
                continue
            word = getattr(part, "attr", "") or getattr(part, "id", "") or getattr(part, "value", "")
            if isinstance(word, str) and word not in kept and (word in flags or _MODE.search(word)):
                return word
    return ""


def _scores_elsewhere(name: str, callee: object) -> bool:
    kinds = {value.kind for value in callee} if isinstance(callee, frozenset) else set()
    return name == "compute_reward" and not kinds & {Kind.METHOD, Kind.FUNCTION, Kind.BASE_METHOD}


def _names(attributes: set[str] | frozenset[str]) -> str:
    return ", ".join(f"self.{name}" for name in sorted(attributes))


TRAINING = ("happy", "silent", "reward_raises")
EVALUATIONS = ("evaluate", "evaluate_reward_raises", "evaluate_loop_raises", "evaluate_cancelled")
ALONE = ("training_before_evaluate", "training_after_evaluate")
BESIDE = "evaluate_beside_training"
SCENARIOS = (*TRAINING, *EVALUATIONS, *ALONE, BESIDE)
_LITTLE = 1e-9
WORDS = {
    "evaluate": "evaluate()",
    "evaluate_reward_raises": "an evaluate() whose reward raised",
    "evaluate_loop_raises": "an evaluate() whose agent loop raised",
    "evaluate_cancelled": "an evaluate() that was cancelled",
}


def dynamic(evidence: Evidence) -> Verdict:
    """Compare what training filled before and after evaluate(), also when evaluation fails or is cancelled."""
    training = evidence.scenarios(*TRAINING)
    if not training:
        return Verdict.not_seen(evidence.why_missing(*TRAINING))
    buffers = {name for scenario in training for name in changed(scenario.before, scenario.after)}
    if not buffers:
        return Verdict.not_applicable("training rollouts left nothing on self: there is no buffer to roll back")
    evaluations = [run for run in evidence.scenarios(*EVALUATIONS) if run.of(LoopStarted) or run.of(Reward)]
    if not evaluations:
        return Verdict.not_exercised(evidence.why_missing(*EVALUATIONS) or "evaluate() ran no rollout", "HE701", "HE705")
    polluted = {run.name: names for run in evaluations if (names := sorted(buffers & set(changed(run.before, run.after))))}
    findings = [
        evidence.finding(
            f"training buffers differ after {WORDS[name]}: {', '.join(f'self.{attribute}' for attribute in names)}",
            "evaluate",
            scenario=name,
        )
        for name, names in polluted.items()
    ]
    kept = ", ".join(f"self.{name}" for name in sorted(buffers))
    if lost := _lost(evidence):
        message = f"evaluate() discards what training adds to {', '.join(lost)} at the same time"
        findings.append(evidence.finding(message, "evaluate", scenario=BESIDE, severity=Severity.WARNING))
    beside = ", and what training added during one was kept" if _ran_beside(evidence.scenario(BESIDE)) else ""
    return Verdict.of(findings[:1], f"{kept} were unchanged after {len(evaluations)} evaluations{beside}")


def _ran_beside(scenario: Scenario) -> bool:
    """Tell whether a whole group was collected while an evaluation waited for its rewards."""
    return scenario.happened and not scenario.error and not scenario.note and bool(scenario.beside)


def _lost(evidence: Evidence) -> list[str]:
    """Return the buffers that a group fills alone, before and after, and does not fill beside an evaluation."""
    scenario = evidence.scenario(BESIDE)
    runs = [evidence.scenario(name) for name in ALONE]
    if not _ran_beside(scenario) or any(not run.happened or run.error for run in runs):
        return []
    first, again = (growth(run.before, run.after) for run in runs)
    beside = growth(scenario.before, scenario.after)
    lost = {
        path[0]
        for path, more in first.items()
        # a number that is not the same each time is a mean or a clock; a buffer that grows no more is full
        if more > 0 and abs(again.get(path, 0.0) - more) < _LITTLE and beside.get(path, 0.0) < more - _LITTLE
    }
    return [f"self.{name}" for name in sorted(lost)]


RULE = Rule(
    doc=__doc__,
    severity=Severity.ERROR,
    static=static,
    dynamic=dynamic,
    scenarios=SCENARIOS,
    rollouts_decide=False,
)
