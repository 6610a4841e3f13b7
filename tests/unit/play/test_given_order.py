"""Whether a task already stands in the order that it asks for."""

from __future__ import annotations

import pytest

from pytest_hermes_env.play.cases.given_order import order_in, with_a_tie_turned

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


@pytest.mark.parametrize(
    ("text", "prompt", "expected"),
    [
        ("a1\nb2\nc3\nd4\ne5\nf6\n", "Flats that meet equally many may stand in any order.", "a1\nc3\nb2\nd4\ne5\nf6\n"),
        (
            '["a1", "b2", "c3", "d4", "e5", "f6"]',
            "In a tie the order does not matter.",
            '["a1", "c3", "b2", "d4", "e5", "f6"]',
        ),
        ("a1\nb2\nc3\nd4\ne5\nf6\n", "The best first.", ""),
        ("b2\na1\nc3\nd4\ne5\nf6\n", "Flats of the same grade may stand in either order.", ""),
    ],
    ids=["lines", "json", "not_said", "in_no_order"],
)
def test_equal_ones_may_be_exchanged(text: str, prompt: str, expected: str) -> None:
    """Where the prompt says so, and the item's own numbers are in gold's order."""
    grades = {"f6": 0, "c3": 4, "a1": 5, "b2": 4, "d4": 2, "e5": 1}
    item = {"id": 1, "flats": [{"name": name, "grade": grade, "lift": True} for name, grade in grades.items()]}

    assert with_a_tie_turned(text, item, prompt) == expected
