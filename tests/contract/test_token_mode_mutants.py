"""Broken variants of TerminalTestEnv in token mode: each is caught by the one rule that is about it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_hermes_env.contract.engine import ClassContract
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.layer import find_class
from pytest_hermes_env.source.finding import Severity

HEAD = """
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv


class Mutant(TerminalTestEnv):
"""

MAIN = """

if __name__ == "__main__":
    Mutant.cli()
"""

SPLIT = """
    @classmethod
    def config_init(cls):
        config, servers = super().config_init()
        # A template that strips every thought, rendered anew in each turn: a rollout becomes several sequences
        return config.model_copy(update={"tool_call_parser": "deepseek_v3", "history_rendering": "template"}), servers
"""

ITEM = """
    async def collect_trajectory(self, item):
        scored, backlog = await super().collect_trajectory(item)
        {change}
        return scored, backlog
"""

GROUP = """
    async def collect_trajectories(self, item):
        group, backlog = await super().collect_trajectories(item)
        {change}
        return group, backlog
"""


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


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A breakage, the rule that catches it, and what it says; ``body`` is the class's."""

    name: str
    body: str
    rule: str
    message: str


MUTANTS = (
    Mutant(
        name="logprobs are removed from the item",
        body=ITEM.format(change='scored.pop("inference_logprobs", None)'),
        rule="HE503",
        message="the item of collect_trajectory has no inference_logprobs",
    ),
    Mutant(
        name="logprobs are one place off",
        body=ITEM.format(
            change='scored["inference_logprobs"] = scored["inference_logprobs"][-1:] + scored["inference_logprobs"][:-1]'
        ),
        rule="HE503",
        message="where a number of at most 0 is expected",
    ),
    Mutant(
        name="logprobs are those of another model",
        body=ITEM.format(
            change='scored["inference_logprobs"] = [own if own == 1.0 else own - 0.25 for own in scored["inference_logprobs"]]'
        ),
        rule="HE503",
        message="for which the server gave",
    ),
    Mutant(
        name="logprobs are removed from the group",
        body=GROUP.format(change='group.pop("inference_logprobs", None)'),
        rule="HE504",
        message="the group of 2 sequences has no inference_logprobs",
    ),
    Mutant(
        name="masks are shifted by one",
        body=ITEM.format(change='scored["masks"] = [-100, *scored["masks"][:-1]]'),
        rule="HE501",
        message="collect_trajectory gave an item with token ",
    ),
    Mutant(
        name="the prompt is trained, too",
        body=ITEM.format(change='scored["masks"][5] = scored["tokens"][5] if set(scored["masks"]) != {-100} else -100'),
        rule="HE501",
        message="is trained, and the model never sampled it (1 such positions)",
    ),
    Mutant(
        name="a reply is not trained",
        body=ITEM.format(
            change='first = next((i for i, m in enumerate(scored["masks"]) if m != -100), 0); scored["masks"][first] = -100'
        ),
        rule="HE501",
        message="is not trained, and the model sampled it (1 such positions)",
    ),
    Mutant(
        name="nothing is trained",
        body=ITEM.format(change='scored["masks"] = [-100] * len(scored["masks"])'),
        rule="HE502",
        message="has no label, although the model answered: all ",
    ),
    Mutant(
        name="a failed rollout is trained",
        body=ITEM.format(
            change='scored["masks"] = scored["masks"] if set(scored["masks"]) != {-100} else [-100, *scored["tokens"][1:]]'
        ),
        rule="HE502",
        message="and the model said none of them",
    ),
    Mutant(
        name="nodes are dropped",
        body=SPLIT + ITEM.format(change='scored.pop("more_rows", None)'),
        rule="HE505",
        message="is in too few sequences: ",
    ),
    Mutant(
        name="an end token is doubled behind the first reply",
        body=ITEM.format(change=DOUBLE_THE_FIRST),
        rule="HE505",
        message=" twice, at positions ",
    ),
    Mutant(
        name="an end token is doubled behind the last reply, and trained",
        body=ITEM.format(change=DOUBLE_THE_LAST),
        rule="HE505",
        message="with which a reply ended, twice: at positions ",
    ),
    Mutant(
        name="a reply is encoded again",
        body=ITEM.format(change=ENCODE_AGAIN),
        rule="HE505",
        message="where the model saw or sampled ",
    ),
    Mutant(
        name="a group lacks a score",
        body=GROUP.format(change='group["scores"].pop()'),
        rule="HE506",
        message="a group of 2 has columns of another length: scores 1",
    ),
    Mutant(
        name="a score is no JSON",
        body=GROUP.format(change='group["scores"][0] = float("inf")'),
        rule="HE507",
        message="run-api refuses the group: Out of range float values are not JSON compliant",
    ),
)


@pytest.mark.parametrize(
    ("mutant", "server_type"),
    [(mutant, ("vllm", "sglang")[number % 2]) for number, mutant in enumerate(MUTANTS)],
    ids=[mutant.name.replace(" ", "-") for mutant in MUTANTS],
)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other(mutant: Mutant, server_type: str, tmp_path: Path) -> None:
    """The rule names the method of the mutant that broke its law; no other rule of severity error complains."""
    path = tmp_path / "mutant.py"
    path.write_text(HEAD + mutant.body + MAIN, encoding="utf-8")
    (env_class,) = find_class(str(path))
    contract = ClassContract(env_class, sandbox="fake", timeout_s=30, server_type=server_type)

    results = [contract.result(rule) for rule in ALL_RULES]

    found = {result.rule.id: result.findings[0] for result in results if result.findings}
    wrong = [rule for rule, finding in found.items() if rule == mutant.rule]
    assert (wrong, list(found)) == ([mutant.rule], [mutant.rule]), {rule: finding.message for rule, finding in found.items()}
    assert mutant.message in found[mutant.rule].message
    assert inspect.getsource(env_class).splitlines()[found[mutant.rule].line - 5].lstrip().startswith("async def collect")


@pytest.mark.parametrize(("policy", "rows"), [("keep", 6), ("reject", 2)])
def test_a_rollout_that_became_several_sequences_keeps_the_contract(policy: str, rows: int, tmp_path: Path) -> None:
    """A template that splits rollouts is no breach as long as every sequence is kept, or all are rejected on purpose."""
    path = tmp_path / "split.py"
    path.write_text(HEAD + SPLIT.replace('"template"}', f'"template", "split_rollouts": "{policy}"}}'), encoding="utf-8")
    (env_class,) = find_class(str(path))
    contract = ClassContract(env_class, sandbox="fake", timeout_s=30, server_type="vllm")

    results = [contract.result(rule) for rule in ALL_RULES if rule.severity is Severity.ERROR]

    seen = len(contract.evidence.scenario("happy").group["tokens"])
    broken = {result.rule.id: [finding.message for finding in result.findings] for result in results if result.findings}
    assert (seen, broken) == (rows, {})
