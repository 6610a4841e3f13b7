"""Every rule of the contract, one file each, in the order of their ids; and how to find one by what a user calls it."""

from __future__ import annotations

import difflib
import re
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.errors import UnknownRule
from pytest_hermes_env.source.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ALL_RULES", "find_rule", "nearest", "rules_named", "select_rules"]

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
    "he508_failures_train_nothing",
    "he509_sampling_is_told",
    "he510_cut_turns_are_marked",
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

_FILE_RULE = "HE111"


def find_rule(word: str) -> Rule:
    """Return the rule with the id or the name ``word``. Raises: UnknownRule."""
    for rule in ALL_RULES:
        if rule.is_called(word):
            return rule
    group = ", ".join(rule.id for rule in rules_named(word))
    hint = f" {word.upper()} begins the ids {group}." if group else nearest(word)
    raise UnknownRule(f"there is no rule {word!r}.{hint} `hermes-env rules` lists all {len(ALL_RULES)}.")


def rules_named(word: str) -> tuple[Rule, ...]:
    """Return the rules whose ids begin with ``word``, or that are called so; empty when there is none."""
    return tuple(rule for rule in ALL_RULES if rule.id.startswith(word.upper()) or rule.is_called(word))


def select_rules(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that the words of ``select`` name (by default all but opinions), without those of ``ignore``.

    Raises: UnknownRule when a word names no rule, or when HE111 itself is to be ignored.
    """
    for word in (*select, *ignore):
        if not rules_named(word):
            find_rule(word)
    if any(rule.id == _FILE_RULE and rule.is_called(word) for word in ignore for rule in rules_named(word)):
        raise UnknownRule(f"{_FILE_RULE} file-parses cannot be ignored: a file that does not parse cannot be checked")
    selected = {rule.id for word in select for rule in rules_named(word)}
    ignored = {rule.id for word in ignore for rule in rules_named(word)}
    return tuple(
        rule
        for rule in ALL_RULES
        if rule.id not in ignored and (rule.id in selected if select else rule.severity is not Severity.OPINION)
    )


def nearest(word: str) -> str:
    """Return " Did you mean HE301?" for a word that is close to an id or a name, else an empty text."""
    is_id = re.fullmatch(r"HE\d{2,}", word, re.IGNORECASE) is not None  # one digit wrong is another rule, one too many a slip
    rules = [rule for rule in ALL_RULES if not is_id or rule.id.startswith(word[:4].upper())]
    names = {name: rule.id for rule in rules for name in (rule.id.lower(), rule.name, *rule.former_names)}
    found = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    return f" Did you mean {names[found[0]]}?" if found else ""
