"""The output on docs/how-to/http-doubles.md is real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "http-doubles.md").read_text(encoding="utf-8")
(ERROR,) = re.findall(r"```text\n(UnexpectedRequest.*?)```", PAGE, re.DOTALL)


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
