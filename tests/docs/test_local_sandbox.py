"""The examples and lists of docs/reference/local-sandbox.md are correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_hermes_env.sandbox.cell import KEYS_IN_HOME
from pytest_hermes_env.sandbox.cell_shell import PASSED_VARIABLES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "local-sandbox.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_examples_pass(pytester: pytest.Pytester) -> None:
    """Each block of code is a file of passing tests."""
    pytester.makepyfile(**{f"test_example_{number}": example for number, example in enumerate(EXAMPLES)})

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")

    result.assert_outcomes(passed="".join(EXAMPLES).count("def test_"))


def test_the_named_locations_are_hidden() -> None:
    """Each `~/...` on the page is in KEYS_IN_HOME."""
    named = {place.removeprefix("~/") for place in re.findall(r"`(~/[^`]+)`", TEXT)}

    assert named
    assert named - set(KEYS_IN_HOME) == set()


def test_the_named_variables_are_passed_on() -> None:
    """The page and the code list the same variables; LC_* means all that begin with LC_."""
    sentence = TEXT.partition("of the test run's variables")[2].partition(": no key")[0]
    named = set(re.findall(r"`([A-Z_*]+)`", sentence))

    assert named == {re.sub(r"^LC_.*", "LC_*", name) for name in PASSED_VARIABLES if name != "LANGUAGE"}
