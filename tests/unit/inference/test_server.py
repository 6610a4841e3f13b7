"""The lifetime of a mock server, and what it keeps."""

from __future__ import annotations

import gc
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest

from pytest_hermes_env.errors import ServerStartError
from pytest_hermes_env.inference import Conversation, MockServer, TurnLike, call, garbage, hang
from pytest_hermes_env.inference.server_thread import _listen

Ask = Callable[..., httpx.Response]


def mock_threads() -> list[str]:
    """Return the names of the server threads that live."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("mock-model")]


def is_listening(port: int) -> bool:
    """Return whether somebody accepts connections on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_start_and_stop_leave_nothing_behind(ask: Ask) -> None:
    """While it runs there is one thread and one port; afterwards neither, also with a keep-alive connection open."""
    server = MockServer(["done"])
    server.start()
    ask(server)
    running = (mock_threads(), is_listening(server.port))
    server.stop()
    stopped = (mock_threads(), is_listening(server.port))

    assert (running, stopped) == (([f"mock-model-{server.port}"], True), ([], False))


def test_stopping_while_clients_connect_leaves_no_open_socket(recwarn: pytest.WarningsRecorder) -> None:
    """A connection that is just being accepted is closed like the others, whichever moment the stop hits."""
    for _ in range(50):
        with ExitStack() as clients, MockServer(["done"]) as server:
            for _ in range(3):
                clients.enter_context(socket.create_connection(("127.0.0.1", server.port)))
    gc.collect()

    assert (mock_threads(), list(recwarn)) == ([], [])


def test_start_and_stop_may_be_called_twice() -> None:
    """Starting a started server and stopping a stopped one do nothing; a stopped one can start again."""
    server = MockServer(["done"])
    server.stop()
    first = server.start().port
    again = server.start().port
    server.stop()
    server.stop()
    with server:
        status = httpx.get(f"{server.url}/health").status_code

    assert (first == again, status, mock_threads()) == (True, 200, [])


def test_stop_does_not_wait_for_an_answer_that_hangs(ask: Ask) -> None:
    """Stopping ends a hanging request at once: its client sees a closed connection, and the journal no answer."""
    errors: list[BaseException] = []
    arrived = threading.Event()

    def policy(_: Conversation) -> TurnLike:
        arrived.set()
        return hang(3600)

    server = MockServer(policy).start()

    def client() -> None:
        try:
            ask(server)
        except httpx.TransportError as exc:
            errors.append(exc)

    thread = threading.Thread(target=client)
    thread.start()
    arrived.wait()
    server.stop()
    thread.join()
    (exchange,) = server.journal

    assert (len(errors), exchange.said, exchange.status, exchange.ended_s, mock_threads()) == (
        1,
        "hang 3600 s",
        None,
        None,
        [],
    )


def test_a_hanging_answer_blocks_no_other(ask: Ask) -> None:
    """While one request hangs, others are answered."""
    arrived = threading.Event()

    def policy(conversation: Conversation) -> TurnLike:
        if conversation.first_user == "slow":
            arrived.set()
            return hang(3600)
        return "quick"

    def slow_client(server: MockServer) -> None:
        with pytest.raises(httpx.TransportError):
            ask(server, "slow")

    with MockServer(policy) as server:
        thread = threading.Thread(target=slow_client, args=(server,))
        thread.start()
        arrived.wait()
        quick = httpx.post(f"{server.base_url}/chat/completions", json={"messages": [{"role": "user", "content": "x"}]}).json()
    thread.join()

    assert quick["choices"][0]["message"]["content"] == "quick"


def test_a_client_that_leaves_while_it_waits_is_no_problem(caplog: pytest.LogCaptureFixture) -> None:
    """A timeout of the client leaves an unanswered exchange and no error, neither in `verify` nor in a log."""
    with MockServer([hang(3600)]) as server:
        body = {"messages": [{"role": "user", "content": "x"}]}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.base_url}/chat/completions", json=body, timeout=0.05)
        server.verify()
        alive = httpx.get(f"{server.url}/health").status_code

    assert (alive, server.journal[0].status, caplog.records) == (200, None, [])


@pytest.mark.parametrize("host", ["203.0.113.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_named(host: str) -> None:
    """No process is in the way there."""
    with pytest.raises(
        ServerStartError, match=r"fix       use an address of this machine: 127\.0\.0\.1 for this machine alone"
    ):
        MockServer(["done"], host=host).start()


def test_a_port_in_use_is_named() -> None:
    """Two servers cannot share a port: the second says which, and what to do."""
    with MockServer(["done"]) as first, pytest.raises(ServerStartError) as caught:
        MockServer(["done"], port=first.port).start()

    assert str(caught.value) == (
        f"the mock server cannot listen on 127.0.0.1:{first.port}: Address already in use.\n"
        "  fix       stop the process that listens there, or use port 0 to pick a free port"
    )


@pytest.mark.parametrize("port", [-1, 65536, "80"])
def test_a_port_that_is_none_is_refused(port: object) -> None:
    """A port outside of its range fails with the range."""
    with pytest.raises(ServerStartError) as caught:
        MockServer(port=port).start()  # type: ignore[arg-type]  # what is tested

    assert str(caught.value) == (f"the mock server cannot listen on port {port!r}: a port is an integer from 0 to 65535.")


def test_a_server_that_never_started_has_no_address() -> None:
    """Asking for the address before the start says how to start."""
    with pytest.raises(ServerStartError) as caught:
        _ = MockServer(["done"]).base_url

    assert str(caught.value) == (
        "the mock server has no port yet, because it was not started.\n"
        "  fix       use `with MockServer(...) as server:`, or call server.start()"
    )


def test_answers_are_sent_at_once() -> None:
    """The listener names its protocol, without which asyncio leaves Nagle's algorithm on and answers take 40 ms."""
    with _listen("127.0.0.1", 0) as listener:
        protocol = listener.proto

    assert protocol == socket.IPPROTO_TCP


def test_the_journal_keeps_requests_and_answers_but_no_key(ask: Ask) -> None:
    """Every exchange is kept in order of arrival, with conversation, turn and times, and without any secret."""
    messages = [{"role": "user", "content": "hello"}]
    with MockServer([call("terminal", command="ls"), garbage("<html>")], model="tiny") as server:
        headers = {"Authorization": "Bearer secret", "x-api-key": "secret"}
        first = ask(server, messages, headers=headers, api_key="secret").json()
        called = first["choices"][0]["message"]
        ask(server, [*messages, called, {"role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "file"}])
        one, two = server.journal

    kept = [(e.path, e.kind, e.turn, e.script, e.said, e.status, e.problem) for e in (one, two)]
    assert one.ended_s is not None
    assert two.ended_s is not None
    assert one.started_s <= one.ended_s <= two.started_s <= two.ended_s
    assert (kept, one.response, two.response, "secret" in repr((one, two)), one.request and one.request["api_key"]) == (
        [
            ("/v1/chat/completions", "chat", 0, "script", "call terminal(command='ls')", 200, None),
            ("/v1/chat/completions", "chat", 1, "script", "garbage '<html>'", 200, None),
        ],
        first,
        "<html>",
        False,
        "[redacted]",
    )


def test_every_exchange_is_told_to_the_listener(ask: Ask) -> None:
    """``on_exchange`` sees what the journal keeps, as soon as it is answered."""
    told: list[object] = []

    with MockServer(["done"], on_exchange=told.append) as server:
        ask(server)
        ask(server, "other", n=0)
        kept = list(server.journal)

    assert told == kept


def test_serving_writes_no_log(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    """Tests that look at the log see their own lines only, and uvicorn's loggers stay as they were."""
    access = logging.getLogger("uvicorn.access")
    before = (access.propagate, list(access.handlers), access.level)
    with caplog.at_level(logging.DEBUG), MockServer(["done"]) as server:
        ask(server)
    written = [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")]

    assert (written, (access.propagate, list(access.handlers), access.level)) == ([], before)
