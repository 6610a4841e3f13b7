"""A stand-in with the interface of the warm real shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["Entry", "Ran", "RealShell"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    kind: Literal["file", "directory", "link"]
    data: bytes = b""
    target: str = ""
    mode: int = 0o644
    changed_ns: int = 0


@dataclass(frozen=True, kw_only=True)
class Ran:
    output: bytes
    exit_code: int
    cwd: str
    variables: Mapping[str, str]
    changed: Mapping[str, Entry | None]
    read: frozenset[str]
    timed_out: bool = False
    limit: str = ""


class RealShell:
    def run(
        self,
        command: str,
        *,
        cwd: str,
        variables: Mapping[str, str],
        changed: Mapping[str, Entry | None],
        timeout: float,
        stdin: bytes = b"",
    ) -> Ran:
        raise NotImplementedError

    def start(self, command: str, *, cwd: str, variables: Mapping[str, str], changed: Mapping[str, Entry | None]) -> int:
        raise NotImplementedError

    def poll(self, number: int) -> tuple[bytes, int | None]:
        raise NotImplementedError

    def write(self, number: int, data: bytes) -> None:
        raise NotImplementedError

    def kill(self, number: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
