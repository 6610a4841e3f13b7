"""HE301 messages-not-final-response
Of an AgentResult only its own fields are read; the answer and the tool calls are in its messages.

What: code that holds an AgentResult reads messages, managed_state, turns_used, finished_naturally, reasoning_per_turn
or tool_errors, and nothing else: not final_response, tool_calls, tools_used, output or response, not result[...], not
result.get(...). The result is followed from the second parameter of compute_reward, and from `await agent.run(...)`,
through aliases and helpers.

Why: AgentResult has no such fields. The AttributeError is swallowed on the way to the trainer, where it looks like a
reward of 0.0 for every rollout: the model learns nothing, and the GPU-days are paid for all the same. Behind
`getattr(result, "output", "")` the same mistake is silent even in the log.

Fix: walk result.messages backwards to the last message with role "assistant" and with content; that is the final
answer. The tools used are the function names in the "tool_calls" of the assistant messages.

Source: environments.agent_loop.AgentResult.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import (
    RESULT_FIELDS,
    Access,
    Call,
    ClassSource,
    Evidence,
    Frame,
    Kind,
    Reward,
    UnknownRead,
    breach,
    has,
    in_order,
    only,
)
from pytest_hermes_env.contract.rule import (
    Finding,
    Rule,
    Severity,
    Verdict,
    failed,
    judged,
    not_exercised,
    passed,
    undecided,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def static(source: ClassSource) -> Verdict:
    """Look at every read of a value that is certainly an AgentResult."""
    frames = source.flow.every_frame()
    findings = in_order(finding for frame in frames for finding in _breaches(frame))
    guarded = list(dict.fromkeys(note for frame in frames for call in frame.calls if (note := _guarded(call))))
    if findings:
        return failed(findings, note="; ".join(guarded))
    if not source.has("compute_reward") and source.unreadable:
        return undecided(f"compute_reward may come from {source.unreadable[0]}, which cannot be read")
    return passed("; ".join(guarded) or "only AgentResult's own fields are read")


def _breaches(frame: Frame) -> Iterator[Finding]:
    for access in frame.reads:
        if not only(access.base, Kind.RESULT):
            continue
        name = _foreign_name(access)
        if name:
            what = f"{frame.function.name} reads {_text(access.node.value)}{name}"
            yield breach(frame.function, access.node, f"{what}, which AgentResult does not have")
    for call in frame.calls:
        name = _asked_for(call, "getattr")
        if name and len(call.node.args) + len(call.node.keywords) == 2:  # noqa: PLR2004  # no default
            what = f"{frame.function.name} reads {_text(call.node.args[0])}.{name} through getattr"
            yield breach(frame.function, call.node, f"{what}, which AgentResult does not have")


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
    if call.name != function or not call.arguments or not has(call.arguments[0], Kind.RESULT) or not call.node.args[1:]:
        return ""
    word = call.node.args[1]
    if not isinstance(word, ast.Constant) or not isinstance(word.value, str) or word.value in RESULT_FIELDS:
        return ""
    return "" if word.value.startswith("__") else word.value


def _guarded(call: Call) -> str:
    name = _asked_for(call, "hasattr")
    if not name and len(call.node.args) > 2:  # noqa: PLR2004  # getattr with a default
        name = _asked_for(call, "getattr")
    return f"guarded read of {name!r} at line {call.node.lineno}: never true on AgentResult" if name else ""


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:39] + "…"  # noqa: PLR2004  # a line of a message


SCENARIOS = ("happy", "silent", "evaluate")


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what compute_reward asked of a result that tells when it is asked for what it does not have."""
    ran = evidence.scenarios(*SCENARIOS)
    if not any(scenario.of(Reward) for scenario in ran):
        return not_exercised(evidence.why_missing(*SCENARIOS) or "compute_reward was never called")
    reads = [(scenario.name, read) for scenario in ran for read in scenario.of(UnknownRead)]
    findings = [
        Finding(
            message=f"{read.place.function} reads {_spelt(read.name)}, which AgentResult does not have",
            path=read.place.path,
            line=read.place.line,
            scenario=name,
        )
        for name, read in reads
        if not read.guarded
    ]
    guarded = sorted({read.name for _, read in reads if read.guarded})
    note = "compute_reward read only fields that AgentResult has"
    return judged(findings, f"{note}; guarded reads of {', '.join(guarded)} never find anything" if guarded else note)


def _spelt(name: str) -> str:
    return f"result{name}" if name.startswith("[") else f"result.{name}"


RULE = Rule(
    id="HE301",
    name="messages-not-final-response",
    severity=Severity.ERROR,
    doc=__doc__,
    static=static,
    dynamic=dynamic,
    scenarios=SCENARIOS,
)
