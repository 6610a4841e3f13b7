"""Arguments of a tool call, which a model may write as text."""

from __future__ import annotations

__all__ = ["integer"]


def integer(value: object, default: int) -> int:
    """Return what a model sent as a number, or ``default`` where it is none."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]  # whatever a model sent
    except (TypeError, ValueError):
        return default
