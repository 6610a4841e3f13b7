"""TerminalTestEnv, the environment that people copy: rewards, split, evaluation, metrics."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from environments.terminal_test_env import terminal_test_env
from environments.terminal_test_env.terminal_test_env import TASKS, TerminalTestEnv, TerminalTestEnvConfig
from pytest_hermes_env.inference import call, say
from tests.environments.captured_metrics import capturing_wandb


def solve(conversation: Any) -> Any:
    """Write the file that the prompt asks for."""
    if conversation.turn:
        return say("done")
    task = next(
        task for task in TASKS if task["content"] in conversation.first_user and task["path"] in conversation.first_user
    )
    return call("write_file", path=task["path"], content=task["content"])


def run(make_env: Any, act: Any, **settings: Any) -> Any:
    async def scenario() -> Any:
        env = make_env(TerminalTestEnv, **settings)
        await env.setup()
        return await act(env)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("written", "reward"),
    [("42", 1.0), ("42\n", 1.0), ("42\n\n", 1.0), ("the answer is 42", 0.5), ("41", 0.0), ("", 0.0), (None, 0.0)],
)
def test_reward_looks_into_the_sandbox(make_env, written, reward):
    """1.0 for exactly the content, 0.5 for content among other text, else 0.0: whatever the agent says."""
    turns = [say("I wrote 42 into answer.txt.")]
    if written is not None:
        turns.insert(0, call("write_file", path="answer.txt", content=written))

    async def act(env: Any) -> Any:
        return await env.collect_trajectories({"path": "answer.txt", "content": "42"})

    group, _ = run(make_env, act, script=turns)

    assert group["scores"] == [reward, reward]


def test_every_task_can_be_solved_with_the_terminal(make_env):
    """The tasks are sound: writing what is asked gives 1.0 in each."""

    async def act(env: Any) -> Any:
        groups = await asyncio.gather(*(env.collect_trajectories(task) for task in TASKS))
        return [group["scores"] for group, _ in groups]

    assert run(make_env, act, script=solve) == [[1.0, 1.0]] * len(TASKS)


@pytest.mark.parametrize("size", range(1, len(TASKS)))
def test_split_is_disjoint_and_complete(make_env, size):
    """No task is both trained on and evaluated; items go round and round."""

    async def act(env: Any) -> Any:
        taken = [await env.get_next_item() for _ in range(2 * len(env.train_items))]
        return env.train_items, env.eval_items, taken

    train, held_out, taken = run(make_env, act, server="http://127.0.0.1:9/v1", eval_size=size)

    assert (train + held_out, len(held_out), taken) == (TASKS, size, train + train)


@pytest.mark.parametrize("size", [0, len(TASKS)])
def test_split_needs_both_sides(size):
    """An evaluation of nothing, or of everything, is refused."""
    with pytest.raises(ValueError, match="eval_size"):
        TerminalTestEnvConfig(eval_size=size)


def test_config_init_gives_a_list_and_takes_the_key_from_the_environment(monkeypatch):
    """The key is never in the source."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "from-the-environment")

    config, servers = TerminalTestEnv.config_init()

    assert (type(config), config.enabled_toolsets, config.use_wandb) == (TerminalTestEnvConfig, ["terminal", "file"], False)
    assert [(server.api_key, server.server_type, server.health_check) for server in servers] == [
        ("from-the-environment", "openai", False)
    ]


def test_default_yaml_is_valid():
    """The YAML file beside it names only fields that exist, with values that they take."""
    from environments.command_line.settings import settings_of

    path = os.path.join(os.path.dirname(terminal_test_env.__file__), "default.yaml")

    settings = settings_of(TerminalTestEnv, "process", path, ["process"])

    assert (settings.env.total_steps, settings.servers[0].server_type) == (8, "openai")


def results_of(directory: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    metrics = json.loads((directory / "metrics.json").read_text())["results"]["all"]
    return metrics, [json.loads(line) for line in (directory / "samples.jsonl").read_text().splitlines()]


def test_evaluation_is_agentic_greedy_and_logged(make_env, mock_server, tmp_path):
    """The held-out tasks run through the loop with tools at temperature 0; metrics and samples are written."""
    mock_server.add(solve)
    run(make_env, lambda env: env.evaluate(), server=mock_server, data_dir_to_save_evals=str(tmp_path))

    metrics, samples = results_of(tmp_path)
    requests = [entry.request for entry in mock_server.journal]
    assert metrics == {
        "eval/items": 3,
        "eval/errors": 0,
        "eval/mean_reward": 1.0,
        "eval/pass_rate": 1.0,
        "eval/mean_turns": 2.0,
        "eval/finished_rate": 1.0,
        "eval/mean_tool_errors": 0.0,
    }
    assert [(sample["score"], sample["turns"], sample["finished"]) for sample in samples] == [(1.0, 2, True)] * 3
    assert [message["role"] for message in samples[0]["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert {request["temperature"] for request in requests} == {0.0}
    assert all(request["tools"] for request in requests)


@pytest.mark.parametrize("beside", [False, True])
def test_evaluation_leaves_no_trace_in_training_metrics(make_env, beside):
    """Buffers hold training rewards only, also when training runs at the same time."""

    async def act(env: Any) -> Any:
        env.reward_buffer.append(0.25)
        training = [env.collect_trajectories(env.train_items[0])] if beside else []
        await asyncio.gather(env.evaluate(), *training)
        return env.reward_buffer, env._tool_error_buffer, env._reward_errors, env.next_index

    assert run(make_env, act, script=solve) == ([0.25, *([1.0, 1.0] if beside else [])], [], 0, 0)


def test_metrics_are_those_of_training_since_the_last_call(make_env):
    """Means of the buffer, which is then empty; Atropos' own metrics go along."""

    async def act(env: Any) -> Any:
        env.reward_buffer.extend([1.0, 0.5])
        with capturing_wandb(env) as logged:
            await env.wandb_log({"mine": 1})
            await env.wandb_log()
        return logged

    first, second = run(make_env, act, server="http://127.0.0.1:9/v1")

    assert first == {
        "mine": 1,
        "train/mean_reward": 0.75,
        "train/pass_rate": 0.5,
        "train/tool_errors_count": 0,
        "train/reward_errors": 0,
    }
    assert second == {"train/tool_errors_count": 0, "train/reward_errors": 0}
