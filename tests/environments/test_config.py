"""HermesAgentEnvConfig: names, types and defaults that existing environments and YAML files rely on."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import ValidationError
from tools.budget_config import BudgetConfig

from environments.hermes_base_env import HermesAgentEnvConfig

FIELDS: dict[str, tuple[Any, Any]] = {
    "enabled_toolsets": (list[str] | None, None),
    "disabled_toolsets": (list[str] | None, None),
    "distribution": (str | None, None),
    "max_agent_turns": (int, 30),
    "system_prompt": (str | None, None),
    "agent_temperature": (float, 1.0),
    "terminal_backend": (str, "local"),
    "terminal_timeout": (int, 120),
    "terminal_lifetime": (int, 3600),
    "dataset_name": (str | None, None),
    "dataset_split": (str, "train"),
    "prompt_field": (str, "prompt"),
    "tool_pool_size": (int, 128),
    "tool_call_parser": (str, "hermes"),
    "history_rendering": (Literal["sampled", "template"], "sampled"),
    "split_rollouts": (Literal["sample", "keep", "reject"], "sample"),
    "rollout_retries": (int, 1),
    "failed_rollouts": (Literal["drop_group", "mask"], "drop_group"),
    "reward_errors": (Literal["retry", "drop_group", "zero"], "retry"),
    "truncated_turns": (Literal["mask", "train", "drop"], "mask"),
    "trainer_reads": (Literal["tokens", "messages"], "tokens"),
    "allow_raw_logprobs": (bool, False),
    "model_server_timeout": (float, 600.0),
    "run_api_timeout": (float, 600.0),
    "default_result_size_chars": (int, 100_000),
    "turn_budget_chars": (int, 200_000),
    "preview_size_chars": (int, 1_500),
    "tool_result_overrides": (dict[str, int] | None, None),
    "extra_body": (dict[str, Any] | None, None),
}


def own_fields() -> dict[str, Any]:
    base = HermesAgentEnvConfig.__mro__[1].model_fields
    return {name: info for name, info in HermesAgentEnvConfig.model_fields.items() if name not in base}


def test_fields_types_and_defaults_are_the_contract():
    """Every field of the contract is there, with its type and default, and no other."""
    assert {name: (info.annotation, info.default) for name, info in own_fields().items()} == FIELDS


def test_every_field_is_described():
    """Each field says what it means."""
    assert [name for name, info in own_fields().items() if not info.description] == []


def test_toolsets_and_distribution_exclude_each_other():
    """Both together are an error that names both."""
    with pytest.raises(ValidationError) as error:
        HermesAgentEnvConfig(enabled_toolsets=["file"], distribution="default")

    assert "enabled_toolsets (['file']) and distribution ('default') are both set" in str(error.value)


def test_budget_config_is_hermes_own():
    """build_budget_config gives hermes the four sizes; without overrides it is hermes' default."""
    config = HermesAgentEnvConfig(
        default_result_size_chars=1, turn_budget_chars=2, preview_size_chars=3, tool_result_overrides={"terminal": 4}
    )

    assert config.build_budget_config() == BudgetConfig(
        default_result_size=1, turn_budget=2, preview_size=3, tool_overrides={"terminal": 4}
    )
    assert HermesAgentEnvConfig().build_budget_config() == BudgetConfig()
