"""HE301 messages-not-final-response
Code reads only the fields that an `AgentResult` has; the answer and the tool calls are in its messages.

What: Code that holds an `AgentResult` reads `messages`, `managed_state`, `turns_used`, `finished_naturally`,
`reasoning_per_turn` or `tool_errors`, and nothing else: not `final_response`, `tool_calls`, `tools_used`, `output` or
`response`, not `result[...]`, not `result.get(...)`. The result is followed from the second parameter of
`compute_reward`, from `await agent.run(...)` and from the `result` of an `agent_rollout`, through aliases and helpers.

Why: `AgentResult` has no such fields. The AttributeError is swallowed on the way to the trainer, where it looks like a
reward of 0.0 for every rollout: the model learns nothing, at full GPU cost. Behind `getattr(result, "output", "")` the
same mistake does not even reach the log.

Fix: Walk `result.messages` backwards to the last message with role "assistant" and with content: that is the final
answer. The tools used are the function names in the `tool_calls` of the assistant messages.

Source: `environments.agent_loop.AgentResult`.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence, finding_in
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import UnknownRead
from pytest_hermes_env.play.scenario import CASES
from pytest_hermes_env.source import (
    RESULT_FIELDS,
    Access,
    Call,
    ClassSource,
    Frame,
    Kind,
    Values,
    data_flow,
    finding_at,
    may_be,
    must_be,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator


def static(source: ClassSource) -> Verdict:
    """Look at every read of a value that is certainly an AgentResult."""
    frames = data_flow(source).every_frame()
    findings = [finding for frame in frames for finding in (*_violations(frame), *_guarded(frame))]
    doubt = ""
    if not source.has("compute_reward") and source.unreadable:
        doubt = f"compute_reward may come from {source.unreadable[0]}, which cannot be read"
    return Verdict.of_source(findings, "only AgentResult's own fields are read", doubt=doubt)


def _violations(frame: Frame) -> Iterator[Finding]:
    for access in frame.reads:
        if not must_be(access.base, Kind.RESULT):
            continue
        name = _foreign_name(access)
        if name:
            what = f"{frame.function.name} reads {_text(access.node.value)}{name}"
            yield finding_at(frame.function, access.node, f"{what}, which AgentResult does not have")
    for call in frame.calls:
        name = _asked_for(call, "getattr")
        if name and len(call.node.args) + len(call.node.keywords) == 2:  # noqa: PLR2004  # no default
            what = f"{frame.function.name} reads {_text(call.node.args[0])}.{name} through getattr"
            yield finding_at(frame.function, call.node, f"{what}, which AgentResult does not have")
    for node in _dict_reads(frame):
        what = f"{frame.function.name} reads {_text(node)}"
        yield finding_at(frame.function, node, f"{what}, which AgentResult does not have")


def _dict_reads(frame: Frame) -> Iterator[ast.Subscript | ast.Call]:
    """Yield reads of foreign fields through the result's dict: ``vars(result)["x"]``, ``result.__dict__.get("x")``, asdict."""
    dicts: set[ast.AST] = {call.node for call in frame.calls if call.name in _AS_DICT and _is_result(call.arguments[:1])}
    dicts |= {access.node for access in frame.reads if _is_dunder_dict(access)}
    if not dicts:
        return
    named = {
        target.id: statement.value
        for statement in frame.function.own_nodes()
        if isinstance(statement, ast.Assign) and statement.value in dicts
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    for node in frame.function.own_nodes():
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            holder, key, is_guarded = node.value, node.slice, False
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
            holder, key, is_guarded = node.func.value, node.args[0], len(node.args) > 1
        else:
            continue
        is_dict = holder in dicts or (isinstance(holder, ast.Name) and holder.id in named)
        if is_dict and not is_guarded and isinstance(key, ast.Constant) and key.value not in RESULT_FIELDS:
            yield node


def _is_result(arguments: tuple[Values, ...]) -> bool:
    return bool(arguments) and must_be(arguments[0], Kind.RESULT)


def _is_dunder_dict(access: Access) -> bool:
    return isinstance(access.node, ast.Attribute) and access.node.attr == "__dict__" and must_be(access.base, Kind.RESULT)


def _foreign_name(access: Access) -> str:
    """Return how the access reads when it is none of AgentResult's own fields."""
    if isinstance(access.node, ast.Subscript):
        return f"[{_text(access.node.slice)}]"
    name = access.node.attr
    if name in RESULT_FIELDS or (name.startswith("__") and name.endswith("__")):
        return ""
    return f".{name}(...)" if name == "get" else f".{name}"


def _asked_for(call: Call, function: str) -> str:
    """Return the field, foreign to AgentResult, that getattr or hasattr is asked for."""
    if call.name != function or not call.arguments or not may_be(call.arguments[0], Kind.RESULT) or not call.node.args[1:]:
        return ""
    word = call.node.args[1]
    if not isinstance(word, ast.Constant) or not isinstance(word.value, str) or word.value in RESULT_FIELDS:
        return ""
    return "" if word.value.startswith("__") else word.value


def _guarded(frame: Frame) -> Iterator[Finding]:
    """Yield reads that do no harm and find nothing: hasattr, and getattr with a default."""
    for call in frame.calls:
        name = _asked_for(call, "hasattr")
        if not name and len(call.node.args) > 2:  # noqa: PLR2004  # getattr with a default
            name = _asked_for(call, "getattr")
        if name and must_be(call.arguments[0], Kind.RESULT):
            what = f"{frame.function.name} reads {name!r} from {_text(call.node.args[0])} with {call.name}"
            message = f"{what}: AgentResult never has it, so the fallback is always used"
            yield dataclasses.replace(finding_at(frame.function, call.node, message), severity=Severity.WARNING)


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:39] + "…"  # noqa: PLR2004  # a line of a message


SCENARIOS = ("happy", "silent", "evaluate")
_AS_DICT = frozenset({"vars", "asdict"})


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what compute_reward asked of a result that tells when it is asked for what it does not have."""
    if missing := evidence.without_rewards(*SCENARIOS):
        return missing
    ran = (*evidence.scenarios(*SCENARIOS), *evidence.played_cases)
    reads = [(scenario.name, read) for scenario in ran for read in scenario.of(UnknownRead)]
    findings = [
        finding_in(name, read.place, f"{read.place.function} reads {_spelt(read.name)}, which AgentResult does not have")
        for name, read in reads
        if not read.guarded
    ]
    guarded = sorted({read.name for _, read in reads if read.guarded})
    note = "compute_reward read only fields that AgentResult has"
    return Verdict.of(findings, f"{note}; guarded reads of {', '.join(guarded)} never find anything" if guarded else note)


def _spelt(name: str) -> str:
    return f"result{name}" if name.startswith("[") else f"result.{name}"


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=(*SCENARIOS, CASES))
