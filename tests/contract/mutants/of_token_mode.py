"""What is wrong with the tokens, masks and logprobs of token mode."""

from __future__ import annotations

from .mutant import added, after, terminal_tasks

NO_WANDB = "            use_wandb=False,\n"
SPLIT = after(NO_WANDB, '            tool_call_parser="deepseek_v3",\n            history_rendering="template",\n')
"""The change to a template that strips every thought, rendered anew in each turn: a rollout becomes several sequences."""

ITEM = """
    async def collect_trajectory(self, item):  # <- here
        scored, backlog = await super().collect_trajectory(item)
        {change}
        return scored, backlog
"""

GROUP = """
    async def collect_trajectories(self, item):  # <- here
        group, backlog = await super().collect_trajectories(item)
        {change}
        return group, backlog
"""

POSTPROCESSED = """
    async def postprocess_histories(self, trajectories):
        {change}
        return trajectories
"""


TRAIN_THE_FAILED = """\
if any(row.get("end") == "reward_failed" for row in group["overrides"]):
            group["masks"] = [[-100, *row[1:]] for row in group["tokens"]]"""

FORGIVE = """\
if (scored.get("overrides") or {}).get("end") == "reward_failed":
            scored["overrides"], scored["scores"] = {}, 0.0"""

DOUBLE_THE_FIRST = """\
masks = scored["masks"]
        ends = [i for i, m in enumerate(masks) if m != -100 and masks[i + 1 : i + 2] in ([], [-100])]
        for column, value in ((scored["tokens"], None), (masks, -100), (scored["inference_logprobs"], 1.0)):
            if ends:
                column.insert(ends[0] + 1, column[ends[0]] if value is None else value)"""


MUTANTS = (
    terminal_tasks(
        "HE505",
        "rows of a split rollout are not named",
        SPLIT,
        added(GROUP.format(change='group["overrides"] = [{} for _ in group["tokens"]]')),
        mode="vllm",
        says="rollouts do not weigh the same",
        follow_up="HE508",
    ),
    terminal_tasks(
        "HE505",
        "the first row of a split rollout is not named",
        SPLIT,
        added(ITEM.format(change='(scored.get("overrides") or {}).pop("rollout_id", None)')),
        mode="sglang",
        says="rollouts do not weigh the same",
    ),
    terminal_tasks(
        "HE505",
        "an end token is doubled behind the first reply",
        added(ITEM.format(change=DOUBLE_THE_FIRST)),
        mode="vllm",
        says=" twice, at positions ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE508",
        "a rollout whose reward failed is trained",
        added(GROUP.format(change=TRAIN_THE_FAILED)),
        mode="sglang",
        says="and the reward failed in its rollout",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE508",
        "a failed reward is a zero",
        added(ITEM.format(change=FORGIVE)),
        says="has a score, and the reward failed in its rollout",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE501",
        "masks are shifted after the group is made",
        added(POSTPROCESSED.format(change='trajectories["masks"] = [[-100, *row[:-1]] for row in trajectories["masks"]]')),
        says="sequence 0 of the group has token ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE504",
        "logprobs are removed after the group is made",
        added(POSTPROCESSED.format(change='trajectories.pop("inference_logprobs")')),
        mode="vllm",
        says="the group of 2 sequences has no inference_logprobs",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE505",
        "sequences are cut after the group is made",
        added(
            POSTPROCESSED.format(
                change='trajectories.update({c: [r[:-2] for r in trajectories[c]] for c in ("tokens", "masks", "inference_logprobs")})'
            )
        ),
        mode="sglang",
        says="is missing from the sequences: ",
    ),
    terminal_tasks(
        "HE506",
        "a score is dropped after the group is made",
        added(POSTPROCESSED.format(change='trajectories["scores"].pop()')),
        says="a group of 2 has columns of different lengths: scores 1",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE507",
        "scores are no numbers after the group is made",
        added(POSTPROCESSED.format(change='trajectories["scores"] = ["good" for _ in trajectories["scores"]]')),
        says="run-api rejects the group: ",
    ),
    terminal_tasks(
        "HE511",
        "every group is lost after it is made",
        added(POSTPROCESSED.format(change="trajectories = None")),
        says="returned no group, although ",
    ),
)
