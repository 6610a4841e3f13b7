"""Strategy of short texts from a small alphabet: what shows mistakes in programs, and can still be read.

Hypothesis' own default, all of Unicode, takes a second or more to begin with and keeps files of its own beside the tests.
"""

from __future__ import annotations

import string

from hypothesis import strategies as st

__all__ = ["texts"]

STRANGE = "ÄéßŁıſ½²“”—漢字א🙂\u0301\u200b\u2028\x00"
"""Letters that grow in upper case, digits that are no numbers, wide and joining characters, an end of line, a zero."""

ALPHABET = string.printable + STRANGE


def texts(min_size: int = 0, max_size: int = 20) -> st.SearchStrategy[str]:
    """Return texts of ``min_size`` to ``max_size`` characters; the plainest ones are made of ``0``."""
    return st.text(ALPHABET, min_size=min_size, max_size=max_size)
