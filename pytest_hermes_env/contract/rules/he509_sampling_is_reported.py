"""HE509 sampling-is-reported
The temperature and the `top_p` that a group names for the trainer are those at which its rollouts were sampled.

What: The temperature and the `top_p` in `overrides`, `generation_params` or `group_overrides` are those of the agent's
requests. A group that names none is the base's to complete: it does so when it sends the group.

Why: The trainer computes the logprobs of the sampled tokens again. With another temperature they differ from the
sampler's on almost every token, and it clips them: the run learns next to nothing, and no metric says why.

Fix: Copy `generation_params` from the items, or leave the group to the base's `collect_trajectories`. To sample at
another temperature, set `agent_temperature`.

Source: atroposlib 0.4.0, `example_trainer/data.py` (`overrides`, `generation_params`, `group_overrides`);
`environments.trainer.groups`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import OF_GROUPS, groups_of, reported_sampling
from pytest_hermes_env.play.journal import LoopStarted
from pytest_hermes_env.play.scenario import Scenario

SCENARIOS = ("happy", "silent", "unequal_rewards", "drifting", "with_tokens")
NAMES = ("temperature", "top_p")


def dynamic(evidence: Evidence) -> Verdict:
    """Compare what each group names with what its agents asked for."""
    if missing := evidence.without_tokens(*SCENARIOS):
        return missing
    ran = [scenario for scenario in evidence.with_tokens(*SCENARIOS) if groups_of(scenario)]
    if not ran:
        return Verdict.not_exercised("collect_trajectories returned no group", "HE511")
    findings = [finding for scenario in ran for name in NAMES for finding in _findings(evidence, scenario, name)]
    return Verdict.of(findings[:1], f"{len(ran)} groups name the temperature of their requests, or none")


def _findings(evidence: Evidence, scenario: Scenario, name: str) -> Iterator[Finding]:
    asked = {_asked(loop, name) for loop in scenario.of(LoopStarted)}
    told = {value for group in groups_of(scenario) for value in reported_sampling(group, name)}
    if len(asked) == 1 and told - asked and not (name == "temperature" and None in asked):
        named = ", ".join(map(str, sorted(told - asked, key=str)))
        what = asked.pop()
        yield evidence.finding(
            f"the group names the {name} {named}, and {'none' if what is None else what} was asked for",
            *OF_GROUPS,
            scenario=scenario.name,
        )


def _asked(loop: LoopStarted, name: str) -> object:
    """Return what the requests of a loop had; without a top_p the server samples from all tokens."""
    return (loop.extra_body or {}).get(name, loop.temperature if name == "temperature" else None)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
