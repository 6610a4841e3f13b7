"""Fixtures of the inference room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.plugin.fault_fixtures import planned_faults
from pytest_hermes_env.plugin.live_hooks import reachable_hosts
from pytest_hermes_env.plugin.plain_failure import verifying
from pytest_hermes_env.plugin.tool_answers import CASSETTE, allows_leftovers

if TYPE_CHECKING:
    import httpx

    from hermes_env_shared.server_questions import Identity
    from pytest_hermes_env.inference.mock_http import MockHttp
    from pytest_hermes_env.inference.server import MockServer


@pytest.fixture(scope="session")
def hermes_tokenizer() -> str:
    """Path of a tiny local tokenizer with a ChatML template that supports tools; needs no hub and no torch."""
    from pytest_hermes_env.play.builder import shared_tokenizer  # noqa: PLC0415

    return shared_tokenizer()


@pytest.fixture
def check_tokens() -> Callable[..., Identity]:
    """``check_tokens(base_url, model=...)``: which model server it is and which logprobs it returns, as `serve` finds out."""
    from pytest_hermes_env.live.token_check import check_tokens  # noqa: PLC0415 - httpx takes 100 ms

    return check_tokens


@pytest.fixture
def mock_server(request: pytest.FixtureRequest) -> Iterator[MockServer]:
    """A mock model on a free loopback port. Add scripts with ``mock_server.add(...)``; verified at teardown."""
    from pytest_hermes_env.inference.server import MockServer  # noqa: PLC0415

    server = MockServer(allow_leftovers=allows_leftovers(request), faults=planned_faults(request))
    with verifying(request.node, server.verify), server:
        yield server


@pytest.fixture
def mock_http(request: pytest.FixtureRequest) -> Iterator[MockHttp]:
    """Answers the httpx clients of an environment, such as its judge: ``mock_http.post(url).respond(json={...})``, a respx router.

    A request without a route fails where it is sent and at teardown; so does a route without a request. Requests to this machine,
    to allowed hosts, to the server of --hermes-live and to a cassette pass if no route matches.
    """
    from pytest_hermes_env.inference.mock_http import MockHttp, mocking_http  # noqa: PLC0415 - httpx takes 100 ms

    router = MockHttp(passes=_passes(request.node), allow_leftovers=allows_leftovers(request))
    with verifying(request.node, router.verify), mocking_http(router):
        yield router


def _passes(item: pytest.Item) -> Callable[[httpx.Request], bool]:
    """Return what tells whether a request that no route matches has another answer."""
    from pytest_hermes_env.cassette.interception import endpoint_of  # noqa: PLC0415
    from pytest_hermes_env.own_machine import is_this_machine  # noqa: PLC0415

    hosts = reachable_hosts(item)

    def passes(request: httpx.Request) -> bool:
        host = request.url.host.lower()
        is_recorded = CASSETTE in item.stash and endpoint_of(str(request.url)) != ""
        return is_recorded or is_this_machine(host) or any(fnmatchcase(host, pattern) for pattern in hosts)

    return passes
