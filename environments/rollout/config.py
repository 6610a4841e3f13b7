"""The configuration of a Hermes Agent environment; environments import it from ``environments.hermes_base_env``."""

from __future__ import annotations

from typing import Any, Literal

from atroposlib.envs.base import BaseEnvConfig
from pydantic import Field, model_validator

from environments.rollout.attempts import FailedRollouts, RewardErrors
from environments.tokens.token_mode import HistoryRendering
from environments.trainer.scoring import SplitRollouts, TruncatedTurns

# isort: split
from tools.budget_config import (
    DEFAULT_PREVIEW_SIZE_CHARS,
    DEFAULT_RESULT_SIZE_CHARS,
    DEFAULT_TURN_BUDGET_CHARS,
    BudgetConfig,
)


class HermesAgentEnvConfig(BaseEnvConfig):
    """Configuration of a Hermes Agent environment, in addition to Atropos' own fields."""

    enabled_toolsets: list[str] | None = Field(
        default=None,
        description="Toolsets to offer to the model. None offers every tool, messaging included, and warns.",
    )
    disabled_toolsets: list[str] | None = Field(
        default=None, description="Toolsets to remove from those of enabled_toolsets or distribution."
    )
    distribution: str | None = Field(
        default=None,
        description="Name in hermes' toolset_distributions, sampled once per group. Excludes enabled_toolsets.",
    )
    max_agent_turns: int = Field(default=30, description="Maximum number of model calls per rollout.")
    system_prompt: str | None = Field(default=None, description="System message before the item's prompt.")
    agent_temperature: float = Field(default=1.0, description="Sampling temperature of training rollouts.")
    terminal_backend: str = Field(
        default="local", description="Where tools run: local, docker, modal, daytona, ssh or singularity."
    )
    terminal_timeout: int = Field(default=120, description="Timeout of a terminal command, in seconds.")
    terminal_lifetime: int = Field(default=3600, description="Seconds of inactivity after which a sandbox is removed.")
    dataset_name: str | None = Field(default=None, description="Hugging Face dataset to load items from.")
    dataset_split: str = Field(default="train", description="Split of dataset_name.")
    prompt_field: str = Field(default="prompt", description="Column of dataset_name that holds the prompt.")
    tool_pool_size: int = Field(default=128, description="Threads for tool execution.")
    tool_call_parser: str = Field(default="hermes", description="Tool-call format of the model, for token mode (vLLM, SGLang).")
    history_rendering: HistoryRendering = Field(
        default="sampled",
        description="Token mode: 'sampled' continues the sampled text, so that a rollout is one sequence; 'template' renders the "
        "whole conversation again each turn, as a chat server does, which may split a rollout into several.",
    )
    split_rollouts: SplitRollouts = Field(
        default="sample",
        description="Token mode: of a split rollout, 'sample' sends one sequence to the trainer, so that rollouts weigh the same, "
        "'keep' sends all, and 'reject' trains on none.",
    )
    rollout_retries: int = Field(
        default=1,
        ge=0,
        description="How often a rollout is run again, in a new sandbox, that failed for reasons that are not the model's.",
    )
    failed_rollouts: FailedRollouts = Field(
        default="drop_group",
        description="A rollout that failed in every attempt: 'drop_group' trains nothing of its group, 'mask' goes on without it.",
    )
    reward_errors: RewardErrors = Field(
        default="retry",
        description="A reward that raises or is not a number: 'retry' runs the rollout again and then does as failed_rollouts says, "
        "'drop_group' drops the group at once, 'zero' scores 0.0.",
    )
    truncated_turns: TruncatedTurns = Field(
        default="mask",
        description="A reply that was cut by length: 'mask' does not train on it, 'train' does, 'drop' leaves its rollout out.",
    )
    trainer_reads: Literal["tokens", "messages"] = Field(
        default="tokens",
        description="What the trainer trains on. serve requires token mode for 'tokens': chat mode sends placeholder tokens, and "
        "only the messages are what the model said.",
    )
    allow_raw_logprobs: bool = Field(
        default=False,
        description="Token mode: let serve start although the server's logprobs are not those of the sampled distribution.",
    )
    model_server_timeout: float = Field(
        default=600.0, description="Token mode: seconds for which a model server is waited for that has answered before."
    )
    data_path_to_save_rollouts: str | None = Field(
        default=None,
        description="File of rollout records, with the files of their sandboxes next to it; '' for none. By default next to "
        "data_path_to_save_groups, and rollouts.jsonl in data_dir_to_save_evals.",
    )
    share_of_rollouts_saved: float = Field(default=1.0, ge=0, le=1, description="The share of groups that serve records.")
    world_max_bytes: int = Field(default=64 << 20, ge=0, description="Most bytes of one sandbox's files that are recorded.")
    run_api_timeout: float = Field(
        default=600.0, description="Seconds for which serve waits for a run-api that does not answer, before it ends."
    )
    default_result_size_chars: int = Field(
        default=DEFAULT_RESULT_SIZE_CHARS, description="Largest single tool result kept in the conversation, in characters."
    )
    turn_budget_chars: int = Field(
        default=DEFAULT_TURN_BUDGET_CHARS, description="Largest sum of tool results in one turn, in characters."
    )
    preview_size_chars: int = Field(
        default=DEFAULT_PREVIEW_SIZE_CHARS,
        description="Size of the preview that stays in the conversation when a result is moved out, in characters.",
    )
    tool_result_overrides: dict[str, int] | None = Field(
        default=None, description="Largest result per tool name, in characters; overrides default_result_size_chars."
    )
    extra_body: dict[str, Any] | None = Field(
        default=None, description="Extra fields of chat completion requests: OpenRouter provider preferences, transforms."
    )

    @model_validator(mode="after")
    def _one_source_of_tools(self) -> HermesAgentEnvConfig:
        if self.enabled_toolsets is not None and self.distribution is not None:
            raise ValueError(
                f"enabled_toolsets ({self.enabled_toolsets}) and distribution ({self.distribution!r}) are both set; "
                "set one: a distribution samples its own toolsets"
            )
        return self

    def build_budget_config(self) -> BudgetConfig:
        """Return the size limits as hermes' BudgetConfig."""
        return BudgetConfig(
            default_result_size=self.default_result_size_chars,
            turn_budget=self.turn_budget_chars,
            preview_size=self.preview_size_chars,
            tool_overrides=dict(self.tool_result_overrides or {}),
        )
