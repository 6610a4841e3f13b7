"""Fixtures of the cassette room. All but recorded_server are settings, to be overridden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.plugin.cassette_hooks import has_cassette
from pytest_hermes_env.plugin.cassettes import open_cassette
from pytest_hermes_env.plugin.live_hooks import live_server
from pytest_hermes_env.plugin.plain_failure import errors_as_text
from pytest_hermes_env.plugin.tool_answers import CASSETTE, tools_through_cassette

if TYPE_CHECKING:
    from pytest_hermes_env.cassette.matching import Matching
    from pytest_hermes_env.cassette.open_cassette import OpenCassette, RecordedServer
    from pytest_hermes_env.cassette.redact import Redactor


@pytest.fixture
def hermes_cassette_dir(request: pytest.FixtureRequest) -> Path:
    """The directory of cassettes: ``cassettes`` beside the ini file. Override it to store them elsewhere."""
    return request.config.rootpath / "cassettes"


@pytest.fixture
def hermes_matching() -> Matching:
    """How a request may differ from its recording. Override it: ``return Matching(ignored=("user",))``."""
    from pytest_hermes_env.cassette.matching import Matching  # noqa: PLC0415

    return Matching()


@pytest.fixture
def hermes_redaction() -> Redactor:
    """Keeps secrets out of cassettes. Override it: ``return Redactor(known=..., patterns=...)``."""
    from pytest_hermes_env.cassette.session import default_redactor  # noqa: PLC0415

    return default_redactor()


@pytest.fixture
def hermes_upstream(request: pytest.FixtureRequest) -> Any:
    """The server that is recorded: that of --hermes-live. Override it: a MockServer, a URL, an APIServerConfig."""
    live = live_server(request.config)
    return None if live is None else live.config()


@pytest.fixture
def _hermes_cassette(request: pytest.FixtureRequest) -> Iterator[OpenCassette | None]:
    """The cassette of a test that is marked, or has recorded_server; the plugin adds this fixture to such tests."""
    if not has_cassette(request.node):
        yield None
        return
    with errors_as_text(), open_cassette(request) as cassette:
        request.node.stash[CASSETTE] = cassette
        try:
            with tools_through_cassette(request):
                yield cassette
        finally:
            del request.node.stash[CASSETTE]


@pytest.fixture
def recorded_server(_hermes_cassette: OpenCassette | None) -> RecordedServer:
    """The server of the test's cassette: ``make_env(Env, server=recorded_server)``, or ``recorded_server.base_url``."""
    if _hermes_cassette is None:
        raise UsageError(
            "recorded_server was requested while the test was already running.\n"
            "  fix       make it an argument of the test, or mark the test @pytest.mark.hermes_cassette"
        )
    with errors_as_text():
        return _hermes_cassette.server()
