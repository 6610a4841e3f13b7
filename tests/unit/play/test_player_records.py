"""What is written about scenarios when the process of a class ended in the middle of a family."""

from __future__ import annotations

import pytest

from pytest_hermes_env.play.evidence_file import PlayedClass
from pytest_hermes_env.play.journal import Place
from pytest_hermes_env.play.player import _records
from pytest_hermes_env.play.scenario import Collection, Scenario

NAMES = ("wandb_log", "wandb_log_none")


@pytest.mark.parametrize(
    ("begun", "errors"),
    [
        ("a training group before", {}),
        ("wandb_log", {"wandb_log": "it exited"}),
        ("wandb_log_none", {"wandb_log_none": "it exited"}),
    ],
)
def test_only_a_scenario_that_had_begun_ended_the_process(begun: str, errors: dict[str, str]) -> None:
    """A group that fills buffers is a step between scenarios: none of them is blamed, and each says why it was not played."""
    collection = Collection(scenarios={"happy": Scenario(name="happy")})
    played = PlayedClass(header={}, collection=collection, unfinished=[(begun, "wandb_log")])

    records = list(_records(played, NAMES, "it exited", Place(), is_last=False, in_reward=False))

    assert {record.name for record in records} == {*NAMES}
    assert {record.name: record.error for record in records if record.error} == errors
    assert all("it exited" in str(record.unavailable) for record in records if not record.error)
