"""The network guard: this machine passes, everything else is refused and remembered."""

from __future__ import annotations

import _socket
import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType

import httpx
import pytest

from pytest_hermes_env import patches
from pytest_hermes_env.errors import NetworkBlocked
from pytest_hermes_env.live.network_guard import NetworkGuard
from pytest_hermes_env.own_machine import is_this_machine

ELSEWHERE = "192.0.2.7"
"""TEST-NET-1, which no router knows."""


@pytest.fixture
def guard() -> Iterator[NetworkGuard]:
    """A guard in force, which allows nothing."""
    with NetworkGuard(test="tests/test_it.py::test_it") as guard:
        yield guard


def test_the_refusal_names_host_test_and_way_out(guard: NetworkGuard) -> None:
    """One text, raised where it happens and again by verify."""
    with pytest.raises(NetworkBlocked) as refused, socket.socket() as held:
        held.connect((ELSEWHERE, 443))
    with pytest.raises(NetworkBlocked) as again:
        guard.verify()

    rest = (
        "  expected  tests reach no host but this one; a real model is asked with --hermes-live, in tests marked hermes_live\n"
        "  seen      connect to 192.0.2.7:443\n"
        "  test      tests/test_it.py::test_it\n"
        '  fix       answer it with a double, or allow it: @pytest.mark.hermes_allow_hosts("192.0.2.7"),\n'
        "            --hermes-allow-hosts 192.0.2.7, or the ini value hermes_allow_hosts"
    )
    assert str(refused.value) == f"a connection to 192.0.2.7 was refused.\n{rest}"
    assert str(again.value) == f"this test reached for 192.0.2.7.\n{rest}"


@pytest.mark.parametrize(
    "binds",
    [
        lambda name: socket.socket().bind((name, 0)),
        lambda name: socket.create_server((name, 0)),
        lambda name: socket.socket(type=socket.SOCK_DGRAM).bind((name.encode(), 0)),
    ],
    ids=["bind", "create_server", "datagrams"],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_name_to_bind_to_is_not_looked_up(guard: NetworkGuard, binds: Callable[[str], None]) -> None:
    """Python would ask a DNS server for it; names and addresses of this machine are as before."""
    for own in ("", "localhost", "127.0.0.1"):
        binds(own)

    with pytest.raises(OSError, match=r"elsewhere\.example\.org"):  # create_server makes another of it
        binds("elsewhere.example.org")
    with pytest.raises(NetworkBlocked, match=r"bind to elsewhere\.example\.org:0"):
        guard.verify()


def test_a_live_test_is_told_what_it_may_reach() -> None:
    """The text names the provider's host."""
    guard = NetworkGuard(test="t", allowed=["api.example.org"], is_live=True)
    with guard, pytest.raises(NetworkBlocked) as refused:
        socket.getaddrinfo("elsewhere.example.org", 443)

    assert str(refused.value) == (
        "a connection to elsewhere.example.org was refused.\n"
        "  expected  --hermes-live lets tests reach their server (api.example.org) and nothing else\n"
        "  seen      getaddrinfo('elsewhere.example.org')\n"
        "  test      t\n"
        '  fix       answer it with a double, or allow it: @pytest.mark.hermes_allow_hosts("elsewhere.example.org"),\n'
        "            --hermes-allow-hosts elsewhere.example.org, or the ini value hermes_allow_hosts"
    )


def _in_a_thread() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(socket.create_connection, ("example.org", 80)).result()


async def _asyncio() -> None:
    await asyncio.open_connection("example.org", 80)


async def _httpx() -> None:
    async with httpx.AsyncClient() as client:
        await client.get("http://example.org")


async def _aiohttp() -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session, session.get("http://example.org"):
        pass


def _requests() -> None:
    import requests

    requests.get("http://example.org", timeout=5)


def _datagram() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as held:
        held.sendto(b"", ("example.org", 53))


@pytest.mark.parametrize(
    "reach",
    [
        lambda: socket.getaddrinfo("example.org", 80),
        lambda: socket.gethostbyname("example.org"),
        lambda: socket.gethostbyaddr(ELSEWHERE),
        lambda: asyncio.run(_asyncio()),
        lambda: asyncio.run(_httpx()),
        lambda: asyncio.run(_aiohttp()),
        lambda: httpx.get("http://example.org"),
        _in_a_thread,
        _requests,
        _datagram,
    ],
    ids=[
        "getaddrinfo",
        "gethostbyname",
        "gethostbyaddr",
        "asyncio",
        "httpx",
        "aiohttp",
        "httpx-sync",
        "thread",
        "requests",
        "udp",
    ],
)
def test_every_way_out_is_guarded(guard: NetworkGuard, reach: Callable[[], object]) -> None:
    """Whatever a library makes of the refusal, it fails, and the guard remembers."""
    with pytest.raises(Exception):  # noqa: B017, PT011 - each library has its own
        reach()

    assert guard.hosts


def test_this_machine_passes(guard: NetworkGuard) -> None:
    """Loopback by number and by name, the host's own name, unix sockets and passive look-ups are no network."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        for host in ("127.0.0.1", "localhost"):
            socket.create_connection((host, server.getsockname()[1])).close()
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    socket.getaddrinfo(None, 0)
    socket.getaddrinfo("127.8.9.10", 80)
    socket.getaddrinfo("::1", 80)

    assert guard.hosts == []


@pytest.mark.parametrize(
    ("allowed", "host", "passes"),
    [
        ("api.example.org", "api.example.org", True),
        ("api.example.org", "API.example.org.", True),
        ("api.example.org", "example.org", False),
        ("*.example.org", "api.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "badexample.org", False),
        ("*", "anywhere", True),
    ],
)
def test_what_is_allowed_passes(monkeypatch: pytest.MonkeyPatch, allowed: str, host: str, passes: bool) -> None:
    """Names, names below a domain, or all; the addresses that an allowed name resolves to may be connected to."""
    asked = []

    def resolve(name: str, port: int) -> list[tuple[object, ...]]:
        asked.append(name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ELSEWHERE, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    connected: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: connected.append(address), raising=False)
    guard = NetworkGuard(test="t", allowed=[allowed])
    with guard:
        try:
            socket.getaddrinfo(host, 443)
            with socket.socket() as held:
                held.connect((ELSEWHERE, 443))
        except NetworkBlocked:
            pass

    assert (asked, connected) == (([host], [(ELSEWHERE, 443)]) if passes else ([], []))


def test_guards_nest_and_leave_no_trace() -> None:
    """A test that runs tests has two; afterwards sockets are as they were."""
    before = (socket.getaddrinfo, "connect" in vars(socket.socket))
    outer, inner = NetworkGuard(test="outer"), NetworkGuard(test="inner", allowed=["*"])
    with outer:
        with inner, pytest.raises(NetworkBlocked):
            socket.getaddrinfo("example.org", 80)
        with pytest.raises(NetworkBlocked):
            socket.getaddrinfo("example.org", 80)

    assert (socket.getaddrinfo, "connect" in vars(socket.socket)) == before
    assert (bool(outer.hosts), inner.hosts) == (True, [])


def test_threads_may_be_refused_at_once(guard: NetworkGuard) -> None:
    """Every refusal is kept, and each host is named once."""

    def reach(number: int) -> None:
        with pytest.raises(NetworkBlocked):
            socket.getaddrinfo(f"h{number % 2}.example.org", 80)

    threads = [threading.Thread(target=reach, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(NetworkBlocked) as refused:
        guard.verify()

    assert sorted(str(refused.value).splitlines()[0].removesuffix(".").split(" for ")[1].split(", ")) == [
        "h0.example.org",
        "h1.example.org",
    ]


def _c_socket() -> None:
    held = _socket.socket()
    try:
        held.connect((ELSEWHERE, 80))
    finally:
        held.close()


EARLY = (socket.getaddrinfo, socket.gethostbyname, socket.gethostbyname_ex, socket.gethostbyaddr, socket.create_connection)
"""Imported by a module before any test began."""


@pytest.mark.parametrize(
    "reach",
    [
        lambda: EARLY[0]("example.org", 80),
        lambda: EARLY[1]("example.org"),
        lambda: EARLY[2]("example.org"),
        lambda: EARLY[3](ELSEWHERE),
        lambda: EARLY[4]((ELSEWHERE, 80), 1),
        _c_socket,
        lambda: _socket.getaddrinfo("example.org", 80),
        lambda: socket.getnameinfo((ELSEWHERE, 80), 0),
        lambda: EARLY[1]("a.localhost"),
    ],
    ids=[
        "getaddrinfo",
        "gethostbyname",
        "ex",
        "gethostbyaddr",
        "create",
        "C socket",
        "C getaddrinfo",
        "getnameinfo",
        "localhost",
    ],
)
def test_a_name_that_was_imported_before_the_test_is_guarded(guard: NetworkGuard, reach: Callable[[], object]) -> None:
    """Modules take functions out of `socket` long before a test; the guard sees what Python does with them."""
    with pytest.raises(NetworkBlocked):
        reach()

    assert guard.hosts


def test_a_name_below_localhost_is_this_machine_without_a_lookup(guard: NetworkGuard) -> None:
    """RFC 6761: a resolver that knows no such name would ask a DNS server."""
    asked: list[object] = []
    with patches.auditing("socket.getaddrinfo", lambda _, args: asked.append(args[0])):
        rows = socket.getaddrinfo("api.localhost", 80, type=socket.SOCK_STREAM)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(("api.localhost", server.getsockname()[1]))

    assert {row[4][0] for row in rows} <= {"127.0.0.1", "::1"}
    assert (asked, guard.hosts) == (["localhost"], [])


def test_a_number_needs_no_lookup(guard: NetworkGuard) -> None:
    """getnameinfo asks nobody when it is to return an address."""
    flags = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV

    assert (socket.getnameinfo((ELSEWHERE, 80), flags), guard.hosts) == ((ELSEWHERE, "80"), [])


def test_a_thread_that_outlives_its_test_stays_guarded() -> None:
    """It reaches for another host when no test runs."""
    go = threading.Event()
    ends: list[object] = []

    def late() -> None:
        go.wait()
        with pytest.raises(NetworkBlocked) as refused, socket.socket() as held:
            held.connect((ELSEWHERE, 80))
        ends.append(refused.value)

    with NetworkGuard(test="tests/test_it.py::test_it"):
        thread = threading.Thread(target=late)
        thread.start()
    go.set()
    thread.join()

    assert [str(end).splitlines()[3] for end in ends] == ["  test      tests/test_it.py::test_it"]


@pytest.mark.parametrize(
    "host", ["127.evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "0.evil.com", "example.org", ELSEWHERE]
)
def test_a_name_that_looks_like_this_machine_is_another(host: str) -> None:
    """Only addresses are loopback; a name that begins like one is somebody's."""
    assert not is_this_machine(host)


def test_telemetry_of_a_library_is_refused_and_fails_no_test() -> None:
    """wandb starts such a thread in disabled mode, too, and it reports while another test runs."""
    refused: list[BaseException] = []

    def report() -> None:
        try:
            socket.getaddrinfo("elsewhere.example.org", 443)
        except OSError as error:
            refused.append(error)

    of_a_library = FunctionType(
        report.__code__, {**globals(), "__name__": "opentelemetry.sdk.export"}, closure=report.__closure__
    )
    with NetworkGuard(test="test") as guard:
        thread = threading.Thread(target=of_a_library)
        thread.start()
        thread.join()

    assert [type(error) for error in refused] == [NetworkBlocked]
    guard.verify()
