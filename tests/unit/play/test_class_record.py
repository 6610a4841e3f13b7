"""Where a class or function is written, as its record says."""

from __future__ import annotations

from pathlib import Path

from pytest_hermes_env.play.class_record import place_of


def plain(function: object) -> object:
    """Decorate nothing."""
    return function


@plain
@plain
class Decorated:
    """A class below decorators."""

    short = lambda self: 1  # noqa: E731

    def method(self) -> None:
        """Follow a lambda."""


class Outer:
    """
    class Outer: a text of a docstring, so that two lines look like the beginning.
    """

    class Decorated:
        """Another class of a name that is there already."""


def test_a_class_is_found_where_two_lines_look_like_it() -> None:
    """By its own statement, not by a line with its name."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()

    assert lines[place_of(Outer).line - 1] == "class Outer:"
    assert lines[place_of(Outer.Decorated).line - 1] == "    class Decorated:"


def test_decorators_are_left_out_and_a_lambda_is_its_own_line() -> None:
    """The line of ``class`` or ``def``; that of a lambda is not the next method's."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    seen = [lines[place_of(thing).line - 1].strip() for thing in (Decorated, Decorated.short, Decorated.method)]

    assert [line.split("  #")[0] for line in seen] == [
        "class Decorated:",
        "short = lambda self: 1",
        "def method(self) -> None:",
    ]
