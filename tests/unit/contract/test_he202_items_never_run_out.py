"""HE202: what a call of get_next_item that never returned says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.play.scenario import Cause, Scenario, Unavailable
from pytest_hermes_env.source.finding import Finding

LATE = Unavailable(Cause.EARLIER_FAILURE, "code blocked the event loop 8 times")


@pytest.mark.parametrize(
    ("first", "outcome", "message"),
    [
        (
            Unavailable(Cause.NO_ITEM, "get_next_item raised it blocked the event loop"),
            Outcome.FAILED,
            "there was no training item: get_next_item raised it blocked the event loop",
        ),
        (Unavailable(Cause.SETUP_FAILED, "OSError"), Outcome.NOT_EXERCISED, ""),
    ],
)
def test_first_item_that_never_came_is_a_violation(first: Unavailable, outcome: Outcome, message: str) -> None:
    """Also where its own scenario was given up, because others had waited for the item before."""
    scenarios = {name: Scenario(name=name, unavailable=why) for name, why in (("happy", first), ("items", LATE))}
    evidence: Any = SimpleNamespace(
        scenario=scenarios.__getitem__,
        collection=SimpleNamespace(nothing_to_train="", scenarios=scenarios),
        finding=lambda message, method, scenario: Finding(message=message, path="env.py", line=1, scenario=scenario),
    )

    verdict = find_rule("HE202").dynamic(evidence)

    assert verdict.outcome is outcome
    assert [finding.message for finding in verdict.findings] == ([message] if message else [])
