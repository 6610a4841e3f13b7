"""The blocks of docs/how-to/record-and-replay.md belong together: a test, and the server that it is recorded from."""

from __future__ import annotations

import pytest

from .pages import on_page

TEST, SERVER = on_page("how-to/record-and-replay", "python")
RECORDED, REPLAYED = on_page("how-to/record-and-replay", "console")


def test_what_was_recorded_is_replayed(pytester: pytest.Pytester) -> None:
    """The test of the page is recorded from the server of the page, and passes without it, with the summaries of the page."""
    pytester.makepyfile(test_my_env=TEST)
    conftest = pytester.makeconftest(SERVER)

    recorded = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", "--hermes-record=once")
    conftest.unlink()
    replayed = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    for result, shown in ((recorded, RECORDED), (replayed, REPLAYED)):
        result.assert_outcomes(passed=1)
        assert shown.splitlines()[-1] in result.outlines
