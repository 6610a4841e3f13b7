"""The one error that reports all problems of a test."""

from __future__ import annotations

from pytest_hermes_env.errors import CassetteMiss, LeftoverTurns, UsageError
from pytest_hermes_env.failures import Problem, combined_error


def told(*problems: Problem) -> str:
    """Return the text of the error for the problems."""
    return str(combined_error(problems, who="the replay"))


def test_the_places_of_one_problem_are_listed_in_the_order_of_their_numbers() -> None:
    """Rollouts run at once: the order in which they fail says nothing."""
    problems = [Problem(error=CassetteMiss, text="not recorded", where=f"rollout {number}") for number in (10, 1, 2, 10)]

    assert told(*problems) == "not recorded\n  where     rollout 1; rollout 2; rollout 10 (2 times)"


def test_different_problems_are_numbered() -> None:
    """The error has the class of the first."""
    text = told(Problem(error=UsageError, text="one"), Problem(error=CassetteMiss, text="two"))

    assert text == "the replay reports 2 problems.\n\n1. UsageError: one\n\n2. CassetteMiss: two"


def test_no_problem_is_no_error() -> None:
    """There is nothing to report."""
    assert combined_error([], who="the replay") is None


def test_many_problems_are_counted():
    """Three are shown: the first ones are the causes."""
    error = combined_error([Problem(error=CassetteMiss, text=f"miss {number}") for number in range(5)], who="the replay")

    assert str(error) == (
        "the replay reports 5 problems.\n\n1. CassetteMiss: miss 0\n\n2. CassetteMiss: miss 1\n\n3. CassetteMiss: miss 2\n\nand 2 more"
    )


def test_what_follows_from_another_problem_or_differs_in_an_id_is_not_listed():
    """A group sends the same request from each of its directories; an unused turn says nothing where an earlier one failed."""
    text = told(
        Problem(error=LeftoverTurns, text="unused"),
        Problem(error=UsageError, text="no answer in /tmp/hermes-0123abcd-1"),
        Problem(error=UsageError, text="no answer in /tmp/hermes-4567cdef-2"),
    )

    assert text == "no answer in /tmp/hermes-0123abcd-1\n  repeated  2 times"
