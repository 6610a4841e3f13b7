"""The fixture wandb_capture: what was logged, step by step."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import wandb

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from pytest_hermes_env import say
from pytest_hermes_env.atropos.wandb_runs import LoggedStep, LoggedTable, capturing_runs


def test_steps_have_numbers_texts_nested_values_and_tables(wandb_capture):
    """Calls with the same step are one, whatever their values."""
    table = wandb.Table(columns=["text", "score"], data=[["hi", 1.0], ["there", 0.5]])

    wandb.log({"a": 1, "deep": {"b": 2}}, step=3)
    wandb.log({"c": "x"}, step=3)
    wandb.log({"rollouts": table, "a": 0.5}, step=4)

    assert wandb_capture.steps == [
        LoggedStep(step=3, metrics={"a": 1, "deep": {"b": 2}, "c": "x"}),
        LoggedStep(
            step=4, metrics={"rollouts": LoggedTable(columns=["text", "score"], rows=[["hi", 1.0], ["there", 0.5]]), "a": 0.5}
        ),
    ]
    assert wandb_capture.values("a") == [1, 0.5]


def test_each_init_is_a_run(wandb_capture):
    """With its name, project, group and configuration."""
    for number in range(2):
        with wandb.init(name=f"n{number}", project="p", group="g", config={"lr": number}):
            wandb.log({"loss": number})

    assert [(run.name, run.project, run.group, run.config["lr"]) for run in wandb_capture.runs] == [
        ("n0", "p", "g", 0),
        ("n1", "p", "g", 1),
    ]
    assert [run.steps[0].metrics for run in wandb_capture.runs] == [{"loss": 0}, {"loss": 1}]


def test_training_run_logs_its_conversations(make_env, fake_sandbox, train_steps, wandb_capture):
    """`serve` starts a run in the trainer's project and logs each step, with the readable rollouts."""
    env: Any = make_env(
        TerminalTestEnv, script=[say("Hello there.")], ensure_scores_are_not_same=False, min_items_sent_before_logging=0
    )

    asyncio.run(train_steps(env, steps=3))

    (run,) = wandb_capture.runs
    assert (run.project, run.config["group_size"]) == ("trainer-double", 2)
    tables = wandb_capture.values("train/rollouts")
    assert tables[0].columns == ["text", "score"]
    assert "[ASSISTANT] Hello there." in tables[0].rows[0][0]


@pytest.mark.parametrize("end", [lambda: None, wandb.teardown], ids=["disabled", "torn down"])
def test_a_run_that_an_earlier_test_left_takes_no_line(end):
    """wandb.teardown() leaves it as the current run, which then fails at its first line."""
    wandb.init(mode="disabled")
    end()

    for number in range(2):
        with capturing_runs() as capture:
            wandb.log({"loss": number})
            assert capture.values("loss") == [number]
