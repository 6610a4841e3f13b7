"""What the commands of one sandbox may use: CPU time, memory, processes and disk."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pytest_hermes_env.errors import UsageError, shorten

__all__ = ["Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that confined commands may use.

    ``cpu_s``: seconds of CPU time of each process. ``memory_bytes``: memory of all processes together, and the data of each.
    ``processes``: processes at a time. ``disk_bytes``: files of the sandbox together.
    """

    cpu_s: int = 600
    memory_bytes: int = 4 << 30
    processes: int = 256
    disk_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        """Raises: a limit is not a positive whole number → UsageError."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise UsageError(
                    f"Limits cannot use {field.name} = {shorten(value)}.\n"
                    "  expected  a positive whole number\n"
                    f"  fix       for example Limits({field.name}={field.default})"
                )
