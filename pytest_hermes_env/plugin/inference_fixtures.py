"""Fixtures of the inference room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.plugin.plain_failure import verify_as_text
from pytest_hermes_env.plugin.tool_answers import allows_leftovers

if TYPE_CHECKING:
    from pytest_hermes_env.inference.server import MockServer


@pytest.fixture(scope="session")
def hermes_tokenizer() -> str:
    """Path of a tiny local tokenizer with a ChatML template that supports tools; needs no hub and no torch."""
    from pytest_hermes_env.rollout.builder import shared_tokenizer  # noqa: PLC0415

    return shared_tokenizer()


@pytest.fixture
def mock_server(request: pytest.FixtureRequest) -> Iterator[MockServer]:
    """A mock model on a free loopback port. Add scripts with ``mock_server.add(...)``; verified at teardown."""
    from pytest_hermes_env.inference.server import MockServer  # noqa: PLC0415

    with MockServer(allow_leftovers=allows_leftovers(request)) as server:
        yield server
    verify_as_text(server.verify)
