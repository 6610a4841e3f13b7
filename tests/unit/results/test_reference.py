"""What the reference page shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "results.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COUNT = 8


def test_the_page_has_examples() -> None:
    """So that the tests below run something."""
    assert len(BLOCKS) == COUNT


@pytest.mark.parametrize("number", range(COUNT))
def test_every_example_runs(number: int, pytester: pytest.Pytester) -> None:
    """As a test module, without a warning."""
    block = BLOCKS[number]
    pytester.makepyfile(test_example=block if "def test_" in block else f"{block}\n\ndef test_nothing_raised(): pass\n")

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "error")

    result.assert_outcomes(passed=block.count("def test_") or 1)


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
