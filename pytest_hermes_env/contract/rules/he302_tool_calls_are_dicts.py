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
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict, finding_in, one_per_place
from pytest_hermes_env.contract.judge.message_parts import DICTS, MessageParts, results_in
from pytest_hermes_env.play.scenario import PROBES
from pytest_hermes_env.source import ClassSource, Function, finding_at, last_name, reach_of

_OF_CALLS = re.compile(
    r"^AttributeError: 'dict' object has no attribute '(function|name|arguments|id|type|role|content|tool_calls)'"
)
_WORDS = {"message": "a message", "call": "a tool call", "function": "a tool call's function"}


def static(source: ClassSource) -> Verdict:
    """Look at attribute reads of what certainly stands in the messages of an AgentResult.

    It complements the rollouts: a broad ``except`` around the read hides the error from them.
    """
    parts = MessageParts(source=source, results=results_in(source))
    findings = [finding for function in reach_of(source).every_function() for finding in _violations(function, parts)]
    doubt = ""
    if not source.has("compute_reward") and source.unreadable:
        doubt = f"compute_reward may come from {source.unreadable[0]}, which cannot be read"
    return Verdict.of_source(findings, "messages and tool calls are read as dicts", doubt=doubt)


def _violations(function: Function, parts: MessageParts) -> Iterator[Finding]:
    for node in function.nodes:
        match node:
            case ast.Attribute(value=read, attr=name):
                pass
            case ast.Call(func=ast.Name(id="getattr"), args=[read, ast.Constant(value=str(name))]):
                pass
            case _:
                continue
        part = parts.of(function, read) if not hasattr(dict, name) else ""
        if part in DICTS and not _has_another_way(function, node, ast.unparse(read)):
            message = f"{function.name} reads {ast.unparse(node)}, but {_WORDS[part]} is a dict"
            yield finding_at(function, node, message)


def _has_another_way(function: Function, node: ast.AST, read: str) -> bool:
    """Tell whether the function asks what it reads from, or a handler of AttributeError is around the read."""
    for other in function.nodes:
        match other:
            case ast.Call(func=ast.Name(id="isinstance" | "hasattr"), args=[asked, *_]) if ast.unparse(asked) == read:
                return True
    for child, parent in function.ancestors(node):
        if isinstance(parent, ast.Try) and child in parent.body:
            kinds = [part for handler in parent.handlers if handler.type is not None for part in ast.walk(handler.type)]
            if any(isinstance(part, (ast.Name, ast.Attribute)) and last_name(part) == "AttributeError" for part in kinds):
                return True
    return False


def dynamic(evidence: Evidence) -> Verdict:
    """Look for the AttributeError that a dict gives to code written for objects, over results with tool calls."""
    if missing := evidence.without_probes():
        return missing
    probes = [probe for probe in evidence.probes.probes if probe.has_calls]
    if not probes:
        return Verdict.not_exercised("no result with tool calls was tried")
    findings = one_per_place(
        finding_in(PROBES, probe.trial.place, f"compute_reward raised {probe.trial.error}", seen=probe.expression)
        for probe in sorted(probes, key=lambda probe: len(probe.expression))
        if _OF_CALLS.match(probe.trial.error)
    )
    return Verdict.of(findings, f"{len(probes)} results with tool calls were read without an AttributeError")


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, dynamic=dynamic, scenarios=(PROBES,))
