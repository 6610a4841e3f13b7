"""AgenticOPDEnv under the contract, as a user runs it."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES


@pytest.mark.usefixtures("warm_python")
def test_every_rule_is_exercised_and_passes(pytester: pytest.Pytester) -> None:
    """In token mode, where it distils. Three rules do not apply: it opens no ToolContext, and has neither named answers nor gold for held-out items."""
    flags = ("-W", "error", "-p", "no:cacheprovider", "--hermes-strict", "--hermes-mode", "token")

    result = pytester.runpytest_subprocess(*flags, "--hermes-env", "environments.agentic_opd_env:AgenticOPDEnv")

    result.assert_outcomes(passed=len(ALL_RULES) - 3, skipped=3)
