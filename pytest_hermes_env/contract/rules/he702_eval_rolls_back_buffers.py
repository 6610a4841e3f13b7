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

Source: atroposlib 0.4.0, `envs/base.py`: `evaluate` runs as a task during training (`env_step_checks`), and `wandb_log`
reads the same object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.buffers import changed_parts, growth
from pytest_hermes_env.play.journal import LoopStarted, Reward
from pytest_hermes_env.play.scenario import Scenario
from pytest_hermes_env.source import LAYER_EVALUATION, LAYER_ROLLOUTS, ClassSource, Function, finding_at, reach_of

_ADDS = frozenset({"append", "extend", "appendleft", "add", "update"})
_SCORES = LAYER_ROLLOUTS | {LAYER_EVALUATION, "compute_reward"}


def static(source: ClassSource) -> Verdict:
    """Look for buffers that compute_reward fills, and that the code of evaluate never names.

    It complements the rollouts: this is how most people write it, and it shows in two lines.
    """
    reach = reach_of(source)
    reward, evaluate = source.methods.get("compute_reward"), source.methods.get("evaluate")
    if reward is None or evaluate is None:
        return Verdict.undecided("compute_reward and evaluate cannot both be read")
    training = reach.functions("compute_reward", "collect_trajectory", "collect_trajectories", "get_next_item")
    own = [function for function in reach.functions("evaluate") if function not in training]
    scores = [
        call
        for function in own
        for call in reach.calls_in(function)
        if call.target is reward or (call.is_of_base(_SCORES) and not _has_own_score(call.node))
    ]
    named = {node.attr for function in own for node in function.nodes if isinstance(node, ast.Attribute)}
    buffers = set(_filled_always(reward)) - named
    if not scores or not buffers:
        return Verdict.passed("the source shows no buffer that compute_reward fills and evaluate forgets")
    what = ", ".join(f"self.{name}" for name in sorted(buffers))
    message = f"{scores[0].function.name} calls {scores[0].name}, which changes {what} of training; nothing restores it"
    return Verdict.failed([finding_at(scores[0].function, scores[0].node, message)])


def _has_own_score(node: ast.AST) -> bool:
    """Tell whether evaluate_items is given what scores, so that it does not ask compute_reward."""
    given = node.keywords if isinstance(node, ast.Call) else []
    return any(one.arg == "score" and not (isinstance(one.value, ast.Constant) and one.value.value is None) for one in given)


def _filled_always(reward: Function) -> Iterator[str]:
    """Yield the attributes of self that the reward adds to whatever is asked before."""
    for statement in reward.node.body:
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(
                        value=ast.Attribute(value=holder, attr=name)
                        | ast.Subscript(value=ast.Attribute(value=holder, attr=name)),
                        attr=how,
                    )
                )
            ):
                if how in _ADDS and reward.is_self(holder):
                    yield name
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            return


TRAINING = ("happy", "silent", "reward_raises")
EVALUATIONS = ("evaluate", "evaluate_reward_raises", "evaluate_loop_raises", "evaluate_cancelled")
ALONE = ("training_before_evaluate", "training_after_evaluate")
DURING = "evaluate_during_training"
SCENARIOS = (*TRAINING, *EVALUATIONS, *ALONE, DURING)
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
        return Verdict.not_exercised(evidence.why_missing(*TRAINING))
    buffers = {name for scenario in training for name in changed_parts(scenario.before, scenario.after)}
    if not buffers:
        return Verdict.not_applicable("training rollouts left nothing on self: there is no buffer to roll back")
    evaluations = [run for run in evidence.scenarios(*EVALUATIONS) if run.of(LoopStarted) or run.of(Reward)]
    if not evaluations:
        return Verdict.not_exercised(evidence.why_missing(*EVALUATIONS) or "evaluate() ran no rollout", "HE701", "HE705")
    polluted = {run.name: names for run in evaluations if (names := sorted(buffers & changed_parts(run.before, run.after)))}
    rewards = [reward for run in evaluations for reward in run.of(Reward) if not reward.injected]
    if not polluted and rewards and all(reward.error for reward in rewards):
        return Verdict.not_exercised("every reward of an evaluation raised before it could fill a buffer", "HE403", "HE301")
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
        findings.append(evidence.finding(message, "evaluate", scenario=DURING, severity=Severity.WARNING))
    added = ", and what training added during one was kept" if _ran_together(evidence.scenario(DURING)) else ""
    return Verdict.of(findings[:1], f"{kept} were unchanged after {len(evaluations)} evaluations{added}")


def _ran_together(scenario: Scenario) -> bool:
    """Tell whether a whole group was collected while an evaluation waited for its rewards."""
    return scenario.happened and not scenario.error and not scenario.note and bool(scenario.training_events)


def _lost(evidence: Evidence) -> list[str]:
    """Return the buffers that a group fills alone, before and after, and does not fill during an evaluation."""
    scenario = evidence.scenario(DURING)
    runs = [evidence.scenario(name) for name in ALONE]
    if not _ran_together(scenario) or any(not run.happened or run.error for run in runs):
        return []
    first, again = (growth(run.before, run.after) for run in runs)
    added = growth(scenario.before, scenario.after)
    lost = {
        path[0]
        for path, more in first.items()
        # a number that is not the same each time is a mean or a clock; a buffer that grows no more is full
        if more > 0 and abs(again.get(path, 0.0) - more) < _LITTLE and added.get(path, 0.0) < more - _LITTLE
    }
    return [f"self.{name}" for name in sorted(lost)]


RULE = Rule(
    doc=__doc__,
    severity=Severity.ERROR,
    static=static,
    dynamic=dynamic,
    scenarios=SCENARIOS,
)
