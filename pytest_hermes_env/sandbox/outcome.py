"""What a command line ended with, in an in-memory machine."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Outcome"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a terminal shows of a command line: standard output and standard error in their order, and the exit code.

    ``errors`` is the standard error of one scripted command; a whole line's outcome has everything in ``output``.
    """

    output: str
    exit_code: int = 0
    errors: str = ""
