"""Write a date in another form; built on the installed layer, in a folder that has its name."""

import os

from atroposlib.envs.server_handling.server_manager import APIServerConfig

from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.utils import spelled_out

TRAINING = ["2024-01-31", "1999-12-01", "2000-02-29", "2031-07-04", "1969-07-20", "2012-05-06"]
HELD_OUT = ["1989-11-09", "2061-07-28"]


class DatesEnv(HermesAgentBaseEnv):
    name = "dates"

    @classmethod
    def config_init(cls):
        config = HermesAgentEnvConfig(
            enabled_toolsets=["file", "terminal"], group_size=2, max_token_length=2048, use_wandb=False
        )
        key = os.environ.get("OPENROUTER_API_KEY", "")
        url = "https://openrouter.ai/api/v1"
        return config, [APIServerConfig(base_url=url, model_name="some/model", api_key=key, health_check=False)]

    async def setup(self):
        self.position = 0

    async def get_next_item(self):
        self.position += 1
        return {"date": TRAINING[(self.position - 1) % len(TRAINING)]}

    async def get_eval_items(self):
        return [{"date": date} for date in HELD_OUT]

    def format_prompt(self, item):
        return f"Write this date in words into date.txt, as in 31 January 2024: {item['date']}"

    async def compute_reward(self, item, result, ctx):
        found = ctx.read_file("date.txt").get("content", "").strip()
        return 1.0 if found == spelled_out(item["date"]) else 0.0

    async def evaluate(self, *args, **kwargs):
        await self.evaluate_items(await self.get_eval_items(), temperature=0.0)


if __name__ == "__main__":
    DatesEnv.cli()
