"""Count the words of a line."""

import os

from atroposlib.envs.server_handling.server_manager import APIServerConfig

from .layer.base import AcmeConfig, AcmeEnv

LINES = ["one two three", "a quick brown fox", "seven", "to be or not to be", "red green", "north south east west"]
HELD_OUT = ["an apple a day", "hic sunt leones"]


class WordsEnv(AcmeEnv):
    name = "words"

    @classmethod
    def config_init(cls):
        config = AcmeConfig(enabled_toolsets=["terminal", "file"], group_size=2, use_wandb=False, max_token_length=2048)
        server = APIServerConfig(
            base_url="https://openrouter.ai/api/v1",
            model_name="some/model",
            api_key=os.environ.get("OPENROUTER_API_KEY", ""),
            health_check=False,
        )
        return config, [server]

    async def setup(self):
        self.taken = 0
        self.rewards = []

    async def get_next_item(self):
        line = LINES[self.taken % len(LINES)]
        self.taken += 1
        return {"line": line}

    def format_prompt(self, item):
        return f"Write the number of words of this line into count.txt: {item['line']}"

    async def compute_reward(self, item, result, ctx):
        found = ctx.terminal("cat count.txt")
        return 1.0 if found.get("output", "").strip() == str(len(item["line"].split())) else 0.0

    async def collect_trajectory(self, item):
        scored, backlog = await super().collect_trajectory(item)
        self.rewards.append(scored["scores"])
        return scored, backlog

    async def evaluate(self, *args, **kwargs):
        await self.evaluate_all([{"line": line} for line in HELD_OUT])

    async def wandb_log(self, wandb_metrics=None):
        metrics = {} if wandb_metrics is None else wandb_metrics
        if self.rewards:
            metrics["train/mean_reward"] = sum(self.rewards) / len(self.rewards)
        self.rewards = []
        await super().wandb_log(metrics)


if __name__ == "__main__":
    WordsEnv.cli()
