"""The examples and outputs of docs/how-to/http-doubles.md are correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "http-doubles.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(ERROR,) = re.findall(r"```\n(UnexpectedRequest.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=[re.findall(r"def (test_\w+)", example)[0] for example in EXAMPLES])
def test_the_examples_pass(pytester: pytest.Pytester, example: str) -> None:
    """Each block of code is a file of passing tests."""
    pytester.makepyfile(example)

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=example.count("def test_"))


def test_the_error_is_the_one_on_the_page(pytester: pytest.Pytester) -> None:
    """An unexpected request fails the test with the text of the page."""
    pytester.makepyfile(
        """
        import httpx

        def test_it(mock_http):
            mock_http.post("https://judge.example/v1/chat/completions").respond(json={})
            try:
                httpx.get("https://judge.example/v1/models")
            except Exception:
                pass
        """
    )

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(ERROR.splitlines(), consecutive=True)
