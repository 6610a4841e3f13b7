"""Who answers the tool calls of a test: its sandbox, its cassette, or hermes' own tools."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.patches import intercept
from pytest_hermes_env.play.hermes_home import restore_environment
from pytest_hermes_env.plugin.usage import uses_hermes

if TYPE_CHECKING:
    from pytest_hermes_env.cassette.open_cassette import OpenCassette
    from pytest_hermes_env.sandbox.seam import ToolSeam

SANDBOXES = ("fake_sandbox", "local_sandbox")
SEAM: pytest.StashKey[ToolSeam] = pytest.StashKey()
CASSETTE: pytest.StashKey[OpenCassette] = pytest.StashKey()


@contextlib.contextmanager
def answering_tools(request: pytest.FixtureRequest, sandbox: Any) -> Iterator[None]:
    """Let one sandbox answer all tools while the test runs. Raises: another one answers already → UsageError."""
    from pytest_hermes_env.sandbox.seam import ToolSeam  # noqa: PLC0415

    stash = request.node.stash
    if SEAM in stash:
        raise UsageError(
            f"a second sandbox was requested in this test: {sandbox.description}.\n"
            "  expected  either fake_sandbox or local_sandbox, since each would answer every tool call\n"
            f"  seen      {stash[SEAM].sandbox.description} answers already\n"
            "  fix       take one of them, as an argument of the test; tool_journal then follows it"
        )
    before = dict(os.environ)
    cassette = stash.get(CASSETTE, None)
    faults = request.getfixturevalue("fault_plan") if "fault_plan" in request.fixturenames else None
    if cassette is None:
        seam = ToolSeam(sandbox, faults=faults)
    else:
        seam = ToolSeam(cassette.session.sandboxes(sandbox), record=cassette.session.note_tool_call, faults=faults)
    stash[SEAM] = seam
    try:
        with seam, contextlib.nullcontext() if cassette is None else _all_calls_seen():
            yield
    finally:
        del stash[SEAM]
        restore_environment(before)


def _all_calls_seen() -> contextlib.AbstractContextManager[None]:
    """Let the layer read files by tool calls alone: what it asks of hermes beside them no cassette has, so a replay would go on otherwise."""
    return intercept("environments.tool_context.has_run_commands", lambda *_: False)


@contextlib.contextmanager
def tools_through_cassette(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let tool calls pass the cassette: over the sandbox of the test if it has one, else over hermes' own tools."""
    replays = request.node.stash[CASSETTE].session.recorder is None
    wants_fake = replays and request.config.getoption("hermes_replay_tools") == "fake"
    names = [name for name in SANDBOXES if name in request.fixturenames]
    for name in names or (["fake_sandbox"] if wants_fake else []):
        request.getfixturevalue(name)
    if SEAM in request.node.stash or not uses_hermes(request.node):
        yield
        return
    from pytest_hermes_env.sandbox.seam import RealTools  # noqa: PLC0415

    with answering_tools(request, RealTools()):
        yield


def plays_tools(request: pytest.FixtureRequest) -> bool:
    """Tell whether a cassette answers tool calls, so that a sandbox is idle."""
    cassette = request.node.stash.get(CASSETTE, None)
    return cassette is not None and cassette.session.serves_tools


def allows_leftovers(request: pytest.FixtureRequest) -> bool:
    """Tell whether the test has the marker hermes_allow_leftovers."""
    return request.node.get_closest_marker("hermes_allow_leftovers") is not None
