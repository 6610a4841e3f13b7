"""What the service refuses, where it calls, and that the engine's key stays where it belongs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from environments.service.command import _WithoutKeys
from environments.service.policy_server import check_endpoint
from environments.service.waiting_line import Refused
from pytest_hermes_env.inference import call, fail

pytestmark = pytest.mark.hermes_allow_leftovers


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "the-token-of-this-test", "Basic eDp5", "Bearer ünter"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/tasks?n=1"), ("POST", "/rollout")])
def test_without_the_token_nothing_is_served(served, header, method, path, error_of):
    async def test(here: Any, server: Any) -> Any:
        here.client.headers.pop("Authorization")
        headers = {} if header is None else {"Authorization": header.encode("latin-1")}
        answer = await here.client.request(method, path, headers=headers)
        return error_of(answer), server.request_count

    assert served(test) == ((401, "unauthorized"), 0)


@pytest.mark.parametrize(("path", "expected"), [("/nowhere", (404, "not_found")), ("/rollout", (405, "method_not_allowed"))])
def test_what_is_not_served_is_an_error_with_a_code(served, error_of, path, expected):
    async def test(here: Any, _server: Any) -> Any:
        return error_of(await here.client.get(path))

    assert served(test) == expected


def test_health_needs_no_token_and_tells_the_load(served):
    async def test(here: Any, _server: Any) -> Any:
        here.client.headers.pop("Authorization")
        return (await here.client.get("/health")).json()

    health = served(test, places=3, queue=7)

    assert len(health["identity"].pop("source")) == 16
    assert health == {
        "status": "ok",
        "protocol": 1,
        "identity": {"environment": "Env", "package": ""},
        "running": 0,
        "waiting": 0,
        "concurrency": 3,
        "queue": 7,
        "rollouts": {},
    }


@pytest.mark.parametrize(
    ("expected", "code"),
    [
        ({"protocol": 2}, "other_protocol"),
        ({"identity": {"environment": "Env", "package": "", "source": "another"}}, "other_environment"),
    ],
)
def test_a_client_of_another_protocol_or_environment_is_refused_before_anything_runs(served, error_of, expected, code):
    async def test(here: Any, server: Any) -> Any:
        return error_of(await here.rollout(**expected)), server.request_count

    assert served(test) == ((409, code), 0)


def test_a_client_that_expects_this_environment_is_served(served):
    async def test(here: Any, _server: Any) -> Any:
        identity = (await here.client.get("/health")).json()["identity"]
        return (await here.rollout(protocol=1, identity=identity)).status_code

    assert served(test) == 200


BODIES: list[tuple[bytes, int, str]] = [
    (b"{", 400, "bad_request"),
    (b"", 400, "bad_request"),
    (b"\xff", 400, "bad_request"),
    (b"[" * 100_000, 400, "bad_request"),
    (b'{"item": NaN}', 400, "bad_request"),
    (b"[]", 422, "bad_request"),
    (b'{"item": {"n": 1}}', 422, "bad_request"),
    (b'{"item": {"n": 1}, "endpoint": "http://127.0.0.1:9/v1", "model": ""}', 422, "bad_request"),
    (b'{"item": {"n": 1}, "endpoint": "http://127.0.0.1:9/v1", "model": "m", "reward": 1}', 422, "bad_request"),
    (
        b'{"item": {"n": 1}, "endpoint": "http://127.0.0.1:9/v1", "model": "m", "sampling": {"messages": []}}',
        422,
        "bad_request",
    ),
    (
        b'{"item": {"n": 1}, "endpoint": "http://127.0.0.1:9/v1", "model": "m", "api_key": ["sk-engine-0123456789"]}',
        422,
        "bad_request",
    ),
    (b'{"item": {"n": 1}, "endpoint": "http://sk-engine-0123456789@127.0.0.1:9/v1", "model": "m"}', 422, "bad_endpoint"),
    (b'{"item": {"n": 1}, "endpoint": "http://10.1.2.3:9/v1", "model": "m"}', 422, "bad_endpoint"),
    (b'{"item": {}, "endpoint": "http://127.0.0.1:9/v1", "model": "m"}', 422, "bad_item"),
    (b'{"item": {"m": 1}, "endpoint": "http://127.0.0.1:9/v1", "model": "m"}', 422, "bad_item"),
    (b'{"item": {"n": null}, "endpoint": "http://127.0.0.1:9/v1", "model": "m"}', 422, "bad_item"),
    (b'{"item": "one", "endpoint": "http://127.0.0.1:9/v1", "model": "m"}', 422, "bad_item"),
    (b'{"item": null, "endpoint": "http://127.0.0.1:9/v1", "model": "m"}', 422, "bad_item"),
]


def test_wrong_requests_are_refused_before_anything_runs(served, error_of, engine_key):
    async def test(here: Any, server: Any) -> Any:
        answers = [await here.client.post("/rollout", content=body) for body, _, _ in BODIES]
        return answers, server.request_count, sum(here.service.counts.values())

    answers, requests, rollouts = served(test)

    assert [error_of(answer) for answer in answers] == [(status, code) for _, status, code in BODIES]
    assert not [answer.text for answer in answers if engine_key in answer.text]
    assert (requests, rollouts) == (0, 0)


DEEP = "[" * 250 + "]" * 250
READ = {
    "a byte order mark": '{"item": 1}'.encode("utf-8-sig"),
    "UTF-16": '{"item": 1}'.encode("utf-16"),
    "a deep value": f'{{"item": 1, "deep": {DEEP}}}'.encode(),
    "a lone surrogate": b'{"item": 1, "text": "\\ud800"}',
}


@pytest.mark.parametrize("body", READ.values(), ids=READ)
def test_a_body_is_all_that_json_reads(served, error_of, body):
    """It lacks fields, which is the answer."""

    async def test(here: Any, _server: Any) -> Any:
        return error_of(await here.client.post("/rollout", content=body))

    assert served(test) == (422, "bad_request")


def test_a_body_that_is_not_json_is_refused_with_the_reason(served):
    async def test(here: Any, _server: Any) -> Any:
        return (await here.client.post("/rollout", content=b'{"item": x}')).json()["error"]["message"]

    assert served(test) == "the body is not JSON: Expecting value: line 1 column 10 (char 9)"


def test_an_error_of_the_service_is_logged_and_keeps_the_connection(served, error_of, engine_key, caplog):
    """The log and the answers leave out the engine's key."""

    async def test(here: Any, _server: Any) -> Any:
        async def broken(_asked: Any) -> Any:
            raise LookupError(f"no place, key {engine_key}")

        here.service.rollout = broken
        answers = [await here.rollout(api_key=engine_key) for _ in range(5)]
        return answers, {answer.extensions["network_stream"].get_extra_info("client_addr") for answer in answers}

    caplog.handler.setFormatter(_WithoutKeys())
    answers, connections = served(test)

    assert [error_of(answer) for answer in answers] == [(500, "service_failed")] * 5
    assert (len(connections), caplog.text.count("POST /rollout failed")) == (1, 5)
    assert engine_key not in caplog.text + "".join(answer.text for answer in answers)


def test_a_body_that_is_too_large_is_refused(served, error_of):
    async def test(here: Any, _server: Any) -> Any:
        async def parts() -> Any:
            for _ in range(64):
                yield b" " * 1024

        return error_of(await here.client.post("/rollout", content=parts()))

    assert served(test, max_body=4096) == (413, "request_entity_too_large")


ALLOWED = [
    ("http://127.0.0.1:8000/v1", "127.0.0.1", []),
    ("http://localhost:8000/v1", "127.0.0.1", []),
    ("http://[::1]:8000/v1", "127.0.0.1", []),
    ("http://127.0.0.1:12434/engines/llama.cpp/v1", "127.0.0.1", []),
    ("http://127.0.0.2:8000/v1", "::1", []),
    ("https://10.0.0.5:8000/v1", "10.0.0.5", []),
    ("http://10.0.0.5:8000/v1", "::ffff:10.0.0.5", []),
    ("http://engine.example:8000/v1", "10.0.0.5", ["engine.example"]),
    ("http://10.9.9.9/v1", "10.0.0.5", ["*"]),
    ("http://127.0.0.1:8000/rollout/7/v1/", "127.0.0.1", []),
    ("http://127.0.0.1:8000/v1", "127.0.0.1", ["127.0.0.1:8000"]),
    ("http://127.0.0.1:80/any", "127.0.0.1", ["127.0.0.1"]),
    ("http://[::1]:8000/v1", "127.0.0.1", ["[::1]:8000"]),
    ("http://[fd00::1]:8000/v1", "10.0.0.5", ["fd00::1"]),
    ("https://engine.example/v1", "10.0.0.5", ["engine.example:443"]),
    ("http://127.0.0.1:8000/v1", None, ["127.0.0.1:8000"]),
]
REFUSED = [
    ("http://127.0.0.1:8000/v1", "10.0.0.5", []),
    ("http://localhost/v1", "10.0.0.5", []),
    ("http://[::ffff:127.0.0.1]/v1", "10.0.0.5", []),
    ("http://169.254.169.254/latest", "127.0.0.1", []),
    ("http://10.0.0.6/v1", "10.0.0.5", ["10.0.0.7"]),
    ("http://engine.example/v1", None, []),
    ("http://user@127.0.0.1/v1", "127.0.0.1", ["*"]),
    ("http://127.0.0.1/v1?key=1", "127.0.0.1", ["*"]),
    ("file:///etc/passwd", "127.0.0.1", ["*"]),
    ("ftp://127.0.0.1/v1", "127.0.0.1", ["*"]),
    ("http:///v1", "127.0.0.1", ["*"]),
    ("http://127.0.0.1:x/v1", "127.0.0.1", ["*"]),
    ("", "127.0.0.1", ["*"]),
    ("http://127.0.0.1:8000/containers/create", "127.0.0.1", []),
    ("http://127.0.0.1:8000/v1/../admin/v1", "127.0.0.1", []),
    ("http://127.0.0.1:8000/%2e%2e/v1", "127.0.0.1", []),
    ("http://127.0.0.1:8001/v1", "127.0.0.1", ["127.0.0.1:8000"]),
    ("https://engine.example:8443/v1", "10.0.0.5", ["engine.example:443"]),
    ("http://127.0.0.1:8000/v1", None, []),
]


@pytest.mark.parametrize(("url", "client", "hosts"), ALLOWED)
def test_a_rollout_calls_the_client_s_machine_and_hosts_that_are_allowed(url, client, hosts):
    check_endpoint(url, client=client, allowed=hosts)


@pytest.mark.parametrize(("url", "client", "hosts"), REFUSED)
def test_a_rollout_calls_no_other_endpoint(url, client, hosts):
    with pytest.raises(Refused):
        check_endpoint(url, client=client, allowed=hosts)


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "via", "X-Real-IP"])
def test_a_client_behind_a_proxy_is_not_on_this_machine(header, served, error_of):
    """Its requests come from the proxy's address, which is a loopback address where the proxy is here."""

    async def test(here: Any, server: Any) -> Any:
        here.client.headers[header] = "for=10.0.0.5"
        return error_of(await here.rollout()), server.request_count

    assert served(test) == ((422, "bad_endpoint"), 0)


def _engine(answer: Any) -> Any:
    """An engine of which each reply is ``answer()``."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    from pytest_hermes_env.inference.server_thread import ServerThread

    async def reply(request: Any) -> Any:
        await request.body()  # as engines do: an answer before its end may be lost with the connection
        asked.append(1)
        return answer()

    asked: list[int] = []
    thread = ServerThread(Starlette(routes=[Route("/v1/chat/completions", reply, methods=["POST"])]), "127.0.0.1", 0)
    return thread, asked


@pytest.mark.parametrize("kind", ["long", "endless", "compressed"])
def test_a_reply_that_is_too_large_is_an_error(kind, served, error_of):
    """It is not read to its end, and not asked for again."""
    import gzip
    import itertools

    from starlette.responses import Response, StreamingResponse

    def answer() -> Any:
        if kind == "endless":
            return StreamingResponse((b" " * 65536 for _ in itertools.repeat(0)), media_type="application/json")
        body = b" " * (1 << 21)
        return Response(gzip.compress(body), headers={"Content-Encoding": "gzip"}) if kind == "compressed" else Response(body)

    async def test(here: Any, _server: Any) -> Any:
        thread, asked = _engine(answer)
        thread.start()
        try:
            answered = await here.rollout(endpoint=f"http://127.0.0.1:{thread.port}/v1")
        finally:
            thread.stop()
        return error_of(answered), "has more than 1048576 bytes" in answered.text, len(asked), here.service.line.running

    assert served(test, max_reply=1 << 20) == ((502, "model_failed"), True, 1, set())


def test_a_conversation_that_is_too_large_is_an_error(served, error_of):
    """Also one of many small replies."""

    async def test(here: Any, server: Any) -> Any:
        answered = await here.rollout()
        return error_of(answered), "the conversation has more than 20000 bytes" in answered.text, 1 < server.request_count < 12

    def script(_conversation: Any) -> Any:
        return call("todo", todos=[{"id": "1", "content": "x" * 3000, "status": "pending"}])

    config = {"max_agent_turns": 40}
    assert served(test, script=script, config=config, max_conversation=20_000) == ((502, "model_failed"), True, True)


def test_the_engine_s_key_is_in_no_refusal(served, error_of, engine_key):
    """Even where it is a part of the item that format_prompt refuses."""

    async def test(here: Any, _server: Any) -> Any:
        return await here.rollout({"n": f"no number {engine_key}"}, api_key=engine_key)

    class Quotes:
        def format_prompt(self, item: Any) -> str:
            return f"write file {int(item['n'])}"

    answer = served(test, Quotes)

    assert error_of(answer) == (422, "bad_item")
    assert "[api_key]" in answer.text
    assert engine_key not in answer.text


def test_a_redirect_is_not_followed(served, error_of):
    """It would carry the key to another host."""
    from starlette.applications import Starlette
    from starlette.responses import RedirectResponse
    from starlette.routing import Route

    from pytest_hermes_env.inference.server_thread import ServerThread

    async def test(here: Any, server: Any) -> Any:
        async def away(_request: Any) -> Any:
            return RedirectResponse(f"{server.base_url}/chat/completions", 307)

        thread = ServerThread(Starlette(routes=[Route("/v1/chat/completions", away, methods=["POST"])]), "127.0.0.1", 0)
        thread.start()
        try:
            answer = await here.rollout(endpoint=f"http://127.0.0.1:{thread.port}/v1")
        finally:
            thread.stop()
        return error_of(answer), server.request_count

    assert served(test) == ((502, "model_failed"), 0)


def test_the_engine_s_key_is_in_no_error_and_no_log(served, caplog, error_of, engine_key):
    """Even when the endpoint and the environment repeat it."""
    from environments.service.command import _WithoutKeys

    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Lines()
    handler.setFormatter(_WithoutKeys())
    logging.getLogger().addHandler(handler)

    async def test(here: Any, _server: Any) -> Any:
        return [
            await here.rollout({"n": 1, "raises": True}, api_key=engine_key),
            await here.rollout({"n": 2}, api_key=engine_key),
        ]

    def script(conversation: Any) -> Any:
        return "done" if conversation.first_user.endswith("1") else fail(401, f"Incorrect API key: {engine_key}")

    try:
        with caplog.at_level(logging.INFO):
            answers = served(test, script=script)
    finally:
        logging.getLogger().removeHandler(handler)

    assert [error_of(answer) for answer in answers] == [(500, "reward_failed"), (502, "model_failed")]
    assert "[api_key]" in answers[0].text
    assert "[api_key]" in answers[1].text
    assert not [answer.text for answer in answers if engine_key in answer.text]
    assert [line for line in lines if "[api_key]" in line]
    assert not [line for line in lines if engine_key in line]
