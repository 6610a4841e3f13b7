"""Answers that are hard to play: compressed, late, never given, given up, refused with a key in them, asked for again and again."""

from __future__ import annotations

import asyncio
import gzip
import http.server
import json
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import openai
import pytest
import tenacity
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer

from pytest_hermes_env import MockServer, say
from pytest_hermes_env.cassette import interception
from pytest_hermes_env.cassette.format import read_tape
from pytest_hermes_env.cassette.matching import Matching, canonical, normal_form
from pytest_hermes_env.cassette.session import recording, replaying
from pytest_hermes_env.cassette.tape import ModelRequest
from pytest_hermes_env.errors import CassetteMiss
from pytest_hermes_env.play.builder import shared_tokenizer
from pytest_hermes_env.redaction.secret_names import secrets_sent

GONE = "http://127.0.0.1:9/v1"
KEY = "no-known-shape-4711-at-all"
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}],
}


class Handler(http.server.BaseHTTPRequestHandler):
    """Does what the prompt says."""

    is_over, has_come = threading.Event(), threading.Event()

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        status, headers, data = 200, {"content-type": "application/json"}, json.dumps(ANSWER).encode()
        if "late" in text:
            self.has_come.set()
            self.is_over.wait(10)
        if "gone" in text:
            self.close_connection = True
            return
        if "elsewhere" in text and not self.path.endswith("/there/completions"):
            status, headers["location"] = 307, "/there/completions"
        if "busy" in text:
            status, headers["retry-after"] = 429, "1"
        if "refuse" in text:
            status, data = 401, json.dumps({"error": {"message": f"Wrong key {self.headers['authorization'][7:]}"}}).encode()
        if "small" in text:
            data, headers["content-encoding"] = gzip.compress(data), "gzip"
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


class Quiet(http.server.ThreadingHTTPServer):
    def handle_error(self, *args: object) -> None:
        """Clients that are gone are part of the tests."""


@pytest.fixture
def server() -> Iterator[str]:
    """The base URL of a server that does what prompts say."""
    Handler.is_over.clear()
    Handler.has_come.clear()
    with Quiet(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/v1"
        Handler.is_over.set()
        listening.shutdown()
        thread.join()


async def by_openai(url: str, text: str, *, retries: int = 0, timeout: float = 5.0) -> Any:
    async with openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=retries, timeout=timeout) as client:
        try:
            answer = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
        except openai.OpenAIError as error:
            return type(error).__name__
        return answer.choices[0].message.content


async def by_aiohttp(url: str, text: str, *, timeout: float = 5.0) -> Any:
    limit = aiohttp.ClientTimeout(total=timeout)
    async with aiohttp.ClientSession(timeout=limit, headers={"Authorization": f"Bearer {KEY}"}) as session:
        try:
            async with session.post(f"{url}/completions", json={"prompt": text}) as answer:
                return answer.status, await answer.json()
        except (aiohttp.ClientError, TimeoutError) as error:
            return type(error).__name__


async def give_up(request: Coroutine[Any, Any, Any], is_asked: Callable[[], bool]) -> str:
    """Cancel a request as soon as it was asked."""
    task = asyncio.create_task(request)
    while not is_asked() and not task.done():
        await asyncio.sleep(0)
    task.cancel()
    try:
        return str(await task)
    except asyncio.CancelledError:
        return "given up"


Ask = Callable[[str], Coroutine[Any, Any, Any]]
SAME: dict[str, tuple[Ask, Any]] = {
    "gzip, openai": (lambda url: by_openai(url, "small"), "fine"),
    "gzip, aiohttp": (lambda url: by_aiohttp(url, "small"), (200, ANSWER)),
    "read timeout, openai": (lambda url: by_openai(url, "late", timeout=0.1), "APITimeoutError"),
    "read timeout, aiohttp": (lambda url: by_aiohttp(url, "late", timeout=0.1), "TimeoutError"),
    "connection lost, openai": (lambda url: by_openai(url, "gone"), "APIConnectionError"),
    "connection lost, aiohttp": (lambda url: by_aiohttp(url, "gone"), "ServerDisconnectedError"),
    "a redirect, aiohttp": (lambda url: by_aiohttp(url, "elsewhere"), (200, ANSWER)),
    "refused, openai": (lambda url: by_openai(url, "refuse"), "AuthenticationError"),
}


@pytest.mark.parametrize("case", SAME)
def test_what_came_is_played(server: str, tmp_path: Path, case: str) -> None:
    """Compressed, late, lost, moved and refused answers are the same in the replay, and the key is nowhere in the file."""
    path = tmp_path / "cassette.json"
    ask, expected = SAME[case]

    with recording(path, recorded_from="a server"):
        recorded = asyncio.run(ask(server))
    with replaying(path):
        played = asyncio.run(ask(GONE))

    assert recorded == expected
    assert played == expected
    assert KEY not in path.read_text()


def test_a_pause_that_a_server_asked_for_is_not_played(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 429 with retry-after is played as one, its retry comes at once, and the header can still be read."""
    path = tmp_path / "cassette.json"
    with recording(path, recorded_from="a server"):
        recorded = asyncio.run(by_openai(server, "busy", retries=1))
    pauses: list[float] = []
    real = asyncio.sleep
    monkeypatch.setattr("anyio.sleep", lambda seconds: pauses.append(seconds) or real(0))

    with replaying(path):
        played = asyncio.run(by_openai(GONE, "busy", retries=1))

    assert recorded == played == "RateLimitError"
    assert pauses == [0.001]
    assert [call.reply.headers["retry-after"] for call in read_tape(path).calls] == ["1", "1"]


@pytest.mark.parametrize("ask", [by_openai, by_aiohttp])
def test_a_request_that_was_given_up_is_given_up_again(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Any
) -> None:
    """A cancelled request waits to be cancelled again; if it is not, that is a miss that says so."""
    path = tmp_path / "cassette.json"

    with recording(path, recorded_from="a server"):
        recorded = asyncio.run(give_up(ask(server, "late"), Handler.has_come.is_set))
    with replaying(path) as session:
        played = asyncio.run(give_up(ask(GONE, "late"), lambda: session.played == 1))
    monkeypatch.setattr(interception, "PATIENCE_S", 0.01)  # and twice the recorded time
    with pytest.raises(CassetteMiss) as miss, replaying(path):  # noqa: PT012 - once at the call, once at the end
        try:
            asyncio.run(ask(GONE, "late"))
        except CassetteMiss:  # aiohttp's way
            assert ask is by_aiohttp

    assert recorded == played == "given up"
    assert re.sub(r"\d+\.\d s", "N s", str(miss.value)) == (
        "a request was cancelled before its answer arrived in the recording, but not in this run.\n"
        "  where     outside of any rollout\n"
        f"  cassette  {path}\n"
        "  expected  its task is cancelled, as after N s in the recording: no answer was recorded\n"
        "  seen      not cancelled after N s\n"
        "  fix       undo the change, or record again: record it again"
    )


def test_a_client_that_cannot_give_up_is_told_at_once(server: str, tmp_path: Path) -> None:
    """A synchronous client does not wait for the end of what only a task can give up."""
    path = tmp_path / "cassette.json"

    with recording(path, recorded_from="a server"):
        asyncio.run(give_up(by_aiohttp(server, "late"), Handler.has_come.is_set))
    with pytest.raises(CassetteMiss) as miss, replaying(path):
        answer = httpx.post(f"{GONE}/completions", json={"prompt": "late"})

    assert answer.status_code == 400
    assert str(miss.value).split("\n")[4] == "  seen      a client that cannot be cancelled"


@pytest.mark.parametrize("kind", [OpenAIServer, VLLMServer, SGLangServer])
def test_a_server_of_ones_own_asks_once_for_what_is_missing(tmp_path: Path, kind: Any) -> None:
    """Neither atroposlib's three layers of retries nor a test's own repeat a miss, in chat and in token mode."""
    path = tmp_path / "cassette.json"
    has_tokens = kind is not OpenAIServer

    async def ask(url: str, text: str) -> Any:
        config = APIServerConfig(
            base_url=url, api_key="none", model_name="m", health_check=False, tokenizer_name=shared_tokenizer(), timeout=60
        )
        server = kind(config)
        try:
            if has_tokens:
                return await server.tokens_and_logprobs_completion(prompt=text, n=1, max_tokens=4)
            answer = await server.chat_completion(messages=[{"role": "user", "content": text}], n=1)
            return answer.choices[0].message.content
        finally:
            await server.openai.close()

    @tenacity.retry(stop=tenacity.stop_after_attempt(5), wait=tenacity.wait_none())
    async def insist(url: str) -> Any:
        return await ask(url, "another")

    with (
        MockServer(lambda _: say("yes"), template="chatml", allow_leftovers=True) as mock,
        recording(path, recorded_from="a mock"),
    ):
        recorded = asyncio.run(ask(mock.base_url, "hello"))
    with replaying(path):
        played = asyncio.run(ask(GONE, "hello"))
    with (
        pytest.raises(CassetteMiss),
        replaying(path) as session,
        pytest.raises((CassetteMiss, openai.BadRequestError)),
    ):
        asyncio.run(insist(GONE))

    assert played == recorded
    assert len(session.problems) == 1


def test_keys_that_requests_carry_are_known() -> None:
    """What says who sends a request is a secret whatever it looks like; a stopgap is none."""
    headers = {
        "Authorization": "Bearer quiet-7-brown-foxes",
        "x-api-key": "0123456789",
        "OpenAI-Organization": "acme-research-1",
        "Accept": "application/json, 1",
    }

    found = secrets_sent("https://me:pass4word@host.example/v1/completions?key=abcdefgh1&n=12345678", headers)

    assert found == {
        "url-user": "pass4word",
        "key": "abcdefgh1",
        "authorization": "quiet-7-brown-foxes",
        "x-api-key": "0123456789",
        "openai-organization": "acme-research-1",
    }
    assert secrets_sent("http://127.0.0.1:9/v1/completions", {"authorization": "Bearer not-needed"}) == {}


def test_ids_that_are_not_of_tool_calls_count() -> None:
    """An argument named id is as good as any other: only ids of tool calls are mapped."""
    one, other = (
        normal_form(canonical(ModelRequest.of_tool_call("process", {"id": name}, by_agent=True), Matching()), Matching())
        for name in ("server-1", "server-2")
    )

    assert one != other


def test_name_of_a_tool_message_is_not_compared():
    """Recordings made before tool messages had one still match; the name of any other message counts."""

    def text(role, **more):
        body = {"messages": [{"role": role, "tool_call_id": "a", "content": "x", **more}]}
        return canonical(ModelRequest(method="POST", path="/chat/completions", body=body, body_kind="json"), Matching())

    assert text("tool", name="terminal") == text("tool")
    assert text("user", name="Ada") != text("user")
