"""The fixture mock_http: which requests it answers, which pass, and which fail twice."""

from __future__ import annotations

import pytest

CLIENTS = """
import asyncio

import httpx
import pytest

SYNC, URL = httpx.Client(), "https://search.example/find"
"""


def run(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    """Run a file of tests whose clients are created before the tests."""
    pytester.makepyfile(CLIENTS + source)
    return pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *options)


def test_sync_and_async_clients_are_answered(pytester: pytest.Pytester) -> None:
    """The routes answer both kinds of httpx client, whether they were created before the test or in it."""
    result = run(
        pytester,
        """
def test_it(mock_http):
    route = mock_http.get(URL).respond(json={"hits": 1})

    async def find():
        async with httpx.AsyncClient() as client:
            return (await client.get(URL)).json()

    assert [SYNC.get(URL).json(), asyncio.run(find())] == [{"hits": 1}] * 2
    assert route.call_count == 2
""",
    )

    result.assert_outcomes(passed=1)


def test_an_unexpected_request_fails_where_it_is_sent_and_at_teardown(pytester: pytest.Pytester) -> None:
    """A swallowed error fails the test again; equal requests are listed once, with their count."""
    result = run(
        pytester,
        """
from pytest_hermes_env.errors import UnexpectedRequest

def test_swallowed(mock_http):
    mock_http.get(URL).respond(json={})
    SYNC.get(URL)
    for _ in range(2):
        with pytest.raises(UnexpectedRequest):
            SYNC.post("https://judge.example/grade?api_key=SECRET123&q=a%20b", content="hello")

def test_no_routes(mock_http):
    async def find():
        async with httpx.AsyncClient() as client:
            with pytest.raises(UnexpectedRequest):
                await client.get(URL)

    asyncio.run(find())
""",
    )

    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(
        [
            "UnexpectedRequest: no route of mock_http matches a request.",
            "  expected  GET https://search.example/find",
            "  seen      POST https://judge.example/grade?api_key=[*][*][*]&q=[*][*][*] hello",
            '  fix       add the route: mock_http.post("https://judge.example/grade").respond(json=...)',
            "  seen      2 times, retries included",
        ],
        consecutive=True,
    )
    result.stdout.fnmatch_lines(["  expected  no request: mock_http has no routes"])
    assert "seen      GET https://search.example/find\n" in result.stdout.str()


def test_a_route_whose_responses_are_used_up_fails(pytester: pytest.Pytester) -> None:
    """A request after the last of a list of responses is unexpected, not an error inside respx; other side effects raise unchanged."""
    result = run(
        pytester,
        """
def test_it(mock_http):
    mock_http.get(URL).side_effect = [httpx.ConnectTimeout("no answer"), httpx.Response(200)]
    with pytest.raises(httpx.ConnectTimeout):
        SYNC.get(URL)
    SYNC.get(URL)

    async def find():
        async with httpx.AsyncClient() as client:
            await client.get(URL)

    for call in (lambda: SYNC.get(URL), lambda: asyncio.run(find())):
        with pytest.raises(Exception, match="has no response left"):
            call()
""",
    )

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "UnexpectedRequest: a route of mock_http has no response left for a request.",
            "  fix       add a response to the list that is its side_effect",
        ]
    )


def test_a_route_without_a_request_fails_unless_it_is_allowed(pytester: pytest.Pytester) -> None:
    """Leftover routes fail at teardown; the marker hermes_allow_leftovers accepts them."""
    result = run(
        pytester,
        """
def test_left_over(mock_http):
    mock_http.post("https://judge.example:8443/grade").respond(json={})
    mock_http.get(URL, params={"q": "x"}).respond(json={})
    mock_http.get(URL).respond(json={})
    SYNC.get(URL)

@pytest.mark.hermes_allow_leftovers
def test_allowed(mock_http):
    mock_http.get(URL).respond(json={})
""",
    )

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "LeftoverRoutes: 2 of 3 routes of mock_http got no request.",
            "  expected  at least one request for each route",
            "  seen      none for POST https://judge.example:8443/grade",
            "            GET https://search.example/find <Params contains *",
            "  fix       send the request, remove the route, or accept it: @pytest.mark.hermes_allow_leftovers",
        ],
        consecutive=True,
    )


def test_it_works_with_the_mock_model_and_the_network_guard(pytester: pytest.Pytester) -> None:
    """Requests to this machine pass unless a route matches them; the guard blocks a passed-through request to another host."""
    result = run(
        pytester,
        """
from pytest_hermes_env import say

def test_loopback(mock_http, mock_server):
    mock_server.add([say("from the model")])
    mock_http.get("http://127.0.0.1:9/mine").respond(text="from the route")
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}

    answer = SYNC.post(f"{mock_server.base_url}/chat/completions", json=body).json()

    assert answer["choices"][0]["message"]["content"] == "from the model"
    assert SYNC.get("http://127.0.0.1:9/mine").text == "from the route"

def test_let_through(mock_http):
    mock_http.get(URL).pass_through()
    with pytest.raises(httpx.ConnectError):
        SYNC.get(URL)

@pytest.mark.hermes_allow_hosts("*.invalid")
def test_allowed_host(mock_http):
    with pytest.raises(httpx.ConnectError):
        SYNC.get("http://nowhere.invalid/")
""",
    )

    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["NetworkBlocked: this test reached for search.example.", "*ERROR*::test_let_through*"])


def test_routes_come_before_the_cassette(pytester: pytest.Pytester) -> None:
    """A mocked request is neither recorded nor replayed; all others are."""
    source = """
from pytest_hermes_env import MockServer, say

JUDGE = "https://judge.example/v1/chat/completions"

@pytest.fixture
def hermes_upstream():
    with MockServer([say("recorded")]) as server:
        yield server

def test_it(mock_http, recorded_server):
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    judge = mock_http.post(JUDGE).respond(json={"grade": 1})

    assert SYNC.post(JUDGE, json=body).json() == {"grade": 1}
    answer = SYNC.post(f"{recorded_server.base_url}/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["content"] == "recorded"
    assert judge.call_count == 1
"""

    recorded = run(pytester, source, "--hermes-record=once")
    played = run(pytester, source)

    recorded.assert_outcomes(passed=1)
    played.assert_outcomes(passed=1)
    (cassette,) = (pytester.path / "cassettes").rglob("*.json")
    assert "judge.example" not in cassette.read_text()
    assert "grade" not in cassette.read_text()
