"""The marker hermes_rollouts, and the assertions rescored and health, in separate suites."""

from __future__ import annotations

import pytest

from hermes_env_shared.rollout_record import files_of
from tests.unit.records.conftest import ENVIRONMENT, make_record

SUITE = """
import pytest
from written_env import Env


@pytest.mark.hermes_rollouts("runs/*.jsonl")
def test_each(rescored, recorded_rollout):
    rescored(Env, recorded_rollout)


@pytest.mark.hermes_rollouts("runs/*.jsonl")
def test_all(rescored, recorded_rollouts):
    assert rescored(Env, recorded_rollouts, threshold=0.5).counts["unchanged"] == 1


@pytest.mark.hermes_rollouts("runs/*.jsonl")
def test_health(health):
    health()
"""


def write(pytester: pytest.Pytester, suite: str = SUITE) -> None:
    """A suite, its environment, and two rollouts: one is paid differently today, and both are there twice."""
    body = "return float(ctx.read_file('a.txt')['content'] == 'work')"
    pytester.makepyfile(written_env=ENVIRONMENT.format(body=f"        {body}"), test_it=suite)
    runs = pytester.mkdir("runs")
    file = runs / "a.jsonl"
    records = [make_record(files_of(file)), make_record(files_of(file), reward=0.0)]
    file.write_text("".join(f"{record.line()}\n" for record in records))


def test_rewards_and_health_are_asserted(pytester):
    """A test each for a rollout, one for all, and one for the run; failures say what differs, and where."""
    write(pytester)

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*RewardsChanged: 1 rollouts scored again",
            "*flipped  0 -> 1   *a.jsonl:2 (g1r1)",
            "*UnhealthyRun: unhealthy  repeated_records*50.0% of the rollouts are in the files twice*",
        ]
    )


def test_a_pattern_without_a_file_is_an_error(pytester):
    """A test of no rollout would prove nothing."""
    write(pytester, SUITE.replace("runs/*.jsonl", "nowhere/*.jsonl"))

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")

    assert result.ret != 0
    result.stdout.fnmatch_lines(["*@pytest.mark.hermes_rollouts finds no file nowhere/[*].jsonl below*"])
