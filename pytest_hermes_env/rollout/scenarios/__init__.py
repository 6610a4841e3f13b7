"""The scenarios that an environment is tested in: one file per family, and the list of all families.

To add a scenario, add its name and description to a family's ``scenarios`` and a call of ``stage.play`` to its ``play``; to add a
family, write a file like the others and list it here. These modules import nothing heavy.
"""

from __future__ import annotations

from pytest_hermes_env.rollout.scenarios import (
    cancelled,
    closing,
    concurrent,
    declared_cases,
    evaluation,
    failures,
    foreign_buffers,
    items,
    judged,
    metrics,
    offline,
    reward_probes,
    second_setup,
    settings,
    training,
)
from pytest_hermes_env.rollout.scenarios.family import Family

__all__ = ["FAMILIES", "SCENARIOS", "families_of"]

FAMILIES: tuple[Family, ...] = (
    training.FAMILY,
    items.FAMILY,
    failures.FAMILY,
    judged.FAMILY,
    cancelled.FAMILY,
    concurrent.FAMILY,
    evaluation.FAMILY,
    metrics.FAMILY,
    closing.FAMILY,
    reward_probes.FAMILY,
    declared_cases.FAMILY,
    second_setup.FAMILY,
    settings.FAMILY,
    foreign_buffers.FAMILY,
    offline.FAMILY,
)

SCENARIOS: dict[str, str] = {name: text for family in FAMILIES for name, text in family.scenarios.items()}
"""Name -> what happens in it."""


def families_of(names: frozenset[str]) -> tuple[Family, ...]:
    """Return the families that these scenarios belong to, in order. Raises: KeyError for an unknown name."""
    if unknown := sorted(names - SCENARIOS.keys()):
        raise KeyError(f"there is no scenario {unknown[0]!r}; known: {', '.join(SCENARIOS)}")
    return tuple(family for family in FAMILIES if names & family.scenarios.keys())
