"""A log of Inspect holds the rewards and messages of the file that it was made of."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.cli import main
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.pages.inspect_log import write_log

FIRST = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": [{"type": "text", "text": "Count the words."}]},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I need a shell.",
        "tool_calls": [
            {"id": "a", "function": {"name": "terminal", "arguments": '{"command": "wc -w x"}'}},
            {"id": "b", "function": {"name": "terminal", "arguments": '{"command": '}},
            {"id": "c", "function": {"name": "terminal", "arguments": "[1]"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "3 x"},
    {"role": "assistant", "content": "3"},
]
SECOND = [{"role": "user", "content": "Count the words."}, {"role": "critic", "content": "No answer."}]
GROUP = {"scores": [1.0, None], "messages": [FIRST, SECOND], "overrides": [{"end": "finished"}, {"end": "model_failed"}]}
SAMPLE = {"score": 0.25, "end": "finished", "messages": FIRST, "turns": 2}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A group of two rollouts, a broken line and a sample of an evaluation."""
    path = tmp_path / "groups.jsonl"
    path.write_text("\n".join([json.dumps(GROUP), "{broken", json.dumps(SAMPLE)]))
    return path


def exported(file: Path) -> Any:
    """Return the log as Inspect reads it."""
    log = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed: tox run -e inspect")
    assert main(["export", "--inspect", str(file), "--model", "m1"]) == 0
    return log.read_eval_log(file.with_suffix(".eval"))


def test_rewards_and_messages_come_back(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rollouts of one item are its epochs; the line that holds none is named; nothing else is left in the directory."""
    read = exported(file)

    first, sample, failed = read.samples  # Inspect sorts them by epoch
    assert [(one.id, one.epoch) for one in read.samples] == [(1, 1), (3, 1), (1, 2)]
    assert (first.scores["reward"].value, failed.scores, sample.scores["reward"].value) == (1.0, None, 0.25)
    assert (failed.error.message, failed.messages[1].metadata) == ("model_failed", {"role": "critic"})
    assert [message.role for message in first.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [message.text for message in first.messages] == ["Be short.", "Count the words.", "", "3 x", "3"]
    assert [message.text for message in first.input] == ["Be short.", "Count the words."]
    assert (first.messages[2].content[0].reasoning, first.messages[3].tool_call_id) == ("I need a shell.", "a")
    assert (first.output.completion, sample.metadata) == ("3", {"end": "finished", "turns": 2})
    assert (read.status, read.eval.model, read.eval.config.epochs) == ("success", "m1", 2)
    assert (read.results.total_samples, read.results.completed_samples) == (3, 2)
    assert read.results.scores[0].metrics["mean"].value == 0.625
    printed = capsys.readouterr()
    assert printed.err == f"hermes-env: line 2 of {file} is left out: this line is not JSON\n"
    assert printed.out == f"wrote {file.with_suffix('.eval')}\n"
    assert sorted(path.name for path in file.parent.iterdir()) == ["groups.eval", "groups.jsonl"]


def test_arguments_that_are_no_object_are_parse_errors(file: Path) -> None:
    """Their text is kept."""
    calls = exported(file).samples[0].messages[2].tool_calls

    assert [call.arguments for call in calls] == [{"command": "wc -w x"}, {}, {}]
    assert calls[0].parse_error is None
    assert calls[1].parse_error.startswith("Error parsing the tool call arguments: Expecting value")
    assert calls[1].parse_error.endswith('\n\n{"command": ')
    assert calls[2].parse_error == "Error parsing the tool call arguments: expected an object, got list\n\n[1]"


def test_end_times_are_those_of_the_file(file: Path) -> None:
    read = exported(file)

    written = int(file.stat().st_mtime)
    times = [read.stats.completed_at, *(sample.completed_at for sample in read.samples)]
    assert [datetime.fromisoformat(time).timestamp() for time in times] == [written] * 4


def test_without_inspect_the_error_names_the_extra(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)

    with pytest.raises(UsageError, match=r"(?s)--inspect requires inspect_ai .*pip install 'pytest-hermes-env\[inspect\]'"):
        write_log(file, file.with_suffix(".eval"))


def test_a_file_without_rollouts_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No empty log is written, and a page is no file of rollouts."""
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: tox run -e inspect")
    empty = tmp_path / "groups.jsonl"
    empty.write_text("\n")

    assert [main(["export", "--inspect", str(empty)]), main(["export", "--inspect", str(tmp_path / "x.html")])] == [2, 2]
    assert "groups.jsonl has no rollouts." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["groups.jsonl"]
