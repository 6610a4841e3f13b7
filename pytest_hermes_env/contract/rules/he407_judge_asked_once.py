"""HE407 judge-asked-once
A judge is called once per scored rollout.

What: In the scenarios, the requests to the model server that offer no tools are calls of a judge. There are at most as
many as scored rollouts. A retry of the same request, as after an answer without a score, does not count.

Why: A judge is a model call, usually of a larger model than the one in training. Two calls per rollout double the
longest part of a step and its price, for a score that is one number either way. Averaging several answers belongs into
one request, with `n`.

Fix: Put all criteria into one prompt that requests one JSON object, and read every score from it. Where several
opinions are needed, send one request with `n > 1`.

Source: The environment guide's judge pattern (one scoring prompt, one JSON score); atroposlib 0.4.0, `ServerManager`.
"""

from __future__ import annotations

import json
from collections import Counter

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import LoopStarted, Reward
from pytest_hermes_env.play.scenario import CASES, Scenario

SCENARIOS = ("happy", "silent")
EVALUATION = "evaluate"


def dynamic(evidence: Evidence) -> Verdict:
    """Count the questions without tools against the rewards."""
    if missing := evidence.without_rewards(*SCENARIOS):
        return missing
    ran = [scenario for scenario in (*evidence.scenarios(*SCENARIOS), *evidence.played_cases) if _rewards(scenario)]
    ran += [scenario for scenario in evidence.scenarios(EVALUATION) if scenario.of(LoopStarted)]
    if not any(loop.tools for scenario in ran for loop in scenario.of(LoopStarted)):
        reason = "the agent is offered no tools, so judge requests cannot be distinguished from the agent's"
        return Verdict.not_exercised(reason)
    asked = [(scenario, _questions(scenario)) for scenario in ran]
    if not any(questions for _, questions in asked):
        return Verdict.not_applicable("compute_reward calls no judge")
    findings = [
        evidence.finding(
            f"a judge was called {questions:g} times per rollout",
            "evaluate" if scenario.name == EVALUATION else "compute_reward",
            seen=f"{_rollouts(scenario)} rollouts were scored",
            scenario=scenario.name,
        )
        for scenario, questions in asked
        if questions > 1
    ]
    return Verdict.of(findings[:1], "each scored rollout called its judge at most once")


def _rewards(scenario: Scenario) -> int:
    return sum(not reward.injected for reward in scenario.of(Reward))


def _rollouts(scenario: Scenario) -> int:
    """Return how many rollouts were scored; an evaluation may score one without compute_reward."""
    return max(_rewards(scenario), len(scenario.of(LoopStarted))) if scenario.name == EVALUATION else _rewards(scenario)


def _questions(scenario: Scenario) -> float:
    """Return how many questions a rollout put to its judge; the same one again, as of equal rollouts or retries, counts once."""
    texts = Counter(
        json.dumps(request["messages"], sort_keys=True, default=str)
        for request in scenario.requests
        if "messages" in request and not request.get("tools")
    )
    return min(len(texts), texts.total() / _rollouts(scenario))


RULE = Rule(doc=__doc__, severity=Severity.WARNING, dynamic=dynamic, scenarios=(*SCENARIOS, EVALUATION, CASES))
