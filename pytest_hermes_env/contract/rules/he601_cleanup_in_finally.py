"""HE601 cleanup-in-finally
Every sandbox that the class opens is released on every way out: an `agent_rollout` by its `async with` block, a
`ToolContext` in a `finally`.

What: Each `self.agent_rollout(...)` is entered with `async with`, directly, through an exit stack that is closed, or by
the caller of the method that returns it. Each `ToolContext(...)` in the class's own code is followed at once by a `try`, or is in
one, whose `finally` calls `cleanup()` on it, directly or through a helper; registering `ctx.cleanup` with an exit stack
counts. An `evaluate` that drives its own `HermesAgentLoop` opens a `ToolContext` for the same `task_id` and cleans it
up. The base cleans up the context that it passes to `compute_reward`.

Why: A sandbox is a process, a container or a rented virtual machine. A leaked one lives until its lifetime ends (an
hour by default). An evaluation of 100 items in which the judge fails half the time leaves 50 sandboxes behind: the
machine runs out of memory, or the cloud sends the bill.

Fix: Write `async with self.agent_rollout(item, temperature=0.0) as rollout:`. By hand: `ctx = ToolContext(task_id)`,
then at once `try: ... finally: ctx.cleanup()`. Everything that can raise or be awaited goes inside the `try`, including
the loop's run. Before the first tool call or await there is no sandbox yet: code that only builds the prompt may come
before it.

Source: `environments.hermes_base_env`, `agent_rollout`; `environments.tool_context.ToolContext.cleanup`.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections import Counter
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence, finding_in
from pytest_hermes_env.contract.rollout_blocks import Doubt, check_rollout, rollouts_of
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict, one_per_place
from pytest_hermes_env.play.journal import Cleaned, ContextOpened, LoopStarted, Place
from pytest_hermes_env.play.scenario import CASES
from pytest_hermes_env.source import (
    LAYER_AGENT_ROLLOUT,
    LAYER_CONTEXT,
    LAYER_LOOP,
    Access,
    Call,
    ClassSource,
    Frame,
    Function,
    Kind,
    Value,
    Values,
    calls_in,
    constructs,
    data_flow,
    finding_at,
    last_name,
    unresolved_calls,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_REGISTERS = frozenset({"callback", "push_async_callback", "push", "addCleanup", "addAsyncCleanup", "addfinalizer"})
_HARMLESS = re.compile(
    r"^(time|uuid|logging|datetime)\."
    r"|^(bool|dict|frozenset|id|isinstance|len|list|print|range|repr|set|str|tuple|type)$"
)
_HARMLESS_METHODS = frozenset(
    {
        "append",
        "copy",
        "critical",
        "debug",
        "error",
        "exception",
        "get",
        "info",
        "items",
        "keys",
        "log",
        "values",
        "warning",
    }
)
_RELEASES = re.compile(r"clean_?up|tear_?down|release")
_MAX_HANDED_UP = 3


def static(source: ClassSource) -> Verdict:
    """Look at what follows each construction of a ToolContext, and at loops in evaluate that have none."""
    frames = data_flow(source).every_frame()
    opened = {call.node: frame for frame in frames for call in frame.calls if constructs(call, LAYER_CONTEXT)}
    told = [answer for node, frame in opened.items() if (answer := _check(source, frame, node, node, 0))]
    entered = rollouts_of(frames)
    told += [answer for node, frame in entered.items() if (answer := check_rollout(source, frame, node))]
    if (leak := _leak_in_evaluate(source)) is not None:
        told.append(leak)
    findings = [item for item in told if isinstance(item, Finding)]
    doubt = next((f"line {item.line}: {item.reason}" for item in told if isinstance(item, Doubt)), "")
    if not opened and not entered and not findings and not doubt:
        return Verdict.not_applicable("the class opens no ToolContext and enters no agent_rollout")
    notes = [f"{len(opened)} ToolContext {'is' if len(opened) == 1 else 'are'} cleaned up in a finally"] if opened else []
    notes += [f"agent_rollout is entered with `async with` in {len(entered)} places"] if entered else []
    return Verdict.of_source(findings, "; ".join(notes), doubt=doubt)


def _leak_in_evaluate(source: ClassSource) -> Finding | Doubt | None:
    start = data_flow(source).method("evaluate")
    if start is None:
        return None
    frames = data_flow(source).reached_without(start, "compute_reward")
    calls = list(calls_in(frames))
    loops = [call for call in calls if constructs(call, LAYER_LOOP)]
    if not loops or any(constructs(call, LAYER_CONTEXT) or _RELEASES.search(call.name) for call in calls):
        return None
    if any(_RELEASES.search(getattr(access.node, "attr", "")) for frame in frames for access in frame.reads):
        return None
    doubt = next((call for call in calls if _makes_manager(call)), None) or next(unresolved_calls(frames), None)
    if doubt is not None:
        return Doubt(
            line=doubt.node.lineno, reason=f"{doubt.name}(...) may clean up after the loop, but its code cannot be read"
        )
    message = "evaluate runs a HermesAgentLoop and never cleans up: the sandbox of its rollouts is never released"
    return finding_at(loops[0].function, loops[0].node, message)


def _makes_manager(call: Call) -> bool:
    """Return whether a call makes an object of a class with an end of its own for a with statement."""
    made = [value.target for value in call.callee if isinstance(value.target, ClassSource)]
    return any({"__exit__", "__aexit__"} & item.methods.keys() for item in made)


def _check(source: ClassSource, frame: Frame, opened: ast.AST, node: ast.AST, depth: int) -> Finding | Doubt | None:
    """Check a ToolContext that ``frame`` holds from ``node`` on: None when it is cleaned."""
    function = frame.function
    statement = function.statement_of(node)
    line = getattr(node, "lineno", 0)
    if isinstance(statement, (ast.With, ast.AsyncWith)) and (entered := _entered(function, node)) is not None:
        return entered
    cleaning = [item for item in _cleaning(source, frame, opened) if function.scope_of(item) is function.scope_of(node)]
    if any(function.statement_of(item) is statement for item in cleaning):
        return None  # ToolContext(task_id).cleanup(): opened only to release what the rollout left
    trouble = _trouble(function, statement, cleaning, _words_of(function, node, statement))
    if trouble == "":
        return None
    if _is_handed_up(frame, opened):
        return _check_callers(source, frame, opened, node, depth)
    if cleaning and trouble:
        return finding_at(function, node, f"{function.name} opens a ToolContext, but {trouble}")
    if cleaning:
        cleaned = min(getattr(item, "lineno", 0) for item in cleaning)
        where = f"outside a finally (line {cleaned})"
        message = f"{function.name} cleans up its ToolContext {where}: an exception before it leaks"
        return finding_at(function, node, message)
    escape = _escape(frame, opened)
    if escape:
        return Doubt(line=line, reason=f"the ToolContext {escape}")
    return finding_at(function, node, f"{function.name} opens a ToolContext and never cleans it up")


def _check_callers(source: ClassSource, frame: Frame, opened: ast.AST, node: ast.AST, depth: int) -> Finding | Doubt | None:
    callers = {edge: caller for caller in data_flow(source).every_frame() for edge, target in caller.edges if target is frame}
    unsure = Doubt(line=getattr(node, "lineno", 0), reason="the ToolContext is returned to a caller outside this class")
    if not callers or depth >= _MAX_HANDED_UP:
        return unsure
    told = [_check(source, caller, opened, edge, depth + 1) for edge, caller in callers.items()]
    for kind in (Finding, Doubt):
        for item in told:
            if isinstance(item, kind):
                return item
    return None


def _entered(function: Function, node: ast.AST) -> Finding | Doubt | None:
    """Check a ToolContext that is made inside the head of a with statement."""
    for child, parent in function.ancestors(node):
        if isinstance(parent, ast.Call) and last_name(parent.func) in {"closing", "aclosing"}:
            message = f"{function.name} wraps a ToolContext in closing(), which calls close(), not cleanup()"
            return finding_at(function, node, message)
        if isinstance(parent, ast.withitem) and child is parent.context_expr:
            return Doubt(line=getattr(node, "lineno", 0), reason="the ToolContext is entered as a context manager")
        if isinstance(parent, ast.stmt):
            break
    return None


def _cleaning(source: ClassSource, frame: Frame, opened: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of ``frame`` that clean the context up: ctx.cleanup, or a call of something that does so."""
    for access in frame.reads:
        if _cleans(access, opened):
            yield access.node
    for node, target in frame.edges:
        for inner in data_flow(source).reached_from(target):
            if inner is not frame and any(_cleans(access, opened) for access in inner.reads):
                yield node
                break
    yield from _through_local(frame, [access.node for access in frame.reads if _cleans(access, opened)])


def _through_local(frame: Frame, cleaning: list[ast.Attribute | ast.Subscript]) -> Iterator[ast.AST]:
    """Yield calls of nested functions that clean up, and the places where such a function is handed over."""
    scopes = {frame.function.scope_of(node) for node in cleaning}
    for call in frame.calls:
        if any(value.kind is Kind.LOCAL and value.node in scopes for value in call.callee):
            yield call.node
        for node, values in zip(call.node.args, call.arguments, strict=True):
            if any(value.kind is Kind.LOCAL and value.node in scopes for value in values):
                yield node


def _cleans(access: Access, opened: ast.AST) -> bool:
    return isinstance(access.node, ast.Attribute) and access.node.attr == "cleanup" and _holds(access.base, opened)


def _words_of(function: Function, node: ast.AST, statement: ast.stmt) -> frozenset[str] | None:
    """Return the names by which a sandbox can be reached that is not there yet; None where it may be there already.

    A ToolContext makes no sandbox: the first tool does. Before anything was awaited, there is none, and what does not touch the
    context cannot leave one behind.
    """
    scope = function.scope_of(node)
    line = getattr(node, "lineno", 0)
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith)
    if any(isinstance(item, waits) and item.lineno < line and function.scope_of(item) is scope for item in ast.walk(scope)):
        return None
    if not isinstance(node, ast.Call) or not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    given = [*node.args, *(word.value for word in node.keywords)]
    return frozenset(ast.unparse(item) for item in (*targets, *given) if isinstance(item, (ast.Name, ast.Attribute)))


def _trouble(function: Function, statement: ast.stmt, cleaning: list[ast.AST], words: frozenset[str] | None) -> str | None:
    """Return "" when the context is safe, a sentence when something comes between, None when no finally cleans it."""
    tries = {found for node in cleaning if (found := function.finally_of(node)) is not None}
    registered = {function.statement_of(node) for node in cleaning if _is_registered(function, node)}
    between: str = ""
    current: ast.stmt = statement
    for child, parent in function.ancestors(statement):
        if isinstance(parent, ast.Try) and parent in tries and child not in parent.finalbody:
            return ""
        if not isinstance(child, ast.stmt):
            continue
        current = child
        for follower in _followers(current, parent):
            if follower in registered or follower in tries:
                return between
            if any(item in tries for item in ast.walk(follower) if isinstance(item, ast.Try)) and isinstance(
                follower, (ast.With, ast.AsyncWith, ast.If)
            ):
                return between or _risk(follower, tries, words)
            between = between or _risk(follower, tries, words)
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.AsyncFor, ast.While)):
            break
    return None


def _followers(statement: ast.stmt, parent: ast.AST) -> list[ast.stmt]:
    """Return the statements that run after ``statement`` inside ``parent``."""
    blocks = [getattr(parent, name, None) for name in ("body", "orelse", "finalbody")]
    for index, block in enumerate(blocks):
        if isinstance(block, list) and statement in block:
            found = list(block[block.index(statement) + 1 :])
            if isinstance(parent, ast.Try):
                for later in blocks[index + 1 :]:
                    found += later or []
            return found
    return []


def _is_registered(function: Function, node: ast.AST) -> bool:
    parent = function.parents.get(node)
    return isinstance(parent, ast.Call) and node in parent.args and last_name(parent.func) in _REGISTERS


def _risk(statement: ast.stmt, covered: set[ast.Try], words: frozenset[str] | None) -> str:
    """Return what may go wrong in a statement between the construction and its try, or an empty string."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if node in covered or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.AsyncFor, ast.AsyncWith)):
            return f"line {node.lineno} awaits before the try that cleans it up"
        is_safe = (isinstance(node, ast.Call) and _is_harmless(node)) or (words is not None and not _touches(node, words))
        if isinstance(node, (ast.Raise, ast.Assert, ast.Call)) and not is_safe:
            return f"line {node.lineno} can raise before the try that cleans it up"
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return f"line {node.lineno} returns or breaks before the try that cleans it up"
        pending.extend(ast.iter_child_nodes(node))
    return ""


def _touches(node: ast.AST, words: frozenset[str]) -> bool:
    return any(isinstance(item, (ast.Name, ast.Attribute)) and ast.unparse(item) in words for item in ast.walk(node))


def _is_harmless(call: ast.Call) -> bool:
    text = ast.unparse(call.func)
    name = last_name(call.func)
    return (
        bool(_HARMLESS.match(text))
        or name == LAYER_LOOP
        or (isinstance(call.func, ast.Attribute) and name in _HARMLESS_METHODS)
    )


def _is_handed_up(frame: Frame, opened: ast.AST) -> bool:
    return _holds(frame.returns, opened)


def _escape(frame: Frame, opened: ast.AST) -> str:
    """Return where the context goes when it leaves the sight of ``frame``, or an empty string."""
    for change in frame.changes:
        if _holds(change.value, opened):
            return f"is kept on self.{change.attribute}"
    if _holds(frame.yields, opened):
        return "is yielded to a caller"
    for call in frame.calls:
        if any(_holds(values, opened) for values in call.every_argument) and not _is_known(call):
            return f"is passed to {call.name}(...), which cannot be read"
    parents = frame.function.parents
    around = parents.get(opened)
    if isinstance(around, (ast.Dict, ast.Set, ast.List, ast.ListComp, ast.DictComp)):
        return "is kept in a container"
    return ""


def _is_known(call: Call) -> bool:
    return bool(call.callee) and all(
        value.kind in {Kind.METHOD, Kind.FUNCTION, Kind.LOCAL, Kind.BASE_METHOD} for value in call.callee
    )


def _holds(values: Values, opened: ast.AST) -> bool:
    return any(_is_it(value, opened) for value in values)


def _is_it(value: Value, opened: ast.AST) -> bool:
    if value.kind is Kind.INSTANCE:
        return value.node is opened
    return any(_holds(items, opened) for items in value.items)


SCENARIOS = (
    "happy",
    "reward_raises",
    "cancelled_in_loop",
    "cancelled_in_tool",
    "cancelled_in_reward",
    "evaluate",
    "evaluate_reward_raises",
    "evaluate_loop_raises",
    "evaluate_tools_fail",
    "evaluate_cancelled_in_loop",
    "evaluate_cancelled",
)


def dynamic(evidence: Evidence) -> Verdict:
    """Count, for every ToolContext and every loop of the class's own code, how often its sandbox was released."""
    ran = [*evidence.scenarios(*SCENARIOS), *evidence.played_cases]
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    findings: list[Finding] = []
    opened = 0
    for scenario in ran:
        cleaned = Counter(event.number for event in scenario.of(Cleaned))
        released = {event.task_id for event in scenario.of(Cleaned)}
        findings += [
            finding_in(scenario.name, event.left_open_by, "this cleanup of a ToolContext leaves its sandbox open")
            for event in scenario.of(Cleaned)
            if event.left_open_by is not None
        ]
        contexts = [event for event in scenario.of(ContextOpened) if not event.by_layer]
        loops = [event for event in scenario.of(LoopStarted) if not event.by_layer]
        opened += len(contexts) + len(loops)
        findings += [
            _of_the_layer(evidence, event.place, scenario.name)
            for event in scenario.of(ContextOpened)
            if event.by_layer and event.number not in cleaned
        ]
        findings += [
            finding_in(scenario.name, event.place, f"the ToolContext opened here was {_times(cleaned[event.number])}")
            for event in contexts
            if cleaned[event.number] != 1
        ]
        owners = {event.task_id for event in scenario.of(ContextOpened)}
        findings += [
            finding_in(scenario.name, event.place, "the sandbox of the agent loop started here was never released")
            for event in loops
            if event.task_id not in released | owners and scenario.name == "evaluate"
        ]
    if not opened and not findings:
        return Verdict.not_applicable(
            "the class opens no ToolContext and no agent loop of its own; the layer releases what it opens"
        )
    return Verdict.of(one_per_place(findings), f"{opened} sandboxes of the class's own code were each released once")


def _of_the_layer(evidence: Evidence, place: Place, scenario: str) -> Finding:
    """Return the finding of a sandbox that the layer opened: at the class's agent_rollout, else at the base, whose fault it is."""
    cls = evidence.cls
    is_ours = cls.base_module.startswith("environments.")  # it releases what it opens: somebody else keeps the block open
    if is_ours or LAYER_AGENT_ROLLOUT in linecache.getline(place.path, place.line):
        message = "the sandbox of the agent_rollout entered here was never released"
        return evidence.recorded_finding(message, place, "evaluate", scenario=scenario)
    message = f"{cls.base}, the base of the class, opens the sandbox of a rollout and never releases it"
    return finding_in(scenario, cls.base_place, message)


def _times(count: int) -> str:
    return "never cleaned up" if count == 0 else f"cleaned up {count} times"


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=(*SCENARIOS, CASES))
