"""Reading costs the same per character however long the text is, also when it was written to be dear."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from environments.tool_call_parsers import get_parser

HOSTILE = runpy.run_path(str(Path(__file__).parents[2] / "data" / "vllm_parsers" / "hostile.py"))
SMALL, FACTOR = 600, 8
SLACK = 1.3
"""How much more than eight times the operations eight times the text may take: fixed costs are already small at 600."""


def operations(parser: str, text: str) -> int:
    """How many functions are called, Python's and built-in ones, while a text is read."""
    count = 0

    def notice(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    reader = get_parser(parser)
    previous = sys.getprofile()
    sys.setprofile(notice)
    try:
        reader.parse(text)
    finally:
        sys.setprofile(previous)
    return count


@pytest.mark.parametrize(("parser", "name", "piece"), HOSTILE["all_pieces"]())
def test_operations_grow_with_the_text(parser, name, piece):
    """Eight times the text takes about eight times the operations."""
    small, large = (operations(parser, HOSTILE["hostile_text"](parser, name, piece, size)) for size in (SMALL, SMALL * FACTOR))

    assert large <= small * FACTOR * SLACK
    assert large <= SMALL * FACTOR * 30
