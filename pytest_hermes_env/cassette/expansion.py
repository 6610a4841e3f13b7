"""Limits what the notation of a cassette may expand to: a few KB of nested sharing could otherwise fill any memory."""

from __future__ import annotations

from typing import Any

NODE = 50
"""What a list, an object or a number counts, in characters."""
MAX_SHARED = 256_000_000
"""Characters to which all shared values may expand; they are not copied, but every reader walks over them."""
MIN_WRITTEN, WRITTEN_PER_CHARACTER = 10_000_000, 20
"""Characters of texts that are put together from parts: at least, and for each character of the file."""
MIN_REPEATED, REPEATED_PER_CHARACTER = 10_000_000, 16
"""Items of lists that repeat those of earlier calls: at least, and for each character of the file."""


class TooLarge(ValueError):
    """A cassette would expand beyond every recording."""


class Expansion:
    """Counts what the notation of one file of ``length`` characters expands to. Raises `TooLarge` beyond the limits."""

    def __init__(self, length: int) -> None:
        self._sizes: dict[int, int] = {}
        self._shared = MAX_SHARED
        self._written = max(MIN_WRITTEN, WRITTEN_PER_CHARACTER * length)
        self._repeated = max(MIN_REPEATED, REPEATED_PER_CHARACTER * length)

    def defined(self, value: Any) -> None:
        """Note a value that others share. It must live as long as this object."""
        self._sizes[id(value)] = self._size(value)

    def shared(self, value: Any) -> None:
        """Count a use of a value that was `defined`."""
        self._shared -= self._sizes[id(value)]
        if self._shared < 0:
            raise TooLarge(f"its shared values expand to more than {MAX_SHARED:,} characters")

    def written(self, value: Any) -> None:
        """Count a value of which a text is made."""
        self._written -= self._size(value)
        if self._written < 0:
            raise TooLarge("its texts expand to many times the size of the file")

    def repeated(self, count: int) -> None:
        """Count items that a call repeats of an earlier one."""
        self._repeated -= count
        if self._repeated < 0:
            raise TooLarge("its repeated messages or ids expand to many times the size of the file")

    def _size(self, value: Any) -> int:
        """Return the size of a value as if nothing were shared, in characters; a shared part is looked at once."""
        total, waiting = 0, [value]
        while waiting:
            part = waiting.pop()
            known = self._sizes.get(id(part)) if isinstance(part, str | list | dict) else None
            if known is not None:
                total += known
            elif isinstance(part, str):
                total += len(part)
            elif isinstance(part, dict):
                total += NODE
                waiting += part.keys()
                waiting += part.values()
            elif isinstance(part, list):
                total += NODE
                waiting += part
            else:
                total += NODE
        return total
