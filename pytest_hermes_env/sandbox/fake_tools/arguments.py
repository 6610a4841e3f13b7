"""Arguments of a tool call, which a model may write as text."""

from __future__ import annotations

__all__ = ["integer"]


def integer(value: object, default: int) -> int:
    """Return a model's argument as an integer, or ``default`` if it is not one."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]  # whatever a model sent
    except (TypeError, ValueError):
        return default
