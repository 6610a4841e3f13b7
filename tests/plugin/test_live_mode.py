"""``--hermes-live``: marked tests on a real server, for which a mock server on a socket stands in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_hermes_env import MockServer, call, say

SUITE = """
import asyncio, os, pytest
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import call, say

GREETING = [call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("Done.")]

async def collect(env):
    await env.setup()
    return (await env.collect_trajectories(await env.get_next_item()))[0]
"""


@pytest.fixture
def provider() -> Iterator[MockServer]:
    """A server that stands in for a provider."""
    with MockServer(
        [call("write_file", path="greeting.txt", content="Hello from Hermes Agent"), say("Done.")], model="m1"
    ) as server:
        yield server


def run(pytester: pytest.Pytester, body: str, *args: str) -> pytest.RunResult:
    """Run a suite with warnings as errors."""
    pytester.makepyfile(SUITE + body)
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", "-rs", *args)


def custom(server: MockServer, *args: str) -> tuple[str, ...]:
    """Return the flags that choose that server."""
    return ("--hermes-live", "--provider", "custom", "--hermes-base-url", server.base_url, "--hermes-model", "m1", *args)


def calls_of(server: MockServer) -> int:
    """Return how often a model was asked; the check before the tests asks for the list of models only."""
    return len([exchange for exchange in server.journal if exchange.path.endswith("/chat/completions")])


BOTH = """
@pytest.mark.hermes_live(or_mock=True)
def test_either(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv, script=GREETING)
    assert asyncio.run(collect(env))["scores"] == [1.0, 1.0]

@pytest.mark.hermes_live
def test_live(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv)
    assert asyncio.run(collect(env))["scores"] == [1.0, 1.0]

def test_mock(make_env, fake_sandbox):
    env = make_env(TerminalTestEnv, script=GREETING)
    assert asyncio.run(collect(env))["scores"] == [1.0, 1.0]
"""


def test_marked_tests_run_on_the_server_and_others_on_the_mock(pytester: pytest.Pytester, provider: MockServer) -> None:
    """The server is asked by the two marked tests alone: two tests of two rollouts of two turns."""
    result = run(pytester, BOTH, *custom(provider))

    result.assert_outcomes(passed=3)
    assert calls_of(provider) == 8


def test_marked_tests_are_skipped_without_the_flag(pytester: pytest.Pytester) -> None:
    """The reason names the flag; a test that is marked or_mock runs on its script."""
    result = run(pytester, BOTH)

    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*needs a real inference server: run with --hermes-live --provider ..."])
