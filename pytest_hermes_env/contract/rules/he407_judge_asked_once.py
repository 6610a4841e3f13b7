"""HE407 judge-asked-once
A judge is asked once per scored rollout.

What: in the scenarios, the requests to the model server that offer no tools are a judge's. There are as many as there
are rollouts that were scored, or fewer; the same question put again, as after an answer without a score, does not
count.

Why: a judge is a model call, most often of a larger model than the one in training. Two calls per rollout double the
longest part of a step and its price, for a score that is one number all the same; averaging several answers belongs
into one request, with `n`.

Fix: put all criteria into one prompt that asks for one JSON object, and read every score from it. Where several opinions
are wanted, ask once with n > 1.

Source: the environment guide's judge pattern (one scoring prompt, one JSON score); atroposlib 0.4.0, ServerManager.
"""

from __future__ import annotations

import json
from collections import Counter

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import (
    Finding,
    Rule,
    Severity,
    Verdict,
    judged,
    not_applicable,
    not_exercised,
    not_seen,
)
from pytest_hermes_env.rollout.journal import LoopStarted, Reward
from pytest_hermes_env.rollout.scenario import Scenario

SCENARIOS = ("happy", "silent")


def dynamic(evidence: Evidence) -> Verdict:
    """Count the questions without tools against the rewards."""
    ran = [scenario for scenario in evidence.scenarios(*SCENARIOS) if _rewards(scenario)]
    if not ran:
        return not_seen(evidence.why_missing(*SCENARIOS) or "nobody called compute_reward")
    if not any(loop.tools for scenario in ran for loop in scenario.of(LoopStarted)):
        return not_exercised("the agent is offered no tools, so that a judge's questions cannot be told from its own")
    asked = [(scenario, _questions(scenario)) for scenario in ran]
    if not any(questions for _, questions in asked):
        return not_applicable("compute_reward asks no judge")
    path, line = evidence.at_method("compute_reward")
    findings = [
        Finding(
            message=f"a judge was asked {questions:g} times per rollout",
            path=path,
            line=line,
            seen=f"{_rewards(scenario)} rollouts were scored",
            scenario=scenario.name,
        )
        for scenario, questions in asked
        if questions > 1
    ]
    return judged(findings[:1], "each scored rollout asked its judge at most once")


def _rewards(scenario: Scenario) -> int:
    return sum(not reward.injected for reward in scenario.of(Reward))


def _questions(scenario: Scenario) -> float:
    """Return how many questions a rollout put to its judge; the same one again, as of equal rollouts or retries, counts once."""
    texts = Counter(
        json.dumps(request["messages"], sort_keys=True, default=str)
        for request in scenario.requests
        if "messages" in request and not request.get("tools")
    )
    return min(len(texts), texts.total() / _rewards(scenario))


RULE = Rule(
    id="HE407",
    name="judge-asked-once",
    severity=Severity.WARNING,
    doc=__doc__,
    dynamic=dynamic,
    scenarios=SCENARIOS,
)
