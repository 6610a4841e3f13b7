"""The scenarios that an environment is tested in, in families, and the list of all families.

To add a scenario, add its name and description to a family and a call of ``stage.play`` to the family's function; to add a family,
decorate a function with `family` and list it here. These modules import nothing heavy.
"""

from __future__ import annotations

from pytest_hermes_env.play.scenarios.buffers import other_buffers, wandb_logs
from pytest_hermes_env.play.scenarios.cases import played_cases, played_elsewhere
from pytest_hermes_env.play.scenarios.concurrent import concurrent_groups
from pytest_hermes_env.play.scenarios.evaluation import evaluations, unusual_settings, whole_run
from pytest_hermes_env.play.scenarios.family import Family
from pytest_hermes_env.play.scenarios.items import offline_setup, second_setup, training_items
from pytest_hermes_env.play.scenarios.labels import answers_replaced
from pytest_hermes_env.play.scenarios.reward_probes import probed_reward
from pytest_hermes_env.play.scenarios.roles import evaluations_with_gold, groups_with_gold
from pytest_hermes_env.play.scenarios.tampering import tampering, wrong_programs
from pytest_hermes_env.play.scenarios.training import (
    cancelled_groups,
    failing_groups,
    groups_with_tokens,
    healthy_groups,
    judged_groups,
)

__all__ = ["FAMILIES", "SCENARIOS", "families_of"]

FAMILIES: tuple[Family, ...] = (
    healthy_groups,
    groups_with_tokens,
    training_items,
    failing_groups,
    judged_groups,
    cancelled_groups,
    concurrent_groups,
    answers_replaced,
    evaluations,
    wandb_logs,
    whole_run,
    probed_reward,
    played_cases,
    played_elsewhere,
    groups_with_gold,
    tampering,
    wrong_programs,
    evaluations_with_gold,
    second_setup,
    unusual_settings,
    other_buffers,
    offline_setup,
)

SCENARIOS: dict[str, str] = {name: text for family in FAMILIES for name, text in family.scenarios.items()}
"""Name -> what happens in it."""


def families_of(names: frozenset[str]) -> dict[Family, frozenset[str]]:
    """Return the families that these scenarios belong to, in order, with those that are played. Raises: KeyError for an unknown name."""
    if unknown := sorted(names - SCENARIOS.keys()):
        raise KeyError(f"there is no scenario {unknown[0]!r}; known: {', '.join(SCENARIOS)}")
    return {family: needed for family in FAMILIES if (needed := family.needed_for(names))}
