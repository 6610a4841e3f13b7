"""Blocks the network in a test: no connection and no DNS query to another host, from any thread of the process.

Python raises an audit event before it connects, sends or resolves, whoever does it and by whatever name: asyncio, httpx, aiohttp, requests
and urllib, a function that was imported before the test, a thread that outlives it. Other processes are not covered, nor are C libraries
that open their own sockets (uvloop, grpc).
A refusal is an `OSError`, as on a machine without a network. Environments catch such errors, so refusals are also kept, and fail
the test at its end; those of a library's telemetry are not.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import sys
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any, Self

from pytest_hermes_env.errors import NetworkBlocked
from pytest_hermes_env.own_machine import as_address, is_own_address, is_own_name
from pytest_hermes_env.patches import auditing, intercept, keep_auditing

ANY_HOST = "*"
METHODS = ("bind", "connect", "connect_ex", "sendto", "sendmsg")
"""Python resolves the name in an address before it raises the audit event."""
ADDRESS_OF_SENDMSG = 3
PEERS = frozenset({"connect", "sendto", "sendmsg"})
LOOKUPS = frozenset({"getaddrinfo", "gethostbyname"})
"""Audit events; ``connect_ex`` and ``gethostbyname_ex`` have those of the function without ``_ex``."""
RESOLVERS = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "getnameinfo")
SHOWN = 5
TELEMETRY = ("opentelemetry.", "sentry_sdk.", "posthog.", "wandb.analytics")
"""Modules that send statistics and errors of libraries; wandb starts them in disabled mode, too."""


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
        self._threads_before: frozenset[threading.Thread] = frozenset()
        self._without_lookup: set[int] = set()

    def __enter__(self) -> Self:
        self._threads_before = frozenset(threading.enumerate())
        self._patches.enter_context(auditing("socket.", self._audit))
        for name in METHODS:
            self._patches.enter_context(intercept(f"socket.socket.{name}", functools.partial(self._send, name)))
        for name in RESOLVERS:
            self._patches.enter_context(intercept(f"socket.{name}", functools.partial(self._resolve, name)))
        return self

    def __exit__(self, *_: object) -> None:
        started = frozenset(thread for thread in threading.enumerate() if thread not in self._threads_before)
        if started:
            keep_auditing("socket.", self._audit, started)
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

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Refuse what Python is about to do, in whatever thread, by whatever name the function was imported."""
        name = event.removeprefix("socket.")
        if name in PEERS:
            held, address = args
            if held.family in {socket.AF_INET, socket.AF_INET6} and isinstance(address, tuple) and address:
                self._check_peer(_text_of(address[0]), f"{name} to {address[0]}:{address[1] if len(address) > 1 else '?'}")
        elif name == "getnameinfo":
            if threading.get_ident() not in self._without_lookup:
                self._check_peer(_text_of(args[0][0]), f"{name}({args[0][0]!r})")
        elif name == "gethostbyaddr":
            self._check_peer(_text_of(args[0]), f"{name}({_text_of(args[0])!r})")
        elif name in LOOKUPS:
            host = _text_of(args[0])
            self._check_name(host, f"{name}({host!r})")
            if _is_below_localhost(host) and not self._is_allowed(host):
                self._refuse(host, f"{name}({host!r})")  # the resolver would ask a server for it

    def _send(self, name: str, real: Any, held: socket.socket, *args: Any) -> Any:
        place = {"sendto": len(args) - 1 or None, "sendmsg": ADDRESS_OF_SENDMSG}.get(name, 0)
        address = args[place] if place is not None and len(args) > place else None
        if held.family in {socket.AF_INET, socket.AF_INET6} and isinstance(address, tuple) and address:
            host = _text_of(address[0])
            what = f"{name} to {host}:{address[1] if len(address) > 1 else '?'}"
            if name != "bind":
                self._check_peer(host, what)
            elif host and as_address(host) is None:  # an address of this machine, or the system refuses it
                self._check_name(host, what)
            if _is_below_localhost(host) and not self._is_allowed(host):
                args = (*args[:place], ("localhost", *address[1:]), *args[(place or 0) + 1 :])
        return real(held, *args)

    def _resolve(self, name: str, real: Any, host: Any, *args: Any, **kwargs: Any) -> Any:
        """Resolve names below localhost here, as RFC 6761 asks, and note the addresses of allowed names."""
        if name == "getnameinfo":
            flags = args[0] if args else kwargs.get("flags", 0)
            if not flags & socket.NI_NUMERICHOST:
                return real(host, *args, **kwargs)
            self._without_lookup.add(threading.get_ident())  # the audit event does not have the flags
            try:
                return real(host, *args, **kwargs)
            finally:
                self._without_lookup.discard(threading.get_ident())
        text = _text_of(host)
        self._check_name(text, f"{name}({text!r})")
        is_listed = self._is_allowed(text)
        found = real("localhost" if _is_below_localhost(text) and not is_listed else host, *args, **kwargs)
        if is_listed:
            self._resolved.update(_addresses(name, found))
        return found

    def _check_name(self, host: str, what: str) -> None:
        """Raises: neither allowed, nor known without a DNS query → NetworkBlocked."""
        if not (self._is_allowed(host) or is_own_name(host) or as_address(host) is not None):
            self._refuse(host, what)

    def _check_peer(self, host: str, what: str) -> None:
        address = as_address(host)
        if address is None:
            self._check_name(host, what)
        elif not (is_own_address(address) or host in self._resolved or self._is_allowed(host)):
            self._refuse(host, what)

    def _is_allowed(self, host: str) -> bool:
        host = host.lower().rstrip(".")
        return (
            ANY_HOST in self._allowed
            or host in self._allowed
            or any(host.endswith(pattern[1:]) for pattern in self._allowed if pattern.startswith("*."))
        )

    def _refuse(self, host: str, what: str) -> None:
        if not _is_telemetry(sys._getframe()):  # noqa: SLF001 - the stack of the call
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


def _is_telemetry(frame: FrameType | None) -> bool:
    """Whether a library reports on itself, from a thread of its own: it is refused, and no fault of the test that happens to run."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(TELEMETRY):
            return True
        frame = frame.f_back
    return False


def _text_of(host: Any) -> str:
    if host is None:
        return ""
    return host.decode("ascii", "replace") if isinstance(host, bytes | bytearray) else str(host)


def _is_below_localhost(host: str) -> bool:
    return host.lower().rstrip(".").endswith(".localhost")


def _addresses(name: str, found: Any) -> list[str]:
    if name == "getaddrinfo":
        return [str(row[4][0]) for row in found]
    return [found] if isinstance(found, str) else [str(address) for address in found[2]]
