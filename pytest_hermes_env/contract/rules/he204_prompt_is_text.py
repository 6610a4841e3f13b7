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
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.scenario import ItemSeen
from pytest_hermes_env.source import (
    MUTATORS,
    UNKNOWN,
    ClassSource,
    Function,
    Kind,
    calls_in,
    constant_value,
    data_flow,
    finding_at,
)
from pytest_hermes_env.source.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOT_TEXT = {
    ast.Dict: "a dict", ast.DictComp: "a dict", ast.List: "a list", ast.ListComp: "a list", ast.Tuple: "a tuple", ast.Set: "a set",
    ast.SetComp: "a set", ast.GeneratorExp: "a generator", ast.Compare: "a bool", ast.Lambda: "a function",
}  # fmt: skip


_OTHER_KINDS = frozenset({Kind.TUPLE, Kind.MANY, Kind.TRUE, Kind.FALSE})


def static(source: ClassSource) -> Verdict:
    """Look at what format_prompt returns, and at what it and its helpers do with the item."""
    function = source.methods.get("format_prompt")
    if function is None:
        return Verdict.undecided("there is no format_prompt to read")
    frame = data_flow(source).entry(function)
    findings = []
    if not frame.returned and not frame.is_generator and not function.is_async:
        findings.append(finding_at(function, function.node, "format_prompt returns nothing; the prompt would be None"))
    for node, values in frame.returned:
        if fault := _fault(node, function):
            findings.append(finding_at(function, node, fault))
        elif not _may_be_text(node) and any(value.kind in _OTHER_KINDS for value in values):
            findings.append(finding_at(function, node, "format_prompt returns something other than a string"))
    positional = function.positional[0 if function.is_static and function.owner is not None else 1 :]
    if positional:
        findings += [
            finding_at(inner, node, "format_prompt changes the item")
            for inner, node in _changes(source, function, positional[0], 0)
        ]
    return Verdict.of_source(findings, "format_prompt returns a string and does not change the item")


def _fault(node: ast.Return, function: Function) -> str:
    value = node.value
    if value is None:
        return "format_prompt must return a string, but returns None"
    what = _NOT_TEXT.get(type(value))
    if what:
        return f"format_prompt must return a string, but returns {what}"
    known = constant_value(value, function.module, function)
    if known is None:
        return "format_prompt must return a string, but returns None" if isinstance(value, ast.Constant) else ""
    if isinstance(known, str):
        return "" if known.strip() else "format_prompt returns an empty string"
    if known is UNKNOWN or not isinstance(known, (bool, int, float, bytes)):
        return ""
    return f"format_prompt must return a string, but returns {known!r}"


def _may_be_text(node: ast.Return) -> bool:
    """Whether an expression's type is decided by what it operates on: `a or b`, a subscript, a call."""
    return not isinstance(node.value, (ast.Name, ast.Constant))


def _changes(source: ClassSource, function: Function, item: str, depth: int) -> Iterator[tuple[Function, ast.AST]]:
    """Yield the places that change what the parameter ``item`` holds, those in the class's helpers included."""
    held = {item}
    for node in function.own_nodes():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in held:
            held |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    rebound = {
        target.id
        for node in function.own_nodes()
        if isinstance(node, ast.Assign) and not (isinstance(node.value, ast.Name) and node.value.id in held)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    held -= rebound  # item = dict(item): from there on it is a copy
    for node in function.own_nodes():
        is_stored = isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del))
        if isinstance(node, (ast.Subscript, ast.Attribute)) and is_stored and _root(node.value) in held:
            yield function, node
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr in MUTATORS and _root(func.value) in held:
            yield function, node
    if depth > 2:  # noqa: PLR2004 - a prompt is built in a few steps
        return
    for call in calls_in([data_flow(source).entry(function)]):
        for value in call.callee:
            if isinstance(value.target, Function) and value.target is not function:
                skip = 1 if value.kind is Kind.METHOD and not value.target.is_static else 0
                for index, given in enumerate(call.node.args):
                    names = value.target.positional[skip:]
                    if isinstance(given, ast.Name) and given.id in held and index < len(names):
                        yield from _changes(source, value.target, names[index], depth + 1)


def _root(node: ast.expr) -> str:
    """Return the name that a chain of subscripts, attributes and plain reads hangs on."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


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
