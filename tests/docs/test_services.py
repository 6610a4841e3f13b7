"""The examples of docs/how-to/services.md are correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "services.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=[re.findall(r"def (test_\w+)", example)[0] for example in EXAMPLES])
def test_the_examples_pass(pytester: pytest.Pytester, example: str) -> None:
    """Each block of code is a file of passing tests."""
    pytester.makepyfile(example)

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=example.count("def test_"))
