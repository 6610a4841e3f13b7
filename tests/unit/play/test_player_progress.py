"""How far a class has been played, for whoever shows it."""

from __future__ import annotations

from pathlib import Path

from pytest_hermes_env.play.child import Job
from pytest_hermes_env.play.player import Played, _Progress


def test_the_last_scenario_is_said_again_until_another_begins(tmp_path: Path) -> None:
    """A line of progress counts seconds; a line that is not whole yet is read later."""
    part = tmp_path / "class-0.jsonl"
    said: list[Played | None] = []
    progress = _Progress(str(part), Job(target="env.py", scenarios=("a", "b")), said.append)
    texts = ['{"evidence": 2}\n{"begins": "a", "of": "a"}\n', "", '{"begins": "b"', ', "of": "b"}\n']

    for text in texts:
        with part.open("a") as file:
            file.write(text)
        progress.tell()

    assert [(one.begun, one.scenario) for one in said if one is not None] == [(1, "a"), (1, "a"), (1, "a"), (2, "b")]
