"""run-api as a process: it listens on loopback only, and ends by its id."""

from __future__ import annotations

import http.client
import json
import sys
import urllib.parse

import pytest

from pytest_hermes_env.atropos.run_api import COMMAND, RunApi
from pytest_hermes_env.errors import ServerStartError


def ask(url: str) -> object:
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=10)
    try:
        connection.request("GET", "/status")
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_two_run_apis_listen_on_ports_of_their_own():
    """Each is Atropos' real API with nothing in it, on loopback; both end with 0, and their addresses answer no more."""
    with RunApi() as one, RunApi() as other:
        urls = [one.url, other.url]
        answers = [ask(url) for url in urls]

    assert answers == [{"current_step": 0, "queue_size": 0}] * 2
    assert [urllib.parse.urlsplit(url).hostname for url in urls] == ["127.0.0.1"] * 2
    assert len(set(urls)) == 2
    assert [one.stop(), other.stop()] == [0, 0]
    for url in urls:
        with pytest.raises(ConnectionRefusedError):
            ask(url)


def test_command_names_the_loopback_address():
    """Left alone, run-api listens on every interface."""
    assert COMMAND[1:] == ("-m", "atroposlib.cli.run_api", "--host", "127.0.0.1", "--port", "0")


def test_process_that_ends_at_once_is_an_error(tmp_path):
    """The message has its exit code and what it printed last."""
    api = RunApi(command=[sys.executable, "-c", "print('no such thing'); raise SystemExit(3)"], cwd=tmp_path)

    with pytest.raises(ServerStartError) as caught:
        api.start()
    assert str(caught.value).replace(sys.executable, "PYTHON") == (
        "run-api could not start: PYTHON -c print('no such thing'); raise SystemExit(3) ended with exit code 3.\n"
        "  expected  the line 'Uvicorn running on http://127.0.0.1:...' within 60 s\n"
        "  seen      no such thing\n"
        "  fix       run the command by hand"
    )


def test_address_before_the_start_is_an_error():
    """There is none; stopping what never started does nothing."""
    api = RunApi()

    assert api.stop() is None
    with pytest.raises(ServerStartError) as caught:
        _ = api.url
    assert str(caught.value) == (
        "run-api has no address yet, because it was not started.\n  fix       use `with RunApi() as api:`, or call api.start()"
    )
