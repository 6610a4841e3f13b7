"""AgenticOPDEnv under the contract, as a user runs it."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES


@pytest.mark.usefixtures("warm_python")
def test_every_rule_is_exercised_and_passes(pytester: pytest.Pytester) -> None:
    """In token mode, where it distils. One rule does not apply: the class opens no ToolContext."""
    flags = ("-W", "error", "-p", "no:cacheprovider", "--hermes-strict", "--hermes-mode", "token")

    result = pytester.runpytest_subprocess(*flags, "--hermes-env", "environments.agentic_opd_env:AgenticOPDEnv")

    result.assert_outcomes(passed=len(ALL_RULES) - 1, skipped=1)
