"""HE301 messages-not-final-response
Code reads only the fields that an `AgentResult` has; the answer and the tool calls are in its messages.

What: Code that holds an `AgentResult` reads `messages`, `managed_state`, `turns_used`, `finished_naturally`,
`reasoning_per_turn` or `tool_errors`, and nothing else: not `final_response`, `tool_calls`, `tools_used`, `output` or
`response`, not `result[...]`, not `result.get(...)`. In the source the result is followed from the second parameter of
`compute_reward` and from `await agent.run(...)`, through other names and helpers.

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
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict, finding_in
from pytest_hermes_env.contract.judge.message_parts import results_in
from pytest_hermes_env.play.journal import UnknownRead
from pytest_hermes_env.play.scenario import CASES
from pytest_hermes_env.source import RESULT_FIELDS, ClassSource, Function, finding_at, last_name

_SHORT = 40
CONTEXT_METHODS = frozenset(
    {"call_tool", "download_file", "read_file", "search", "terminal", "upload_file", "web_search", "write_file"}
)
PARAMETERS = ("item", "result", "ctx")
SWAPPED = "Order the parameters as `(self, item, result, ctx)`: the layer passes the result second, and the tool context third."


def static(source: ClassSource) -> Verdict:
    """Look at every read of a name that certainly holds an AgentResult.

    It complements the rollouts: these do not see a read through ``vars(result)``, nor those of a benchmark's reward.
    """
    findings = [finding for function, names in results_in(source).items() for finding in _violations(function, names)]
    doubt = ""
    if not source.has("compute_reward") and source.unreadable:
        doubt = f"compute_reward may come from {source.unreadable[0]}, which cannot be read"
    return Verdict.of_source(findings, "only AgentResult's own fields are read", doubt=doubt)


def _violations(function: Function, names: frozenset[str]) -> Iterator[Finding]:
    asked = {word for node in function.nodes for called, _, word, _ in _asked_for(node, names) if called == "hasattr"}
    given = function.positional_without_self
    is_swapped = (
        function.name == "compute_reward" and len(given) == len(PARAMETERS) and "result" in given and given[1] != "result"
    )
    for node in function.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            is_own = node.attr in RESULT_FIELDS | asked or node.attr.startswith("__") or not isinstance(node.ctx, ast.Load)
            read = "" if is_own else f"{node.value.id}.{node.attr}" + ("(...)" if node.attr == "get" else "")
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in names:
            read = _text(node)
        else:
            read = _text(node) if _reads_dict(node, names) else ""
        if read:
            found = finding_at(function, node, f"{function.name} reads {read}, which AgentResult does not have")
            is_context = isinstance(node, ast.Attribute) and node.attr in CONTEXT_METHODS
            yield dataclasses.replace(found, fix=SWAPPED if is_context or is_swapped else "")
        for called, name, word, is_guarded in _asked_for(node, names):
            if not is_guarded:
                what = f"{function.name} reads {name}.{word} through getattr, which AgentResult does not have"
                yield finding_at(function, node, what)
            else:
                what = f"{function.name} reads {word!r} from {name} with {called}"
                message = f"{what}: AgentResult never has it, so the fallback is always used"
                yield dataclasses.replace(finding_at(function, node, message), severity=Severity.WARNING)


def _asked_for(node: ast.AST, names: frozenset[str]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the function, the result, the foreign field, and whether something else is used in its place: getattr and hasattr."""
    match node:
        case ast.Call(
            func=ast.Name(id="getattr" | "hasattr" as called), args=[ast.Name(id=name), ast.Constant(value=str(word)), *rest]
        ):
            if name in names and word not in RESULT_FIELDS and not word.startswith("__"):
                yield called, name, word, bool(rest) or called == "hasattr"


def _reads_dict(node: ast.AST, names: frozenset[str]) -> bool:
    """Tell whether a node reads a foreign field through the result's dict: ``vars(result)["x"]``, ``vars(result).get("x")``."""
    match node:
        case (
            ast.Subscript(value=ast.Call(args=[ast.Name(id=name)]) as holder, slice=ast.Constant(value=str(word)))
            | ast.Call(
                func=ast.Attribute(value=ast.Call(args=[ast.Name(id=name)]) as holder, attr="get"),
                args=[ast.Constant(value=str(word))],
            )
        ):
            return last_name(holder.func) in {"vars", "asdict"} and name in names and word not in RESULT_FIELDS
    return False


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


SCENARIOS = ("happy", "silent", "evaluate")


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
