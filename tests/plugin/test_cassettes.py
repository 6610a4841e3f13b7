"""The marker hermes_cassette, the fixture recorded_server and their options, in suites of their own."""

from __future__ import annotations

import pytest

CONFTEST = """
import asyncio
import openai
import pytest
from pytest_hermes_env import MockServer, call, say

@pytest.fixture
def script():
    return [say("42")]

@pytest.fixture
def hermes_upstream(script):
    with MockServer(script, allow_leftovers=True) as server:
        yield server

@pytest.fixture
def ask(recorded_server):
    def ask(text="What is six times seven?", **settings):
        async def run():
            async with openai.AsyncOpenAI(base_url=recorded_server.base_url, api_key="none") as client:
                message = {"role": "user", "content": text}
                answer = await client.chat.completions.create(model=recorded_server.model, messages=[message], **settings)
                return [choice.message.content for choice in answer.choices]

        return asyncio.run(run())

    return ask
"""


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run the suite with warnings as errors."""
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *args)


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    return pytester


def test_a_call_is_recorded_once_and_played_without_its_server(suite: pytest.Pytester) -> None:
    """A marked test that was recorded passes for ever without the server, and the run says what became of cassettes."""
    suite.makepyfile("def test_six(ask):\n    assert ask() == ['42']\n")

    recorded = run(suite, "--hermes-record=once")
    again = run(suite, "--hermes-record=once")
    played = run(suite)

    for result in (recorded, again, played):
        result.assert_outcomes(passed=1)
    recorded.stdout.fnmatch_lines(["cassettes: --hermes-record=once", "cassettes: 1 recorded (--hermes-record=once)"])
    again.stdout.fnmatch_lines(["cassettes: 1 replayed (--hermes-record=once)"])
    played.stdout.fnmatch_lines(["cassettes: 1 replayed (--hermes-record=none)"])
    assert [path.name for path in (suite.path / "cassettes").rglob("*.json")] == ["test_six.json"]
