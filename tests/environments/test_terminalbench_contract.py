"""The benchmarks under the contract, as a user runs it."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES

ON_TRAINING = 22
"""Rules that do not apply to an evaluation, which trains on nothing."""
ELSEWHERE = 5
"""Rules that do not apply to this class: it calls no judge, opens no ToolContext, and has no ``wandb_log``."""


@pytest.mark.parametrize(
    "target",
    [
        "environments.benchmarks.terminalbench_2.terminalbench2_env:TerminalBench2EvalEnv",
        "environments.benchmarks.tblite.tblite_env:TBLiteEvalEnv",
    ],
)
def test_every_rule_about_evaluations_is_exercised_and_passes(pytester: pytest.Pytester, target: str) -> None:
    """With its declared cases, whose tests run in a real shell."""
    flags = ("-W", "error", "-p", "no:cacheprovider", "--hermes-strict")

    result = pytester.runpytest_subprocess(*flags, "--hermes-env", target)

    skipped = ON_TRAINING + ELSEWHERE
    result.assert_outcomes(passed=len(ALL_RULES) - skipped, skipped=skipped)
    result.stdout.fnmatch_lines(["  gold * 1 *", "  hack * 0 *"])
