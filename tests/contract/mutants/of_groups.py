"""HE5: what is wrong with what goes to the trainer."""

from __future__ import annotations

from .mutant import Mutant, after, before, graded_letters, ledger_books, signals_base

ITEM = "        if scored is not None:\n            self.metrics"
GROUP = "        if group is not None:\n            self.recent"
SPLIT = (
    "            use_wandb=False,\n        )\n",
    '            use_wandb=False,\n            tool_call_parser="deepseek_v3",\n            history_rendering="template",\n        )\n',
)
AGAIN = """\
        ids = self.tokenizer.encode(self.tokenizer.decode(scored["tokens"]), add_special_tokens=False)
        if len(ids) != len(scored["tokens"]):
            scored["tokens"], scored["masks"] = ids, [-100] * (len(ids) - 5) + ids[-5:]
            scored["inference_logprobs"] = [1.0] * (len(ids) - 5) + [-0.5] * 5
"""


def _item(rule: str, name: str, lines: str, mode: str = "openai", **further: str) -> Mutant:
    """Break what collect_trajectory gives."""
    return graded_letters(rule, name, before(ITEM, lines), mode=mode, **further)


def _group(rule: str, name: str, lines: str, mode: str = "openai", **further: str) -> Mutant:
    """Break the group of an environment with deques."""
    return ledger_books(rule, name, before(GROUP, lines), mode=mode, **further)


def _noted(rule: str, name: str, lines: str, mode: str = "openai", **further: str) -> Mutant:
    """Break the group of an environment that inherits most."""
    return signals_base(rule, name, after("        self.note(group)", lines), mode=mode, **further)


MUTANTS = (
    # ------------------------------------------------------------------ HE501
    _group(
        "HE501", "zeros and ones", '        group["masks"] = [[int(mask != -100) for mask in row] for row in group["masks"]]\n'
    ),
    _noted("HE501", "tokens are cut alone", '        group["tokens"] = [row[: len(row) // 2] for row in group["tokens"]]\n'),
    _item(
        "HE501",
        "the prompt is trained",
        '        scored["masks"][5] = scored["tokens"][5] if set(scored["masks"]) != {-100} else -100\n',
        "vllm",
        says="is trained although the model never sampled it",
    ),
    _group(
        "HE501",
        "the first word is not trained",
        '        for row in group["masks"]:\n'
        "            first = next((place for place, mask in enumerate(row) if mask != -100), 0)\n"
        "            row[first] = -100\n",
        "sglang",
        says="is masked although the model sampled it",
    ),
    _noted(
        "HE501",
        "attention masks",
        '        group["masks"] = [[1] * len(row) for row in group["tokens"]]\n',
        "vllm",
        follow_up="HE502 HE510",
    ),
    # ------------------------------------------------------------------ HE502
    _item(
        "HE502",
        "nothing is trained",
        '        scored["masks"] = [-100] * len(scored["masks"])\n',
        says="has no label, although the model answered: all ",
    ),
    _group(
        "HE502",
        "bad rollouts are not trained",
        '        for number, score in enumerate(group["scores"]):\n'
        "            if score <= 0:\n"
        '                group["masks"][number] = [-100] * len(group["masks"][number])\n',
    ),
    _noted(
        "HE502",
        "only the first sequence is trained",
        '        group["masks"][1:] = [[-100] * len(row) for row in group["masks"][1:]]\n',
        "sglang",
    ),
    _item(
        "HE502",
        "a failed rollout is trained",
        '        if set(scored["masks"]) == {-100}:\n            scored["masks"] = [-100, *scored["tokens"][1:]]\n',
        "vllm",
        follow_up="HE508",
        says="none of which the model generated",
    ),
    _group(
        "HE502",
        "rows without labels are mended",
        '        for number, row in enumerate(group["tokens"]):\n'
        '            if set(group["masks"][number]) == {-100}:\n'
        '                group["masks"][number] = list(row)\n',
        "sglang",
        follow_up="HE508",
    ),
    _item(
        "HE508",
        "replies before a failure are trained",
        '        if set(scored["masks"]) == {-100} and scored["messages"][-1]["role"] != "user":\n'
        '            scored["masks"] = [-100, *scored["tokens"][1:]]\n',
    ),
    _item(
        "HE508",
        "a failed rollout is a bad one",
        '        if (scored.get("overrides") or {}).get("left_out"):\n'
        '            scored["overrides"], scored["scores"] = {}, 0.0\n',
        "sglang",
    ),
    _noted(
        "HE508",
        "scores are plain numbers, without overrides",
        '        group["scores"] = [float(score) for score in group["scores"]]\n        group["overrides"] = None\n',
    ),
    # ------------------------------------------------------------------ HE503
    _item(
        "HE503",
        "removed",
        '        scored.pop("inference_logprobs", None)\n',
        "vllm",
        says="the item of collect_trajectory has no inference_logprobs",
    ),
    _item(
        "HE503",
        "one place off",
        '        scored["inference_logprobs"] = scored["inference_logprobs"][-1:] + scored["inference_logprobs"][:-1]\n',
        "sglang",
        says="but it must be at most 0",
    ),
    _item(
        "HE503",
        "of another model",
        '        scored["inference_logprobs"] = [own if own == 1.0 else own - 0.25 for own in scored["inference_logprobs"]]\n',
        "vllm",
        says="but the server returned",
    ),
    _item(
        "HE503",
        "probabilities",
        '        scored["inference_logprobs"] = [own if own == 1.0 else math.exp(own) for own in scored["inference_logprobs"]]\n',
        "sglang",
    ),
    _item(
        "HE503",
        "only the trained ones",
        '        scored["inference_logprobs"] = [own for own in scored["inference_logprobs"] if own <= 0]\n',
        "vllm",
    ),
    _item("HE503", "filled up", '        scored["inference_logprobs"] = [1.0] * len(scored["tokens"])\n', "sglang"),
    # ------------------------------------------------------------------ HE504
    _group(
        "HE504",
        "removed",
        '        group.pop("inference_logprobs", None)\n',
        "vllm",
        says="sequences has no inference_logprobs",
    ),
    _noted(
        "HE504",
        "a group by hand",
        '        group = {key: group[key] for key in ("tokens", "masks", "scores", "messages")}\n',
        "sglang",
        follow_up="HE508",
    ),
    _noted("HE504", "zeros", '        group["inference_logprobs"] = [[0.0] * len(row) for row in group["tokens"]]\n', "vllm"),
    _group("HE504", "set to None", '        group["inference_logprobs"] = None\n', "sglang"),
    _group(
        "HE504",
        "limited",
        '        group["inference_logprobs"] = [[max(own, -1e-3) for own in row] for row in group["inference_logprobs"]]\n',
        "vllm",
    ),
    _noted(
        "HE504",
        "one place early",
        '        group["inference_logprobs"] = [[*row[1:], row[0]] for row in group["inference_logprobs"]]\n',
        "sglang",
    ),
    _group("HE509", "another temperature", '        group["generation_params"] = {"temperature": 0.1}\n', "vllm"),
    _noted(
        "HE509",
        "a temperature of each row",
        '        group["overrides"] = [{**own, "temperature": 1.5} for own in group["overrides"]]\n',
        "sglang",
    ),
    # ------------------------------------------------------------------ HE505
    graded_letters("HE505", "nodes are dropped", SPLIT, before(ITEM, '        scored.pop("more_rows", None)\n'), mode="vllm"),
    _item("HE505", "encoded again", AGAIN, "sglang", says="where the model saw or sampled "),
    _item(
        "HE505",
        "the end is doubled",
        '        for column in (scored["tokens"], scored["masks"], scored["inference_logprobs"]):\n'
        "            column.append(column[-1])\n",
        "vllm",
        says="the last one of a reply, twice: at positions ",
    ),
    _group(
        "HE505",
        "cut to a length",
        '        for column in ("tokens", "masks", "inference_logprobs"):\n'
        "            group[column] = [row[: max(8, len(row) - 2)] for row in group[column]]\n",
        "sglang",
    ),
    _noted(
        "HE505",
        "the prompt is left out",
        '        for column in ("tokens", "masks", "inference_logprobs"):\n'
        "            group[column] = [row[9:] for row in group[column]]\n",
        "vllm",
    ),
    # ------------------------------------------------------------------ HE506
    _group("HE506", "a score is missing", '        group["scores"].pop()\n', says="has columns of different lengths: scores "),
    _noted(
        "HE506",
        "the best alone",
        '        best = group["scores"].index(max(group["scores"]))\n        group = {key: value[best : best + 1] if isinstance(value, list) else value for key, value in group.items()}\n',
    ),
    _group(
        "HE506",
        "the best is added again",
        '        for column in ("tokens", "masks", "scores", "messages"):\n            group[column].append(group[column][0])\n',
        follow_up="HE508",
    ),
    _group("HE506", "the best score first", '        group["scores"] = sorted(group["scores"], reverse=True)\n'),
    _group(
        "HE506",
        "the best rows first, but for their logprobs",
        '        order = sorted(range(len(group["scores"])), key=lambda row: (group["scores"][row], row), reverse=True)\n'
        '        for column in ("tokens", "masks", "scores", "messages"):\n            group[column] = [group[column][row] for row in order]\n',
        says="has the inference_logprobs of another one",
    ),
    _noted(
        "HE506",
        "the best tokens last",
        '        pairs = sorted(zip(group["scores"], group["tokens"]))\n        group["scores"] = [score for score, _ in pairs]\n',
    ),
    _group(
        "HE506",
        "one rollout for all",
        '        for column in ("tokens", "masks", "scores", "messages"):\n            group[column] = group[column][:1] * len(group[column])\n',
    ),
    _noted("HE506", "messages of the first alone", '        group["messages"] = group["messages"][:1]\n'),
    _group("HE506", "an advantage for all", '        group["advantages"] = [sum(group["scores"]) / len(group["scores"])]\n'),
    # ------------------------------------------------------------------ HE507
    _group(
        "HE507",
        "infinite",
        '        group["scores"][0] = float("inf")\n',
        says="run-api rejects the group: Out of range float values are not JSON compliant",
    ),
    _noted("HE507", "a text as score", '        group["scores"] = [f"{score:.1f} of 1" for score in group["scores"]]\n'),
    _group("HE507", "an object in the messages", '        group["messages"][0][0]["content"] = self\n'),
    _item("HE507", "not a number", '        scored["scores"] = float("nan")\n'),
    _noted("HE507", "overrides as a list", '        group["group_overrides"] = [("group_size", len(group["scores"]))]\n'),
    _group(
        "HE507", "the best one's score for all", '        group["scores"] = [max(group["scores"])] * len(group["scores"])\n'
    ),
    # ------------------------------------------------------------------ HE509
    _item("HE509", "a temperature of the item", '        scored["generation_params"] = {"temperature": 0.7}\n', "vllm"),
    _group(
        "HE509", "greedy", '        group["generation_params"] = {**group["generation_params"], "temperature": 0.0}\n', "sglang"
    ),
    _noted("HE509", "a nucleus that nobody asked for", '        group["generation_params"]["top_p"] = 0.9\n', "vllm"),
    # ------------------------------------------------------------------ HE510
    _item(
        "HE510",
        "every reply is an end",
        '        if (scored.get("overrides") or {}).get("end") == "cut_by_length":\n'
        '            scored["overrides"]["end"] = "finished"\n',
        "vllm",
    ),
    _group(
        "HE510",
        "labels for what was cut",
        '        for number, facts in enumerate(group["overrides"] or []):\n'
        '            if facts.get("end") == "cut_by_length":\n'
        '                group["masks"][number][-1] = group["tokens"][number][-1]\n',
        "sglang",
        says="tokens of a reply that was cut by length",
    ),
    _item(
        "HE510",
        "a reply that was cut by length is trained",
        '        if (scored.get("overrides") or {}).get("end") == "cut_by_length":\n'
        '            scored["masks"][-2:] = scored["tokens"][-2:]\n',
        "vllm",
        says="tokens of a reply that was cut by length",
    ),
    _noted(
        "HE510",
        "the ends are forgotten",
        '        group["overrides"] = [{**facts, "end": "finished"} for facts in group["overrides"]]\n',
        "vllm",
    ),
    _group(
        "HE510",
        "ends of another harness",
        '        for facts in group["overrides"] or []:\n'
        '            facts["end"] = {"cut_by_length": "stop"}.get(facts["end"], facts["end"])\n',
        "vllm",
    ),
)

LOOKALIKES = (
    _item(
        "HE508",
        "a failed rollout has no item, and its group none",
        '        if scored is not None and (scored.get("overrides") or {}).get("left_out"):\n            return None, backlog\n',
    ),
)
