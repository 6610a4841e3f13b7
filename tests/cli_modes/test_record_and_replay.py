"""``hermes-env record`` and ``hermes-env replay``: the modes of the command line with a cassette."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERMES_ENV = (sys.executable, "-m", "pytest_hermes_env.cli")


@pytest.fixture
def on_cassette(command: Any, environ: dict[str, str], home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``on_cassette("replay", "evaluate", *flags, server=None, **extra)``: run a mode with a cassette."""

    def start(verb: str, mode: str, *flags: str, server: Any = None, **extra: str) -> subprocess.CompletedProcess[str]:
        words = [*HERMES_ENV, verb, "--cassette", "one.json", "--", *command(mode, *flags, server=server)]
        return subprocess.run(words, cwd=home, env=environ | extra, capture_output=True, text=True, timeout=240, check=False)

    return start


def told(finished: subprocess.CompletedProcess[str]) -> str:
    """Return the last lines of hermes-env's output."""
    return finished.stderr[finished.stderr.rindex("hermes-env: ") :]


ELSEWHERE = (
    "--openai.base_url",
    "http://gone.invalid/v1",
    "--openai.model_name",
    "mock-model",
    "--openai.health_check",
    "false",
)
"""Another address of the same model; its host name does not exist."""

NOT_A_COMMAND = f"""hermes-env: error: nothing was replayed: `{sys.executable} -c pass` ended with exit code 0 and built no environment.
  expected  a command that starts Python, also through uv run or a script, and builds a Hermes environment
  seen      no class below HermesAgentBaseEnv was built in a Python process that heeds PYTHONPATH (-I and -E do not)
  fix       see the command's output above; then hermes-env replay -- python my_env.py evaluate
"""


def test_groups_are_replayed_without_their_server(on_cassette, solving_server, home):
    """process writes the same groups from the cassette, without server and key; a difference ends with 1 and a diff."""
    flags = ["--env.total_steps", "2", "--env.group_size", "2", "--env.data_path_to_save_groups"]
    recorded = on_cassette("record", "process", *flags, "first.jsonl", server=solving_server)
    solving_server.stop()

    replayed = on_cassette("replay", "process", *flags, "second.jsonl", *ELSEWHERE, OPENROUTER_API_KEY="")
    changed = on_cassette("replay", "process", *flags, "third.jsonl", *ELSEWHERE, "--env.agent_temperature", "0.25")

    first, second = (
        [json.loads(line)["scores"] for line in (home / name).read_text().splitlines()]
        for name in ("first.jsonl", "second.jsonl")
    )
    assert (recorded.returncode, replayed.returncode, changed.returncode) == (0, 0, 1), recorded.stderr + replayed.stderr
    assert re.sub(r"\d+ KB", "N KB", told(recorded)) == (
        "hermes-env: one.json was written: 16 calls, 4 rollouts, rewards 1, 1, 1, 1, N KB\n"
    )
    assert told(replayed) == "hermes-env: one.json was replayed: 16 calls, 4 rollouts, rewards 1, 1, 1, 1, all as recorded\n"
    assert first == second == [[1.0, 1.0]] * 2
    assert "  differs   the temperature: recorded 1.0, now 0.25\n" in told(changed)
    assert " hermes-env record --cassette one.json -- " in told(changed)


def test_a_command_that_builds_no_environment_is_an_error(home, environ):
    """A command that is not an environment is reported with its exit code, and never counts as a replay."""
    header = {"recorded_at": "2026-01-01T00:00:00+00:00", "recorded_from": "nobody"}
    (home / "one.json").write_text(json.dumps({"hermes_cassette": 1, "calls": 0, "header": header, "rollouts": [], "tape": []}))

    words = [*HERMES_ENV, "replay", "--cassette", "one.json", "--", sys.executable, "-c", "pass"]
    finished = subprocess.run(words, cwd=home, env=environ, capture_output=True, text=True, check=False)

    assert (finished.returncode, finished.stderr) == (1, NOT_A_COMMAND)
