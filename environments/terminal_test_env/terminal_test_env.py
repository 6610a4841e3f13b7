r"""TerminalTestEnv: an agent creates a file, and the reward reads it in the agent's sandbox. Copy it to start your own.

Each item requires a file with given content. Reward: 1.0 when the file has exactly that content, 0.5 when it has more, else 0.0.

    python terminal_test_env.py process --env.total_steps 2 --env.group_size 2 --env.use_wandb false \
        --openai.base_url http://localhost:8000/v1 --openai.model_name my-model --openai.health_check false
"""

from __future__ import annotations

import os
from typing import Any

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from pydantic import Field

from environments.agent_loop import AgentResult
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext

Task = dict[str, str]

TASKS: list[Task] = [
    {"path": "greeting.txt", "content": "Hello from Hermes Agent"},
    {"path": "answer.txt", "content": "42"},
    {"path": "colours.txt", "content": "red\ngreen\nblue"},
    {"path": "notes/todo.txt", "content": "write tests first"},
    {"path": "version.txt", "content": "1.0.0"},
    {"path": "poem.txt", "content": "roses are red\nviolets are blue"},
    {"path": "data/numbers.csv", "content": "n,square\n1,1\n2,4\n3,9"},
    {"path": "config/app.ini", "content": "[app]\ndebug = true"},
]
"""Training and evaluation tasks; the last ones are held out (`TerminalTestEnvConfig.eval_size`)."""


class TerminalTestEnvConfig(HermesAgentEnvConfig):
    """Settings of TerminalTestEnv."""

    eval_size: int = Field(default=3, ge=1, le=len(TASKS) - 1, description="Tasks held out for evaluation.")
    partial_credit: float = Field(default=0.5, description="Reward when the file contains the text among other text.")


class TerminalTestEnv(HermesAgentBaseEnv):
    """Tests that an agent can use a terminal: create a file with the requested content."""

    name = "terminal-test"
    env_config_cls = TerminalTestEnvConfig

    @classmethod
    def config_init(cls) -> tuple[TerminalTestEnvConfig, list[APIServerConfig]]:
        """Return the default settings, which YAML and flags override."""
        config = TerminalTestEnvConfig(
            enabled_toolsets=["terminal", "file"],
            max_agent_turns=10,
            max_token_length=2048,
            group_size=4,
            system_prompt="You are an agent with a terminal. Do what is asked with your tools, then say that it is done.",
            use_wandb=False,
        )
        server = APIServerConfig(
            base_url="https://openrouter.ai/api/v1",
            model_name="meta-llama/llama-3.3-70b-instruct",
            server_type="openai",
            api_key=os.environ.get("OPENROUTER_API_KEY", ""),
            health_check=False,
        )
        return config, [server]

    async def setup(self) -> None:
        """Split the tasks; evaluation tasks are never used for training."""
        held_out = self.config.eval_size
        self.train_items = TASKS[:-held_out]
        self.eval_items = TASKS[-held_out:]
        self.next_index = 0
        self.reward_buffer: list[float] = []

    async def get_next_item(self) -> Task:
        """Return the next training task, cycling."""
        item = self.train_items[self.next_index % len(self.train_items)]
        self.next_index += 1
        return item

    def format_prompt(self, item: Task) -> str:
        """Return the request to the agent."""
        return (
            f"Create the file {item['path']} in your working directory with exactly this content, "
            f"without a line break at the end:\n{item['content']}"
        )

    async def compute_reward(self, item: Task, result: AgentResult, ctx: ToolContext) -> float:
        """Read the file in the agent's sandbox; the agent's answer does not count.

        Writes nothing to ``self``, so that evaluations leave the training metrics unchanged.
        """
        found = ctx.read_file(item["path"]).get("content", "")
        if found.rstrip("\n") == item["content"]:
            return 1.0
        return self.config.partial_credit if item["content"] in found else 0.0

    async def collect_trajectory(self, item: Task) -> tuple[Any, list[Task]]:
        """Run one training rollout and record its reward for `wandb_log`."""
        scored, backlog = await super().collect_trajectory(item)
        self.reward_buffer.append(scored["scores"])
        return scored, backlog

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Run the agent over the held-out tasks, greedily, and log metrics and samples; training metrics do not change."""
        await self.evaluate_items()

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Add the mean training reward since the last call."""
        metrics = {} if wandb_metrics is None else wandb_metrics
        if self.reward_buffer:
            metrics["train/mean_reward"] = sum(self.reward_buffer) / len(self.reward_buffer)
            metrics["train/pass_rate"] = sum(reward == 1.0 for reward in self.reward_buffer) / len(self.reward_buffer)
        self.reward_buffer = []
        await super().wandb_log(metrics)


if __name__ == "__main__":
    TerminalTestEnv.cli()
