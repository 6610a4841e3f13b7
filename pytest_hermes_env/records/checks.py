"""The table of what `health` checks, with the limits.

Place in the flow: `health` counts for each entry, and judges by its limit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check: what ``value`` means, the most that is healthy, and how many cases it requires before it judges."""

    name: str
    says: str
    limit: float
    least: int = 1
    is_share: bool = True


CHECKS = (
    Check(name="unreadable_lines", says="of the lines hold no rollout", limit=0.0),
    Check(name="repeated_records", says="of the rollouts are in the files twice", limit=0.0),
    Check(name="rewards_no_numbers", says="of the rewards are no finite number", limit=0.0),
    Check(name="reward_outliers", says="of the rewards are more than 100 times what nine of ten are", limit=0.0, least=20),
    Check(name="no_prompt", says="of the rollouts were asked nothing, or without their item's part", limit=0.0),
    Check(name="failed_rollouts", says="of the rollouts failed, whatever they earned", limit=0.05),
    Check(name="failures_as_zeros", says="of the zeros come from rollouts whose tool calls all failed", limit=0.1, least=5),
    Check(name="always_zero", says="of the rewards are zero", limit=0.95, least=20),
    Check(name="constant_groups", says="of the groups have one reward, and train nothing", limit=0.6, least=5),
    Check(name="mixed_groups", says="of the groups have rollouts of several items", limit=0.0),
    Check(name="one_item", says="of the groups are of one item", limit=0.9, least=10),
    Check(name="cut_rollouts", says="of the rollouts were cut by length", limit=0.1, least=10),
    Check(name="turns_used_up", says="of the rollouts used up their turns", limit=0.3, least=10),
    Check(name="looping_rollouts", says="of the rollouts make one call again and again", limit=0.05, least=10),
    Check(name="empty_answers", says="of the rollouts end without a word", limit=0.1, least=10),
    Check(name="calls_as_text", says="of the rollouts end with a tool call that nobody read as one", limit=0.05, least=10),
    Check(name="repeated_words", says="of the rollouts end with the same few words again and again", limit=0.05, least=10),
    Check(name="failing_tools", says="of the calls of the worst tool fail", limit=0.8, least=10),
    Check(name="judge_falls_back", says="of the judge's answers are empty, missing or refuse", limit=0.02, least=5),
    Check(name="judge_says_one_thing", says="of the judge's answers are, or score, the same", limit=0.95, least=20),
    Check(name="reward_follows_length", says="correlation of reward and length of the answer in a group", limit=0.6, least=30, is_share=False),
    Check(name="reward_follows_turns", says="correlation of reward and turns in a group", limit=0.7, least=30, is_share=False),
    Check(name="reward_by_place", says="mean reward of one place of the groups beside the others", limit=0.2, least=40, is_share=False),
    Check(name="duplicates", says="of the rollouts repeat another one of their group", limit=0.3, least=10),
    Check(name="falling_reward", says="fall of the mean reward from the first to the last quarter", limit=0.2, least=40, is_share=False),
    Check(name="shrinking_answers", says="of the length of the last answer is lost from the first to the last quarter", limit=0.6, least=40, is_share=False),
    Check(name="mixed_models", says="of the rollouts have another model or versions than most of their run", limit=0.0),
    Check(name="items_never_earn", says="of the items with several rollouts never earn, beyond chance", limit=0.4, least=5),
    Check(name="claims_pay", says="of the answers that claim success without a call that worked are paid", limit=0.1, least=5),
    Check(name="rewritten_tests", says="of the rollouts are paid and rewrote a test that the environment wrote", limit=0.02, least=10),
    Check(name="tokens_without_labels", says="of the scored rollouts have tokens and no label", limit=0.01),
    Check(name="labels_without_logprobs", says="of the sequences train tokens without a logprob, or all with 0", limit=0.0),
    Check(name="uneven_tokens", says="of the sequences have columns of different lengths", limit=0.0),
    Check(name="trained_on_evaluation", says="of the evaluation's items are training items, but for ids", limit=0.0),
    Check(name="evaluation_gap", says="mean reward of training above that of evaluation", limit=0.3, least=10, is_share=False),
)  # fmt: skip
