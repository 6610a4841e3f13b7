"""Tells whether a host is this machine, without a DNS query."""

from __future__ import annotations

import ipaddress
import socket


def is_this_machine(host: str) -> bool:
    """Return whether a host name or address is this machine, as far as that is known without a DNS query.

    ``127.evil.com`` is a name like any other.
    """
    address = as_address(host)
    return is_own_name(host) if address is None else is_own_address(address)


def is_own_name(host: str) -> bool:
    """Return whether a name belongs to this machine: no name, localhost and all names below it (RFC 6761), or the machine's own."""
    name = host.lower().rstrip(".")
    return name in {"", "localhost", socket.gethostname().lower()} or name.endswith(".localhost")


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return a host as an address; None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def is_own_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether an address is loopback, or the address that stands for every interface."""
    mapped = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or address.is_unspecified or (mapped is not None and mapped.is_loopback)
