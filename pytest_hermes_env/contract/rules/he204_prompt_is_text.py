"""HE204 prompt-is-text
`format_prompt` returns a non-empty string and does not change the item.

What: Each return of `format_prompt` is a non-empty `str`. The method changes neither the item nor anything in it.

Why: The prompt becomes the content of the user message. The server rejects None, a list of messages or a dict, or
passes it to a chat template that cannot render it. An empty prompt produces rollouts about nothing. A changed item is a
different item for the second rollout of its group, and for the reward.

Fix: Return `item["question"]` as a `str`, and work on a copy where part of the item needs preparation.

Source: `environments.hermes_base_env`, `HermesAgentBaseEnv.format_prompt(item) -> str` and `collect_trajectory`.
"""

from __future__ import annotations

import ast

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.scenario import ItemSeen
from pytest_hermes_env.source import ClassSource, finding_at

_NOT_TEXT = {
    ast.Dict: "a dict", ast.DictComp: "a dict", ast.List: "a list", ast.ListComp: "a list", ast.Tuple: "a tuple", ast.Set: "a set",
    ast.SetComp: "a set", ast.GeneratorExp: "a generator", ast.Compare: "a bool", ast.Lambda: "a function",
}  # fmt: skip


def static(source: ClassSource) -> Verdict:
    """Look at what the return statements of format_prompt say.

    It complements the rollouts: a benchmark has no training items to ask for a prompt.
    """
    function = source.methods.get("format_prompt")
    if function is None or function.is_async:
        return Verdict.undecided("there is no format_prompt to read")
    nodes = list(function.own_nodes())
    returned = [node for node in nodes if isinstance(node, ast.Return)]
    findings = [finding_at(function, node, fault) for node in returned if (fault := _fault(node.value))]
    if not returned and not any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Raise)) for node in nodes):
        findings.append(finding_at(function, function.node, "format_prompt returns nothing; the prompt would be None"))
    return Verdict.of_source(findings, "format_prompt returns a string")


def _fault(value: ast.expr | None) -> str:
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return "format_prompt must return a string, but returns None"
    if what := _NOT_TEXT.get(type(value)):
        return f"format_prompt must return a string, but returns {what}"
    if isinstance(value, ast.Constant) and not isinstance(value.value, str):
        return f"format_prompt must return a string, but returns {value.value!r}"
    return "format_prompt returns an empty string" if isinstance(value, ast.Constant) and not str(value.value).strip() else ""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what format_prompt gave for the items that were taken."""
    own = evidence.cls.methods.get("format_prompt")
    if own is not None and not own.is_callable:
        return Verdict.not_exercised("there is no method format_prompt, as HE101 reports", "HE101")
    scenario = evidence.scenario("items")
    if missing := evidence.without_items():
        return missing
    fault = next((fault for item in scenario.items if (fault := _seen(item))), "")
    if not fault:
        return Verdict.passed(f"{len(scenario.items)} prompts checked")
    return Verdict.failed([evidence.finding(fault, "format_prompt", scenario="items")])


def _seen(item: ItemSeen) -> str:
    if item.error:
        return f"format_prompt raised {item.error}"
    if not isinstance(item.prompt, str):
        return f"format_prompt must return a string, but returned {type(item.prompt).__name__}"
    if not item.prompt.strip():
        return "format_prompt returned an empty string"
    return "format_prompt changed the item" if item.is_changed else ""


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=("items",))
