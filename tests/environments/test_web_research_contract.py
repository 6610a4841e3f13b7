"""WebResearchEnv under the contract, as a user runs it."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES


@pytest.mark.usefixtures("warm_python")
def test_every_rule_is_exercised_and_passes(pytester: pytest.Pytester) -> None:
    """In token mode; in a process of its own, because pyarrow cannot be imported twice.

    Three rules do not apply: the class compares no tool name with a constant, runs no command, and opens no ToolContext.
    """
    flags = ("-W", "error", "-p", "no:cacheprovider", "--hermes-strict", "--hermes-mode", "token")

    result = pytester.runpytest_subprocess(*flags, "--hermes-env", "environments.web_research_env:WebResearchEnv")

    result.assert_outcomes(passed=len(ALL_RULES) - 3, skipped=3)
