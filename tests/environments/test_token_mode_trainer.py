"""From a rollout to the trainer's batch, through Atropos' own run-api."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from pytest_hermes_env.atropos.run_api import RunApiThread
from pytest_hermes_env.inference import call, say, think, turn
from tests.environments.plain_env import PlainEnv

SCRIPT = [turn(think("hm"), call("todo"), call("todo")), turn(think("so"), say("done"))]


class Env(PlainEnv):
    """Each rollout has a reward of its own."""

    name = "counting"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.scored = getattr(self, "scored", 0) + 1
        return 1.0 / self.scored


async def ask(method: str, url: str, **body: Any) -> Any:
    async with aiohttp.ClientSession() as session, session.request(method, url, json=body or None) as response:
        return await response.json() if response.content_type == "application/json" else await response.text()


async def train_one_group(make_env: Any, run_api: RunApiThread, batch_size: int, **fields: Any) -> tuple[Any, Any, list[Any]]:
    """Run one item through `handle_env`, as `serve` does; returns the environment, its group, and all batches."""
    await ask(
        "POST",
        f"{run_api.url}/register",
        wandb_group="g",
        wandb_project="p",
        batch_size=batch_size,
        max_token_len=8192,
        checkpoint_dir="",
        save_checkpoint_interval=0,
        starting_step=0,
        num_steps=1,
    )
    await ask("GET", f"{run_api.url}/batch")
    settings = {"script": SCRIPT, "server_type": "vllm", "enabled_toolsets": ["todo"], "group_size": 2, **fields}
    env = make_env(Env, rollout_server_url=run_api.url, **settings)
    await env.register_env()
    await env.get_server_info()
    env.running_items["u"] = {"item": "x"}
    group = await env.handle_env("u")
    batches = []
    while (batch := (await ask("GET", f"{run_api.url}/batch"))["batch"]) is not None:
        batches.append(batch)
    return env, group, batches


def test_logprobs_reach_the_trainer(make_env, run_api):
    """A batch holds tokens, labels, scores, logprobs and messages as the environment made them."""
    _, group, batches = asyncio.run(train_one_group(make_env, run_api, batch_size=2))

    ((received,),) = batches
    names = ("tokens", "masks", "scores", "inference_logprobs", "messages")
    assert {name: received[name] for name in names} == {name: group[name] for name in names}
    assert sorted(received["scores"]) == [0.5, 1.0]
    assert [len(row) for row in received["inference_logprobs"]] == [len(row) for row in received["tokens"]]
    assert any(logprob < 0 for logprob in received["inference_logprobs"][0])


def test_split_rollouts_reach_the_trainer_whole(make_env, run_api):
    """Every sequence arrives, in groups of the registered size, each with the scores of the whole group."""
    _, group, batches = asyncio.run(
        train_one_group(
            make_env, run_api, batch_size=2, template="deepseek", history_rendering="template", split_rollouts="keep"
        )
    )

    received = [part for batch in batches for part in batch]
    sequences = [
        tokens for part in received for tokens, masks in zip(part["tokens"], part["masks"], strict=True) if set(masks) != {-100}
    ]
    assert [len(part["tokens"]) for part in received] == [2, 2]
    assert sorted(sequences) == sorted(group["tokens"])
    assert len(sequences) == 4
    assert [sorted(part["scores"]) for part in received] == [[0.5, 1.0], [0.5, 1.0]]


def test_whole_split_group_is_written_while_processing(make_env, tmp_path):
    """Without a trainer a group stays one line, with a row for each sequence."""
    path = tmp_path / "groups.jsonl"

    async def scenario() -> Any:
        env = make_env(
            Env,
            script=SCRIPT,
            server_type="vllm",
            template="deepseek",
            history_rendering="template",
            enabled_toolsets=["todo"],
            data_path_to_save_groups=str(path),
        )
        env.n_groups_to_process, env.group_size_to_process = 1, 2
        await env.process_manager()

    with pytest.warns(UserWarning, match="ignore max length"):
        asyncio.run(scenario())

    import json

    (line,) = path.read_text().splitlines()
    group = json.loads(line)
    assert (len(group["tokens"]), len(group["inference_logprobs"]), group["group_overrides"]) == (
        4,
        4,
        {"group_size": 4, "temperature": 1.0},
    )
