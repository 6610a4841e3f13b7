"""An environment with mistakes that real ones made; the contract finds each of them. `evaluate_items` would replace its loop."""

import os
import uuid

from atroposlib.envs.server_handling.server_manager import APIServerConfig

from environments.agent_loop import HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext


class WordCountEnv(HermesAgentBaseEnv):
    name = "word-count"
    env_config_cls = HermesAgentEnvConfig

    @classmethod
    def config_init(cls):
        config = HermesAgentEnvConfig(enabled_toolsets=["terminal", "file"], max_agent_turns=5)
        server = APIServerConfig(model_name="my-model", base_url="http://localhost:8000/v1", health_check=False)
        return config, server

    async def setup(self):
        self.items, self.held_out = [{"text": "one two three", "answer": "3"}], [{"text": "a b", "answer": "2"}]
        self.rewards = []
        self.next_index = 0

    async def get_next_item(self):
        item = self.items[self.next_index % len(self.items)]
        self.next_index += 1
        return item

    def format_prompt(self, item):
        return f"How many words are in: {item['text']}"

    async def compute_reward(self, item, result, ctx):
        reward = 1.0 if item["answer"] in result.final_response else 0.0
        self.rewards.append(reward)
        return reward

    async def evaluate(self, *args, **kwargs):
        tools, names = self._resolve_tools_for_group()
        for item in self.held_out:
            task_id = str(uuid.uuid4())
            agent = HermesAgentLoop(self.server, tools, names, task_id=task_id, temperature=0.0)
            result = await agent.run([{"role": "user", "content": self.format_prompt(item)}])
            ctx = ToolContext(task_id)
            await self.compute_reward(item, result, ctx)
            ctx.cleanup()

    async def wandb_log(self, wandb_metrics=None):
        metrics = dict(wandb_metrics or {})
        metrics["train/reward"] = sum(self.rewards) / max(1, len(self.rewards))
        super().wandb_log(metrics)


if __name__ == "__main__":
    os.environ.setdefault("WANDB_MODE", "offline")
    WordCountEnv.cli()
