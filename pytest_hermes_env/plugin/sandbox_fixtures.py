"""Fixtures of the sandbox room."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.options import real_tools_of, requires_confinement
from pytest_hermes_env.plugin.plain_failure import verifying
from pytest_hermes_env.plugin.tool_answers import SANDBOXES, SEAM, allows_leftovers, answering_tools, plays_tools

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.context import FakeToolContext
    from pytest_hermes_env.sandbox.fake import FakeSandbox
    from pytest_hermes_env.sandbox.local import LocalSandbox
    from pytest_hermes_env.sandbox.seam import ToolSeam


@pytest.fixture
def fake_sandbox(request: pytest.FixtureRequest) -> Iterator[FakeSandbox]:
    """An in-memory machine: ``fake_sandbox.files``, ``fake_sandbox.on(command, output=...)``. No disk, and no process for common lines.

    Other lines run in real bash in a confined cell, over the same files. It answers every tool call of the test's rollouts; each rollout works on its own copy. Calls that it could not answer, and
    answers that no call used, fail the test at teardown.
    """
    from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

    sandbox = FakeSandbox(
        allow_leftovers=allows_leftovers(request) or plays_tools(request), real_tools=real_tools_of(request.config)
    )
    with verifying(request.node, sandbox.verify), contextlib.closing(sandbox), answering_tools(request, sandbox):
        yield sandbox


@pytest.fixture
def local_sandbox(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    """hermes' real terminal and files in a private directory with its own HOME, confined. A machine that cannot do that refuses.

    It answers every tool call of the test's rollouts; each rollout works in its own directory.
    """
    from pytest_hermes_env.sandbox.confinement import available  # noqa: PLC0415
    from pytest_hermes_env.sandbox.local import LocalSandbox  # noqa: PLC0415

    confinement = None if requires_confinement(request.config) else available()
    sandbox = LocalSandbox(confinement=confinement, allow_leftovers=plays_tools(request))
    with verifying(request.node, sandbox.verify), sandbox, answering_tools(request, sandbox):
        yield sandbox


@pytest.fixture
def tool_context(request: pytest.FixtureRequest) -> Iterator[FakeToolContext]:
    """The ``ctx`` of ``compute_reward``, on the test's sandbox: fake_sandbox, unless the test has local_sandbox."""
    from pytest_hermes_env.sandbox.context import FakeToolContext  # noqa: PLC0415

    if "local_sandbox" in request.fixturenames:
        context = FakeToolContext(request.getfixturevalue("local_sandbox").machine("test-rollout"))
    else:
        context = FakeToolContext(request.getfixturevalue("fake_sandbox"))
    with verifying(request.node, context.verify):
        yield context
        context.cleanup()


@pytest.fixture
def tool_journal(request: pytest.FixtureRequest) -> Iterator[ToolSeam]:
    """``tool_journal.calls``: every tool call of the test's rollouts with task_id, turn, arguments, result and seconds.

    A verifier's calls have turn 0. The tools are those of fake_sandbox or local_sandbox if the test has one, else hermes' own.
    """
    from pytest_hermes_env.sandbox.seam import RealTools  # noqa: PLC0415

    for name in SANDBOXES:
        if name in request.fixturenames:
            request.getfixturevalue(name)
    if SEAM in request.node.stash:
        yield request.node.stash[SEAM]
        return
    with answering_tools(request, RealTools()):
        yield request.node.stash[SEAM]
