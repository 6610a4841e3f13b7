r"""TerminalBench2EvalEnv: evaluates an agent on the tasks of Terminal-Bench 2. It trains nothing.

Each task has an instruction, an image or files to start with, and tests that run in the agent's sandbox after it is done.

    python terminalbench2_env.py evaluate --env.dataset_name None --env.terminal_backend local \
        --env.data_dir_to_save_evals results --openai.base_url http://localhost:8000/v1 --openai.model_name my-model

Source: name, settings and their defaults are those of hermes-agent's former ``environments.benchmarks.terminalbench_2``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from atroposlib.envs.base import EvalHandlingEnum
from atroposlib.envs.server_handling.server_manager import APIServerConfig
from pydantic import Field
from tools.terminal_tool import register_task_env_overrides

from environments.agent_loop import AgentResult
from environments.benchmarks.terminalbench_2.tasks import TerminalTask, chosen_tasks, load_tasks, sample_tasks
from environments.benchmarks.terminalbench_2.verification import (
    CONTAINER_DIRECTORY,
    reward_of_tests,
    start_directory,
    upload_archive,
)
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.rollout.evaluation import Sample, evaluated, run_each
from environments.tool_context import ToolContext

logger = logging.getLogger(__name__)

PASSED = 1.0
MODAL_INCOMPATIBLE_TASKS = frozenset({"qemu-startup", "qemu-alpine-ssh", "crack-7z-hash"})
"""Tasks that cannot run on Modal: they need nested virtualization, or more memory. Source: the former environment."""
CHOICE_OF_TASKS = {"task_filter", "skip_tasks", "max_concurrent_tasks"}
"""The settings that no result depends on."""
CONTAINERS = frozenset({"docker", "modal", "daytona", "singularity"})


class TerminalBench2EvalConfig(HermesAgentEnvConfig):
    """Settings of TerminalBench2EvalEnv."""

    dataset_name: str | None = Field(
        default="NousResearch/terminal-bench-2", description="Dataset of the tasks. None: the sample tasks of this repository."
    )
    test_timeout: int = Field(default=180, ge=1, description="Timeout of a task's tests, in seconds.")
    task_filter: str | None = Field(default=None, description="Names of the tasks to run, with commas between them. None: all.")
    skip_tasks: str | None = Field(default=None, description="Names of tasks to leave out, with commas between them.")
    task_timeout: int = Field(default=1800, ge=1, description="Seconds for a task, agent and tests; then it is failed.")
    max_concurrent_tasks: int = Field(default=8, ge=1, description="How many tasks run at once.")


class TerminalBench2EvalEnv(HermesAgentBaseEnv):
    """Evaluates an agent on terminal tasks with tests."""

    name = "terminal-bench-2"
    env_config_cls = TerminalBench2EvalConfig

    @classmethod
    def config_init(cls) -> tuple[TerminalBench2EvalConfig, list[APIServerConfig]]:
        """Return the default settings, which YAML and flags override."""
        config = cls.env_config_cls(
            enabled_toolsets=["terminal", "file"],
            max_agent_turns=60,
            max_token_length=16_000,
            agent_temperature=0.0,
            terminal_backend="modal",
            terminal_timeout=300,
            tokenizer_name="NousResearch/Hermes-3-Llama-3.1-8B",
            eval_handling=EvalHandlingEnum.STOP_TRAIN,
            group_size=1,
            steps_per_eval=1,
            total_steps=1,
            ensure_scores_are_not_same=False,
            use_wandb=True,
            wandb_name=cls.name,
        )
        server = APIServerConfig(
            base_url="https://openrouter.ai/api/v1",
            model_name="anthropic/claude-sonnet-4",
            server_type="openai",
            api_key=os.environ.get("OPENROUTER_API_KEY", ""),
            health_check=False,
        )
        return config, [server]

    # ------------------------------------------------------------------ tasks

    async def setup(self) -> None:
        """Load and choose the tasks. Raises: ValueError for a task without an image, on a backend of containers."""
        config = self.config
        tasks = await asyncio.to_thread(load_tasks, config.dataset_name, split=config.dataset_split)
        if config.terminal_backend == "modal":
            tasks = [task for task in tasks if task["task_name"] not in MODAL_INCOMPATIBLE_TASKS]
        self.eval_items = chosen_tasks(tasks, only=config.task_filter, skipped=config.skip_tasks)
        self._check_backend()
        models = [server.config.model_name for server in self.server.servers]
        measured = {"models": models, **config.model_dump(mode="json", exclude=CHOICE_OF_TASKS)}
        self.results = ResultsFile(config.data_dir_to_save_evals, measured)
        self.retried: Counter[str] = Counter()

    def _check_backend(self) -> None:
        backend = self.config.terminal_backend
        if backend not in {"local", *CONTAINERS}:
            raise ValueError(
                f"terminal_backend {backend!r} has no image for each task: use local, {', '.join(sorted(CONTAINERS))}"
            )
        without = [task["task_name"] for task in self.eval_items if not task["docker_image"]]
        if backend != "local" and without and self.eval_items[0] not in sample_tasks():
            raise ValueError(
                f"{len(without)} tasks have no docker_image, which terminal_backend {backend!r} requires: {', '.join(without)[:300]}. "
                "Leave them out with skip_tasks."
            )

    async def prepare_sandbox(self, item: TerminalTask, ctx: ToolContext) -> None:
        """Choose the task's image; where there is none, put its files into the agent's directory."""
        backend, image = self.config.terminal_backend, item["docker_image"]
        if backend != "local":
            images = {
                "docker_image": image,
                "modal_image": image,
                "daytona_image": image,
                "singularity_image": f"docker://{image}",
            }
            register_task_env_overrides(
                ctx.task_id, {**(images if image else {}), "env_type": backend, "cwd": CONTAINER_DIRECTORY}
            )
        if backend == "local" or not image:
            upload_archive(ctx, item["environment_tar"], start_directory(ctx, backend))

    async def get_next_item(self) -> None:
        """Return None: a benchmark is not trained on."""

    def format_prompt(self, item: TerminalTask) -> str:
        """Return the task's instruction."""
        return item["instruction"]

    async def compute_reward(self, item: TerminalTask, result: AgentResult, ctx: ToolContext) -> float:
        """Run the task's tests in the agent's sandbox; the agent's answer does not count. Raises: see `reward_of_tests`."""
        config = self.config
        return reward_of_tests(ctx, item, backend=config.terminal_backend, timeout_s=config.test_timeout)

    # ------------------------------------------------------------------ evaluation

    async def rollout_and_score_eval(self, eval_item: TerminalTask) -> Sample:
        """Run the agent on one task, score it, write its result, and return it.

        A task that takes longer than ``task_timeout`` has the score 0.0 and the field ``timed_out``; one that fails for other reasons
        than the agent's has no score and an ``error``, and runs again when the evaluation is resumed.
        """
        about = {"task_name": eval_item["task_name"], "category": eval_item["category"]}
        start = time.monotonic()
        sample: Sample
        try:
            async with asyncio.timeout(self.config.task_timeout):
                sample = await evaluated(
                    self,
                    eval_item,
                    item_fields=lambda _item: about,
                    retried=self.retried,
                    temperature=self.config.agent_temperature,
                )
        except TimeoutError:
            sample = {**about, "prompt": self.format_prompt(eval_item), "score": 0.0, "timed_out": True}
        sample |= {"seconds": time.monotonic() - start}
        self.results.write(sample)
        return sample

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Run all tasks, without those that an evaluation with the same settings has scored, and log metrics and samples."""
        start_time = time.time()
        self.retried.clear()
        done = self.results.finished()
        pending = [task for task in self.eval_items if task["task_name"] not in done]
        logger.info("%d tasks to run, %d finished earlier", len(pending), len(self.eval_items) - len(pending))
        if pending:
            samples = await run_each(pending, self.rollout_and_score_eval, max_concurrent=self.config.max_concurrent_tasks)
            done |= {sample["task_name"]: sample for sample in samples}
        samples = [done[task["task_name"]] for task in self.eval_items]
        end_time = time.time()
        metrics = {
            **benchmark_metrics(samples),
            **self.retried,
            "eval/sample_tasks": sum(task in sample_tasks() for task in self.eval_items),
            "eval/evaluation_time_seconds": end_time - start_time,
        }
        logger.info("Evaluated %d tasks: %s", len(samples), metrics)
        generation = {"temperature": self.config.agent_temperature, "max_new_tokens": self.config.max_token_length}
        await self.evaluate_log(
            metrics, samples=samples, start_time=start_time, end_time=end_time, generation_parameters=generation
        )


def benchmark_metrics(samples: Sequence[Sample]) -> dict[str, float]:
    """Return counts, and the share of passed tasks, in all and for each category; tasks without a score are in no share."""
    passed: dict[str, list[bool]] = defaultdict(list)
    for sample in samples:
        if sample["score"] is not None:
            for metric in ("eval/pass_rate", f"eval/pass_rate_{sample['category']}"):
                passed[metric].append(sample["score"] >= PASSED)
    return {
        "eval/total_tasks": len(samples),
        "eval/passed_tasks": sum(passed["eval/pass_rate"]),
        "eval/errors": sum(sample["score"] is None for sample in samples),
        "eval/timeouts": sum(bool(sample.get("timed_out")) for sample in samples),
        **{metric: fmean(values) for metric, values in passed.items() if values},
    }


# ---------------------------------------------------------------------- results


class ResultsFile:
    """Appends results to a file and reads those of earlier runs. Without a directory it does nothing.

    ``settings`` are what a result depends on: a result under other settings is not one of this evaluation.
    """

    def __init__(self, directory: str | None, settings: Mapping[str, Any]) -> None:
        self.path = Path(directory) / "results.jsonl" if directory else None
        self.settings = json.loads(json.dumps(settings, default=str))

    def finished(self) -> dict[str, Sample]:
        """Return the scored results under the same settings, by the names of their tasks."""
        found: dict[str, Sample] = {}
        if self.path is None or not self.path.exists():
            return found
        for number, line in enumerate(self.path.read_text(encoding="utf-8").split("\n"), start=1):
            if not line:
                continue
            try:
                row = json.loads(line)
                sample, settings = row["sample"], row["settings"]
                if settings == self.settings and sample["score"] is not None:
                    found[sample["task_name"]] = sample
            except (ValueError, TypeError, LookupError):
                logger.warning(
                    "%s, line %d, is not a result: the evaluation was stopped while it was written", self.path, number
                )
        return found

    def write(self, sample: Sample) -> None:
        """Append one result."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            # a line break first: an evaluation that was killed may have left half a line
            file.write(f"\n{json.dumps({'settings': self.settings, 'sample': sample}, default=str)}\n")


if __name__ == "__main__":
    TerminalBench2EvalEnv.cli()
