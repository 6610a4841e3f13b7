"""HE603 no-shared-rollout-state
Rollouts share no state: what belongs to one rollout is not kept on self, in a module global or in `os.environ`.

What: In concurrent groups, in which the model of every rollout says a different word, no rollout sees the word of
another, and no shared place (an attribute of self, a module global, `os.environ`) holds the word or the item of one
rollout while others run. No method keeps its item, or what it takes from it, on self or in a global from where rollouts read it, or a reward by
the `id()` of an object that may be gone, and none is measured by the best or the mean of those before. Where `terminal_backend` is "local", no file below /tmp is written with different
contents by rollouts. Series that are only appended to are fine.

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
import dataclasses
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict, finding_in
from pytest_hermes_env.contract.judge.roles import ALONE, MIXED, TINY, earned, rewards_alone, strange_reward
from pytest_hermes_env.play.cases.values import GOLD
from pytest_hermes_env.play.journal import ContextOpened, Crossed, SurroundingChanged
from pytest_hermes_env.play.scenario import CASES, PROBES, Scenario
from pytest_hermes_env.source import ClassSource, Function, finding_at, last_name, measures_in, reach_of

_ROLLOUT = ("format_prompt", "collect_trajectory", "collect_trajectories", "compute_reward")

_FIX_OF_MEASURES = (
    "Measure by what the item holds (its best value, a fixed range), worked out in `setup` or in `get_next_item`. "
    "The trainer compares the rollouts of a group by itself."
)


def static(source: ClassSource) -> Verdict:
    """Look for methods that keep their item, or a part of it, on self or in a global, from where rollouts read it.

    It complements the rollouts: they meet only sometimes, and those of a group have the same item.
    """
    reads, sure = _attributes_read(source, *_ROLLOUT), [*_sure(source)]
    findings = [
        finding_at(
            function,
            target,
            f"{function.name} keeps its item in {ast.unparse(target)}: another rollout may have set it by then",
        )
        for name in (*_ROLLOUT, "get_next_item")
        if (function := source.methods.get(name)) is not None
        for target in _kept_items(function)
        if (not isinstance(target, ast.Attribute) or ast.unparse(target) in reads)
        and not any(ast.unparse(target) in one.message for one in sure)
    ]
    return Verdict.of_source([*findings, *sure], "rollouts keep no item where other rollouts see it")


def _sure(source: ClassSource) -> Iterator[Finding]:
    """Yield what is wrong whether rollouts met in a run or not."""
    reads = _attributes_read(source, "compute_reward")
    for name in ("format_prompt", "get_next_item"):
        if (function := source.methods.get(name)) is None:
            continue
        for target in _taken_from_items(function):
            if (held := ast.unparse(target)) in reads:
                message = f"{name} keeps what it takes from its item in {held}, which compute_reward reads: another rollout may have set it by then"
                yield finding_at(function, target, message)
    yield from _read_after_waiting(source)
    yield from (found for function in reach_of(source).functions("compute_reward") for found in _kept_by_id(function))
    for one in measures_in(source, "compute_reward"):
        message = f"compute_reward measures a rollout by what other rollouts left in {one.place}: the same work earns another reward later"
        yield dataclasses.replace(finding_at(one.function, one.node, message), fix=_FIX_OF_MEASURES)


def _read_after_waiting(source: ClassSource) -> Iterator[Finding]:
    """Yield where compute_reward keeps its item on self, and reads it there after an await, when other rewards have begun."""
    reward = source.methods.get("compute_reward")
    for target in _kept_items(reward) if reward is not None else ():
        for function in reach_of(source).functions("compute_reward"):
            waits = [node.lineno for node in function.own_nodes() if isinstance(node, ast.Await | ast.AsyncWith | ast.AsyncFor)]
            lines = [line for line in waits if function is not reward or line > target.lineno]
            read = next(
                (
                    node
                    for node in function.own_nodes()
                    if isinstance(node, ast.Attribute | ast.Name)
                    and isinstance(node.ctx, ast.Load)
                    and ast.unparse(node) == ast.unparse(target)
                    and any(line < node.lineno for line in lines)
                ),
                None,
            )
            if reward is not None and read is not None:
                message = f"compute_reward keeps its item in {ast.unparse(target)}, and {function.name} reads it after an await: another rollout may have set it by then"
                yield finding_at(function, read, message)
                return


def _kept_by_id(function: Function) -> Iterator[Finding]:
    """Yield where something is kept on self by the id() of a result or a context that nothing keeps: the next one may get the same one."""
    nodes = list(function.own_nodes())
    taken = {
        ast.unparse(node.args[0])
        for node in nodes
        if isinstance(node, ast.Call) and last_name(node.func) == "pop" and node.args
    }
    taken |= {
        ast.unparse(target.slice)
        for node in nodes
        if isinstance(node, ast.Delete)
        for target in node.targets
        if isinstance(target, ast.Subscript)
    }
    for node in nodes:
        match node:
            case ast.Assign(
                targets=[ast.Subscript(slice=ast.Call(func=ast.Name(id="id"), args=[ast.Name(id=given)]) as key) as target],
                value=value,
            ) if given in {*function.positional_without_self[1:], "result", "ctx"}:
                named = {ast.unparse(one) for part in ast.walk(value) for one in _held_in(part)}
                if function.is_self(_root(target)) and given not in named and ast.unparse(key) not in taken:
                    message = f"{ast.unparse(target)} is kept by an id(), which another object gets when this one has gone"
                    fix = "Keep it by `ctx.task_id`, which no other rollout has."
                    yield dataclasses.replace(finding_at(function, node, message), fix=fix)


def _held_in(part: ast.AST) -> list[ast.expr]:
    """Return what a display, or an object that is made of its arguments, holds; a method returns what it likes."""
    if isinstance(part, ast.Tuple | ast.List):
        return part.elts
    if not isinstance(part, ast.Call) or not str(last_name(part.func))[:1].isupper():
        return []
    return [*part.args, *(word.value for word in part.keywords)]


def _attributes_read(source: ClassSource, *methods: str) -> set[str]:
    return {
        ast.unparse(node)
        for function in reach_of(source).functions(*methods)
        for node in function.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and function.is_self(_root(node))
    }


def _root(node: ast.AST) -> ast.AST:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def _kept_items(function: Function) -> Iterator[ast.expr]:
    """Yield the attributes of self and the globals to which a method assigns the item that it is given, or gives out."""
    nodes = list(function.own_nodes())
    returned = {node.value.id for node in nodes if isinstance(node, ast.Return) and isinstance(node.value, ast.Name)}
    items = returned if function.name == "get_next_item" else set(function.positional_without_self[:1])
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    for node in nodes:
        value = _root(node.value) if isinstance(node, ast.Assign) else None
        is_locked = any(isinstance(parent, ast.AsyncWith) for _, parent in function.ancestors(node))
        if not isinstance(node, ast.Assign) or not isinstance(value, ast.Name) or value.id not in items or is_locked:
            continue
        for target in node.targets:
            is_of_self = isinstance(target, ast.Attribute) and function.is_self(_root(target))
            if is_of_self or (isinstance(target, ast.Name) and target.id in shared):
                yield target


def _taken_from_items(function: Function) -> Iterator[ast.Attribute]:
    """Yield the attributes of self that a method sets anew from a part of its item; what it goes on counting is none."""
    nodes = list(function.own_nodes())
    returned = {node.value.id for node in nodes if isinstance(node, ast.Return) and isinstance(node.value, ast.Name)}
    items = returned if function.name == "get_next_item" else set(function.positional_without_self[:1])
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Attribute() as target], value=ast.Subscript() | ast.Call() | ast.BinOp() as value):
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and function.is_self(value.func.value):
                    continue  # what a method makes of it may be anything
                tests = [ast.unparse(one.test) for _, one in function.ancestors(node) if isinstance(one, ast.If)]
                if any(target.attr in test for test in tests):
                    continue  # it is set once
                parts = {ast.unparse(part) for part in ast.walk(value) if isinstance(part, ast.Name | ast.Attribute)}
                if function.is_self(target.value) and parts & items and ast.unparse(target) not in parts:
                    yield target


SCENARIOS = ("concurrent_groups", "evaluate", ALONE, *MIXED, PROBES, CASES)
_SHARED = {"attribute": "self.{}", "class attribute": "the class attribute {}", "module": "the global {}"}


def dynamic(evidence: Evidence) -> Verdict:
    """Look for the words of other rollouts in what each one was shown, and for the last one's in what they share."""
    if overwritten := list(_overwritten(evidence.scenario("evaluate"))):
        return Verdict.failed(overwritten[:1])
    if evidence.source is not None and (sure := [*_sure(evidence.source)]):
        return Verdict.failed(sure[:1])
    if at_one_place := _in_one_place(evidence):
        return Verdict.failed([at_one_place])
    if others := list(_of_others(evidence)):
        return Verdict.failed(others[:1])
    groups = evidence.scenario("concurrent_groups")
    if not groups.happened:
        return Verdict.not_exercised(groups.unavailable)
    owners = {canary.word: canary.task_id for canary in groups.canaries if canary.task_id}
    if len(owners) < 2:  # noqa: PLR2004 - it takes two to meet
        reason = groups.error or "no two rollouts could be distinguished: their agents called no tool"
        return Verdict.not_exercised(reason, "HE511", "HE403", "HE204")
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
    own = {opened.task_id for opened in groups.of(ContextOpened)} - {*owners.values()}  # sandboxes of the rewards' own
    crossed = [call for call in groups.of(Crossed) if call.other not in own]
    if crossed:
        messages.append(f"{len(crossed)} tool calls of a rollout went to another rollout's sandbox")
    findings = [
        evidence.finding(message, "compute_reward", seen=groups.note, scenario="concurrent_groups")
        for message in dict.fromkeys(messages)
    ]
    roles = sum(len(earned(scenario)) for scenario in evidence.scenarios(*MIXED))
    watched = f"; {roles} rewards beside gold were those of the same work alone" if roles else ""
    return Verdict.of(findings[:1], f"{len(owners)} concurrent rollouts saw no word of each other{watched}")


def _in_one_place(evidence: Evidence) -> Finding | None:
    """Return a file that all sandboxes of one machine share, and that rollouts wrote with different contents."""
    if evidence.config_init.values.get("terminal_backend") != "local":
        return None
    seen: dict[str, set[str]] = {}
    for path, digest in (one for rung in evidence.rungs for one in rung.outside):
        seen.setdefault(path, set()).add(digest)
    shared = [path for path, digests in seen.items() if len(digests) > 1]
    if not shared:
        return None
    message = (
        f"{shared[0]} is one file for all rollouts where sandboxes are directories of one machine (terminal_backend 'local')"
    )
    found = evidence.finding(message, "compute_reward", "format_prompt", scenario=CASES)
    fix = "Use a path below the directory where the agent begins, or `mktemp -d`."
    return dataclasses.replace(found, fix=fix, seen=f"rollouts wrote {len(seen[shared[0]])} different contents there")


def _of_others(evidence: Evidence) -> Iterator[Finding]:
    """Yield the groups in which a reward was that of another rollout's work, unless rewards differ by themselves."""
    for rung in evidence.rungs:
        if rung.stale:
            message = f"the sandbox of {rung.item} was prepared with text of another item: {rung.stale}"
            yield evidence.finding(message, "prepare_sandbox", "collect_trajectory", scenario=CASES)
    if evidence.probes.unsteady is None and (alone := rewards_alone(evidence)):
        golds = {rung.reward for rung in evidence.rungs if rung.name == GOLD and rung.reward is not None}
        after = {reward for (name, _), reward in alone.items() if name == GOLD}
        if len(golds) == 1 and after and max(after) < min(golds) - TINY:
            message = f"gold earned {max(after):g} after rollouts of its item that did nothing, and {min(golds):g} before any"
            yield evidence.finding(message, "compute_reward", scenario=ALONE)
        for scenario in evidence.scenarios(*MIXED):
            if strange := strange_reward(scenario, alone):
                yield evidence.finding(strange, "compute_reward", scenario=scenario.name)


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
    functions = reach_of(source).functions(*_ROLLOUT) if source is not None else ()
    return any(_reads(function, name) for function in functions)


def _reads(function: Function, name: str) -> bool:
    for node in function.own_nodes():
        named = getattr(node, "attr", "") or getattr(node, "id", "") or getattr(node, "value", "")
        around = function.parents.get(node)
        is_base = isinstance(around, ast.Subscript | ast.Attribute) and not isinstance(around.ctx, ast.Load)
        if named == name and isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not is_base:
            return True
    return False


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=SCENARIOS)
