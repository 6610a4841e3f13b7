"""Which lines a function leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract.reachable_lines import lines_reached

SOURCE = """\
class Env:
    @property
    def first(self):
        return self.second()

    def second(self):
        return helper(self.first)

    def unrelated(self):
        return self.rewards.second()


def helper(value):
    return value
"""


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (1, set(range(1, 11))),
        (2, {2, 3, 4, 6, 7, 13, 14}),
        (3, {2, 3, 4, 6, 7, 13, 14}),
        (4, set()),
        (9, {9, 10}),
        (13, {13, 14}),
    ],
)
def test_a_function_leads_to_what_it_calls(tmp_path: Path, line: int, lines: set[int]) -> None:
    """Helpers of the same file are followed, also in a circle; a method of another object is not."""
    path = tmp_path / "env.py"
    path.write_text(SOURCE, encoding="utf-8")

    assert lines_reached(str(path), line) == lines


@pytest.mark.parametrize("text", ["def broken(:\n", ""])
def test_a_file_that_cannot_be_read_leads_nowhere(tmp_path: Path, text: str) -> None:
    """Neither what does not parse nor what is not there is an error."""
    path = tmp_path / "broken.py"
    if text:
        path.write_text(text, encoding="utf-8")

    assert lines_reached(str(path), 1) == frozenset()
