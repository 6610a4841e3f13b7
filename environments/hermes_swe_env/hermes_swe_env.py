r"""HermesSweEnv: an agent writes Python, and tests in its sandbox decide the reward. Copy it for verified rewards.

Each item requires a function in the file ``solution.py``. Reward: 1.0 when the item's tests pass, 0.1 when the agent wrote
any Python file, else 0.0. The agent's answer does not count.

    python hermes_swe_env.py process --env.dataset_name None --env.terminal_backend local --env.total_steps 2 \
        --env.use_wandb false --openai.base_url http://localhost:8000/v1 --openai.model_name my-model

Source: name, settings and their defaults are those of hermes-agent's former ``environments.hermes_swe_env``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import posixpath
import uuid
from pathlib import Path
from typing import Any

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from pydantic import Field

from environments.agent_loop import AgentResult
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.hermes_swe_env import verifier
from environments.hermes_swe_env.coding_items import CodingItem, given_tests, hold_out, load_coding_items
from environments.sandbox.isolation import sandbox_directory
from environments.tool_context import ToolContext
from environments.verification import CheckError, run_check

logger = logging.getLogger(__name__)

MODEL = "NousResearch/DeepHermes-3-Llama-3-3B-Preview"
SOLUTION = "solution.py"
PASSED, TRIED, NOTHING = 1.0, 0.1, 0.0
"""The rewards."""
NOT_FOUND = 127
"""The shell's exit code for a command that does not exist."""
MOST_FILES = 1000
"""Maximum number of Python files listed per sandbox, the newest first."""

SYSTEM_PROMPT = (
    "You are a programmer with a terminal, file tools and the web. Solve the task with your tools: write the code into the file "
    "that the task names, run it on examples of your own, and fix what does not work. When you are sure of it, say that you are "
    "done. Only what the file does is judged."
)


class HermesSweEnvConfig(HermesAgentEnvConfig):
    """Settings of HermesSweEnv."""

    dataset_config: str | None = Field(
        default=None, description="Configuration of dataset_name. None: its only one, or 'python' if it has several."
    )
    eval_size: int | None = Field(
        default=None, ge=1, description="Items held out for evaluation. None: 20 or a tenth, at most half of them."
    )
    test_timeout: int = Field(default=60, ge=1, description="Timeout of an item's tests, in seconds.")


class HermesSweEnv(HermesAgentBaseEnv):
    """Tests that an agent can write code that works."""

    name = "hermes-swe"
    env_config_cls = HermesSweEnvConfig

    start_directory = ""
    """The start directory of every sandbox of this backend; "" if each rollout has its own, as on the local backend."""
    files_at_start: frozenset[str] = frozenset()
    """Python files in a new sandbox, from its image: they are not the agent's work."""

    @classmethod
    def config_init(cls) -> tuple[HermesSweEnvConfig, list[APIServerConfig]]:
        """Return the default settings, which YAML and flags override."""
        config = HermesSweEnvConfig(
            enabled_toolsets=["terminal", "file", "web"],
            max_agent_turns=30,
            max_token_length=4096,
            group_size=4,
            system_prompt=SYSTEM_PROMPT,
            terminal_backend="modal",
            tool_call_parser="hermes",
            tokenizer_name=MODEL,
            dataset_name="bigcode/humanevalpack",
            dataset_split="test",
            prompt_field="prompt",
            steps_per_eval=50,
            total_steps=500,
            use_wandb=True,
            wandb_name="hermes-swe",
        )
        server = APIServerConfig(
            base_url="http://localhost:8000/v1", model_name=MODEL, server_type="openai", api_key="", health_check=False
        )
        return config, [server]

    # ------------------------------------------------------------------ items

    async def setup(self) -> None:
        """Load and split the items, and inspect a new sandbox."""
        config = self.config
        items = await asyncio.to_thread(
            load_coding_items,
            config.dataset_name,
            split=config.dataset_split,
            prompt_field=config.prompt_field,
            config_name=config.dataset_config,
        )
        self.train_items, self.eval_items = hold_out(items, config.eval_size)
        self.next_index = 0
        self.reward_buffer: list[float] = []
        await asyncio.to_thread(self.inspect_new_sandbox)

    def inspect_new_sandbox(self) -> None:
        """Record where sandboxes start, and the Python files of their image.

        Raises: RuntimeError when no command runs in one, which would be a reward of 0.0 in every rollout.
        """
        ctx = ToolContext(str(uuid.uuid4()))
        try:
            started = ctx.terminal("pwd")
            if started.get("exit_code") != 0:
                why = str(started.get("error") or started.get("output"))[:500]
                raise RuntimeError(
                    f"No command can be run in a sandbox of terminal_backend {self.config.terminal_backend!r}: {why}"
                )
            directory = started["output"].strip()
            self.start_directory = "" if directory == sandbox_directory(ctx.task_id) else directory
            self.files_at_start = frozenset(python_files(ctx, directory))
            if SOLUTION in self.files_at_start:
                raise RuntimeError(
                    f"A new sandbox already contains {directory}/{SOLUTION}, which could not be distinguished from the agent's work"
                )
        finally:
            ctx.cleanup()

    async def get_next_item(self) -> CodingItem:
        """Return the next training item, cycling."""
        item = self.train_items[self.next_index % len(self.train_items)]
        self.next_index += 1
        return item

    def format_prompt(self, item: CodingItem) -> str:
        """Return the task, the solution's file, and how it is graded."""
        name = item.get("entry_point")
        function = f"the function `{name}`" if name else "the functions that the task names"
        return (
            f"{item['prompt'].strip()}\n\n"
            f"Write the solution to the file {SOLUTION} in your working directory. The file must define {function} and all that "
            "is needed for it: imports, constants, helpers. It is judged by tests that you do not see: they call the functions "
            "with plain data (numbers, text, lists, dictionaries, ...) and look at what they return."
        )

    # ------------------------------------------------------------------ the reward

    async def compute_reward(self, item: CodingItem, result: AgentResult, ctx: ToolContext) -> float:
        """Run the item's tests in the agent's sandbox; the agent's answer does not count.

        Writes nothing to ``self``, so that evaluations leave the training metrics unchanged.

        Raises: CheckError when the tests reach no verdict; the base class counts that as an error, not as a reward of 0.0.
        """
        start = self.start_directory or sandbox_directory(ctx.task_id) or ctx.terminal("pwd")["output"].strip()
        written = [path for path in python_files(ctx, start) if path not in self.files_at_start]
        if solution := find_solution(written):
            has_passed, reason = self.run_tests(item, solution, ctx, outputs=written, start=start)
            logger.info("Tests of %s in rollout %s: %s", item.get("entry_point", "an item"), ctx.task_id, reason)
            if has_passed:
                return PASSED
        return TRIED if written else NOTHING

    def run_tests(
        self, item: CodingItem, solution: str, ctx: ToolContext, *, outputs: list[str], start: str
    ) -> tuple[bool, str]:
        """Return whether an item's tests pass on a copy of the agent's files, and what the last line says. Raises: CheckError without a verdict."""
        checked = run_check(
            ctx,
            'exec python3 -I -S "$CHECK/verifier.py"',
            outputs=outputs,
            files={"verifier.py": Path(verifier.__file__).read_text(encoding="utf-8")},
            data={
                "solution": solution,
                "tests": given_tests(item),
                "entry_point": item.get("entry_point", ""),
                "seconds": self.config.test_timeout,
            },
            timeout_s=self.config.test_timeout,
            directory=start,
        )
        reason = str(checked.report or checked.output.strip()[-500:] or f"exit code {checked.exit_code}, no output")
        if checked.exit_code == verifier.UNUSABLE and checked.report:
            raise CheckError(f"the tests of this item reach no verdict: {reason}")
        if checked.exit_code == NOT_FOUND:
            logger.warning("python3 was not found in the sandbox: nothing can pass there (%s)", reason)
        return checked.passed, reason

    async def collect_trajectory(self, item: CodingItem) -> tuple[Any, list[CodingItem]]:
        """Run one training rollout and record its reward for `wandb_log`."""
        scored, backlog = await super().collect_trajectory(item)
        self.reward_buffer.append(scored["scores"])
        return scored, backlog

    # ------------------------------------------------------------------ evaluation

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Run the agent over the held-out items, greedily, and log metrics and samples; training metrics do not change."""
        await self.evaluate_items()

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Add the mean training reward since the last call."""
        metrics = {} if wandb_metrics is None else wandb_metrics
        if self.reward_buffer:
            metrics["train/mean_reward"] = sum(self.reward_buffer) / len(self.reward_buffer)
            metrics["train/pass_rate"] = sum(reward == PASSED for reward in self.reward_buffer) / len(self.reward_buffer)
        self.reward_buffer = []
        await super().wandb_log(metrics)


def python_files(ctx: ToolContext, directory: str) -> list[str]:
    """Return the Python files below a directory of the sandbox, relative to it, the newest first, without hidden files."""
    arguments = {"pattern": "*.py", "target": "files", "path": directory, "limit": MOST_FILES}
    answer, _ = json.JSONDecoder().raw_decode(ctx.call_tool("search_files", arguments))  # hermes may add a hint after it
    below = f"{directory.rstrip('/')}/"
    # a line break in a name splits it into two paths, the second of which may be anywhere
    return [path.removeprefix(below) for path in answer.get("files", ()) if path.startswith(below) and path.endswith(".py")]


def find_solution(paths: list[str]) -> str | None:
    """Return the solution among an agent's files: in its working directory, else the newest one anywhere."""
    named = [path for path in paths if posixpath.basename(path) == SOLUTION]
    return SOLUTION if SOLUTION in named else next(iter(named), None)


if __name__ == "__main__":
    HermesSweEnv.cli()
