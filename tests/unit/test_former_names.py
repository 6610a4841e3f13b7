"""What a release removed goes on with a warning, or says what to do instead."""

from __future__ import annotations

from importlib import import_module

import pytest

from pytest_hermes_env import agent_result, errors
from pytest_hermes_env.atropos.run_api import RunApi, RunApiThread


@pytest.mark.parametrize(
    ("former", "now", "names"),
    [
        ("bodies", "tape", ["as_request", "as_reply_body", "as_bytes"]),
        ("deduplication", "document", ["deduplicated"]),
        ("origin", "recorder", ["header_of", "with_environment", "version_drift", "installed_versions"]),
        ("paths", "format", ["cassette_path"]),
        ("recorded_tools", "player", ["RecordedTools", "as_json"]),
        ("redacted_events", "redact", ["redacted_events"]),
        ("save", "format", ["save_tape"]),
    ],
)
def test_a_module_of_cassettes_that_moved(former: str, now: str, names: list[str]) -> None:
    module = import_module(f"pytest_hermes_env.cassette.{former}")
    with pytest.warns(
        DeprecationWarning, match=f"^pytest_hermes_env.cassette.{former} is now pytest_hermes_env.cassette.{now}, "
    ):
        found = [getattr(module, name) for name in names]

    assert found == [getattr(import_module(f"pytest_hermes_env.cassette.{now}"), name) for name in names]


def test_an_error_that_has_another_name() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"^NotKnown is now UnexpectedToolCall, and this name goes with the next release$"
    ):
        assert errors.NotKnown is errors.UnexpectedToolCall


def test_run_api_says_what_became_of_its_arguments() -> None:
    with pytest.warns(DeprecationWarning, match=r"^RunApi is now RunApiThread, "):
        assert isinstance(RunApi(), RunApiThread)
    with pytest.raises(
        TypeError, match=r"^RunApi no longer takes environ, cwd: run-api runs in a thread of this process\.\n  fix  "
    ):
        RunApi(environ={}, cwd=".")


def test_nodes_of_a_built_result_are_gone() -> None:
    with pytest.raises(
        AttributeError, match=r"^agent_result has no with_nodes\(\.\.\.\) any more: a built result has no tokens\.\n"
    ):
        agent_result.say("42").with_nodes("a directory")
