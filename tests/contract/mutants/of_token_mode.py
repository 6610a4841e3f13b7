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
        "HE503",
        "logprobs are removed from the item",
        added(ITEM.format(change='scored.pop("inference_logprobs", None)')),
        mode="vllm",
        says="the item of collect_trajectory has no inference_logprobs",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE503",
        "logprobs are one place off",
        added(
            ITEM.format(
                change='scored["inference_logprobs"] = scored["inference_logprobs"][-1:] + scored["inference_logprobs"][:-1]'
            )
        ),
        mode="sglang",
        says="but it must be at most 0",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE503",
        "logprobs are those of another model",
        added(
            ITEM.format(
                change='scored["inference_logprobs"] = [own if own == 1.0 else own - 0.25 for own in scored["inference_logprobs"]]'
            )
        ),
        mode="vllm",
        says="but the server returned",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE504",
        "logprobs are removed from the group",
        added(GROUP.format(change='group.pop("inference_logprobs", None)')),
        mode="sglang",
        says="the group of 2 sequences has no inference_logprobs",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE501",
        "masks are shifted by one",
        added(ITEM.format(change='scored["masks"] = [-100, *scored["masks"][:-1]]')),
        mode="vllm",
        says="collect_trajectory returned an item with token ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE501",
        "the prompt is trained, too",
        added(ITEM.format(change='scored["masks"][5] = scored["tokens"][5] if set(scored["masks"]) != {-100} else -100')),
        mode="sglang",
        says="is trained although the model never sampled it (1 such positions)",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE501",
        "a reply is not trained",
        added(
            ITEM.format(
                change='first = next((i for i, m in enumerate(scored["masks"]) if m != -100), 0); scored["masks"][first] = -100'
            )
        ),
        mode="vllm",
        says="is masked although the model sampled it (1 such positions)",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE502",
        "nothing is trained",
        added(ITEM.format(change='scored["masks"] = [-100] * len(scored["masks"])')),
        mode="sglang",
        says="has no label, although the model answered: all ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE502",
        "a failed rollout is trained",
        added(
            ITEM.format(
                change='scored["masks"] = scored["masks"] if set(scored["masks"]) != {-100} else [-100, *scored["tokens"][1:]]'
            )
        ),
        mode="vllm",
        says="none of which the model generated",
        follow_up="HE508",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE505",
        "nodes are dropped",
        SPLIT,
        added(ITEM.format(change='scored.pop("more_rows", None)')),
        mode="sglang",
        says="is missing from the sequences: ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE505",
        "rows of a split rollout are not named",
        SPLIT,
        added(GROUP.format(change='group["overrides"] = [{} for _ in group["tokens"]]')),
        mode="vllm",
        says="rollouts do not weigh the same",
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
        "HE505",
        "an end token is doubled behind the last reply, and trained",
        added(ITEM.format(change=DOUBLE_THE_LAST)),
        mode="sglang",
        says="the last one of a reply, twice: at positions ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE505",
        "a reply is encoded again",
        added(ITEM.format(change=ENCODE_AGAIN)),
        mode="vllm",
        says="where the model saw or sampled ",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE506",
        "a group lacks a score",
        added(GROUP.format(change='group["scores"].pop()')),
        mode="sglang",
        says="a group of 2 has columns of different lengths: scores 1",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE507",
        "a score is no JSON",
        added(GROUP.format(change='group["scores"][0] = float("inf")')),
        mode="vllm",
        says="run-api rejects the group: Out of range float values are not JSON compliant",
        draws_no_warning=True,
    ),
    terminal_tasks(
        "HE510",
        "a reply that was cut by length is trained",
        added(ITEM.format(change=TRAIN_THE_CUT)),
        mode="vllm",
        says="tokens of a reply that was cut by length",
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
