"""What a release removed goes on with a warning, or says what to do instead."""

from __future__ import annotations

import pytest

from pytest_hermes_env import agent_result, errors
from pytest_hermes_env.atropos.run_api import RunApi, RunApiThread


def test_other_names() -> None:
    """One goes on, one goes on without its arguments, one says that there is nothing in its place."""
    with pytest.warns(
        DeprecationWarning, match=r"^NotKnown is now UnexpectedToolCall, and the old name will be removed in the next release$"
    ):
        assert errors.NotKnown is errors.UnexpectedToolCall
    with pytest.warns(DeprecationWarning, match=r"^RunApi is now RunApiThread, "):
        assert isinstance(RunApi(), RunApiThread)
    with pytest.raises(
        TypeError, match=r"^RunApi no longer takes environ, cwd: run-api runs in a thread of this process\.\n  fix  "
    ):
        RunApi(environ={}, cwd=".")
    with pytest.raises(
        AttributeError, match=r"^agent_result has no with_nodes\(\.\.\.\) any more: a built result has no tokens\.\n"
    ):
        agent_result.say("42").with_nodes("a directory")
