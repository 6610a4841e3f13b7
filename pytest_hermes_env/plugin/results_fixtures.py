"""Fixture of the results room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_hermes_env.results import Result


@pytest.fixture
def agent_result() -> Result:
    """The beginning of AgentResults: ``agent_result.call("terminal", command="ls").returns({...}).say("42")``."""
    from pytest_hermes_env import results  # noqa: PLC0415

    return results.agent_result
