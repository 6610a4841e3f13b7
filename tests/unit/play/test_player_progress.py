"""How far a class has been played, for whoever shows it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_hermes_env.play.child import Job
from pytest_hermes_env.play.player import Played, _Progress


def test_the_last_scenario_is_said_again_until_another_begins(tmp_path: Path) -> None:
    """A line of progress counts seconds; a line that is not whole yet is read later."""
    part = tmp_path / "class-0.jsonl"
    said: list[Played | None] = []
    progress = _Progress(str(part), Job(target="env.py", scenarios=("a", "b")), said.append)
    ended = '{"scenario": {"$": "Scenario", "name": "a", "events": []}}\n'
    texts = ['{"evidence": 2}\n{"begins": "a", "of": "a"}\n', "", '{"begins": "b"', f', "of": "b"}}\n{ended}', ended]

    for text in texts:
        with part.open("a") as file:
            file.write(text)
        progress.tell()

    assert [(one.ended, one.scenario) for one in said if one is not None] == [(0, "a"), (0, "a"), (0, "a"), (1, "b"), (1, "b")]


def test_what_blocks_is_named_once(tmp_path: Path) -> None:
    """A silent child is asked for its stack, and the line next to the class is told until it gives a sign of life."""
    part, stack, said = tmp_path / "class-0.jsonl", tmp_path / "stack", []
    part.write_text('{"begins": "happy", "of": "happy"}\n')
    target = tmp_path / "env.py"

    def show() -> None:
        stack.write_text(f'  File "/usr/lib/time.py", line 1 in sleep\n  File "{target}", line 7 in compute_reward\n')
        asked.append(True)

    asked: list[bool] = []
    child: Any = SimpleNamespace(is_silent=True, stack=str(stack), show_stack=show)
    progress = _Progress(str(part), Job(target=f"{target}:Env", scenarios=("happy",)), said.append)

    progress.tell(child)
    progress.tell(child)
    child.is_silent = False
    progress.tell(child)

    assert [one.blocked for one in said] == ["env.py:7 compute_reward", "env.py:7 compute_reward", ""]
    assert (len(asked), stack.read_text()) == (1, "")
