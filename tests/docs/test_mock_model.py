"""Every block of Python in the reference of the mock model runs unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "mock-model.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_runs(number: int) -> None:
    """The block is a complete program, and its assertions hold."""
    exec(compile(BLOCKS[number], f"mock-model.md, block {number + 1}", "exec"), {"__name__": "__main__"})


def test_there_are_blocks() -> None:
    """Without this, a page in which no block is found would pass."""
    assert len(BLOCKS) == 7
