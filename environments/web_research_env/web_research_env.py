r"""WebResearchEnv: an agent answers questions from the web, and a model judges the answer. The environment to copy for judged rewards.

Reward: 0.6 x correctness (an LLM judge's score, or the share of expected words if the judge returns none), 0.2 if a web tool
returned something, 0.2 x efficiency (few tool calls), and 0.1 more for two or more domains; from 0 to 1.

    python -m environments.web_research_env process --env.dataset_name None --env.total_steps 2 --env.group_size 2 --env.use_wandb false \
        --openai.base_url http://localhost:8000/v1 --openai.model_name my-model

Source: name, settings and their defaults are those of hermes-agent's former ``environments.web_research_env``.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import asdict
from statistics import fmean
from typing import Any

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from pydantic import Field, model_validator

from environments.agent_loop import AgentResult
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.loop.messages import message_text
from environments.rollout.agent_rollout import AgentRollout
from environments.tool_context import ToolContext
from environments.web_research_env.items import Question, hold_out, load_questions
from environments.web_research_env.scoring import (
    DIVERSE,
    WEB_TOOLS,
    Grade,
    collecting_grades,
    domains_of,
    efficiency_of,
    final_answer,
    judge_messages,
    keyword_overlap,
    parts_of,
    record,
    score_in,
    tool_calls,
    web_results,
)

logger = logging.getLogger(__name__)

SYSTEM_PROMPT = (
    "You research questions on the web. Search, read the pages that promise an answer, and check each step of the question in a "
    "source; few well-chosen calls are better than many. End with a short final answer that names the sources you used."
)


class WebResearchEnvConfig(HermesAgentEnvConfig):
    """Settings of WebResearchEnv."""

    dataset_name: str | None = Field(
        default="google/frames-benchmark",
        description="Questions: a name on the hub, a local dataset, or null for the samples.",
    )
    dataset_split: str = Field(default="test", description="Split of dataset_name.")
    prompt_field: str = Field(default="Prompt", description="Column of dataset_name that holds the question.")
    answer_field: str = Field(default="Answer", description="Column of dataset_name that holds the expected answer.")
    correctness_weight: float = Field(default=0.6, ge=0, description="Weight of the answer's correctness in the reward.")
    tool_usage_weight: float = Field(default=0.2, ge=0, description="Reward when a web tool returned something.")
    efficiency_weight: float = Field(default=0.2, ge=0, description="Weight of efficiency, for rollouts that end in an answer.")
    diversity_bonus: float = Field(default=0.1, ge=0, description="Reward added for results from two or more domains.")
    efficient_max_calls: int = Field(default=5, ge=0, description="Tool calls up to which efficiency is 1.0.")
    heavy_penalty_calls: int = Field(default=10, ge=1, description="Tool calls at which efficiency reaches 0.0.")
    eval_size: int = Field(default=20, ge=1, description="Maximum number of held-out questions in an evaluation.")
    eval_split_ratio: float = Field(
        default=0.1, ge=0, lt=1, description="Share of the questions that is held out, if more than eval_size."
    )
    judge_max_tokens: int = Field(
        default=1024, ge=1, description="Maximum tokens of the judge's reply, including its thoughts."
    )
    judge_timeout: float = Field(
        default=120.0, gt=0, description="Timeout of the judge in seconds; then words are compared instead."
    )

    @model_validator(mode="after")
    def _efficiency_falls(self) -> WebResearchEnvConfig:
        if self.heavy_penalty_calls <= self.efficient_max_calls:
            raise ValueError(
                f"heavy_penalty_calls ({self.heavy_penalty_calls}) must be greater than efficient_max_calls "
                f"({self.efficient_max_calls}): efficiency falls from 1.0 to 0.0 between them"
            )
        return self


class WebResearchEnv(HermesAgentBaseEnv):
    """Tests that an agent can answer questions whose parts are on different pages."""

    name = "web-research"
    env_config_cls = WebResearchEnvConfig

    @classmethod
    def config_init(cls) -> tuple[WebResearchEnvConfig, list[APIServerConfig]]:
        """Return the default settings, which YAML and flags override."""
        config = WebResearchEnvConfig(
            enabled_toolsets=["web", "file"],  # file: hermes stores long pages in files and refers the agent to them
            max_agent_turns=15,
            max_token_length=4096,
            group_size=4,
            system_prompt=SYSTEM_PROMPT,
            total_steps=1000,
            steps_per_eval=100,
            use_wandb=True,
            wandb_name="web-research",
        )
        server = APIServerConfig(
            base_url="https://openrouter.ai/api/v1",
            model_name="anthropic/claude-sonnet-4.5",
            server_type="openai",
            api_key=os.environ.get("OPENROUTER_API_KEY", ""),
            health_check=False,
        )
        return config, [server]

    # ------------------------------------------------------------------ items

    async def setup(self) -> None:
        """Load and split the questions, and warn when no web tool is offered."""
        config = self.config
        questions = await asyncio.to_thread(
            load_questions,
            config.dataset_name,
            split=config.dataset_split,
            prompt_field=config.prompt_field,
            answer_field=config.answer_field,
        )
        self.train_items, self.eval_items = hold_out(
            questions, eval_size=config.eval_size, eval_split_ratio=config.eval_split_ratio
        )
        self.next_index = 0
        self.reward_buffer: list[float] = []
        self.grade_buffer: list[Grade] = []
        _, names = self._resolve_tools_for_group()
        if not names & WEB_TOOLS:
            logger.warning(
                "No web tool is offered, only %s: hermes leaves web tools out until a provider is set up (`hermes tools`), and no "
                "rollout can earn tool_usage_weight",
                sorted(names),
            )

    async def get_next_item(self) -> Question:
        """Return the next training question, cycling."""
        item = self.train_items[self.next_index % len(self.train_items)]
        self.next_index += 1
        return item

    def format_prompt(self, item: Question) -> str:
        """Return the question with instructions."""
        return (
            f"{item['question']}\n\n"
            "Find out on the web: the question has several parts, each of which may need a page of its own. "
            "End with the answer to the question itself, in a sentence or two."
        )

    # ------------------------------------------------------------------ the reward

    async def compute_reward(self, item: Question, result: AgentResult, ctx: ToolContext) -> float:
        """Grade the rollout by its transcript; the sandbox has no information about an answer.

        Writes nothing to ``self``, so that evaluations leave the training metrics unchanged.
        """
        grade = await self.grade(item, result)
        record(grade)
        return grade.reward

    async def grade(self, item: Question, result: AgentResult) -> Grade:
        """Return the reward with its parts. Without an answer, correctness and efficiency are 0, and no judge is called."""
        config = self.config
        answer = final_answer(result.messages)
        results = web_results(result.messages)
        domains = domains_of(results)
        calls = len(tool_calls(result.messages))
        correctness, judged_by = await self.correctness_of(item, answer) if answer else (0.0, "nobody")
        efficiency = (
            efficiency_of(calls, efficient=config.efficient_max_calls, heavy=config.heavy_penalty_calls) if answer else 0.0
        )
        reward = (
            config.correctness_weight * correctness
            + config.tool_usage_weight * bool(results)
            + config.efficiency_weight * efficiency
            + config.diversity_bonus * (len(domains) >= DIVERSE)
        )
        return Grade(
            reward=round(min(1.0, max(0.0, reward)), 6),  # 0.6 * 0.5 + 0.2 + 0.2 + 0.1 is 0.7999999999999999
            correctness=correctness,
            judged_by=judged_by,
            used_web=bool(results),
            tool_calls=calls,
            efficiency=efficiency,
            domains=domains,
        )

    async def correctness_of(self, item: Question, answer: str) -> tuple[float, str]:
        """Return the judge's score and ``judge``; if it fails or returns none, the overlap of words and ``keywords``."""
        try:
            score = score_in(await self.ask_judge(item, answer))
        except Exception as error:  # noqa: BLE001 - a failing judge does not make the rollout fail
            logger.warning("The judge failed, words are compared instead: %s: %s", type(error).__name__, error)
            score = None
        else:
            if score is None:
                logger.warning("The judge returned no score from 0 to 1, words are compared instead")
        if score is None:
            return keyword_overlap(item["question"], item["answer"], answer), "keywords"
        return score, "judge"

    async def ask_judge(self, item: Question, answer: str) -> str:
        """Return the judge's reply: one request to the rollouts' own model server, without tools."""
        settings = {} if self.config.extra_body is None else {"extra_body": self.config.extra_body}
        async with asyncio.timeout(self.config.judge_timeout):
            completion = await self.server.chat_completion(
                messages=judge_messages(item["question"], item["answer"], answer),
                n=1,
                temperature=0.0,
                max_tokens=self.config.judge_max_tokens,
                **settings,
            )
        return message_text(completion.choices[0].message.content)

    async def collect_trajectory(self, item: Question) -> tuple[Any, list[Question]]:
        """Run one training rollout and record its reward and grade for `wandb_log`."""
        with collecting_grades() as grades:
            scored, backlog = await super().collect_trajectory(item)
        self.reward_buffer.append(scored["scores"])
        self.grade_buffer.extend(grades)
        return scored, backlog

    # ------------------------------------------------------------------ evaluation

    async def get_eval_items(self) -> list[Question]:
        """Return the first ``eval_size`` held-out questions."""
        return self.eval_items[: self.config.eval_size]

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Run the agent over held-out questions, greedily, and log metrics and samples; training metrics do not change."""
        await self.evaluate_items(
            score=self.score_with_parts,
            metrics=lambda samples: parts_of(samples, count=len(samples), prefix="eval"),
            item_fields=lambda item: {"expected": item["answer"]},
            pass_score=None,  # correct_rate takes its place: a reward of 1.0 is rare
        )

    async def score_with_parts(self, rollout: AgentRollout) -> dict[str, Any]:
        """Return the reward and its parts, as fields of the evaluation's sample."""
        with collecting_grades() as grades:
            score = await self.compute_reward(rollout.item, rollout.result, rollout.ctx)
        return {**(asdict(grades[-1]) if grades else {}), "score": score}

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Add the means of training rewards and of their parts since the last call."""
        metrics = {} if wandb_metrics is None else wandb_metrics
        if self.reward_buffer:
            metrics["train/mean_reward"] = fmean(self.reward_buffer)
            metrics.update(parts_of(list(map(asdict, self.grade_buffer)), count=len(self.reward_buffer), prefix="train"))
        self.reward_buffer = []
        self.grade_buffer = []
        await super().wandb_log(metrics)


if __name__ == "__main__":
    WebResearchEnv.cli()
