"""``process`` with a model whose one command nests more directories than Python's recursion allows: it trains, and so does the next run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_hermes_env.inference import MockServer, call, say

NESTING = "mkdir -p $(printf 'd/%.0s' $(seq 1500)); chmod 0 d"


def turn(conversation: Any) -> Any:
    """Nest, do what is asked, and say so."""
    if conversation.turn == 0:
        return call("terminal", command=f"{NESTING}; printf '%s' 'Hello from Hermes Agent' > greeting.txt")
    return say("Done.")


def test_two_runs_train_and_leave_nothing(run: Any, home: Path, tmp_path: Path) -> None:
    """The first run's directories are gone, or set aside, before or beside the second one's work."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with MockServer(turn, allow_leftovers=True) as server:
        for number in range(2):
            flags = ["--env.total_steps", "1", "--env.group_size", "2", "--env.data_path_to_save_groups", f"out/{number}.jsonl"]
            finished = run("process", *flags, server=server, TMPDIR=str(temporary))
            assert finished.returncode == 0, finished.stderr

    scores = [json.loads((home / "out" / f"{number}.jsonl").read_text())["scores"] for number in range(2)]
    left = [path.name for path in temporary.iterdir() if path.name.startswith("hermes-") and "-set-aside-" not in path.name]
    assert (scores, left) == ([[1.0, 1.0]] * 2, [])
