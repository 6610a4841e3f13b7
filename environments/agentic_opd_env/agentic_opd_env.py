r"""AgenticOPDEnv: coding tasks with on-policy distillation. What a tool answered tells the teacher what the student did not know.

After a rollout, judges look at its turns and their next states (tool results, errors). Where a majority sees what would have helped, their
hint goes into the prompt, and the same model, now knowing it, is the teacher of the tokens that the student sampled. The group gets
``distill_token_ids`` and ``distill_logprobs`` [sequence][position][top_k], besides scores from tests. Turns without a hint have the
model's own distribution, which teaches nothing.

    python -m environments.agentic_opd_env serve --openai.base_url http://localhost:8000/v1 --openai.server_type vllm

Token mode on `vllm serve` or SGLang, which return logprobs of a prompt; `serve` asks for them before it starts. In chat mode, groups
go without distillation.

Source: name, settings and their defaults are those of hermes-agent's former ``environments.agentic_opd_env``; the method is that of
OpenClaw-RL.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from atroposlib.envs.base import ScoredDataGroup
from atroposlib.envs.server_handling.server_manager import APIServerConfig
from atroposlib.envs.server_handling.vllm_server import VLLMServer
from pydantic import Field

from environments.agent_loop import AgentResult
from environments.agentic_opd_env.teacher import (
    Distribution,
    Turn,
    distribution_of,
    hinted_prompt,
    judge_messages,
    majority_hints,
    sampled_spans,
    teacher_problem,
    turns_of,
)
from environments.command_line.settings import Mode
from environments.hermes_swe_env.coding_items import CodingItem
from environments.hermes_swe_env.hermes_swe_env import MODEL, PASSED, SYSTEM_PROMPT, HermesSweEnv, HermesSweEnvConfig
from environments.loop.messages import message_text
from environments.rollout.concurrency import all_or_none
from environments.tokens.exact_tokens import ExactServer
from environments.tokens.server_check import ModelServerError
from environments.tool_context import ToolContext

logger = logging.getLogger(__name__)

HINT_TOKENS = 1024
"""The length of a judge's answer."""


class AgenticOPDConfig(HermesSweEnvConfig):
    """Settings of AgenticOPDEnv."""

    opd_enabled: bool = Field(default=True, description="Whether groups get distillation data; else only scores.")
    distill_topk: int = Field(default=50, ge=1, description="Tokens of the teacher's distribution at each position.")
    prm_votes: int = Field(default=3, ge=1, description="Judges of a rollout; a hint needs more than half of them.")
    judge_temperature: float = Field(default=0.7, ge=0.0, description="Sampling temperature of the judges.")
    hint_max_next_state_chars: int = Field(default=4000, ge=2, description="Characters of a next state that a judge sees.")
    correctness_weight: float = Field(default=0.7, ge=0.0, description="Reward for passing the tests.")
    efficiency_weight: float = Field(default=0.15, ge=0.0, description="Further reward for passing them in few turns.")
    tool_usage_weight: float = Field(default=0.15, ge=0.0, description="Reward for running code before the answer.")
    eval_size: int | None = Field(default=10, ge=1, description="Items held out for evaluation.")


class AgenticOPDEnv(HermesSweEnv):
    """Trains an agent on coding tasks with scores, and with what it learned from its tools too late."""

    name = "agentic-opd"
    env_config_cls = AgenticOPDConfig

    @classmethod
    def config_init(cls) -> tuple[AgenticOPDConfig, list[APIServerConfig]]:
        """Return the default settings, which YAML and flags override."""
        config = AgenticOPDConfig(
            enabled_toolsets=["terminal", "file"],
            max_agent_turns=15,
            max_token_length=4096,
            group_size=4,
            system_prompt=SYSTEM_PROMPT,
            tokenizer_name=MODEL,
            steps_per_eval=50,
            total_steps=500,
            ensure_scores_are_not_same=False,
            use_wandb=True,
            wandb_name="agentic-opd",
        )
        server = APIServerConfig(base_url="http://localhost:8000/v1", model_name=MODEL, server_type="vllm", health_check=False)
        return config, [server]

    async def setup(self) -> None:
        """Load and split the items."""
        await super().setup()
        self.opd_counts: Counter[str] = Counter()

    async def compute_reward(self, item: CodingItem, result: AgentResult, ctx: ToolContext) -> float:
        """Return the weighted sum of passed tests, few turns and run code; without passed tests, few turns earn nothing."""
        config = self.config
        is_correct = await super().compute_reward(item, result, ctx) == PASSED
        efficiency = 1 - (result.turns_used - 1) / config.max_agent_turns
        calls = (call for message in result.messages for call in message.get("tool_calls") or ())
        has_run_code = any(call["function"]["name"] == "terminal" for call in calls)
        solved: float = is_correct * (config.correctness_weight + config.efficiency_weight * max(0.0, efficiency))
        return solved + float(config.tool_usage_weight) * has_run_code

    # ------------------------------------------------------------------ distillation

    async def collect_trajectories(self, item: CodingItem) -> tuple[ScoredDataGroup | None, list[CodingItem]]:
        """Run one group, and add the teacher's distributions."""
        group, backlog = await super().collect_trajectories(item)
        if group is not None and self.config.opd_enabled and self._has_exact_tokens():
            await self.distill(group, self.format_prompt(item))
        return group, backlog

    async def check_model_servers(self, mode: Mode) -> None:
        """Check also that each model server is a teacher. Raises: ModelServerError for ``serve``; other modes get a warning."""
        await super().check_model_servers(mode)
        if not self.config.opd_enabled or not self._has_exact_tokens():
            return
        for server in self.server.servers:
            problem = await teacher_problem(server, self.config.distill_topk) if isinstance(server, ExactServer) else ""
            if problem and mode == "serve":
                raise ModelServerError(problem)
            if problem:
                logger.warning("%s\n  (serve would end here)", problem)

    def _has_exact_tokens(self) -> bool:
        is_exact = all(isinstance(server, ExactServer | VLLMServer) for server in self.server.servers)
        if not is_exact:
            self._token_mode.warn_once(
                "distillation", 'Groups go without distillation: it needs the server_type "vllm" or "sglang"'
            )
        return is_exact

    async def distill(self, group: ScoredDataGroup, request: str) -> None:
        """Add the teacher's distributions to a group; a group without a hint, or whose model server fails, stays as it was."""
        rows = range(len(group["tokens"]))
        hints = await all_or_none([self._hints_of(group, row) for row in rows])
        if not any(hints):
            return
        try:
            made = await all_or_none([self._taught(group, row, request, hints[row]) for row in rows])
        except Exception:
            self.opd_counts["opd/teacher_errors"] += 1
            logger.exception("A group goes without distillation: its teacher failed")
            return
        group["distill_token_ids"] = [distribution.ids for distribution in made]
        group["distill_logprobs"] = [distribution.logprobs for distribution in made]

    async def _hints_of(self, group: ScoredDataGroup, row: int) -> dict[tuple[int, int], str]:
        """Return the hints of a row by the positions of the turns that they are for."""
        turns, spans = turns_of(group["messages"][row]), sampled_spans(group["masks"][row])
        if len(turns) != len(spans):  # a masked rollout, or a part of a split one
            return {}
        judged = [turn for turn in turns if turn.next_state]
        found = await self._judged(judged) if judged else {}
        hints = {spans[turn.number]: found[turn.number] for turn in judged if turn.number in found}
        self.opd_counts["opd/turns_judged"] += len(judged)
        self.opd_counts["opd/hints"] += len(hints)
        return hints

    async def _judged(self, turns: list[Turn]) -> dict[int, str]:
        """Ask ``prm_votes`` judges about all turns, in one request. Without hints if it fails, which is counted."""
        config = self.config
        messages = judge_messages(turns, max_chars=config.hint_max_next_state_chars)
        try:
            answer = await self.server.chat_completion(
                messages=messages, n=config.prm_votes, max_tokens=HINT_TOKENS, temperature=config.judge_temperature
            )
        except Exception:
            self.opd_counts["opd/judge_errors"] += 1
            logger.warning("The judges of a rollout failed: it has no hints", exc_info=True)
            return {}
        texts = [message_text(choice.message.content) for choice in answer.choices]
        return majority_hints(texts, votes=config.prm_votes)

    async def _taught(self, group: ScoredDataGroup, row: int, request: str, hints: dict[tuple[int, int], str]) -> Distribution:
        """Return the distributions for a row: the model's own, and the teacher's in the turns with a hint."""
        tokens, top_k = group["tokens"][row], self.config.distill_topk
        distribution = await distribution_of(self.server, tokens, top_k=top_k)
        for (start, stop), hint in hints.items():
            prompt = hinted_prompt(self.tokenizer, tokens[:start], request, hint)
            if prompt is None:
                self.opd_counts["opd/hints_without_place"] += 1
                continue
            taught = await distribution_of(self.server, [*prompt, *tokens[start:stop]], top_k=top_k, start=len(prompt))
            distribution = distribution.replaced(start, taught)
            self.opd_counts["opd/turns_taught"] += 1
        return distribution

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Add the counts of judged turns, hints and errors since the last call."""
        metrics = {} if wandb_metrics is None else wandb_metrics
        metrics |= self.opd_counts
        self.opd_counts = Counter()
        await super().wandb_log(metrics)


if __name__ == "__main__":
    AgenticOPDEnv.cli()
