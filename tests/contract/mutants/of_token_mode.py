"""What is wrong with the tokens, masks and logprobs of token mode."""

from __future__ import annotations

from .mutant import added, terminal_tasks

NO_WANDB = "            use_wandb=False,\n"
SPLIT = (NO_WANDB, NO_WANDB + '            tool_call_parser="deepseek_v3",\n            history_rendering="template",\n')
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

TRAIN_THE_CUT = """\
if (scored.get("overrides") or {}).get("end") == "cut_by_length":
            scored["masks"][-2:] = scored["tokens"][-2:]"""

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

DOUBLE_THE_LAST = """\
for column in (scored["tokens"], scored["masks"], scored["inference_logprobs"]):
            column.append(column[-1])"""

ENCODE_AGAIN = """\
ids = self.tokenizer.encode(self.tokenizer.decode(scored["tokens"]), add_special_tokens=False)
        if len(ids) != len(scored["tokens"]):
            scored["tokens"], scored["masks"] = ids, [-100] * (len(ids) - 5) + ids[-5:]
            scored["inference_logprobs"] = [1.0] * (len(ids) - 5) + [-0.5] * 5"""

MUTANTS = (
    terminal_tasks(
        rule="HE503",
        name="logprobs are removed from the item",
        mode="vllm",
        changes=added(ITEM.format(change='scored.pop("inference_logprobs", None)')),
        says="the item of collect_trajectory has no inference_logprobs",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE503",
        name="logprobs are one place off",
        mode="sglang",
        changes=added(
            ITEM.format(
                change='scored["inference_logprobs"] = scored["inference_logprobs"][-1:] + scored["inference_logprobs"][:-1]'
            )
        ),
        says="but it must be at most 0",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE503",
        name="logprobs are those of another model",
        mode="vllm",
        changes=added(
            ITEM.format(
                change='scored["inference_logprobs"] = [own if own == 1.0 else own - 0.25 for own in scored["inference_logprobs"]]'
            )
        ),
        says="but the server returned",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE504",
        name="logprobs are removed from the group",
        mode="sglang",
        changes=added(GROUP.format(change='group.pop("inference_logprobs", None)')),
        says="the group of 2 sequences has no inference_logprobs",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE501",
        name="masks are shifted by one",
        mode="vllm",
        changes=added(ITEM.format(change='scored["masks"] = [-100, *scored["masks"][:-1]]')),
        says="collect_trajectory returned an item with token ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE501",
        name="the prompt is trained, too",
        mode="sglang",
        changes=added(
            ITEM.format(change='scored["masks"][5] = scored["tokens"][5] if set(scored["masks"]) != {-100} else -100')
        ),
        says="is trained although the model never sampled it (1 such positions)",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE501",
        name="a reply is not trained",
        mode="vllm",
        changes=added(
            ITEM.format(
                change='first = next((i for i, m in enumerate(scored["masks"]) if m != -100), 0); scored["masks"][first] = -100'
            )
        ),
        says="is masked although the model sampled it (1 such positions)",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE502",
        name="nothing is trained",
        mode="sglang",
        changes=added(ITEM.format(change='scored["masks"] = [-100] * len(scored["masks"])')),
        says="has no label, although the model answered: all ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE502",
        name="a failed rollout is trained",
        mode="vllm",
        changes=added(
            ITEM.format(
                change='scored["masks"] = scored["masks"] if set(scored["masks"]) != {-100} else [-100, *scored["tokens"][1:]]'
            )
        ),
        says="none of which the model generated",
        follow_up="HE508",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE505",
        name="nodes are dropped",
        mode="sglang",
        changes=(SPLIT, *added(ITEM.format(change='scored.pop("more_rows", None)'))),
        says="is missing from the sequences: ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE505",
        name="rows of a split rollout are not named",
        mode="vllm",
        changes=(SPLIT, *added(GROUP.format(change='group["overrides"] = [{} for _ in group["tokens"]]'))),
        says="rollouts do not weigh the same",
    ),
    terminal_tasks(
        rule="HE505",
        name="the first row of a split rollout is not named",
        mode="sglang",
        changes=(SPLIT, *added(ITEM.format(change='(scored.get("overrides") or {}).pop("rollout_id", None)'))),
        says="rollouts do not weigh the same",
    ),
    terminal_tasks(
        rule="HE505",
        name="an end token is doubled behind the first reply",
        mode="vllm",
        changes=added(ITEM.format(change=DOUBLE_THE_FIRST)),
        says=" twice, at positions ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE505",
        name="an end token is doubled behind the last reply, and trained",
        mode="sglang",
        changes=added(ITEM.format(change=DOUBLE_THE_LAST)),
        says="the last one of a reply, twice: at positions ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE505",
        name="a reply is encoded again",
        mode="vllm",
        changes=added(ITEM.format(change=ENCODE_AGAIN)),
        says="where the model saw or sampled ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE506",
        name="a group lacks a score",
        mode="sglang",
        changes=added(GROUP.format(change='group["scores"].pop()')),
        says="a group of 2 has columns of different lengths: scores 1",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE507",
        name="a score is no JSON",
        mode="vllm",
        changes=added(GROUP.format(change='group["scores"][0] = float("inf")')),
        says="run-api rejects the group: Out of range float values are not JSON compliant",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE510",
        name="a reply that was cut by length is trained",
        mode="vllm",
        changes=added(ITEM.format(change=TRAIN_THE_CUT)),
        says="tokens of a reply that was cut by length",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE508",
        name="a rollout whose reward failed is trained",
        mode="sglang",
        changes=added(GROUP.format(change=TRAIN_THE_FAILED)),
        says="and the reward failed in its rollout",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE508",
        name="a failed reward is a zero",
        changes=added(ITEM.format(change=FORGIVE)),
        says="has a score, and the reward failed in its rollout",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE501",
        name="masks are shifted after the group is made",
        changes=added(
            POSTPROCESSED.format(change='trajectories["masks"] = [[-100, *row[:-1]] for row in trajectories["masks"]]')
        ),
        says="sequence 0 of the group has token ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE504",
        name="logprobs are removed after the group is made",
        mode="vllm",
        changes=added(POSTPROCESSED.format(change='trajectories.pop("inference_logprobs")')),
        says="the group of 2 sequences has no inference_logprobs",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE505",
        name="sequences are cut after the group is made",
        mode="sglang",
        changes=added(
            POSTPROCESSED.format(
                change='trajectories.update({c: [r[:-2] for r in trajectories[c]] for c in ("tokens", "masks", "inference_logprobs")})'
            )
        ),
        says="is missing from the sequences: ",
    ),
    terminal_tasks(
        rule="HE506",
        name="a score is dropped after the group is made",
        changes=added(POSTPROCESSED.format(change='trajectories["scores"].pop()')),
        says="a group of 2 has columns of different lengths: scores 1",
        draws_no_warning=True,
    ),
    terminal_tasks(
        rule="HE507",
        name="scores are no numbers after the group is made",
        changes=added(POSTPROCESSED.format(change='trajectories["scores"] = ["good" for _ in trajectories["scores"]]')),
        says="run-api rejects the group: ",
    ),
    terminal_tasks(
        rule="HE511",
        name="every group is lost after it is made",
        changes=added(POSTPROCESSED.format(change="trajectories = None")),
        says="returned no group, although ",
    ),
)
