"""Blocks the network in a test: no connection and no DNS query to another host, from any thread of the process.

The methods of ``socket.socket`` that name a peer, and the functions that resolve names, are intercepted; asyncio, httpx, aiohttp,
requests and urllib all use them. Other processes are not covered, nor are C libraries that open their own sockets (uvloop, grpc).
A refusal is an `OSError`, as on a machine without a network. Environments catch such errors, so refusals are also kept, and fail
the test at its end.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import socket
import threading
from collections.abc import Iterable
from typing import Any, Self

from pytest_hermes_env.errors import NetworkBlocked
from pytest_hermes_env.patches import intercept

__all__ = ["ANY_HOST", "NetworkGuard", "is_this_machine"]

ANY_HOST = "*"
PEERS = ("connect", "connect_ex", "sendto", "sendmsg")
RESOLVERS = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr")
ADDRESS_OF_SENDMSG = 3
SHOWN = 5


class NetworkGuard:
    """A context in which only this machine and ``allowed`` hosts can be reached. ``*.example.org`` allows all below that name.

    ``test`` is named in refusals; ``is_live`` chooses the fix that they suggest. May be entered again after it was left.
    """

    def __init__(self, *, test: str, allowed: Iterable[str] = (), is_live: bool = False) -> None:
        self._test = test
        self._allowed = frozenset(host.lower().rstrip(".") for host in allowed)
        self._is_live = is_live
        self._resolved: set[str] = set()
        self._refusals: dict[str, str] = {}
        self._lock = threading.Lock()
        self._patches = contextlib.ExitStack()

    def __enter__(self) -> Self:
        for name in PEERS:
            self._patches.enter_context(intercept(f"socket.socket.{name}", functools.partial(self._connect, name)))
        for name in RESOLVERS:
            self._patches.enter_context(intercept(f"socket.{name}", functools.partial(self._resolve, name)))
        return self

    def __exit__(self, *_: object) -> None:
        self._patches.close()

    @property
    def is_closed(self) -> bool:
        """Whether no other host may be reached, neither one that was allowed nor a live server."""
        return not self._allowed and not self._is_live

    @property
    def hosts(self) -> list[str]:
        """The hosts that were refused, once each."""
        with self._lock:
            return list(dict.fromkeys(self._refusals.values()))

    def verify(self) -> None:
        """Raise when something was refused. Raises: NetworkBlocked, naming every host."""
        if hosts := self.hosts:
            refusals = list(self._refusals)
            shown = "; ".join(refusals[:SHOWN])
            more = f"; and {len(refusals) - SHOWN} more" if len(refusals) > SHOWN else ""
            raise NetworkBlocked(self._text(f"this test reached for {', '.join(hosts)}", shown + more, hosts[0]))

    def _connect(self, name: str, real: Any, held: socket.socket, *args: Any) -> Any:
        if held.family in {socket.AF_INET, socket.AF_INET6}:
            address = _peer(name, args)
            if isinstance(address, tuple) and address:
                self._check_peer(str(address[0]), f"{name} to {address[0]}:{address[1] if len(address) > 1 else '?'}")
        return real(held, *args)

    def _resolve(self, name: str, real: Any, host: Any, *args: Any, **kwargs: Any) -> Any:
        text = _text_of(host)
        if name == "gethostbyaddr":
            self._check_peer(text, f"{name}({text!r})")
        is_listed = self._check_name(text, f"{name}({text!r})")
        found = real(host, *args, **kwargs)
        if is_listed:
            self._resolved.update(_addresses(name, found))
        return found

    def _check_name(self, host: str, what: str) -> bool:
        """Return whether the name is among the allowed. Raises: neither allowed, nor known without a DNS query → NetworkBlocked."""
        if self._is_allowed(host):
            return True
        if not (_is_own_name(host) or _as_address(host) is not None):
            self._refuse(host, what)
        return False

    def _check_peer(self, host: str, what: str) -> None:
        address = _as_address(host)
        if address is None:
            self._check_name(host, what)
        elif not (_is_this_machine(address) or host in self._resolved or self._is_allowed(host)):
            self._refuse(host, what)

    def _is_allowed(self, host: str) -> bool:
        host = host.lower().rstrip(".")
        return (
            ANY_HOST in self._allowed
            or host in self._allowed
            or any(host.endswith(pattern[1:]) for pattern in self._allowed if pattern.startswith("*."))
        )

    def _refuse(self, host: str, what: str) -> None:
        with self._lock:
            self._refusals[what] = host
        raise self._error(host, what)

    def _error(self, host: str, what: str) -> Exception:
        """Return the error of a refusal; a scenario without a network overrides it."""
        return NetworkBlocked(self._text(f"a connection to {host} was refused", what, host))

    def _text(self, happened: str, seen: str, host: str) -> str:
        out = (
            f"--hermes-live lets tests reach their server ({', '.join(sorted(self._allowed)) or 'on this machine'}) and nothing else"
            if self._is_live
            else "tests reach no host but this one; a real model is asked with --hermes-live, in tests marked hermes_live"
        )
        return (
            f"{happened}.\n"
            f"  expected  {out}\n"
            f"  seen      {seen}\n"
            f"  test      {self._test}\n"
            f'  fix       answer it with a double, or allow it: @pytest.mark.hermes_allow_hosts("{host}"),\n'
            f"            --hermes-allow-hosts {host}, or the ini value hermes_allow_hosts"
        )


def _peer(name: str, args: tuple[Any, ...]) -> Any:
    """Return the address in the arguments of a socket's method; None where the socket is connected already."""
    match name:
        case "sendto":
            return args[-1] if len(args) > 1 else None
        case "sendmsg":
            return args[ADDRESS_OF_SENDMSG] if len(args) > ADDRESS_OF_SENDMSG else None
        case _:
            return args[0] if args else None


def _text_of(host: Any) -> str:
    if host is None:
        return ""
    return host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else str(host)


def _is_own_name(host: str) -> bool:
    """Return whether a name belongs to this machine: its own files resolve it, mostly to loopback. The result is checked, too."""
    name = host.lower().rstrip(".")
    return name in {"", "localhost", socket.gethostname().lower()} or name.endswith(".localhost")


def is_this_machine(host: str) -> bool:
    """Return whether a host name or address is this machine, as far as that is known without a DNS query."""
    address = _as_address(host)
    return _is_own_name(host) if address is None else _is_this_machine(address)


def _as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_this_machine(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or address.is_unspecified or (mapped is not None and mapped.is_loopback)


def _addresses(name: str, found: Any) -> list[str]:
    if name == "getaddrinfo":
        return [str(row[4][0]) for row in found]
    return [found] if isinstance(found, str) else [str(address) for address in found[2]]
