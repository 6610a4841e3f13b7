"""Strategy for short texts from a small alphabet that reveals mistakes and stays readable.

Hypothesis' default, all of Unicode, takes a second or more to start and writes files next to the tests.
"""

from __future__ import annotations

import string

from hypothesis import strategies as st

UNUSUAL = "ÄéßŁıſ½²“”—漢字א🙂\u0301\u200b\u2028\x00"
"""Letters that grow in upper case, digits that are not decimal, wide and combining characters, a line separator, NUL."""

ALPHABET = string.printable + UNUSUAL


def texts(min_size: int = 0, max_size: int = 20) -> st.SearchStrategy[str]:
    """Return a strategy for texts of ``min_size`` to ``max_size`` characters; the simplest consist of ``0``."""
    return st.text(ALPHABET, min_size=min_size, max_size=max_size)
