"""The report that the reference page shows is what is printed. `tests/docs/test_blocks.py` runs its blocks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "results.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_report_that_it_shows_is_printed(pytester: pytest.Pytester) -> None:
    """The reward of the first example breaks where the model said nothing."""
    code = BLOCKS[0].partition("def test_")[0]
    pytester.makepyfile(line_count=code)
    pytester.makepyfile(
        """
        from line_count import LineCount
        from pytest_hermes_env import check_reward
        from pytest_hermes_env.strategies import agent_results

        def test_reward():
            check_reward(LineCount(), {"lines": "42"}, context=object, results=agent_results(min_turns=0))
        """
    )

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "error")

    result.assert_outcomes(failed=1)
    shown = re.search(r"    RewardProblem: (.*?)\n\n", TEXT, re.DOTALL)
    assert shown is not None
    printed = "\n".join(line.removeprefix("E").strip() for line in result.outlines)
    for line in shown.group(1).splitlines():
        assert line.strip().removeprefix("at        ") in printed
