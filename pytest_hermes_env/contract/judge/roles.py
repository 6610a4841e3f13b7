"""Whose work was it? What rollouts that played gold, and those that did nothing, earned, and which scores the trainer gets for them.

Place in the flow: HE511 and HE603 compare these with what the same work earned by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_hermes_env.contract.judge.evidence import Evidence
from pytest_hermes_env.contract.judge.scored_data import groups_of
from pytest_hermes_env.play.cases.values import AT_LENGTH, GOLD, NEAR_MISS, NOTHING
from pytest_hermes_env.play.journal import ItemScored, Reward
from pytest_hermes_env.play.probing.record import as_number
from pytest_hermes_env.play.scenario import RolePlayed, Scenario

ALONE = "group_alone"
OF_LENGTHS = ("group_of_lengths", "group_of_lengths_turned")
UNEQUAL = ("group_gold_first", "group_gold_last", "group_mostly_gold", "group_of_gold_and_near", "group_of_near")
MIXED = (*UNEQUAL, "group_without_gold", "two_groups_with_gold")
TINY = 1e-9


def earned(scenario: Scenario) -> list[tuple[RolePlayed, float]]:
    """Return each role with the reward of its rollout; without those that a guessed answer of a judge decided."""
    rewards = {reward.task_id: as_number(reward.value) for reward in scenario.of(Reward)}
    pairs = ((role, rewards.get(role.task_id)) for role in scenario.roles if not role.is_judge_guessed)
    return [(role, reward) for role, reward in pairs if reward is not None]


def rewards_alone(evidence: Evidence) -> dict[tuple[str, str], float]:
    """Return what each role earns by itself, for each prompt; without those that earn now this, now that."""
    found: dict[tuple[str, str], set[float]] = {}
    for role, reward in earned(evidence.scenario(ALONE)):
        found.setdefault((role.name, role.prompt), set()).add(reward)
    return {key: next(iter(rewards)) for key, rewards in found.items() if len(rewards) == 1}


def strange_reward(scenario: Scenario, alone: dict[tuple[str, str], float]) -> str:
    """Return how a reward differs from what the same work earns by itself; empty where none does."""
    for role, reward in earned(scenario):
        own = alone.get((role.name, role.prompt))
        if own is not None and abs(reward - own) > TINY:
            return (
                f"a rollout that {_did(role)} earned {reward:g} in {scenario.name}, and {own:g} where all rollouts did the same"
            )
    return ""


def strange_scores(scenario: Scenario) -> str:
    """Return how the scores that a group has for its rollouts contradict their rewards; empty where they do not."""
    rewards = {role.task_id: (role, reward) for role, reward in earned(scenario)}
    best = GOLD if any(role.name == GOLD for role, _ in rewards.values()) else NEAR_MISS
    of_golds = [reward for role, reward in rewards.values() if role.name == best]
    worse = [reward for role, reward in rewards.values() if role.name != best]
    if not of_golds or not worse or min(of_golds) <= max(worse) + TINY:
        return ""
    shown = ", ".join(f"{reward:g}" for _, reward in rewards.values())
    groups = groups_of(scenario)
    if not groups:
        return f"a group with the rewards {shown} was dropped: nothing is trained on it"
    placed = list(_placed(scenario, rewards))
    if placed and len({id(role) for role, _ in placed}) < len(rewards):
        return f"the group has {len(placed)} of {len(rewards)} rollouts, with the rewards {shown}"
    good = [score for role, score in placed if role.name == best]
    bad = [score for role, score in placed if role.name != best]
    if good and bad and min(good) <= max(bad) + TINY:
        return f"{best} earned {min(of_golds):g}, and worse work {max(worse):g}; their scores in the group are {min(good):g} and {max(bad):g}"
    if good and max(good) - min(good) > TINY:
        return f"rollouts with equal work and rewards have the scores {min(good):g} and {max(good):g} in one group"
    return ""


def strange_places(first: Scenario, turned: Scenario) -> str:
    """Return how the scores of the same roles contradict each other where they stand in other places of a group; empty where they do not."""
    signs, shown = [], []
    for scenario in (first, turned):
        rewards = {role.task_id: (role, reward) for role, reward in earned(scenario)}
        placed = [*_placed(scenario, rewards)]
        scores = {role.name: score for role, score in placed}
        of_work = {role.name: reward for role, reward in rewards.values()}
        if len(scores) < 3 or len(placed) > len(scores) or abs(of_work[GOLD] - of_work.get(AT_LENGTH, -1.0)) > TINY:  # noqa: PLR2004
            return ""
        difference = scores[GOLD] - scores[AT_LENGTH]
        signs.append(0 if abs(difference) <= TINY else 1 if difference > 0 else -1)
        shown.append(" and ".join(f"{scores[name]:g}" for name in (GOLD, AT_LENGTH)))
    if signs[0] == signs[1]:
        return ""
    return (
        f"a short and a long rollout that earned the same have the scores {shown[0]} in one group, and {shown[1]} in the same group the other "
        "way round: a score stands beside another rollout's tokens"
    )


def strange_attempt(scenario: Scenario) -> str:
    """Return that scores of one attempt at a group stand beside rollouts of another one; empty where they do not."""
    placed = list(_placed(scenario, {role.task_id: (role, reward) for role, reward in earned(scenario)}))
    idle = {score for role, score in placed if role.name == NOTHING}
    if len(idle) < 2 or max(idle) - min(idle) <= TINY:  # noqa: PLR2004 - two that differ
        return ""
    return (
        f"rollouts that did nothing have the scores {min(idle):g} and {max(idle):g} in a group that was collected again: "
        "scores of one attempt stand beside the tokens of the other"
    )


def _placed(scenario: Scenario, rewards: dict[str, tuple[RolePlayed, float]]) -> Iterator[tuple[RolePlayed, float]]:
    """Yield each role with the score that stands beside its tokens.

    Rollouts with equal tokens are one and the same to the trainer (in chat mode tokens hold no calls): the better one has the better score.
    """
    roles: dict[tuple[int, ...], list[tuple[RolePlayed, float]]] = {}
    scores: dict[tuple[int, ...], list[float]] = {}
    for item in scenario.of(ItemScored):
        if item.task_id in rewards:
            roles.setdefault(item.tokens, []).append(rewards[item.task_id])
    for group in groups_of(scenario):
        for tokens, score in zip(group.get("tokens") or (), group.get("scores") or (), strict=False):
            if (number := as_number(score)) is not None:
                scores.setdefault(tuple(tokens), []).append(number)
    for tokens, held in scores.items():
        known = sorted(roles.get(tokens, ()), key=lambda one: one[1])
        yield from ((role, number) for (role, _), number in zip(known, sorted(held), strict=False))


def _did(role: RolePlayed) -> str:
    return "did nothing" if role.name == NOTHING else f"played {role.name}"
