"""No network but loopback, and no dataset cache, while a context lasts: what a machine in CI has.

Connections and name look-ups fail at once. Hugging Face's libraries, where they are loaded, believe that they are offline and
find empty caches, so that what this computer happens to have cached does not hide a download.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["no_network"]

_SWITCHES = (("huggingface_hub.constants", "HF_HUB_OFFLINE"), ("datasets.config", "HF_HUB_OFFLINE"))
_CACHES = (
    ("huggingface_hub.constants", "HF_HUB_CACHE"),
    ("huggingface_hub.constants", "HUGGINGFACE_HUB_CACHE"),
    ("datasets.config", "HF_DATASETS_CACHE"),
    ("datasets.config", "HF_MODULES_CACHE"),
)
"""Module and name of what those libraries read when they are asked for something. Source: huggingface_hub and datasets."""


class NoNetwork(ConnectionError):
    """A connection was tried while there is no network."""


@contextlib.contextmanager
def no_network() -> Iterator[list[str]]:
    """Let every connection to another machine fail, and collect the names of the hosts that were asked for."""
    asked: list[str] = []
    real_connect, real_connect_ex, real_look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def connect(self: socket.socket, address: Any) -> None:
        _check(self, address, asked)
        real_connect(self, address)

    def connect_ex(self: socket.socket, address: Any) -> int:
        _check(self, address, asked)
        return real_connect_ex(self, address)

    def look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if not _is_here(name):
            asked.append(str(name))
            raise socket.gaierror(socket.EAI_NONAME, f"no network in this scenario: {name} was asked for")
        return real_look_up(host, *args, **kwargs)

    with tempfile.TemporaryDirectory(prefix="hermes-env-offline-") as empty, _huggingface_offline(Path(empty)):
        socket.socket.connect, socket.socket.connect_ex = connect, connect_ex  # type: ignore[method-assign,assignment]
        socket.getaddrinfo = look_up
        try:
            yield asked
        finally:
            socket.socket.connect, socket.socket.connect_ex = real_connect, real_connect_ex  # type: ignore[method-assign]
            socket.getaddrinfo = real_look_up


def _check(connection: socket.socket, address: Any, asked: list[str]) -> None:
    if connection.family in {socket.AF_INET, socket.AF_INET6} and not _is_here(address[0]):
        asked.append(str(address[0]))
        raise NoNetwork(f"no network in this scenario: {address[0]} was asked for")


def _is_here(host: str | None) -> bool:
    if host in {None, "", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


@contextlib.contextmanager
def _huggingface_offline(empty: Path) -> Iterator[None]:
    """Switch the libraries that are loaded. One that is loaded meanwhile only meets the closed network."""
    kept: list[tuple[Any, str, Any]] = []
    late = [(name, attribute) for name, attribute in _SWITCHES if name not in sys.modules]
    for modules, value in ((_SWITCHES, True), (_CACHES, None)):
        for name, attribute in modules:
            module = sys.modules.get(name)
            if module is not None and hasattr(module, attribute):
                held = getattr(module, attribute)
                kept.append((module, attribute, held))
                setattr(module, attribute, value or type(held)(empty / attribute.lower()))
    try:
        yield
    finally:
        for module, attribute, held in kept:
            setattr(module, attribute, held)
        hub: Any = sys.modules.get("huggingface_hub.constants")
        for name, attribute in late:
            if name in sys.modules and hub is not None:
                setattr(sys.modules[name], attribute, hub.HF_HUB_OFFLINE)  # it was loaded offline and would stay so
