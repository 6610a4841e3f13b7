"""Batches of a run whose model fails now and then, through run-api and the data and loss code of Atropos' example trainer.

Run: ``tox run -e example-trainer``. The model is a tiny one, on the CPU; the server's logprobs are its own, scaled by temperature.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import random
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
import torch
from example_trainer.data import pad_data_to_good_offset
from example_trainer.training import compute_grpo_loss

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.tokens.exact_tokens import ExactSGLangServer, ExactVLLMServer
from pytest_hermes_env.atropos.run_api import RunApiThread
from pytest_hermes_env.inference import call, fail, sampled, say, think, turn

WIDTH = 8
GROUP_SIZE = 4
MICRO_BATCHES = (1, 2, 4)


class TinyModel(torch.nn.Module):
    """A causal model: each token's logits come from the mean of the embeddings so far."""

    def __init__(self, size: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(size, WIDTH)
        self.head = torch.nn.Linear(WIDTH, size)

    def forward(self, tokens: torch.Tensor) -> SimpleNamespace:
        """Return the logits ``[batch, T, size]``."""
        hidden = self.embedding(tokens).cumsum(dim=1) / torch.arange(1, tokens.shape[1] + 1).view(1, -1, 1)
        return SimpleNamespace(logits=self.head(hidden))

    @torch.no_grad()
    def logprobs(self, prompt: list[int], tokens: list[int], temperature: float) -> list[float]:
        """Return the logprobs with which ``tokens`` are sampled after ``prompt``."""
        logits = self(torch.tensor([prompt + tokens[:-1]])).logits[0, len(prompt) - 1 :]
        scaled = torch.log_softmax(logits / temperature, dim=-1)
        return scaled[range(len(tokens)), tokens].tolist()


class _Modelled:
    """The tokens of the mock model, with the logprobs of the tiny one."""

    async def _tokens_and_logprobs_completion_wrapper(self, **request: Any) -> Any:
        model, temperature = TinyEnv.model, request["temperature"]
        prompt, tokens, _, reasons = await super()._tokens_and_logprobs_completion_wrapper(**request)  # type: ignore[misc]
        return prompt, tokens, [model.logprobs(prompt, row, temperature) for row in tokens], reasons


class ModelledVLLM(_Modelled, ExactVLLMServer): ...


class ModelledSGLang(_Modelled, ExactSGLangServer): ...


class TinyEnv(HermesAgentBaseEnv):
    """Rewards are random; most rollouts have two turns."""

    name = "tiny"
    model: TinyModel

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any:
        return next(self.items)

    def format_prompt(self, item: Any) -> str:
        return f"do {item}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return self.random.random()

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


async def ask(method: str, url: str, **body: Any) -> Any:
    async with aiohttp.ClientSession() as session, session.request(method, url, json=body or None) as response:
        return await response.json() if response.content_type == "application/json" else await response.text()


def script(chance: random.Random) -> Any:
    """One request in ten fails; one reply in ten is cut."""

    def answer(conversation: Any) -> Any:
        if chance.random() < 0.1:
            return fail(500)
        cut = sampled(max_tokens=4) if chance.random() < 0.1 else sampled()
        words = " ".join(chance.choices(["one", "two", "three"], k=5))
        return turn(say(words), cut) if conversation.turn else turn(think(words), call("todo"), cut)

    return answer


def batches_of(
    make_env: Any, run_api: RunApiThread, server_class: type, *, groups: int = 6, **fields: Any
) -> tuple[Any, list[Any]]:
    """Run groups through `handle_env`, as `serve` does; return the environment and all batches."""

    async def scenario() -> tuple[Any, list[Any]]:
        await ask(
            "POST",
            f"{run_api.url}/register",
            wandb_group="g",
            wandb_project="p",
            batch_size=GROUP_SIZE,
            max_token_len=8192,
            checkpoint_dir="",
            save_checkpoint_interval=0,
            starting_step=0,
            num_steps=1,
        )
        await ask("GET", f"{run_api.url}/batch")
        kind = type("Env", (TinyEnv,), {"server_cls": server_class})
        env = make_env(
            kind,
            script=script(random.Random(1)),
            rollout_server_url=run_api.url,
            enabled_toolsets=["todo"],
            group_size=GROUP_SIZE,
            server_type="sglang" if server_class is ModelledSGLang else "vllm",
            **fields,
        )
        env.items, env.random = itertools.count(), random.Random(2)
        TinyEnv.model = TinyModel(len(env.tokenizer))
        await env.register_env()
        await env.get_server_info()
        for number in range(groups):
            env.running_items[str(number)] = {"item": number}
            await env.handle_env(str(number))
        batches = []
        while (batch := (await ask("GET", f"{run_api.url}/batch"))["batch"]) is not None:
            batches.append(batch)
        return env, batches

    return asyncio.run(scenario())


def losses_of(batches: list[Any], micro_batch: int) -> Iterator[Mapping[str, Any]]:
    """Yield the metrics of the example trainer for each micro-batch, with its loss and gradient."""
    for batch in copy.deepcopy(batches):
        for tokens, labels, advantages, temperatures, logprobs in zip(
            *pad_data_to_good_offset({"batch": batch}, micro_batch), strict=True
        ):
            TinyEnv.model.zero_grad()
            loss, metrics = compute_grpo_loss(
                TinyEnv.model, tokens, labels, advantages.float(), temperatures, 1, inference_logprobs=logprobs
            )
            loss.backward()
            gradient = max(parameter.grad.abs().max().item() for parameter in TinyEnv.model.parameters())
            yield {**metrics, "loss": loss.item(), "gradient": gradient, "advantages": advantages}


@pytest.mark.parametrize("temperature", [0.7, 1.0])
@pytest.mark.parametrize(
    ("server_class", "fields"),
    [
        (ModelledVLLM, {}),
        (ModelledVLLM, {"failed_rollouts": "mask", "rollout_retries": 0}),
        (ModelledSGLang, {"failed_rollouts": "mask", "rollout_retries": 0, "truncated_turns": "drop"}),
        (ModelledVLLM, {"template": "deepseek", "history_rendering": "template", "split_rollouts": "keep"}),
        (ModelledSGLang, {"template": "deepseek", "history_rendering": "template", "failed_rollouts": "mask"}),
        (ModelledVLLM, {"template": "deepseek", "history_rendering": "template", "split_rollouts": "reject"}),
    ],
    ids=["drop", "mask", "left out", "all sequences", "one sequence each", "split are rejected"],
)
@pytest.mark.hermes_allow_leftovers
def test_example_trainer_learns_from_every_batch(make_env, run_api, server_class, fields, temperature):
    """No crash, ratio 1 on every trained token, finite loss and gradient; rows that are left out have an advantage of exactly 0."""
    _, batches = batches_of(make_env, run_api, server_class, agent_temperature=temperature, **fields)

    metrics = [one for size in MICRO_BATCHES for one in losses_of(batches, size)]
    groups = [group for batch in batches for group in batch]
    assert metrics or fields.get("split_rollouts") == "reject"
    assert {group["generation_params"]["temperature"] for group in groups} <= {temperature}
    for one in metrics:
        assert one["mean_ratio"] == pytest.approx(1.0, abs=1e-5)
        assert one["logprob_diff_max"] < 1e-4
        assert one["clipped_fraction"] == 0.0
        assert torch.isfinite(torch.tensor([one["loss"], one["gradient"]])).all()
    for group in groups:
        out = [row for row, override in enumerate(group["overrides"]) if override.get("set_advantage_to_zero")]
        (_, _, (advantages,), _, _) = pad_data_to_good_offset({"batch": [copy.deepcopy(group)]}, len(group["tokens"]))
        assert [advantages[row].item() for row in out] == [0.0] * len(out)


def test_run_has_what_it_claims(make_env, run_api):
    """The run above has failures, cut replies and rows that are left out; otherwise it would show nothing."""
    env, batches = batches_of(make_env, run_api, ModelledVLLM, groups=12, failed_rollouts="mask", rollout_retries=0)

    overrides = [override for batch in batches for group in batch for override in group["overrides"]]
    assert sum(override.get("left_out", False) for override in overrides) >= 3
    assert {"model_failed", "cut_by_length", "finished"} <= {override["end"] for override in overrides}
    assert env._counts["train/rollouts_model_failed"] >= 3
