"""Whole environments of different build that keep the contract: every rule is silent on them."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.check import check_all
from pytest_hermes_env.contract.verdict import Outcome
from pytest_hermes_env.source import read_classes, without_abstract_bases

JUDGED = '''
"""Research questions, scored by a judge with a heuristic to fall back to; metrics kept in a dict of lists."""
import asyncio, json, logging, random, time, uuid
from collections import defaultdict
from typing import Any, Dict, List, Optional, Tuple

from atroposlib.envs.base import ScoredDataGroup
from atroposlib.envs.server_handling.server_manager import APIServerConfig
from environments.agent_loop import AgentResult, HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext
from pydantic import Field

logger = logging.getLogger(__name__)


class ResearchConfig(HermesAgentEnvConfig):
    eval_size: int = Field(default=20, description="Held-out questions.")


class ResearchEnv(HermesAgentBaseEnv):
    name = "research"
    env_config_cls = ResearchConfig

    def __init__(self, config, server_configs, slurm=False, testing=False):
        super().__init__(config, server_configs, slurm, testing)
        self._metrics: Dict[str, List[float]] = defaultdict(list)
        self._index = 0

    @classmethod
    def config_init(cls) -> Tuple[ResearchConfig, List[APIServerConfig]]:
        env_config = ResearchConfig(enabled_toolsets=["web"], max_agent_turns=15)
        server_configs = [
            APIServerConfig(base_url="https://openrouter.ai/api/v1", server_type="openai", health_check=False)
        ]
        return env_config, server_configs

    async def setup(self) -> None:
        try:
            from datasets import load_dataset

            rows = list(load_dataset(self.config.dataset_name, split=self.config.dataset_split))
        except Exception as error:
            logger.warning("no dataset: %s", error)
            rows = [{"question": "2+2", "answer": "4"}]
        random.Random(7).shuffle(rows)
        self._eval, self._train = rows[: self.config.eval_size], rows[self.config.eval_size :]

    async def get_next_item(self) -> dict:
        item = self._train[self._index % len(self._train)]
        self._index += 1
        return item

    def format_prompt(self, item: dict) -> str:
        return f"Answer with sources: {item['question']}"

    async def compute_reward(self, item: dict, result: AgentResult, ctx: ToolContext) -> float:
        answer = self._final_text(result.messages)
        correctness = await self._ask_judge(item, answer)
        tools = self._tools(result)
        reward = 0.6 * correctness + 0.2 * bool(tools) + 0.2 * (1.0 if result.turns_used < 8 else 0.0)
        for key, value in (("reward", reward), ("correct", correctness), ("turns", result.turns_used)):
            self._metrics[key].append(value)
        return max(0.0, min(1.0, reward))

    @staticmethod
    def _final_text(messages) -> str:
        for message in reversed(messages):
            if message.get("role") == "assistant" and message.get("content"):
                return message["content"]
        return ""

    def _tools(self, r: AgentResult) -> set:
        return {c["function"]["name"] for m in r.messages if m.get("role") == "assistant" for c in m.get("tool_calls") or []}

    async def _ask_judge(self, item, answer: str) -> float:
        try:
            response = await self.server.chat_completion(
                messages=[{"role": "user", "content": f"{item['question']} / {answer}"}], n=1, max_tokens=50, temperature=0.0
            )
            result = json.loads(response.choices[0].message.content)
            return float(result["score"])
        except Exception:
            logger.exception("judge")
            return float(item["answer"] in answer)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        start_time = time.time()
        tools, valid_names = self._resolve_tools_for_group()
        before = {key: list(values) for key, values in self._metrics.items()}
        samples = []
        try:
            for item in self._eval:
                task_id = str(uuid.uuid4())
                messages: List[Dict[str, Any]] = []
                if self.config.system_prompt:
                    messages.append({"role": "system", "content": self.config.system_prompt})
                messages.append({"role": "user", "content": self.format_prompt(item)})
                ctx = ToolContext(task_id)
                try:
                    agent = HermesAgentLoop(
                        server=self.server, tool_schemas=tools, valid_tool_names=valid_names, task_id=task_id,
                        max_turns=self.config.max_agent_turns, temperature=0.0,
                    )
                    result = await agent.run(messages)
                    reward = await self.compute_reward(item, result, ctx)
                except Exception as error:
                    logger.error("item failed: %s", error)
                    reward, result = 0.0, None
                finally:
                    ctx.cleanup()
                samples.append({"score": reward, "turns": result.turns_used if result else 0})
        finally:
            self._metrics.clear()
            self._metrics.update(before)
        metrics = {"eval/mean_reward": sum(s["score"] for s in samples) / max(len(samples), 1)}
        await self.evaluate_log(metrics=metrics, samples=samples, start_time=start_time, end_time=time.time())

    async def wandb_log(self, wandb_metrics: Optional[Dict] = None):
        if wandb_metrics is None:
            wandb_metrics = {}
        for key, values in self._metrics.items():
            if values:
                wandb_metrics[f"train/{key}"] = sum(values) / len(values)
        self._metrics.clear()
        await super().wandb_log(wandb_metrics)


if __name__ == "__main__":
    ResearchEnv.cli()
'''

BENCHMARK = '''
"""An evaluation-only benchmark with a base of its own, concurrent items, and a context manager for sandboxes."""
import asyncio
import contextlib
import uuid
from abc import ABC, abstractmethod

import environments.agent_loop as agent_loop
from atroposlib.envs.server_handling.server_manager import APIServerConfig
from environments.hermes_base_env import HermesAgentBaseEnv as Base
from environments.tool_context import ToolContext


class Benchmark(Base, ABC):
    async def setup(self):
        self.tasks = self.load()

    @abstractmethod
    def load(self): ...

    async def get_next_item(self):
        return None

    def format_prompt(self, item):
        return item["prompt"]

    async def collect_trajectories(self, item):
        return None, []

    @contextlib.asynccontextmanager
    async def sandbox(self):
        task_id = uuid.uuid4().hex
        ctx = ToolContext(task_id)
        try:
            yield task_id, ctx
        finally:
            await asyncio.to_thread(ctx.cleanup)

    async def evaluate(self, *args, **kwargs):
        limit = asyncio.Semaphore(4)

        async def one(task):
            async with limit, self.sandbox() as (task_id, ctx):
                loop = agent_loop.HermesAgentLoop(
                    self.server, *self._resolve_tools_for_group(), task_id=task_id, temperature=0.0
                )
                outcome = await asyncio.wait_for(loop.run([{"role": "user", "content": self.format_prompt(task)}]), 600)
                return await self.compute_reward(task, outcome, ctx)

        scores = await asyncio.gather(*map(one, self.tasks), return_exceptions=True)
        good = [score for score in scores if isinstance(score, float)]
        samples = [{"prompt": task["prompt"], "score": repr(score)} for task, score in zip(self.tasks, scores)]
        await self.evaluate_log({"eval/pass_rate": sum(good) / max(len(scores), 1)}, samples=samples)


class Files(Benchmark):
    name = "files"

    @classmethod
    def config_init(cls):
        servers = []
        servers.append(APIServerConfig(model_name="m"))
        return cls.env_config_cls(enabled_toolsets=["file"]), servers

    def load(self):
        return [{"prompt": "make a.txt", "path": "a.txt"}]

    async def compute_reward(self, item, result, ctx):
        found = ctx.read_file(item["path"])
        return 1.0 if found.get("content") else 0.0


def main():
    Files.cli()


if __name__ == "__main__":
    main()
'''

COUNTED = '''
"""Tests that run in the sandbox; buffers in a dataclass and a deque, bookkeeping where training collects."""
import dataclasses
from collections import deque
from uuid import uuid4

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from environments.agent_loop import HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv
from environments.tool_context import ToolContext


TOOLSETS = ["terminal", "file"]


@dataclasses.dataclass
class Stats:
    passed: int = 0
    total: int = 0


class TestsEnv(HermesAgentBaseEnv):
    name: str = "tests"

    @classmethod
    def config_init(cls):
        config, servers = cls.env_config_cls(), [APIServerConfig(server_type="vllm")]
        config.enabled_toolsets = TOOLSETS
        return config, servers

    async def setup(self):
        self.stats, self.recent = Stats(), deque(maxlen=100)
        rows = [{"q": str(i)} for i in range(10)]
        self.items, self.held_out = deque(rows[:-3]), rows[-3:]

    async def get_next_item(self):
        item = self.items.popleft()
        self.items.append(item)
        return item

    def format_prompt(self, item):
        return item["q"]

    async def compute_reward(self, item, result, ctx):
        result = ctx.terminal("pytest -q", timeout=60)
        return 1.0 if result["exit_code"] == 0 else 0.0

    async def collect_trajectories(self, item):
        group, backlog = await super().collect_trajectories(item)
        for score in (group or {}).get("scores", []):
            self.stats.total += 1
            self.stats.passed += score == 1.0
            self.recent.append(score)
        return group, backlog

    async def _rollout(self, item, task_id):
        agent = HermesAgentLoop(
            server=self.server, tool_schemas=self.schemas, valid_tool_names=self.names, task_id=task_id, temperature=0
        )
        return await agent.run([{"role": "user", "content": self.format_prompt(item)}])

    async def evaluate(self):
        self.schemas, self.names = self._resolve_tools_for_group()
        rows = []
        for number, item in enumerate(self.held_out):
            ctx = ToolContext(f"eval-{number}-{uuid4().hex}")
            try:
                score = await self.compute_reward(item, await self._rollout(item, ctx.task_id), ctx)
            finally:
                self._close(ctx)
            rows.append({"q": item["q"], "score": score})
        mean = sum(row["score"] for row in rows) / len(rows)
        await self.evaluate_log(metrics={"eval/pass_rate": mean}, samples=rows)

    def _close(self, ctx):
        ctx.cleanup()

    async def wandb_log(self, wandb_metrics=None):
        metrics = dict(wandb_metrics or {})
        if self.stats.total:
            metrics["train/pass_rate"] = self.stats.passed / self.stats.total
        self.stats = Stats()
        return await super().wandb_log(metrics)


if "__main__" == __name__:
    TestsEnv.cli()
'''


@pytest.mark.parametrize("text", [JUDGED, BENCHMARK, COUNTED], ids=["judged", "benchmark", "counted"])
def test_a_good_environment_is_silent(tmp_path, text):
    (tmp_path / "env.py").write_text(text, encoding="utf-8")

    (reading,) = without_abstract_bases([read_classes(str(tmp_path / "env.py"))])
    (source,) = reading.classes
    (ledger,) = check_all([source])
    loud = {
        entry.rule.id: (entry.outcome, entry.note, entry.findings)
        for entry in ledger.entries
        if entry.outcome in {Outcome.FAILED, Outcome.UNDECIDED} or "guarded" in entry.note
    }
    assert loud == {}
