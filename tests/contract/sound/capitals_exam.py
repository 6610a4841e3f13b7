"""Eval-only benchmark: nothing is trained, the training methods are stubs, evaluation runs the agent over fixed questions.

Built with a Counter, results in a list of a class of its own, and tools in a comprehension.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections import Counter
from typing import Any, NamedTuple

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from environments.agent_loop import AgentResult, HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext
from pydantic import Field

QUESTIONS = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Nairobi"}


class Attempt(NamedTuple):
    """One answered question."""

    country: str
    score: float
    trouble: str = ""


class ExamConfig(HermesAgentEnvConfig):
    """Settings of CapitalsExam."""

    limit: int = Field(default=4, ge=1, description="How many questions are asked.")


class CapitalsExam(HermesAgentBaseEnv):
    """Look a capital up and write it into a file."""

    name = "capitals-exam"
    env_config_cls = ExamConfig

    @classmethod
    def config_init(cls) -> tuple[ExamConfig, list[APIServerConfig]]:
        """Return settings and servers."""
        settings = ExamConfig(enabled_toolsets=["terminal", "file"], max_agent_turns=5, max_token_length=512, use_wandb=False)
        return settings, [
            APIServerConfig(
                base_url="https://openrouter.ai/api/v1",
                model_name="anthropic/claude-sonnet-4.5",
                api_key=os.environ.get("OPENROUTER_API_KEY"),
                server_type="openai",
                health_check=False,
            )
        ]

    async def setup(self) -> None:
        """Choose the questions."""
        self.questions = list(QUESTIONS.items())[: self.config.limit]
        self.outcomes: Counter[str] = Counter()

    async def get_next_item(self) -> None:
        """Return nothing: this is a benchmark."""
        return None

    async def collect_trajectories(self, item: Any) -> tuple[None, list[Any]]:
        """Return nothing: this is a benchmark."""
        return None, []

    async def score(self, rollout_group_data: Any) -> None:
        """Score nothing: this is a benchmark."""
        return None

    def format_prompt(self, item: tuple[str, str]) -> str:
        """Return the question."""
        country, _ = item
        return f"What is the capital of {country}? Write its name into capital.txt."

    async def compute_reward(self, item: tuple[str, str], result: AgentResult, ctx: ToolContext) -> float:
        """Look into the file."""
        _, capital = item
        return float(ctx.read_file("capital.txt").get("content", "").strip().casefold() == capital.casefold())

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Ask every question and log the share of right answers."""
        start = time.time()
        attempts = await asyncio.gather(*map(self.attempt, self.questions))
        self.outcomes.update("right" if attempt.score else "wrong" for attempt in attempts)
        right = sum(attempt.score for attempt in attempts)
        await self.evaluate_log(
            metrics={"eval/accuracy": right / len(attempts), "eval/failed": sum(bool(attempt.trouble) for attempt in attempts)},
            samples=[attempt._asdict() for attempt in attempts],
            start_time=start,
            end_time=time.time(),
        )

    async def attempt(self, item: tuple[str, str]) -> Attempt:
        """Return one answered question."""
        schemas, names = self._resolve_tools_for_group()
        ctx = ToolContext(str(uuid.uuid4()))
        try:
            agent = HermesAgentLoop(
                server=self.server,
                tool_schemas=schemas,
                valid_tool_names={name for name in names},
                max_turns=self.config.max_agent_turns,
                task_id=ctx.task_id,
                temperature=0.0,
                max_tokens=self.config.max_token_length,
                extra_body=self.config.extra_body,
                budget_config=self.config.build_budget_config(),
            )
            messages = [{"role": "user", "content": self.format_prompt(item)}]
            if prompt := self.config.system_prompt:
                messages = [{"role": "system", "content": prompt}, *messages]
            result = await agent.run(messages)
            return Attempt(item[0], await self.compute_reward(item, result, ctx))
        except Exception as error:
            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")
        finally:
            ctx.cleanup()

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Report how questions were answered so far, and start counting anew."""
        metrics = wandb_metrics if wandb_metrics is not None else {}
        metrics.update({f"exam/{word}": count for word, count in self.outcomes.items()})
        self.outcomes = Counter()
        await super().wandb_log(metrics)


if __name__ == "__main__":
    CapitalsExam.cli()
