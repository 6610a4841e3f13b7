"""What rules read from the record of a scenario."""

from __future__ import annotations

from pytest_hermes_env.play.journal import Place, SurroundingChanged
from pytest_hermes_env.play.scenario import Scenario


def change(name: str, before: str | None, after: str | None) -> SurroundingChanged:
    """Return a change; its line is the length of what came after."""
    return SurroundingChanged(name=name, before=before, after=after, place=Place(path="env.py", line=len(after or "")))


def test_what_was_not_put_back_is_named_once() -> None:
    """With its first value, its last one, and the line of the last change."""
    events = (
        change("A", None, "1"),
        change("B", "old", "new"),
        change("A", "1", "22"),
        change("B", "new", "old"),
        change("cwd", "/", "/tmp"),
    )

    unrestored = Scenario(name="happy", events=events).unrestored

    assert [(found.name, found.before, found.after, found.place.line) for found in unrestored] == [
        ("A", None, "22", 2),
        ("cwd", "/", "/tmp", 4),
    ]
