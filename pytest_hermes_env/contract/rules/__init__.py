"""Every rule of the contract, one file each, in the order of their ids."""

from __future__ import annotations

from pytest_hermes_env.contract.rules.he101_required_methods import RULE as HE101
from pytest_hermes_env.contract.rules.he102_async_where_awaited import RULE as HE102
from pytest_hermes_env.contract.rules.he103_has_a_name import RULE as HE103
from pytest_hermes_env.contract.rules.he104_config_class import RULE as HE104
from pytest_hermes_env.contract.rules.he105_config_init import RULE as HE105
from pytest_hermes_env.contract.rules.he106_external_server_settings import RULE as HE106
from pytest_hermes_env.contract.rules.he107_no_secrets_in_source import RULE as HE107
from pytest_hermes_env.contract.rules.he108_toolsets_are_named import RULE as HE108
from pytest_hermes_env.contract.rules.he109_runnable_module import RULE as HE109
from pytest_hermes_env.contract.rules.he110_import_is_quiet import RULE as HE110
from pytest_hermes_env.contract.rules.he111_file_parses import RULE as HE111
from pytest_hermes_env.contract.rules.he112_config_fields_are_read import RULE as HE112
from pytest_hermes_env.contract.rules.he201_setup_works_offline import RULE as HE201
from pytest_hermes_env.contract.rules.he202_items_never_run_out import RULE as HE202
from pytest_hermes_env.contract.rules.he203_eval_is_held_out import RULE as HE203
from pytest_hermes_env.contract.rules.he204_prompt_is_text import RULE as HE204
from pytest_hermes_env.contract.rules.he205_split_is_seeded import RULE as HE205
from pytest_hermes_env.contract.rules.he301_messages_not_final_response import RULE as HE301
from pytest_hermes_env.contract.rules.he302_tool_calls_are_dicts import RULE as HE302
from pytest_hermes_env.contract.rules.he303_tool_names_exist import RULE as HE303
from pytest_hermes_env.contract.rules.he401_reward_is_a_finite_number import RULE as HE401
from pytest_hermes_env.contract.rules.he402_reward_in_unit_interval import RULE as HE402
from pytest_hermes_env.contract.rules.he403_reward_never_raises import RULE as HE403
from pytest_hermes_env.contract.rules.he404_reward_is_repeatable import RULE as HE404
from pytest_hermes_env.contract.rules.he405_reward_tells_apart import RULE as HE405
from pytest_hermes_env.contract.rules.he406_judge_falls_back import RULE as HE406
from pytest_hermes_env.contract.rules.he407_judge_asked_once import RULE as HE407
from pytest_hermes_env.contract.rules.he408_reward_leaves_inputs_alone import RULE as HE408
from pytest_hermes_env.contract.rules.he409_shell_values_are_quoted import RULE as HE409
from pytest_hermes_env.contract.rules.he410_reward_not_forgeable import RULE as HE410
from pytest_hermes_env.contract.rules.he411_no_cleanup_in_reward import RULE as HE411
from pytest_hermes_env.contract.rules.he501_masks_match_tokens import RULE as HE501
from pytest_hermes_env.contract.rules.he502_something_trains import RULE as HE502
from pytest_hermes_env.contract.rules.he503_logprobs_align import RULE as HE503
from pytest_hermes_env.contract.rules.he504_logprobs_reach_the_group import RULE as HE504
from pytest_hermes_env.contract.rules.he505_one_node_per_rollout import RULE as HE505
from pytest_hermes_env.contract.rules.he506_group_is_whole import RULE as HE506
from pytest_hermes_env.contract.rules.he507_trainer_accepts import RULE as HE507
from pytest_hermes_env.contract.rules.he601_cleanup_in_finally import RULE as HE601
from pytest_hermes_env.contract.rules.he602_task_id_is_fresh import RULE as HE602
from pytest_hermes_env.contract.rules.he603_no_shared_rollout_state import RULE as HE603
from pytest_hermes_env.contract.rules.he604_environment_is_restored import RULE as HE604
from pytest_hermes_env.contract.rules.he605_loop_is_not_blocked import RULE as HE605
from pytest_hermes_env.contract.rules.he606_no_leaked_resources import RULE as HE606
from pytest_hermes_env.contract.rules.he701_evaluates_as_an_agent import RULE as HE701
from pytest_hermes_env.contract.rules.he702_eval_rolls_back_buffers import RULE as HE702
from pytest_hermes_env.contract.rules.he703_eval_is_greedy import RULE as HE703
from pytest_hermes_env.contract.rules.he704_eval_keeps_the_settings import RULE as HE704
from pytest_hermes_env.contract.rules.he705_eval_is_logged import RULE as HE705
from pytest_hermes_env.contract.rules.he706_eval_reports_what_it_ran import RULE as HE706
from pytest_hermes_env.contract.rules.he707_eval_survives_an_item import RULE as HE707
from pytest_hermes_env.contract.rules.he801_awaits_super_wandb_log import RULE as HE801
from pytest_hermes_env.contract.rules.he802_wandb_log_accepts_none import RULE as HE802
from pytest_hermes_env.contract.rules.he803_buffers_are_drained import RULE as HE803

ALL_RULES = (
    HE101,
    HE102,
    HE103,
    HE104,
    HE105,
    HE106,
    HE107,
    HE108,
    HE109,
    HE110,
    HE111,
    HE112,
    HE201,
    HE202,
    HE203,
    HE204,
    HE205,
    HE301,
    HE302,
    HE303,
    HE401,
    HE402,
    HE403,
    HE404,
    HE405,
    HE406,
    HE407,
    HE408,
    HE409,
    HE410,
    HE411,
    HE501,
    HE502,
    HE503,
    HE504,
    HE505,
    HE506,
    HE507,
    HE601,
    HE602,
    HE603,
    HE604,
    HE605,
    HE606,
    HE701,
    HE702,
    HE703,
    HE704,
    HE705,
    HE706,
    HE707,
    HE801,
    HE802,
    HE803,
)
