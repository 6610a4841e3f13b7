"""HermesSweEnv as a whole: settings, rollouts, evaluation, metrics, in hermes' real local terminal."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from environments.hermes_swe_env import hermes_swe_env
from environments.hermes_swe_env.coding_items import sample_tasks
from environments.hermes_swe_env.hermes_swe_env import HermesSweEnv, HermesSweEnvConfig
from pytest_hermes_env.inference import call, say
from tests.environments.captured_metrics import capturing_wandb

ALL_SOLUTIONS = Path(__file__).with_name("hermes_swe_solutions.py").read_text()
NO_MODEL = "http://127.0.0.1:9/v1"


def solve(conversation: Any) -> Any:
    """Write a file that solves every sample task."""
    return say("done") if conversation.turn else call("write_file", path="solution.py", content=ALL_SOLUTIONS)


def run(make_env: Any, act: Any, **settings: Any) -> Any:
    async def scenario() -> Any:
        env = make_env(HermesSweEnv, **({"dataset_name": None, "eval_size": 2} | settings))
        await env.setup()
        return await act(env)

    return asyncio.run(scenario())


# ---------------------------------------------------------------------- settings


def test_config_init_is_that_of_its_namesake():
    """Who has a configuration for hermes-agent's former environment finds every setting as it was."""
    config, servers = HermesSweEnv.config_init()

    expected = {
        "enabled_toolsets": ["terminal", "file", "web"],
        "max_agent_turns": 30,
        "max_token_length": 4096,
        "group_size": 4,
        "terminal_backend": "modal",
        "tool_call_parser": "hermes",
        "tokenizer_name": "NousResearch/DeepHermes-3-Llama-3-3B-Preview",
        "dataset_name": "bigcode/humanevalpack",
        "dataset_split": "test",
        "prompt_field": "prompt",
        "steps_per_eval": 50,
        "total_steps": 500,
        "use_wandb": True,
        "wandb_name": "hermes-swe",
    }
    assert (HermesSweEnv.name, type(config)) == ("hermes-swe", HermesSweEnvConfig)
    assert {name: getattr(config, name) for name in expected} == expected
    assert [(server.base_url, server.server_type, server.health_check) for server in servers] == [
        ("http://localhost:8000/v1", "openai", False)
    ]


def test_default_yaml_says_what_config_init_says():
    """The YAML file next to it names only fields that exist, and changes nothing but the configuration of the data set."""
    from environments.command_line.settings import settings_of

    path = os.path.join(os.path.dirname(hermes_swe_env.__file__), "default.yaml")

    plain, from_yaml = settings_of(HermesSweEnv, "serve", []), settings_of(HermesSweEnv, "serve", [], path)

    assert from_yaml.env.model_dump() == {**plain.env.model_dump(), "dataset_config": "python"}
    assert [server.model_dump() for server in from_yaml.servers] == [server.model_dump() for server in plain.servers]


# ---------------------------------------------------------------------- items


def test_items_go_round_and_none_of_them_is_held_out(make_env):
    """No task is both trained on and evaluated."""

    async def act(env: Any) -> Any:
        taken = [await env.get_next_item() for _ in range(2 * len(env.train_items))]
        return env.train_items, env.eval_items, taken

    train, held_out, taken = run(make_env, act, server=NO_MODEL, eval_size=None)

    assert (train + held_out, len(held_out), taken) == (list(sample_tasks()), 10, train + train)


# ---------------------------------------------------------------------- a fresh sandbox


WORKS = {"exit_code": 0, "output": "/work\n"}


@pytest.fixture
def fresh_sandbox(tool_answers: Any) -> Any:
    """``fresh_sandbox(files, pwd)``: what a sandbox of another backend says before anybody worked in it."""

    def install(files: list[str], pwd: dict[str, Any] = WORKS) -> None:
        answers = {"search_files": {"files": files}, "terminal": pwd}
        tool_answers(lambda name, arguments: json.dumps(answers[name]))

    return install


def test_python_files_of_the_image_are_remembered(make_env, fresh_sandbox):
    """Relative to where the rollouts begin; paths that lead elsewhere are none of them."""
    fresh_sandbox(["/work/setup.py", "/work/lib/a.py", "/else/b.py", "/work/notes.txt"])

    async def act(env: Any) -> Any:
        return env.start_directory, env.files_at_start

    assert run(make_env, act, server=NO_MODEL) == ("/work", frozenset({"setup.py", "lib/a.py"}))


def test_image_that_holds_a_solution_is_refused(make_env, fresh_sandbox):
    """Nobody could tell whose work it is."""
    fresh_sandbox(["/work/solution.py"])

    with pytest.raises(RuntimeError) as raised:
        run(make_env, None, server=NO_MODEL)

    assert (
        str(raised.value)
        == "A new sandbox already contains /work/solution.py, which could not be distinguished from the agent's work"
    )


@pytest.mark.parametrize("said", [{"error": "no Docker", "output": ""}, {"output": "no Docker"}])
def test_backend_that_does_not_work_is_noticed_in_setup(make_env, fresh_sandbox, said):
    """Before the first rollout, not as a reward of 0.0 in every one."""
    fresh_sandbox([], {"exit_code": -1, **said})

    with pytest.raises(RuntimeError) as raised:
        run(make_env, None, server=NO_MODEL)

    assert str(raised.value) == "No command can be run in a sandbox of terminal_backend 'local': no Docker"


# ---------------------------------------------------------------------- rollouts


def test_group_is_scored_by_its_own_sandboxes(make_env):
    """Each rollout by what it wrote itself, at the same time as the others."""
    turns: list[Any] = [
        call("write_file", path="solution.py", content=ALL_SOLUTIONS),
        call("write_file", path="solution.py", content="def count_vowels(text): return 3\n"),
        call("terminal", command="mkdir sub && cd sub && echo 'x = 1' > main.py"),
        say("The solution is 3."),
    ]

    def policy(conversation: Any) -> Any:
        return say("done") if conversation.turn else turns.pop()

    async def act(env: Any) -> Any:
        return await env.collect_trajectories(env.train_items[0])

    group, backlog = run(make_env, act, script=policy, group_size=4)

    assert (sorted(group["scores"]), backlog) == ([0.0, 0.1, 0.1, 1.0], [])
    solved = group["messages"][group["scores"].index(1.0)]
    assert [message["role"] for message in solved] == ["system", "user", "assistant", "tool", "assistant"]


@pytest.mark.hermes_allow_leftovers
def test_tests_that_decide_nothing_are_counted_as_a_reward_error(make_env):
    """And kept apart from an honest 0.0."""

    async def act(env: Any) -> Any:
        group, _ = await env.collect_trajectories({"prompt": "p", "test": "1 +", "entry_point": "life"})
        return group["scores"], env._reward_errors

    assert run(make_env, act, script=solve) == ([0.0, 0.0], 2)


# ---------------------------------------------------------------------- evaluation


def test_metrics_are_those_of_training_since_the_last_call(make_env):
    """Means of the buffer, which is then empty; Atropos' own metrics go along."""

    async def act(env: Any) -> Any:
        env.reward_buffer.extend([1.0, 0.5])
        with capturing_wandb(env) as logged:
            await env.wandb_log({"mine": 1})
            await env.wandb_log()
        return logged

    first, second = run(make_env, act, server=NO_MODEL)

    assert first == {
        "mine": 1,
        "train/mean_reward": 0.75,
        "train/pass_rate": 0.5,
        "train/tool_errors_count": 0,
        "train/reward_errors": 0,
    }
    assert second == {"train/tool_errors_count": 0, "train/reward_errors": 0}
