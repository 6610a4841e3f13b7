"""HE511 rollouts-are-scored
`collect_trajectories` of a training item ends with scored rollouts.

What: `collect_trajectories(item)` returns a group and a backlog, and does not raise, exit or wait forever. At least when
its rollouts have different rewards, there is a group, which has each rollout that was scored once, with its own score: gold beside rollouts that
do nothing has the higher one, in every place, and equal work the same, also where a group is collected again. A group that is dropped because its rewards are equal is not a
violation. Classes that are an evaluation by their own code are left out.

Why: `(None, [])` is also what remains of an error that was swallowed: Atropos drops it without a word, and the
run collects rollouts for hours that nobody trains on.

Fix: Catch only what you expect, log it, and let everything else go up. Return `await
super().collect_trajectories(item)`, and nothing else except a group that you mean to drop.

Source: atroposlib 0.4.0, `envs/base.py`, `handle_env` (`to_postprocess, to_backlog = await
self.collect_trajectories(item)`) and `collect_trajectories`.
"""

from __future__ import annotations

import dataclasses

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.roles import OF_LENGTHS, UNEQUAL, strange_attempt, strange_places, strange_scores
from pytest_hermes_env.contract.judge.scored_data import OF_GROUPS, items_of, rows_of
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.scenario import Scenario

GROUPS = ("happy", "silent", "unequal_rewards", "concurrent_groups")
AGAIN = "group_without_gold"
PAIR = "tuple of 2"
IN_PLACE = (
    "Keep the columns of a group in one order: what sorts, filters or scales one of `tokens`, `masks`, `scores`, `messages` and the others "
    "does so to each of them, by the same places."
)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what collect_trajectories returned, and whether rewards came of it."""
    ran = evidence.scenarios(*GROUPS)
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*GROUPS))
    for scenario in ran:
        if scenario.error:
            return _of_error(evidence, scenario)
    wrong = next((one for one in ran if one.name != "concurrent_groups" and one.returned != PAIR), None)
    if wrong is not None:
        message = f"collect_trajectories returned {wrong.returned}, not a group and a backlog"
        return Verdict.failed([evidence.finding(message, *OF_GROUPS, scenario=wrong.name)])
    with_rows = [scenario for scenario in ran if rows_of(scenario)]
    for scenario in evidence.scenarios(*UNEQUAL) if with_rows else ():
        if scenario.roles and not scenario.error and (strange := strange_scores(scenario)):
            found = evidence.finding(strange, *OF_GROUPS, scenario=scenario.name)
            return Verdict.failed([dataclasses.replace(found, fix=IN_PLACE) if "scores" in strange else found])
    both = evidence.scenarios(*OF_LENGTHS)
    if with_rows and len(both) == len(OF_LENGTHS) and (strange := strange_places(*both)):
        found = evidence.finding(strange, *OF_GROUPS, scenario=both[1].name)
        return Verdict.failed([dataclasses.replace(found, fix=IN_PLACE)])
    if with_rows and (strange := strange_attempt(again := evidence.scenario(AGAIN))):
        return Verdict.failed([evidence.finding(strange, *OF_GROUPS, scenario=again.name)])
    if with_rows:
        return Verdict.passed(
            f"{len(with_rows)} of {len(ran)} groups were returned: {', '.join(one.name for one in with_rows)}"
        )
    scored = sum(1 for scenario in ran for _ in (*scenario.of(Reward), *items_of(scenario)))
    how = f"although {scored} rewards were computed, not all of them equal" if scored else "and no reward was computed"
    message = f"collect_trajectories returned no group, {how}: an error may have been swallowed"
    return Verdict.failed([evidence.finding(message, *OF_GROUPS, scenario="unequal_rewards" if scored else "happy")])


def _of_error(evidence: Evidence, scenario: Scenario) -> Verdict:
    if elsewhere := evidence.reported_elsewhere(scenario):
        return elsewhere
    message = f"collect_trajectories {scenario.failure}"
    found = evidence.finding(message, *OF_GROUPS, place=scenario.error_place, scenario=scenario.name)
    is_no_pair = "unpack" in scenario.error and evidence.is_own("collect_trajectory")
    if is_no_pair:
        path, line = evidence.at_return("collect_trajectory", scenario)
        fix = "Return two values from collect_trajectory: the scored item, and a list of further items."
        found = dataclasses.replace(found, fix=fix, path=path, line=line)
    return Verdict.failed([found])


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(*GROUPS, *UNEQUAL, *OF_LENGTHS, AGAIN))
