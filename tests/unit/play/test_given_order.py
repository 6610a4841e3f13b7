"""Whether a task already stands in the order that it asks for."""

from __future__ import annotations

import pytest

from pytest_hermes_env.play.cases.given_order import order_in

LISTED = "Rank the flats, the best first.\n\nN5: two lifts\nF9: a lift\nD7: no lift\nP6: no door\n"


@pytest.mark.parametrize(
    ("text", "prompt", "given", "expected"),
    [
        ("N5\nF9\nD7\nP6\n", LISTED, LISTED, "kept"),
        ("1. P6\n2. D7\n3. F9\n4. N5\n", LISTED, LISTED, "turned"),
        ('["F9", "N5", "D7", "P6"]', LISTED, LISTED, "other"),
        ("I compared them.\nROUTE: N5 > F9 > D7 > P6", "Find the shortest round.", LISTED, "kept"),
        ("N5\nF9\nP6", LISTED, LISTED, ""),
        ("N5\nF9\nD7\nP6\n", "Write the flats down.", LISTED, ""),
        ("N5\nF9\nD7\nP6\n", "Sort out the flats, in the given order.", LISTED, ""),
        ("N5\nF9\nD7\nP6\n", LISTED, LISTED.replace("D7", "X1: none\nD7"), ""),
        ("N5\nF9\nD7\nP6\n", LISTED, f"{LISTED}N5 is the first\n", ""),
    ],
    ids=["kept", "turned", "other", "in_a_line", "few", "nothing_asked", "order_given", "some_of_them", "twice"],
)
def test_an_order_is_compared_with_the_one_that_is_given(text: str, prompt: str, given: str, expected: str) -> None:
    """Only where all of a list is to be put into an order, and nothing is chosen from it."""
    assert order_in(text, prompt, [given]) == expected
