"""What the environments share: a text must be changed and written to a file."""

import os
from abc import abstractmethod

from atroposlib.envs.server_handling.server_manager import APIServerConfig

from environments import HermesAgentBaseEnv, HermesAgentEnvConfig

TEXTS = [f"{first} {second} {first}" for first in ("ash", "birch", "cedar") for second in ("oak", "pine", "elm", "yew")]
EVALUATED = 3


class TextEnv(HermesAgentBaseEnv):
    task = ""

    @staticmethod
    @abstractmethod
    def solved(text): ...

    @classmethod
    def config_init(cls):
        config = HermesAgentEnvConfig(enabled_toolsets=["file"], group_size=2, max_token_length=2048, use_wandb=False)
        key = os.environ.get("OPENROUTER_API_KEY", "")
        url = "https://openrouter.ai/api/v1"
        return config, [APIServerConfig(base_url=url, model_name="some/model", api_key=key, health_check=False)]

    async def setup(self):
        self.training, self.held_out = TEXTS[EVALUATED:], TEXTS[:EVALUATED]
        self.scores = []
        self.position = 0

    async def get_next_item(self):
        self.position += 1
        return {"text": self.training[(self.position - 1) % len(self.training)]}

    async def get_eval_items(self):
        return [{"text": text} for text in self.held_out]

    def format_prompt(self, item):
        return f"{self.task} Write the result to result.txt.\n\n{item['text']}"

    async def compute_reward(self, item, result, ctx):
        return float(ctx.read_file("result.txt").get("content", "").strip() == self.solved(item["text"]))

    async def collect_trajectory(self, item):
        scored, backlog = await super().collect_trajectory(item)
        if scored is not None:
            self.scores.append(scored["scores"])
        return scored, backlog

    async def evaluate(self, *args, **kwargs):
        await self.evaluate_items(await self.get_eval_items(), temperature=0.0)

    async def wandb_log(self, wandb_metrics=None):
        metrics = dict(wandb_metrics or {})
        if self.scores:
            metrics["train/score"] = sum(self.scores) / len(self.scores)
        self.scores = []
        await super().wandb_log(metrics)
