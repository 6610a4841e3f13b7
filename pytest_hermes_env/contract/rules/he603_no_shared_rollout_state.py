"""HE603 no-shared-rollout-state
Rollouts share no state: what belongs to one rollout is not kept on self, in a module global or in `os.environ`.

What: An attribute of self that `format_prompt`, `compute_reward`, `collect_trajectory` or `collect_trajectories` sets
to a part of its item, result or context is not read again by rollouts after an await. The same holds for a module
global, for `os.environ` and for the working directory. In concurrent groups, in which the model of every rollout says a
different word, no rollout sees the word of another, and no shared place holds the word of the last one only. Series
that are only appended to are fine.

Why: Rollouts of a group, and several groups, run in one process on one object. The next rollout overwrites an attribute
before the first await of the previous one ends: the reward scores another rollout's answer against this item. Nothing
fails, and the noise in the rewards looks like a hard task.

Fix: Pass the value as an argument or a return value, or keep it in the item. State per rollout belongs into a dict
keyed by `ctx.task_id`, or into a ContextVar.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnv.collect_trajectories` (gather over one object);
`environments.hermes_base_env`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_hermes_env.contract.evidence import Evidence, finding_in
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.shared_slots import SlotUse, reads_of_slots, writes_of_slots
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import Crossed, SurroundingChanged
from pytest_hermes_env.play.scenario import Scenario
from pytest_hermes_env.source import (
    Change,
    ClassSource,
    Frame,
    Function,
    Kind,
    data_flow,
    finding_at,
    sorted_findings,
)
from pytest_hermes_env.source.finding import Finding, Severity

_ENVIRON = frozenset({"os.environ", "environ"})
_COLLECTS = frozenset({"append", "extend", "insert", "add", "appendleft"})
_ROLLOUT = ("format_prompt", "collect_trajectory", "collect_trajectories", "compute_reward")


def static(source: ClassSource) -> Verdict:
    """Look for what rollouts set from their own arguments where others can see it, and read back."""
    frames = [
        frame
        for name in _ROLLOUT
        if (start := data_flow(source).method(name))
        for frame in data_flow(source).reached_from(start)
    ]
    if not frames:
        return Verdict.not_applicable("no method that rollouts run can be read")
    reads = [(frame.function, node) for frame in frames for node in _attributes_read(frame)]
    findings: list[Finding] = []
    for frame in frames:
        for change in frame.changes:
            if change.how != "set" or not _is_of_the_rollout(change.function, change.node) or _reads_itself(change):
                continue
            if any(
                node.attr == change.attribute
                and (
                    _is_later(change.function, change.node, function, node) or _is_elsewhere(source, change.function, function)
                )
                for function, node in reads
            ):
                message = (
                    f"{change.function.name} stores data of one rollout in self.{change.attribute}, and rollouts read it "
                    "back: another rollout may have set it by then"
                )
                findings.append(finding_at(change.function, change.node, message))
        findings += _in_the_process(frame)
    findings += _in_slots(source, frames)
    findings += [found for function in dict.fromkeys(frame.function for frame in frames) for found in _in_defaults(function)]
    findings += _of_the_next_item(source, reads)
    return Verdict.of(sorted_findings(findings), "rollouts store nothing where other rollouts see it")


def _of_the_next_item(source: ClassSource, reads: list[tuple[Function, ast.Attribute]]) -> Iterator[Finding]:
    """Yield where get_next_item keeps the item that it returns: while a rollout runs, the next ones are taken."""
    start = data_flow(source).method("get_next_item")
    for frame in data_flow(source).reached_from(start) if start is not None else ():
        returned = {
            ast.unparse(node.value) for node in frame.function.own_nodes() if isinstance(node, ast.Return) and node.value
        }
        for change in frame.changes:
            value = getattr(change.function.statement_of(change.node), "value", None)
            is_item = value is not None and {ast.unparse(value), f"self.{change.attribute}"} & returned
            if change.how == "set" and is_item and any(node.attr == change.attribute for _, node in reads):
                message = (
                    f"{change.function.name} keeps its item in self.{change.attribute}, and rollouts read it: by then it is the "
                    "item of a later group"
                )
                yield finding_at(change.function, change.node, message)


def _attributes_read(frame: Frame) -> Iterator[ast.Attribute]:
    for access in frame.reads:
        node = access.node
        if isinstance(node, ast.Attribute) and any(value.kind is Kind.SELF for value in access.base):
            yield node


def _reads_itself(change: Change) -> bool:
    """Tell whether the new value is made of the old one: a sum or a mean of all rollouts."""
    value = getattr(change.function.statement_of(change.node), "value", None)
    nodes = ast.walk(value) if value is not None and isinstance(change.node, ast.Attribute) else ()
    return any(isinstance(node, ast.Attribute) and node.attr == change.attribute for node in nodes)


def _is_later(writer: Function, change: ast.AST, reader: Function, node: ast.AST) -> bool:
    """Tell whether a read may happen after an await that follows the change."""
    written, line = getattr(change, "lineno", 0), getattr(node, "lineno", 0)
    if reader is not writer:
        return reader.name in _ROLLOUT or writer.name in {"format_prompt", "collect_trajectories", "collect_trajectory"}
    if _locks(writer, change) & _locks(writer, node):
        return False
    awaits = [item.lineno for item in writer.own_nodes() if isinstance(item, (ast.Await, ast.AsyncFor, ast.AsyncWith))]
    return any(written < awaited <= line for awaited in awaits)


def _locks(function: Function, node: ast.AST) -> set[ast.AST]:
    """Return the blocks around ``node`` that only one rollout at a time is in."""
    return {
        parent
        for _, parent in function.ancestors(node)
        if isinstance(parent, ast.AsyncWith) and any("lock" in ast.unparse(item.context_expr).lower() for item in parent.items)
    }


def _is_elsewhere(source: ClassSource, writer: Function, reader: Function) -> bool:
    """Tell whether a method of rollouts leads to the reader and not to the writer: the base class awaits between the two."""
    flow = data_flow(source)
    reached = [{frame.function for frame in flow.reached_from(start)} for name in _ROLLOUT if (start := flow.method(name))]
    return any(reader in functions and writer not in functions for functions in reached)


def _is_of_the_rollout(function: Function, node: ast.AST) -> bool:
    """Tell whether what is assigned at ``node`` comes from a parameter of the function."""
    statement = function.statement_of(node)
    value = getattr(statement, "value", None)
    return value is not None and bool(_names_in(value) & _names_of_the_rollout(function))


def _names_of_the_rollout(function: Function) -> set[str]:
    """Return the parameters of a function, and the names that it computes from them."""
    found = set(function.positional if function.is_static else function.positional[1:])
    found |= {item.arg for item in function.node.args.kwonlyargs}
    size = -1
    while size != len(found):
        size = len(found)
        for node in function.own_nodes():
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value and _names_in(node.value) & found:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {name for target in targets for name in _stored_in(target)}
            elif isinstance(node, (ast.For, ast.AsyncFor)) and _names_in(node.iter) & found:
                found |= _stored_in(node.target)
    return found


def _stored_in(target: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(target) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}


def _names_in(node: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}


def _in_the_process(frame: Frame) -> Iterator[Finding]:
    """Yield what a rollout sets in a module global, in os.environ, or by os.chdir."""
    function = frame.function
    shared = {name for node in function.own_nodes() if isinstance(node, ast.Global) for name in node.names}
    for node in function.own_nodes():
        if isinstance(node, ast.Assign) and _is_of_the_rollout(function, node):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in shared:
                    message = f"{function.name} stores data of one rollout in the global {target.id}, which all rollouts share"
                    yield finding_at(function, node, message)
        if any(_names_in(value) & _names_of_the_rollout(function) for value in _put_into_environ(node)):
            message = f"{function.name} stores data of one rollout in os.environ, which all rollouts share"
            yield finding_at(function, node, message)
    for call in frame.calls:
        if any(value.kind is Kind.EXTERNAL and value.name == "os.chdir" for value in call.callee):
            message = f"{function.name} changes the working directory, which all rollouts share"
            yield finding_at(call.function, call.node, message)


def _in_defaults(function: Function) -> Iterator[Finding]:
    """Yield where a function adds to a list or set that is the default of its parameter, and so the same one in all rollouts."""
    arguments = function.node.args
    named = [*zip(reversed([*arguments.posonlyargs, *arguments.args]), reversed(arguments.defaults), strict=False)]
    named += [
        (name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value is not None
    ]
    shared = {name.arg for name, value in named if _is_new_collection(value)}
    rebound = {
        name
        for node in function.own_nodes()
        if isinstance(node, ast.Assign)
        for item in node.targets
        for name in _stored_in(item)
    }
    for node in function.own_nodes() if shared - rebound else ():
        grown: ast.expr | None = node.target if isinstance(node, ast.AugAssign) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COLLECTS:
            grown = node.func.value
        if isinstance(grown, ast.Name) and grown.id in shared - rebound:
            what = f"adds to {grown.id}, whose default is made once: it holds what all rollouts have added"
            yield finding_at(function, node, f"{function.name} {what}")


def _is_new_collection(node: ast.expr) -> bool:
    """Whether an expression makes a list or a set; a dict by default remembers, by what it is asked for."""
    is_made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"list", "set", "deque"}
    return is_made or isinstance(node, (ast.List, ast.Set, ast.ListComp, ast.SetComp))


def _put_into_environ(node: ast.AST) -> list[ast.expr]:
    """Return the values that a statement or call puts into os.environ."""
    if isinstance(node, ast.Assign):
        places = [target.value for target in node.targets if isinstance(target, ast.Subscript)]
        return [node.value] if any(ast.unparse(place) in _ENVIRON for place in places) else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_put = node.func.attr in {"update", "setdefault"} and ast.unparse(node.func.value) in _ENVIRON
        if is_put or ast.unparse(node.func) == "os.putenv":
            return [*node.args, *(word.value for word in node.keywords)]
    return []


def _in_slots(source: ClassSource, frames: list[Frame]) -> Iterator[Finding]:
    """Yield what a rollout puts into a place that all rollouts share, and reads back; in the module, also without a read."""
    functions = list(dict.fromkeys(frame.function for frame in frames))
    reads = [(function, use) for function in functions for use in reads_of_slots(function)]
    for function in functions:
        for use in writes_of_slots(function):
            if use.value is None or not _names_in(use.value) & _names_of_the_rollout(function) or _adds(use):
                continue
            is_read = any(
                read.slot == use.slot
                and (_is_later(function, use.node, reader, read.node) or _is_elsewhere(source, function, reader))
                for reader, read in reads
            )
            if is_read or use.slot.is_of_the_module:
                what = f"keeps what belongs to one rollout in {use.text}, which all rollouts share"
                yield finding_at(function, use.node, f"{function.name} {what}")


def _adds(use: SlotUse) -> bool:
    """Tell whether what is written contains what the place held: a sum or a mean of all rollouts."""
    return use.value is not None and any(ast.unparse(node) == use.text for node in ast.walk(use.value))


SCENARIOS = ("concurrent_groups", "evaluate")
_SHARED = {"attribute": "self.{}", "class attribute": "the class attribute {}", "module": "the global {}"}


def dynamic(evidence: Evidence) -> Verdict:
    """Look for the words of other rollouts in what each one was shown, and for the last one's in what they share."""
    if overwritten := list(_overwritten(evidence.scenario("evaluate"))):
        return Verdict.failed(overwritten[:1])
    groups = evidence.scenario("concurrent_groups")
    if not groups.happened:
        return Verdict.not_seen(groups.unavailable)
    owners = {canary.word: canary.task_id for canary in groups.canaries if canary.task_id}
    if len(owners) < 2:  # noqa: PLR2004 - it takes two to meet
        reason = groups.error or "no two rollouts could be distinguished: their agents called no tool"
        return Verdict.not_exercised(reason, "HE511", "HE403", "HE204", acceptable_gap=not groups.error)
    messages = []
    for seen in groups.sightings:
        if seen.is_of_an_item:
            if _is_read(evidence.source, seen.name):
                where = _SHARED[seen.where].format(seen.name)
                messages.append(f"{where} held the item of one rollout while others waited for their rewards; rollouts read it")
            continue
        strange = [word for word in seen.words if owners.get(word, seen.name) != seen.name]
        if seen.where in {"tool result", "messages"} and strange and seen.name in owners.values():
            what = "a tool's answer" if seen.where == "tool result" else "its messages"
            messages.append(f"a rollout received, in {what}, text that another rollout's model generated")
        elif seen.where == "os.environ":
            messages.append(f"os.environ[{seen.name!r}] contains text that one rollout's model generated")
        elif seen.where in _SHARED and len(seen.words) == 1:
            where = _SHARED[seen.where].format(seen.name)
            messages.append(f"{where} holds data of one rollout; the others overwrote each other there")
    crossed = groups.of(Crossed)
    if crossed:
        messages.append(f"{len(crossed)} tool calls of a rollout went to another rollout's sandbox")
    findings = [
        evidence.finding(message, "compute_reward", seen=groups.note, scenario="concurrent_groups")
        for message in dict.fromkeys(messages)
    ]
    return Verdict.of(findings[:1], f"{len(owners)} concurrent rollouts saw nothing of each other")


def _overwritten(evaluation: Scenario) -> Iterator[Finding]:
    """Yield variables that one item of an evaluation set while they held what another one had set."""
    for change in evaluation.of(SurroundingChanged):
        if change.name != "cwd" and change.before not in {None, change.original, change.after} and change.after is not None:
            if change.after == change.original:
                continue  # restored
            message = (
                f"os.environ[{change.name!r}] is set for each item of the evaluation, which overwrites that of another item"
            )
            yield finding_in(evaluation.name, change.place, message, seen=f"{change.before!r}, then {change.after!r}")


def _is_read(source: ClassSource | None, name: str) -> bool:
    """Tell whether what rollouts run reads ``name``, and not only to put something into it."""
    frames = data_flow(source).reached(*_ROLLOUT) if source is not None else ()
    return any(_reads(frame.function, name) for frame in frames)


def _reads(function: Function, name: str) -> bool:
    for node in function.own_nodes():
        named = getattr(node, "attr", "") or getattr(node, "id", "") or getattr(node, "value", "")
        around = function.parents.get(node)
        is_base = isinstance(around, ast.Subscript | ast.Attribute) and not isinstance(around.ctx, ast.Load)
        if named == name and isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not is_base:
            return True
    return False


RULE = Rule(
    doc=__doc__,
    severity=Severity.ERROR,
    static=static,
    dynamic=dynamic,
    scenarios=SCENARIOS,
    former_names=("rollouts-do-not-meet",),
    rollouts_decide=False,
)
