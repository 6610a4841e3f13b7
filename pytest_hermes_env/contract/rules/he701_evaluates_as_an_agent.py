"""HE701 evaluates-as-an-agent
`evaluate` runs the agent with tools on its items.

What: `evaluate`, through helpers and inherited methods, uses the rollouts of the base class (`evaluate_items`,
`agent_rollout`, `collect_trajectory`, `collect_trajectories`), or builds a `HermesAgentLoop` with tool schemas and
awaits its run. A bare `chat_completion`, a stub, a constant or a loop without tools is a violation.

Why: The model is trained to work in turns with tools. One chat completion without tools measures something else: the
curve that selects the checkpoint does not show the skill that was trained, and the API money of every evaluation buys
the wrong number.

Fix: Set `self.eval_items` in `setup()` and `await self.evaluate_items()`, or score `rollout.result` in
`async with self.agent_rollout(item, temperature=0.0) as rollout:` for each item.

Source: `environments.hermes_base_env`, `evaluate_items` and `agent_rollout`; `environments.agent_loop.HermesAgentLoop`;
atroposlib 0.4.0, `envs/base.py`, `BaseEnv.evaluate`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rollout_blocks import without_evaluate
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import LoopStarted
from pytest_hermes_env.play.unavailable import ErrorKind
from pytest_hermes_env.source import (
    LAYER_LOOP,
    LAYER_RUNS,
    Call,
    ClassSource,
    Function,
    Kind,
    calls_in,
    calls_layer,
    constructs,
    data_flow,
    finding_at,
    last_name,
    must_be,
    sorted_findings,
    unresolved_calls,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGS = frozenset({"critical", "debug", "error", "exception", "info", "log", "print", "warn", "warning"})
_COMPLETIONS = frozenset({"chat_completion", "completion"})


def static(source: ClassSource) -> Verdict:
    """Look for a loop with tools in what evaluate reaches."""
    start = data_flow(source).method("evaluate")
    if start is None:
        return without_evaluate(source)
    frames = data_flow(source).reached_without(start, "compute_reward")
    calls = list(calls_in(frames))
    if any(calls_layer(call, LAYER_RUNS) for call in calls):
        return Verdict.passed("evaluate uses the rollouts of the base class")
    loops = [call for call in calls if constructs(call, LAYER_LOOP)]
    kept = _kept_on_self(source)
    if loops or any(_runs_kept(call, kept) for call in calls):
        findings = sorted_findings(finding for call in loops for finding in _fault_of_loop(call, calls))
        if findings and len(findings) >= len({call.node for call in loops}):
            return Verdict.failed(findings)
        return Verdict.passed("evaluate runs a HermesAgentLoop with tools")
    doubt = next(unresolved_calls(frames), None)
    if doubt is not None:
        return Verdict.undecided(f"line {doubt.node.lineno}: {doubt.name}(...) calls code that cannot be read")
    return Verdict.failed([_without_loop(start.function, calls)])


def _fault_of_loop(loop: Call, calls: list[Call]) -> Iterator[Finding]:
    node = loop.node
    if "**" not in loop.keywords and not any(isinstance(item, ast.Starred) for item in node.args):
        given = loop.keywords.get("tool_schemas")
        written = next((word.value for word in node.keywords if word.arg == "tool_schemas"), None)
        if given is None and len(loop.arguments) > 1:
            given, written = loop.arguments[1], node.args[1]
        is_none = isinstance(written, ast.Constant) and written.value is None
        if given is None or is_none or must_be(given, Kind.EMPTY):
            yield finding_at(loop.function, node, "evaluate runs a HermesAgentLoop without tools: tool_schemas is empty")
            return
    runs = [call for call in calls if any(value.kind is Kind.RUN and value.node is node for value in call.callee)]
    if not runs:
        if not _escapes(loop, calls):
            yield finding_at(loop.function, node, "evaluate builds a HermesAgentLoop and never awaits its run")
    elif all(isinstance(call.function.parents.get(call.node), ast.Expr) for call in runs):
        yield finding_at(runs[0].function, runs[0].node, "evaluate calls run of a HermesAgentLoop without awaiting it")


def _escapes(loop: Call, calls: list[Call]) -> bool:
    """Whether the loop is handed to something else, which may run it."""
    if any(call.name == "run" and not any(value.kind is Kind.RUN for value in call.callee) for call in calls):
        return True
    given = (value for call in calls for values in call.every_argument for value in values)
    return any(value.kind is Kind.INSTANCE and value.node is loop.node for value in given)


def _kept_on_self(source: ClassSource) -> frozenset[str]:
    """Return the attributes of self that hold a HermesAgentLoop."""
    return frozenset(
        change.attribute
        for frame in data_flow(source).every_frame()
        for change in frame.changes
        for value in change.value
        if change.how == "set" and value.kind is Kind.INSTANCE and value.name == LAYER_LOOP
    )


def _runs_kept(call: Call, kept: frozenset[str]) -> bool:
    return call.name == "run" and any(value.kind is Kind.ATTRIBUTE and value.name in kept for value in call.receiver)


def _without_loop(function: Function, calls: list[Call]) -> Finding:
    for call in calls:
        if call.name in _COMPLETIONS or ast.unparse(call.node.func).endswith("chat.completions.create"):
            message = f"evaluate calls the model through {call.name}, one turn without tools, and runs no HermesAgentLoop"
            return finding_at(call.function, call.node, message)
    if all(map(_is_idle, function.node.body)):
        return finding_at(function, function.node, "evaluate is a stub: it evaluates nothing")
    return finding_at(function, function.node, "evaluate runs no HermesAgentLoop")


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a statement only passes, returns or raises something constant, or logs."""
    if isinstance(statement, (ast.Pass, ast.Raise)):
        return True
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call):
        return last_name(value.func) in _LOGS
    if not isinstance(statement, (ast.Return, ast.Expr, ast.Assign)):
        return False
    return value is None or not any(isinstance(node, (ast.Call, ast.Await)) for node in ast.walk(value))


SCENARIOS = ("evaluate",)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what evaluate() asked of the model, and how."""
    evaluation = evidence.scenario("evaluate")
    if not evaluation.happened:
        return Verdict.not_exercised(evaluation.unavailable)
    loops = evaluation.of(LoopStarted)
    with_tools = [loop for loop in loops if loop.tools]
    if with_tools:
        return Verdict.passed(
            f"evaluate() ran {len(with_tools)} agent loops, each with up to {max(len(loop.tools) for loop in with_tools)} tools"
        )
    path, line = evidence.at_method("evaluate")
    if loops:
        path, line = loops[0].place.path, loops[0].place.line
        message = f"evaluate() ran {len(loops)} agent loops without any tools"
    elif evaluation.requests:
        message = f"evaluate() called the model {len(evaluation.requests)} times, never through the agent loop"
    else:
        if evaluation.error_kind is ErrorKind.EVALUATE_NEEDS_ARGUMENTS:
            return Verdict.not_exercised("evaluate cannot be called without arguments, which HE102 reports", "HE102")
        if evaluation.error:
            return Verdict.not_exercised(f"evaluate() {evaluation.failure}, which HE705 reports", "HE705")
        message = "evaluate() never called the model"
    if evaluation.error:
        message += f"; it raised {evaluation.error}"
    return Verdict.failed([Finding(message=message, path=path, line=line, scenario="evaluate")])


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=SCENARIOS)
