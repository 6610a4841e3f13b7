"""The example of docs/reference/token-mode.md is correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "token-mode.md"


def test_the_example_of_token_view_passes(pytester: pytest.Pytester) -> None:
    """The example is a passing test, and prints its spans."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = [block for block in blocks if "token_view(" in block]
    pytester.makepyfile(example)

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", "-s")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["* tokens: * prompt, * trained, * masked", "--- prompt, positions 0 to *", "--- masked, positions *"]
    )
