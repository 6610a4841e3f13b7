"""The exception by which a part of the in-memory shell says that only real bash can answer."""

from __future__ import annotations

__all__ = ["NotExact"]


class NotExact(Exception):
    """The text names what the in-memory shell does not answer exactly as bash does. `Shell.run` makes a `NotKnown` of it."""
