"""The examples of the rules are correct: the rule has findings on the bad ones and none on the good ones."""

from __future__ import annotations

import ast
import textwrap

import pytest

from pytest_hermes_env.contract.examples import Example, examples_of
from pytest_hermes_env.contract.judge.evidence import NO_TOKENS
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.source import read_classes

OF_PAY = ("HE405", "HE412")
"""Rules about what is paid: the reward of an example is one line that shows another rule."""
FRAME = '''\
import asyncio
import os
import random
import shlex
import uuid

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from environments.agent_loop import HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext


class Env(HermesAgentBaseEnv):
    """What surrounds the methods of an example."""

    name = "example"
    env_config_cls = HermesAgentEnvConfig

    @classmethod
    def config_init(cls):
        config = cls.env_config_cls(enabled_toolsets=["terminal"])
        return config, [APIServerConfig(model_name="m", base_url="http://localhost:8000/v1", server_type="openai")]

    async def setup(self):
        self.items = [{"question": "2 + 2", "answer": "4"}, {"question": "2 + 5", "answer": "7"}]
        self.held_out = [{"question": "3 + 3", "answer": "6"}]
        self.next = 0

    async def get_next_item(self):
        self.next += 1
        return self.items[self.next % len(self.items)]

    def format_prompt(self, item):
        return item["question"]

    async def compute_reward(self, item, result, ctx):
        return float(str(result.messages[-1].get("content")).strip() == item["answer"])

    async def evaluate(self):
        await self.evaluate_items(self.held_out)
'''
START = """

if __name__ == "__main__":
    Env.cli()
"""

GOLD = """\
items:
  - where: "*"
    gold: [{call: terminal, with: {command: ls}}, {say: "${item.answer}"}]
"""
"""Good work on the frame's items."""

RULES = {rule.id: rule for rule in ALL_RULES}
EXAMPLES = [example for rule in ALL_RULES for example in examples_of(rule.id)]


def written(example: Example) -> str:
    """Return an example as a whole file: its methods and attributes replace those of the frame."""
    if "class " in example.code:
        return example.code
    names = set(map(_name, ast.parse(example.code).body))
    lines = FRAME.splitlines()
    env = ast.parse(FRAME).body[-1]
    assert isinstance(env, ast.ClassDef)
    for node in reversed(env.body):
        if _name(node) in names:
            first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])
            del lines[first - 1 : node.end_lineno]
    return "\n".join(lines) + "\n\n" + textwrap.indent(example.code, "    ") + START


def completed(example: Example) -> str:
    """Return an example as a whole environment: a class gets what it lacks from the frame's."""
    if "class " not in example.code:
        return written(example)
    tree = ast.parse(example.code)
    own = next(node for node in reversed(tree.body) if isinstance(node, ast.ClassDef))
    *imports, frame = ast.parse(FRAME).body
    assert isinstance(frame, ast.ClassDef)
    names = set(map(_name, own.body))
    own.body += [node for node in frame.body if _name(node) not in names and not isinstance(node, ast.Expr)]
    tree.body[:0] = imports
    text = ast.unparse(tree)
    return text if "__main__" in text else text + START.replace("Env", own.name)


def _name(node: ast.stmt) -> str:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ast.unparse(node)


def contract_in_its_mode(rule, target):
    """Return the contract of a class in chat mode, or in token mode for a rule that does not apply to chat mode."""
    contract = contract_of(target, [rule])
    has_no_tokens = contract.result(rule).note == NO_TOKENS
    return contract_of(target, [rule], server_type="vllm") if has_no_tokens else contract


@pytest.mark.parametrize(
    ("number", "example"),
    list(enumerate(EXAMPLES)),
    ids=[f"{example.rule_id}-{'bad' if example.is_bad else 'good'}-{number}" for number, example in enumerate(EXAMPLES)],
)
def test_the_rule_finds_the_bad_and_not_the_good(tmp_path, number, example):
    """The rule checks the source, and rollouts where it does not read it or does not see the fault in it."""
    path = tmp_path / f"example_{number}.py"
    path.write_text(written(example), encoding="utf-8")
    path.with_suffix(".contract.yaml").write_text(GOLD, encoding="utf-8")
    rule = RULES[example.rule_id]
    reading = read_classes(str(path))
    if reading.problem is not None:
        outcomes = {Outcome.FAILED if reading.problem.id == rule.id else Outcome.PASSED}
    else:
        outcomes = {rule.static(source).outcome for source in reading.classes} if rule.static is not None else set()
        if rule.dynamic is not None and (not outcomes or (example.is_bad and Outcome.FAILED not in outcomes)):
            outcomes = {contract_in_its_mode(rule, f"{path}:{source.name}").result(rule).outcome for source in reading.classes}

    assert outcomes, "the example holds no environment class"
    if example.is_bad:
        assert Outcome.FAILED in outcomes
    else:
        assert outcomes == {Outcome.PASSED}


GOOD = [example for example in EXAMPLES if not example.is_bad]
STRIDE = 12
"""The distance of the examples that are played by default; all with ``--all-rules``."""


def _label(example):
    return example.rule_id


@pytest.mark.parametrize("example", GOOD, ids=_label)
def test_the_code_of_a_good_example_breaks_no_rule_in_the_source(tmp_path, example):
    """Who copies it gets no finding of another rule."""
    path = tmp_path / "example.py"
    path.write_text(completed(example), encoding="utf-8")
    (source,) = read_classes(str(path)).classes
    found = [(rule.id, item.message) for rule in ALL_RULES if rule.static for item in rule.static(source).findings]

    assert found == []


@pytest.mark.parametrize("number", range(len(GOOD)), ids=lambda number: f"{GOOD[number].rule_id}-{number}")
def test_the_code_of_a_good_example_breaks_no_rule_in_rollouts(pytestconfig, tmp_path, number):
    """It is played, and judged by all rules."""
    if number % STRIDE and not pytestconfig.getoption("all_rules"):
        pytest.skip("played by `tox run -e matrix`")
    path = tmp_path / f"good_{number}.py"
    path.write_text(completed(GOOD[number]), encoding="utf-8")
    path.with_suffix(".contract.yaml").write_text(GOLD, encoding="utf-8")
    (source,) = read_classes(str(path)).classes
    contract = contract_of(f"{path}:{source.name}", server_type="vllm" if GOOD[number].rule_id[:3] == "HE5" else "openai")
    results = {rule: contract.result(rule) for rule in ALL_RULES}

    told = [(rule.id, item.message) for rule, result in results.items() for item in result.findings if rule.id not in OF_PAY]
    assert told == []
    assert Outcome.PASSED in {result.outcome for rule, result in results.items() if rule.dynamic}
