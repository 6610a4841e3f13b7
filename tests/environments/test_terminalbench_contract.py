"""The benchmarks under the contract, as a user runs it."""

from __future__ import annotations

import sys

import pytest

from environments.benchmarks.tblite.tblite_env import TBLiteEvalEnv
from pytest_hermes_env.contract.check import check_paths
from pytest_hermes_env.contract.rules import ALL_RULES

ON_TRAINING = 26
"""Rules that do not apply to an evaluation, which trains on nothing."""
ELSEWHERE = 7
"""Rules that do not apply to this class: it names no answer, has no gold for a held-out item, calls no judge, opens no ToolContext, and has no ``wandb_log``."""


@pytest.mark.usefixtures("warm_python")
def test_every_rule_about_evaluations_is_exercised_and_passes(pytester: pytest.Pytester) -> None:
    """With its declared cases, whose tests run in a real shell: HE405 and HE410 see gold above all others."""
    flags = ("-W", "error", "-p", "no:cacheprovider", "--hermes-strict")
    target = "environments.benchmarks.terminalbench_2.terminalbench2_env:TerminalBench2EvalEnv"

    result = pytester.runpytest_subprocess(*flags, "--hermes-env", target)

    skipped = ON_TRAINING + ELSEWHERE
    result.assert_outcomes(passed=len(ALL_RULES) - skipped, skipped=skipped)


def test_the_smaller_sister_is_sound_in_the_source() -> None:
    """It has no code of its own that a run would try."""
    report = check_paths([str(sys.modules[TBLiteEvalEnv.__module__].__file__)])

    (ledger,) = report.ledgers
    assert (ledger.subject.endswith("TBLiteEvalEnv"), report.findings, report.problems) == (True, (), ())
