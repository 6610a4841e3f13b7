"""Tool-verified: the agent sums up a ledger file with its tools, and the reward asks the sandbox for the sum.

Built with helper methods, a deque for metrics and an evaluation that goes through its items one after the other.
"""

from __future__ import annotations

import logging
import os
import shlex
import time
import uuid
from collections import deque
from typing import Any

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from pydantic import Field

from environments.agent_loop import AgentResult, HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext

logger = logging.getLogger(__name__)

BOOKS = [{"file": f"book_{number}.txt", "rows": [number, number + 1, number * 3]} for number in range(1, 13)]


class LedgerConfig(HermesAgentEnvConfig):
    """Settings of LedgerEnv."""

    held_out: int = Field(default=3, ge=1, description="Books that are kept for evaluation.")
    near_reward: float = Field(default=0.3, description="Reward for a sum that is off by one.")


class LedgerEnv(HermesAgentBaseEnv):
    """Write the sum of some numbers into a file."""

    name = "ledger-books"
    env_config_cls = LedgerConfig

    @classmethod
    def config_init(cls) -> tuple[LedgerConfig, list[APIServerConfig]]:
        """Return settings and servers."""
        settings = LedgerConfig(
            enabled_toolsets=["terminal", "file"], max_agent_turns=8, max_token_length=1024, use_wandb=False
        )
        servers = [
            APIServerConfig(
                model_name="meta-llama/llama-3.3-70b-instruct",
                base_url="https://openrouter.ai/api/v1",
                api_key=os.environ.get("OPENROUTER_API_KEY", ""),
                server_type="openai",
                health_check=False,
            )
        ]
        return settings, servers

    async def setup(self) -> None:
        """Split the books."""
        split = len(BOOKS) - min(self.config.held_out, len(BOOKS) - 1)
        self.books, self.exam = BOOKS[:split], BOOKS[split:]
        self.turned = 0
        self.recent: deque[float] = deque(maxlen=500)

    async def get_next_item(self) -> dict[str, Any]:
        """Return the next book, round and round."""
        book = self.books[self.turned % len(self.books)]
        self.turned += 1
        return book

    def format_prompt(self, item: dict[str, Any]) -> str:
        """Return the question."""
        numbers = ", ".join(map(str, item["rows"]))
        return f"Write the sum of {numbers} into the file {item['file']}, and nothing else."

    async def compute_reward(self, item: dict[str, Any], result: AgentResult, ctx: ToolContext) -> float:
        """Compare what the file holds with the sum."""
        return self.grade(self.written(ctx, item["file"]), sum(item["rows"]))

    def written(self, ctx: ToolContext, path: str) -> int | None:
        """Return the number in a file of the sandbox, or None."""
        answer = ctx.terminal(f"cat {shlex.quote(path)}")
        text = str(answer.get("output", "")).strip()
        return int(text) if answer.get("exit_code") == 0 and text.lstrip("-").isdecimal() else None

    def grade(self, written: int | None, expected: int) -> float:
        """Return the reward of an answer."""
        if written is None:
            return 0.0
        if written == expected:
            return 1.0
        return self.config.near_reward if abs(written - expected) == 1 else 0.0

    async def collect_trajectories(self, item: dict[str, Any]) -> tuple[Any, list[Any]]:
        """Collect a group and remember its scores."""
        group, backlog = await super().collect_trajectories(item)
        if group is not None:
            self.recent.extend(group["scores"])
        return group, backlog

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Work through the held-out books."""
        began = time.time()
        samples = []
        for book in self.exam:
            try:
                score, turns = await self.examine(book)
                samples.append({"file": book["file"], "score": score, "turns": turns})
            except Exception as error:
                logger.exception("book %s could not be evaluated", book["file"])
                samples.append({"file": book["file"], "score": 0.0, "error": str(error)})
        scores = [sample["score"] for sample in samples]
        metrics = {"eval/mean_reward": sum(scores) / len(scores), "eval/right": float(scores.count(1.0))}
        await self.evaluate_log(metrics=metrics, samples=samples, start_time=began, end_time=time.time())

    async def examine(self, book: dict[str, Any]) -> tuple[float, int]:
        """Return the score of one book and the turns that it took."""
        schemas, names = self._resolve_tools_for_group()
        ctx = ToolContext(uuid.uuid4().hex)
        try:
            loop = HermesAgentLoop(
                server=self.server,
                tool_schemas=schemas,
                valid_tool_names=names,
                max_turns=self.config.max_agent_turns,
                task_id=ctx.task_id,
                temperature=0.0,
                max_tokens=self.config.max_token_length,
                extra_body=self.config.extra_body,
                budget_config=self.config.build_budget_config(),
            )
            result = await loop.run(self.opening(book))
            return await self.compute_reward(book, result, ctx), result.turns_used
        finally:
            ctx.cleanup()

    def opening(self, book: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the first messages of a conversation about a book."""
        messages: list[dict[str, Any]] = []
        if self.config.system_prompt is not None:
            messages.append({"role": "system", "content": self.config.system_prompt})
        return [*messages, {"role": "user", "content": self.format_prompt(book)}]

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Report the recent scores."""
        metrics = dict(wandb_metrics or {})
        if self.recent:
            metrics["train/recent_reward"] = sum(self.recent) / len(self.recent)
            self.recent.clear()
        await super().wandb_log(metrics)


if __name__ == "__main__":
    LedgerEnv.cli()
