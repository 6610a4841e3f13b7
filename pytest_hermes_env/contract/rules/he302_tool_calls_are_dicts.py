"""HE302 tool-calls-are-dicts
Messages and the tool calls in them are read as dicts.

What: Entries of `result.messages` (a message, an entry of its `tool_calls`, that entry's "function") are not read like
objects: no `call.function.name`, no `message.content`. A helper that also accepts objects of the client checks first,
with `isinstance(call, dict)` or `hasattr`. The entries are followed through aliases, loops, comprehensions and helpers.

Why: The openai client returns objects, and code for them is easily copied into a reward; the agent loop keeps plain
dicts. `call.function.name` raises AttributeError for every rollout that used a tool, and only for these: exactly the
rollouts that should be rewarded fail, without a trace behind a broad except.

Fix: Read `call["function"]["name"]`, and for the arguments `json.loads(call["function"]["arguments"])` with a handler:
models write malformed JSON.

Source: `environments.agent_loop.HermesAgentLoop` (messages are dicts in the format of OpenAI's API).
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence, finding_in
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict, one_per_place
from pytest_hermes_env.play.scenario import PROBES
from pytest_hermes_env.source import (
    DICTS,
    ClassSource,
    Frame,
    Function,
    Kind,
    Values,
    data_flow,
    finding_at,
    last_name,
    must_be,
    sorted_findings,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_CALLS = re.compile(
    r"^AttributeError: 'dict' object has no attribute '(function|name|arguments|id|type|role|content|tool_calls)'"
)
_WORDS = {"message": "a message", "call": "a tool call", "function": "a tool call's function"}


def static(source: ClassSource) -> Verdict:
    """Look at attribute reads of what certainly stands in the messages of an AgentResult."""
    findings = sorted_findings(finding for frame in data_flow(source).every_frame() for finding in _violations(frame))
    if not findings and not source.has("compute_reward") and source.unreadable:
        return Verdict.undecided(f"compute_reward may come from {source.unreadable[0]}, which cannot be read")
    return Verdict.of(findings, "messages and tool calls are read as dicts")


def _violations(frame: Frame) -> Iterator[Finding]:
    for access in frame.reads:
        node = access.node
        if isinstance(node, ast.Attribute) and _is_dict(access.base) and not hasattr(dict, node.attr):
            yield from _finding(frame, node, access.base, ast.unparse(node))
    for call in frame.calls:
        if call.name == "getattr" and len(call.node.args) > 1 and _is_dict(call.arguments[0]):
            word, *default = call.node.args[1:]
            name = word.value if isinstance(word, ast.Constant) else None
            is_wrong = isinstance(name, str) and not hasattr(dict, name)
            if is_wrong and not (default and _also_as_a_dict(frame.function, call.node.args[0], name)):
                yield from _finding(frame, call.node, call.arguments[0], ast.unparse(call.node))


def _also_as_a_dict(function: Function, read: ast.expr, name: object) -> bool:
    """Whether a function that has a default for a dict reads the same from it as from a dict, or asks what it is."""
    words = [node for node in function.own_nodes() if isinstance(node, ast.Constant) and node.value == name]
    asked = (node for node in function.own_nodes() if isinstance(node, ast.Call) and last_name(node.func) == "isinstance")
    return len(words) > 1 or any(node.args and ast.unparse(node.args[0]) == ast.unparse(read) for node in asked)


def _is_dict(values: Values) -> bool:
    return must_be(values, Kind.MESSAGE) and all(value.name in DICTS for value in values)


def _finding(frame: Frame, node: ast.AST, base: Values, text: str) -> Iterator[Finding]:
    if _has_another_way(frame.function, node):
        return
    what = " or ".join(sorted(_WORDS[value.name] for value in base))
    yield finding_at(frame.function, node, f"{frame.function.name} reads {text}, but {what} is a dict")


def _has_another_way(function: Function, node: ast.AST) -> bool:
    """Tell whether a handler of AttributeError stands around the read: then it asks by trying."""
    for child, parent in function.ancestors(node):
        if isinstance(parent, ast.Try) and child in parent.body:
            for handler in parent.handlers:
                kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                if any(kind is not None and last_name(kind) == "AttributeError" for kind in kinds):
                    return True
    return False


def dynamic(evidence: Evidence) -> Verdict:
    """Look for the AttributeError that a dict gives to code written for objects, over results with tool calls."""
    if missing := evidence.without_probes():
        return missing
    probes = [probe for probe in evidence.probes.probes if probe.has_calls]
    if not probes:
        return Verdict.not_exercised("no result with tool calls was tried", acceptable_gap=True)
    findings = one_per_place(
        finding_in(PROBES, probe.trial.place, f"compute_reward raised {probe.trial.error}", seen=probe.expression)
        for probe in sorted(probes, key=lambda probe: len(probe.expression))
        if _OF_CALLS.match(probe.trial.error)
    )
    return Verdict.of(findings, f"{len(probes)} results with tool calls were read without an AttributeError")


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, dynamic=dynamic, scenarios=(PROBES,))
