"""TerminalTestEnv, the environment that people copy: rewards, split, evaluation, metrics."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from environments.terminal_test_env.terminal_test_env import TASKS, TerminalTestEnv, TerminalTestEnvConfig
from pytest_hermes_env.inference import call, say


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
