"""HE708 evaluation-tells-apart
An evaluation says whether the model is good: a metric rises with good work, by about as much as the rewards.

What: `evaluate` is played three times on the same held-out items: no rollout works, each one plays the gold of its item, and every
other one does. A logged metric is higher with gold than without, by at least half of what the rewards differ, and lies between with half of it:
rollouts that fail count, and those that use up their turns. It is lower, too, where the work on one item earns less than half of what gold does, and where each rollout plays the gold of another item. No item is asked more often than the others. The agent is offered the tools that it has in training, and its
prompt is what `format_prompt` gives for the item. Where it scores without `compute_reward`, its items are those that the environment holds and whose
prompts it asks. Another metric whose name speaks of success, and which falls with gold or counts only some items, is a
warning.

Why: A metric that is the same for every model, counts only what succeeded, or falls when the model gets better, steers a run for days in the wrong
direction, or stops it when it begins to work.

Fix: Log the mean of the rewards of all held-out items, 0.0 for those that failed. Let `evaluate` call `evaluate_items`, which asks each item once
and scores it as training does.

Source: atroposlib 0.4.0, `envs/base.py`, `evaluate_log`; `environments.hermes_base_env`, `evaluate_items`.
"""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.cases.values import GOLD
from pytest_hermes_env.play.journal import EvaluationLogged, LoopStarted, Reward, UnknownRead
from pytest_hermes_env.play.probing.record import as_number
from pytest_hermes_env.play.scenario import Scenario, item_key

UNENDED = "evaluate_endless"
"""An evaluation in which every other rollout uses up its turns."""
OTHERS = "evaluate_others"
"""An evaluation in which each rollout plays the gold of another item."""
PART = "evaluate_part"
"""An evaluation that is played where work is known that earns little."""
IDLE, GOOD, HALF = SCENARIOS = ("evaluate_nothing", "evaluate_gold", "evaluate_half")
_OF_SUCCESS = re.compile(
    r"(?:rate|accuracy|success|solved|correct|reward|score|pass|right)\b|(?:pass|solved|success|correct|accuracy)_",
    re.IGNORECASE,
)
_OF_FEW = re.compile(
    r"@|max|min|best|worst|any|all|median|std|error|fail|wrong|format|turn|tool|token|time|call", re.IGNORECASE
)
"""Names of metrics that are not means over items, or are of something else."""
_OF_FAILURES = re.compile(
    r"^(?!.*(?:free|fixed|found|solved|success|accura|score|handled|recover))(?:.*[^a-z])?"
    r"(?:errors?|fail(?:s|ed|ing|ures?)?|wrong|lost|miss(?:es|ed|ing)|timeouts?)(?![a-z])",
    re.IGNORECASE,
)
"""Names of metrics that good work lowers."""
_OF_COST = re.compile(r"(?<![a-z])(?:turn|token|second|call|length|cost|latency|duration|step)s?(?:\b|_)", re.IGNORECASE)
"""Names of metrics that move with any work."""
TINY = 1e-9
OFTEN = 2
"""Rewards of one held-out item, and of no other, from which on an evaluation is of that item alone."""
LEAST = 0.5
"""The share of the difference of rewards that a metric shows at least."""
TOLERANCE = 0.2
"""How far from its place between the two a metric may lie with half of the gold, as a share of their distance."""


def dynamic(evidence: Evidence) -> Verdict:
    """Compare what three evaluations logged."""
    for scenario in (evidence.scenario(name) for name in SCENARIOS):
        if not scenario.happened:
            return Verdict.not_exercised(scenario.unavailable, "HE701", "HE705", "HE404")
        if scenario.error:
            return Verdict.not_exercised(f"evaluate() {scenario.failure}", "HE705", "HE403", "HE701")
    idle, good, half = (evidence.scenario(name) for name in SCENARIOS)
    if idle.of(Reward) and not good.of(Reward):
        return Verdict.not_exercised("no rollout that played gold got a reward", "HE412")
    if any(role.is_judge_guessed for scenario in (idle, half) for role in scenario.roles):
        return Verdict.not_applicable("a judge was asked about work without a declared answer, so that rewards are guessed")
    metrics = [_metrics(scenario) for scenario in (idle, good, half)]
    if not metrics[0] or not metrics[1]:
        return Verdict.not_exercised("evaluate() logged no number", "HE705")
    differ = _mean(good) - _mean(idle)
    if good.of(Reward) and differ <= TINY and good.roles and not any(role.prompt for role in good.roles):
        message = (
            "evaluate() asks the agent something else than format_prompt(item) gives, and gold of the item earns nothing there"
        )
        found = evidence.finding(message, "evaluate", scenario=GOOD)
        fix = "Give the agent `self.format_prompt(item)` in evaluate(), as training does, or call `evaluate_items`."
        return Verdict.failed([dataclasses.replace(found, fix=fix)])
    if good.of(Reward) and differ <= TINY:
        return Verdict.not_exercised(
            f"gold of held-out items earned {_mean(good):g}, and no work {_mean(idle):g}", "HE412", "HE405"
        )
    message = _of_metrics(metrics, differ, _share(half) / (_share(good) or 1.0)) or _of_items(good)
    message = message or _of_unended(evidence.scenario(UNENDED), half, metrics, differ)
    message = message or _of_part(evidence.scenario(PART), good, metrics)
    if not message and (message := _of_others(evidence.scenario(OTHERS), good, metrics)):
        fix = "Score held-out items as training does, by comparing the answer with the item's own."
        return Verdict.failed([dataclasses.replace(evidence.finding(message, "compute_reward", scenario=OTHERS), fix=fix)])
    if message:
        found = evidence.finding(message, "evaluate", scenario=GOOD, seen=_shown(metrics))
        rewards = [reward for scenario in (idle, good, half) for reward in scenario.of(Reward)]
        raised = any(reward.error for reward in rewards)
        is_foreign = any(True for scenario in (idle, good, half) for _ in scenario.of(UnknownRead))
        owner = (
            "HE301"
            if is_foreign
            else "HE403"
            if raised
            else "HE401"
            if any(as_number(reward.value) is None for reward in rewards)
            else ""
        )
        return Verdict.failed([dataclasses.replace(found, because_of=owner)])
    different = [*_differences(evidence, good), *_of_other_metrics(metrics, _share(half) / (_share(good) or 1.0))]
    if different:
        return Verdict.failed([evidence.finding(one, "evaluate", scenario=GOOD, severity=weight) for one, weight in different])
    return Verdict.passed(f"{_best(metrics)} moves from {_shown(metrics)}")


def _metrics(scenario: Scenario) -> dict[str, float]:
    logged = ((name, as_number(value)) for event in scenario.of(EvaluationLogged) for name, value in event.metrics.items())
    numbers = {str(name): value for name, value in logged if value is not None}
    return {name: value for name, value in numbers.items() if not _OF_COST.search(name) or _OF_SUCCESS.search(name)} or numbers


def _mean(scenario: Scenario) -> float:
    rewards = [as_number(reward.value) or 0.0 for reward in scenario.of(Reward)]
    return statistics.fmean(rewards) if rewards else 0.0


def _best(metrics: list[dict[str, float]]) -> str:
    """Return the metric that rises most from no work to gold."""
    idle, good = metrics[:2]
    return max(good, key=lambda name: good[name] - idle.get(name, good[name]))


def _share(scenario: Scenario) -> float:
    """Return the share of its rollouts that played gold."""
    return statistics.fmean(role.name == GOLD for role in scenario.roles) if scenario.roles else 0.0


def _of_metrics(metrics: list[dict[str, float]], differ: float, share: float) -> str:
    """Return what the metrics do wrong; empty where one of them tells good work from none."""
    idle, good, between = metrics
    moved = {name: good[name] - idle[name] for name in good if name in idle and abs(good[name] - idle[name]) > TINY}
    if not moved:
        return "each metric of evaluate() is the same for an agent that does nothing and for gold"
    rises = {name: -by if _OF_FAILURES.search(name) else by for name, by in moved.items()}
    risen = {name: moved[name] for name, by in rises.items() if by >= max(differ * LEAST, TINY)}
    if not risen:
        name = max(moved, key=lambda one: abs(moved[one]))
        what = "falls" if moved[name] < 0 else "hardly rises"
        return f"{name} {what} when each rollout plays gold: from {idle[name]:g} to {good[name]:g}"
    if not 0 < share < 1:
        return ""
    places = {name: (between.get(name, idle[name]) - idle[name]) / by for name, by in risen.items()}
    if all(abs(place - share) > TOLERANCE for place in places.values()):
        name = min(places, key=lambda one: abs(places[one] - share))
        return f"{name} is {between.get(name, 0.0):g} where {share:.0%} of the gold was played: not all items count alike"
    return ""


def _of_other_metrics(metrics: list[dict[str, float]], share: float) -> Iterator[tuple[str, Severity]]:
    """Yield which other metrics speak of success, and fall with gold, or count only some items."""
    idle, good, between = metrics
    for name in good:
        by = good[name] - idle.get(name, good[name])
        if not _OF_SUCCESS.search(name) or _OF_FEW.search(name) or abs(by) <= TINY:
            continue
        if by < 0:
            yield f"{name} falls when each rollout plays gold: from {idle[name]:g} to {good[name]:g}", Severity.WARNING
        elif 0 < share < 1 and abs((between.get(name, idle[name]) - idle[name]) / by - share) > TOLERANCE:
            values = f"{between.get(name, 0.0):g} where {share:.0%} of the gold was played, and {good[name]:g} with all of it"
            yield f"{name} is {values}: not all items count alike", Severity.WARNING


def _of_unended(unended: Scenario, half: Scenario, metrics: list[dict[str, float]], differ: float) -> str:
    """Return that rollouts without an end are left out: with them, each metric is higher than with as many that did nothing, and earned as much."""
    if unended.error:
        return f"evaluate() {unended.failure} where every other rollout used up its turns"
    logged, paid = _metrics(unended), _total(unended) - _total(half)
    risen = {name: value - metrics[0].get(name, value) for name, value in metrics[1].items()}
    over = {name: logged[name] - metrics[2].get(name, 0.0) for name, by in risen.items() if name in logged and by > TINY}
    is_guessed = any(role.is_judge_guessed for role in unended.roles)
    if not over or is_guessed or paid > TINY or any(by <= TOLERANCE * risen[name] for name, by in over.items()):
        return ""
    name = min(over, key=lambda one: abs(risen[one] - differ))  # which is of the rewards
    return f"{name} is {logged[name]:g} where every other rollout used up its turns, and {metrics[2].get(name, 0.0):g} where it did nothing: such rollouts are left out"


def _total(scenario: Scenario) -> float:
    return sum(as_number(reward.value) or 0.0 for reward in scenario.of(Reward))


def _is_as_with_gold(scenario: Scenario, metrics: list[dict[str, float]]) -> bool:
    """Whether each metric that gold raises is as high as with gold; a median does not show one item."""
    idle, full = metrics[:2]
    logged = _metrics(scenario)
    risen = [name for name in full if full[name] - idle.get(name, full[name]) > TINY]
    return bool(risen and logged) and not any(
        "median" in name or full[name] - logged.get(name, -math.inf) > TINY for name in risen
    )


def _of_part(part: Scenario, good: Scenario, metrics: list[dict[str, float]]) -> str:
    """Return that work which earns little counts like gold."""
    if not part.happened or part.error or _mean(good) - _mean(part) <= TINY or not _is_as_with_gold(part, metrics):
        return ""
    least = min(as_number(reward.value) or 0.0 for reward in part.of(Reward))
    best = _best(metrics)
    return f"{best} is {_metrics(part).get(best, 0.0):g}, as with gold, where the work on one item earned {least:g}"


def _of_others(others: Scenario, good: Scenario, metrics: list[dict[str, float]]) -> str:
    """Return that any answer is paid in evaluation, or counted where nothing is paid, as long as it has the form of one."""
    asked = len({item_key(reward.item) for reward in others.of(Reward)})
    if not others.happened or others.error:
        return ""
    if asked and _mean(others) >= _mean(good) - TINY:
        return f"evaluate() pays the gold of another item like the item's own, on each of {asked} held-out items"
    if not _is_as_with_gold(others, metrics):
        return ""
    value = f"{_best(metrics)} is {_metrics(others).get(_best(metrics), 0.0):g}"
    return f"{value}, as with gold, where each rollout played the gold of another item: not each answer is compared with its own item"


def _of_items(good: Scenario) -> str:
    """Return which items are asked more often than others."""
    times = Counter(item_key(reward.item) for reward in good.of(Reward))
    if len(times) == 1 and times.total() >= OFTEN:
        return f"evaluate() scores one held-out item {times.total()} times, and no other one"
    if len(set(times.values())) > 1:
        return f"{sum(count > min(times.values()) for count in times.values())} of {len(times)} held-out items count more often than the others"
    return ""


def _differences(evidence: Evidence, good: Scenario) -> Iterator[tuple[str, Severity]]:
    """Yield how the agent is asked otherwise than in training."""
    training = evidence.scenario("happy").of(LoopStarted)
    loops = good.of(LoopStarted)
    if training and loops and {*loops[0].tools} != {*training[0].tools}:
        other = ", ".join(sorted({*loops[0].tools} ^ {*training[0].tools}))
        yield f"evaluate() offers the agent other tools than training does: {other}", Severity.ERROR
    at_work = [role.prepared for role in evidence.scenario("group_alone").roles if role.name == GOLD]
    if at_work and good.roles and min(at_work) > 0 and not any(role.prepared for role in good.roles):
        yield (
            f"the sandboxes of evaluate() are empty when the agent begins; in training they hold {min(at_work)} files or more",
            Severity.ERROR,
        )
    if loops and good.roles and not any(role.prompt for role in good.roles):
        yield "the prompts of evaluate() are not those of format_prompt", Severity.WARNING


def _shown(metrics: list[dict[str, float]]) -> str:
    name = _best(metrics)
    values = (f"{one[name]:g}" if name in one else "-" for one in metrics)
    return "{} (no work), {} (gold), {} (gold on every other item)".format(*values)


RULE = Rule(
    doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(*SCENARIOS, UNENDED, OTHERS, PART, "happy", "group_alone")
)
