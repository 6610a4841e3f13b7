"""WebResearchEnv from the command line, with hermes' own web search and a search engine on this machine."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

FOUND = {"results": [{"title": host, "url": f"https://{host}/", "content": "c"} for host in ("a.example", "b.example")]}


@pytest.fixture
def program() -> list[str]:
    """What Python starts."""
    return ["-m", "environments.web_research_env"]


@pytest.fixture
def researching_server() -> Iterator[Any]:
    """A mock model that searches, answers, and grades its answers as half right."""
    from pytest_hermes_env.inference import MockServer, Script, call, say

    with MockServer(Script([call("web_search", query="x"), say("The Danube.")], judge='{"score": 0.5}')) as server:
        yield server
    server.verify()


@pytest.fixture
def search_engine() -> Iterator[str]:
    """A search engine with SearXNG's API; all results are on two hosts."""

    class Engine(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(FOUND).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_process_writes_groups_that_a_judge_scored(run, researching_server, search_engine, home):
    """0.6 x 0.5 for the answer, 0.2 for the web, 0.2 for few calls, 0.1 for two hosts."""
    flags = "--env.dataset_name None --env.total_steps 2 --env.group_size 2 --env.data_path_to_save_groups out.jsonl"

    finished = run("process", *flags.split(), server=researching_server, SEARXNG_URL=search_engine)

    lines = [json.loads(line) for line in (home / "out.jsonl").read_text().splitlines()]
    assert finished.returncode == 0, finished.stderr
    assert [line["scores"] for line in lines] == [[pytest.approx(0.8)] * 2] * 2
    assert "https://b.example/" in lines[0]["messages"][0][3]["content"]
    assert "No web tool is offered" not in finished.stderr
