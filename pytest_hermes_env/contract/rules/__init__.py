"""Every rule of the contract, one file each, in the order of their ids."""

from __future__ import annotations

from importlib import import_module

from pytest_hermes_env.contract.rule import Rule

__all__ = ["ALL_RULES"]

_MODULES = (
    "he101_required_methods",
    "he102_async_where_awaited",
    "he103_has_a_name",
    "he104_config_class",
    "he105_config_init",
    "he106_external_server_settings",
    "he107_no_secrets_in_source",
    "he108_toolsets_are_named",
    "he109_runnable_module",
    "he110_import_is_quiet",
    "he111_file_parses",
    "he112_config_fields_are_read",
    "he113_config_fields_exist",
    "he114_base_is_real",
    "he201_setup_works_offline",
    "he202_items_never_run_out",
    "he203_eval_is_held_out",
    "he204_prompt_is_text",
    "he205_split_is_seeded",
    "he206_setup_ends_with_items",
    "he301_messages_not_final_response",
    "he302_tool_calls_are_dicts",
    "he303_tool_names_exist",
    "he401_reward_is_a_finite_number",
    "he402_reward_in_unit_interval",
    "he403_reward_never_raises",
    "he404_reward_is_repeatable",
    "he405_reward_tells_apart",
    "he406_judge_falls_back",
    "he407_judge_asked_once",
    "he408_reward_leaves_inputs_alone",
    "he409_shell_values_are_quoted",
    "he410_reward_not_forgeable",
    "he411_no_cleanup_in_reward",
    "he501_masks_match_tokens",
    "he502_something_trains",
    "he503_logprobs_align",
    "he504_logprobs_reach_the_group",
    "he505_one_node_per_rollout",
    "he506_group_is_whole",
    "he507_trainer_accepts",
    "he511_rollouts_are_scored",
    "he601_cleanup_in_finally",
    "he602_task_id_is_fresh",
    "he603_no_shared_rollout_state",
    "he604_environment_is_restored",
    "he605_loop_is_not_blocked",
    "he606_no_leaked_resources",
    "he701_evaluates_as_an_agent",
    "he702_eval_rolls_back_buffers",
    "he703_eval_is_greedy",
    "he704_eval_keeps_the_settings",
    "he705_eval_is_logged",
    "he706_eval_reports_what_it_ran",
    "he707_eval_survives_an_item",
    "he801_awaits_super_wandb_log",
    "he802_wandb_log_accepts_none",
    "he803_buffers_are_drained",
)

ALL_RULES: tuple[Rule, ...] = tuple(import_module(f"{__name__}.{name}").RULE for name in _MODULES)
