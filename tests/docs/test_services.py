"""The examples of docs/how-to/services.md and faults.md are correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = [Path(__file__).parents[2] / "docs" / "how-to" / name for name in ("services.md", "faults.md")]
EXAMPLES = [code for page in PAGES for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)]


@pytest.mark.parametrize("example", EXAMPLES, ids=[re.findall(r"def (test_\w+)", example)[0] for example in EXAMPLES])
def test_the_examples_pass(pytester: pytest.Pytester, example: str) -> None:
    """Each block of code is a file of passing tests."""
    pytester.makepyfile(example)

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=example.count("def test_"))
