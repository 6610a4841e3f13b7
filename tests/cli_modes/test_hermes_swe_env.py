"""HermesSweEnv from the command line, with the YAML file next to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from environments.hermes_swe_env import hermes_swe_env

SOLUTIONS = Path(__file__).parents[1] / "environments" / "hermes_swe_solutions.py"


@pytest.fixture
def program() -> list[str]:
    """What Python starts."""
    return [hermes_swe_env.__file__]


@pytest.fixture
def command(command: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """``command(mode, *flags, server=None)``: the command that starts HermesSweEnv on this machine."""
    settings = str(Path(hermes_swe_env.__file__).with_name("default.yaml"))
    return lambda mode, *flags, server: command(
        mode, "--config", settings, "--env.terminal_backend", "local", *flags, server=server
    )


@pytest.fixture
def solving_server() -> Iterator[Any]:
    """A mock model that solves every sample task."""
    from pytest_hermes_env.inference import MockServer, call, say

    def solve(conversation: Any) -> Any:
        if conversation.turn:
            return say("done")
        return call("write_file", path="solution.py", content=SOLUTIONS.read_text())

    with MockServer(solve, allow_leftovers=True) as server:
        yield server
    server.verify()


def test_evaluation_is_saved_and_warns_that_the_dataset_is_unreachable(run, solving_server, home):
    """Without a network, the sample tasks replace the YAML file's dataset, with a warning."""
    finished = run("evaluate", "--env.eval_size", "2", "--env.data_dir_to_save_evals", "evals", server=solving_server)

    metrics = json.loads((home / "evals" / "metrics.json").read_text())["results"]["all"]
    samples = [json.loads(line) for line in (home / "evals" / "samples.jsonl").read_text().splitlines()]
    assert finished.returncode == 0, finished.stderr
    assert metrics == {
        "eval/items": 2,
        "eval/errors": 0,
        "eval/mean_reward": 1.0,
        "eval/pass_rate": 1.0,
        "eval/mean_turns": 2.0,
        "eval/finished_rate": 1.0,
        "eval/mean_tool_errors": 0.0,
    }
    assert [(sample["score"], sample["turns"]) for sample in samples] == [(1.0, 2)] * 2
    assert "dataset_name 'bigcode/humanevalpack' cannot be reached" in finished.stderr


def test_process_writes_verified_groups_of_a_dataset_on_disk(run, solving_server, home):
    """One line per group, each rollout with its verdict; the prompt is in another column."""
    names = {"life": "[]) == []", "unique": "[1, 1]) == [1]", "caesar": "'a', 1) == 'b'"}
    rows = [{"text": f"Write {name}.", "test": f"assert {name}({test}", "entry_point": name} for name, test in names.items()]
    (home / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    flags = "--env.dataset_name rows.jsonl --env.prompt_field text --env.total_steps 2 --env.group_size 2"

    finished = run("process", *flags.split(), "--env.data_path_to_save_groups", "out.jsonl", server=solving_server)

    lines = [json.loads(line) for line in (home / "out.jsonl").read_text().splitlines()]
    assert finished.returncode == 0, finished.stderr
    assert [line["scores"] for line in lines] == [[1.0, 1.0]] * 2
    assert [line["messages"][0][1]["content"].splitlines()[0] for line in lines] == ["Write life.", "Write unique."]


def test_dataset_without_tests_ends_with_one_error_line(run, solving_server, home):
    """The program fails, and its last line names the columns."""
    (home / "rows.jsonl").write_text('{"prompt": "p", "answer": "a"}\n')

    finished = run("process", "--env.dataset_name", "rows.jsonl", server=solving_server)

    assert finished.returncode != 0
    assert finished.stderr.strip().splitlines()[-1] == (
        "ValueError: dataset_name 'rows.jsonl' has no tests: none of test, test_code, tests, test_list is among its columns "
        "['answer', 'prompt']. HermesSweEnv computes rewards from tests."
    )
