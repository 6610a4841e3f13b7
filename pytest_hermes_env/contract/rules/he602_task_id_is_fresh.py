"""HE602 task-id-is-fresh
Each rollout has a new `task_id`: one uuid per rollout.

What: The `task_id` that the class's own code passes to a `HermesAgentLoop` or a `ToolContext` is created for that
rollout, as by `uuid.uuid4()`. A constant, an item's id, an index, an attribute of self, or a uuid that was created once
before the loop over the items is shared. In a scenario, no two rollouts of concurrent groups and of evaluations have
the same id. `agent_rollout` creates a new id for each rollout.

Why: hermes keeps one sandbox per `task_id`. Two rollouts with the same id work in the same directory: one finds the
other's files, is rewarded for them, and loses its sandbox when the other one cleans up. A group of 8 attempts at one
item with the item's id as `task_id` is one sandbox for all 8.

Fix: Use `self.agent_rollout(item)`, or `task_id = str(uuid.uuid4())` where the rollout begins, passed to both
`HermesAgentLoop` and `ToolContext`. A readable prefix is fine: `f"eval-{uuid.uuid4()}"`.

Source: `environments.hermes_base_env`, `agent_rollout`; hermes-agent 0.19, `tools.terminal_tool` (one environment per
`task_id`).
"""

from __future__ import annotations

import ast
import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pytest_hermes_env.contract.evidence import Evidence, finding_in
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import ContextOpened, LoopStarted, Place
from pytest_hermes_env.source import (
    LAYER_CONTEXT,
    LAYER_LOOP,
    Call,
    ClassSource,
    Frame,
    Function,
    Kind,
    argument,
    argument_origins,
    bindings,
    constructs,
    data_flow,
    finding_at,
    last_name,
    may_be_unpacked,
)
from pytest_hermes_env.source.finding import Finding, Severity

_MAKES_NEW = frozenset({"uuid1", "uuid4", "uuid6", "uuid7", "token_hex", "token_urlsafe", "token_bytes", "urandom", "mkdtemp"})
_KEEPS = frozenset(
    {
        "str", "repr", "format", "int", "hash", "abs", "hex", "len", "md5", "sha1", "sha256", "sha512", "blake2b", "hexdigest",
        "encode", "decode", "join", "lower", "upper", "strip", "replace", "uuid3", "uuid5", "get", "zfill", "title", "crc32",
        "basename", "quote", "casefold",
    }
)  # fmt: skip
"""Functions that give the same for the same."""
_ITEM_METHODS = frozenset({"collect_trajectory", "collect_trajectories", "compute_reward", "format_prompt"})
_SPREADS = frozenset({"enumerate", "range", "zip", "list", "sorted", "reversed", "tuple", "islice", "tqdm", "len"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEEPEST = 12


class _Age(enum.Enum):
    """Whether an expression gives something new each time."""

    NEW = "new"
    ONCE = "made once"
    SAME = "the same each time"
    VARIED = "the same for the same item"
    UNKNOWN = "unknown"


def static(source: ClassSource) -> Verdict:
    """Follow the task_id of each loop and ToolContext to where it is made."""
    frames = data_flow(source).every_frame()
    sites = [(call, frame) for frame in frames for call in frame.calls if _position(call) is not None]
    if not sites:
        return Verdict.not_applicable("builds no agent loop and no ToolContext of its own: the layer gives each rollout a uuid")
    found: list[Finding] = []
    unsure = ""
    for call, frame in sites:
        written = argument(call.node, _position(call) or 0, "task_id")
        if written is None:
            if may_be_unpacked(call, "task_id"):
                unsure = unsure or f"line {call.node.lineno}: the task_id is unpacked from a value that cannot be followed"
            continue
        age = _Reader(frames=frames).age(written, frame)
        text = ast.unparse(written)
        if age is _Age.ONCE:
            message = (
                f"{text}, the task_id of this rollout, is created once and shared by several rollouts, and so is their sandbox"
            )
            found.append(finding_at(call.function, call.node, message))
        elif age in {_Age.SAME, _Age.VARIED}:
            message = f"{text}, the task_id of this rollout, is not created per rollout: rollouts share one sandbox"
            found.append(finding_at(call.function, call.node, message))
        elif age is _Age.UNKNOWN:
            unsure = unsure or f"line {call.node.lineno}: where {text} comes from cannot be followed"
    return Verdict.of_source(found, "each task_id of the class's own code is created per rollout", doubt=unsure)


def _position(call: Call) -> int | None:
    if constructs(call, LAYER_LOOP):
        return 4
    return 0 if constructs(call, LAYER_CONTEXT) else None


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Tells how old the value of an expression is."""

    frames: tuple[Frame, ...]

    def age(self, node: ast.expr, frame: Frame, depth: int = 0) -> _Age:
        """Return how old ``node`` is each time that its line is reached."""
        if depth > _DEEPEST:
            return _Age.UNKNOWN
        match node:
            case ast.Constant():
                return _Age.SAME
            case ast.JoinedStr(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
                return _together(self.age(part, frame, depth + 1) for part in parts)
            case ast.FormattedValue(value=inner) | ast.Await(value=inner) | ast.NamedExpr(value=inner):
                return self.age(inner, frame, depth + 1)
            case ast.BinOp(left=left, right=right):
                return _together(self.age(part, frame, depth + 1) for part in (left, right))
            case ast.IfExp(body=body, orelse=orelse):
                return _either([self.age(part, frame, depth + 1) for part in (body, orelse) if not _is_none(part)])
            case ast.BoolOp(values=values):
                return _either(self._choices(values, frame, depth + 1))
            case ast.Call():
                return self._of_call(node, frame, depth + 1)
            case ast.Attribute():
                return self._of_attribute(node, frame, depth + 1)
            case ast.Subscript(value=holder):
                age = self.age(holder, frame, depth + 1)
                return _Age.UNKNOWN if age in {_Age.NEW, _Age.ONCE} and not isinstance(node.slice, ast.Slice) else age
            case ast.Name():
                return self._of_name(node, frame, depth + 1)
            case _:
                return _Age.UNKNOWN

    def _choices(self, values: list[ast.expr], frame: Frame, depth: int) -> list[_Age]:
        """Return the ages of the parts of ``a or b``; a parameter that nobody gives, or gives None, leaves the choice to the next."""
        ages: list[_Age] = []
        for value in values:
            if isinstance(value, ast.Name):
                given = [item for item, _ in argument_origins(value, frame, self.frames)]
                if given and all(map(_is_none, given)):
                    continue
            if not _is_none(value):
                ages.append(self.age(value, frame, depth))
        return ages

    def _of_call(self, node: ast.Call, frame: Frame, depth: int) -> _Age:
        name = last_name(node.func)
        if name in _MAKES_NEW:
            return _Age.NEW
        target = next((inner for edge, inner in frame.edges if edge is node), None)
        if target is not None:
            if any("cache" in decorator for decorator in target.function.decorators):
                return _Age.VARIED
            return _either([self.age(item.value, target, depth) for item, _ in target.returned if item.value is not None])
        made = next((call for call in frame.calls if call.node is node and _position(call) is not None), None)
        if made is not None:
            written = argument(node, _position(made) or 0, "task_id")
            is_given = written is not None or may_be_unpacked(made, "task_id")
            return _Age.NEW if not is_given else self.age(written, frame, depth) if written is not None else _Age.UNKNOWN
        if name not in _KEEPS:
            return _Age.UNKNOWN
        parts = [*node.args, *(word.value for word in node.keywords)]
        if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value, frame):
            parts.append(node.func.value)
        return _together(self.age(part, frame, depth) for part in parts)

    def _of_attribute(self, node: ast.Attribute, frame: Frame, depth: int) -> _Age:
        if node.attr in {"hex", "int", "urn", "bytes"}:
            return self.age(node.value, frame, depth)
        if isinstance(node.value, ast.Name) and node.value.id in frame.function.positional[:1] and not frame.function.is_static:
            if any(edge is node for edge, _ in frame.edges):
                return _Age.UNKNOWN  # a property
            return _Age.SAME
        age = self.age(node.value, frame, depth)
        if node.attr == "task_id" and age is not _Age.ONCE and self._is_of_layer(node.value, frame):
            return _Age.NEW  # checked where that context or loop is made
        return age if age in {_Age.SAME, _Age.VARIED} or node.attr == "task_id" else _Age.UNKNOWN

    def _is_of_layer(self, node: ast.expr, frame: Frame) -> bool:
        for access in frame.reads:
            if getattr(access.node, "value", None) is node:
                return any(value.kind in {Kind.INSTANCE, Kind.CONTEXT} for value in access.base)
        return False

    def _of_name(self, node: ast.Name, frame: Frame, depth: int) -> _Age:
        function = frame.function
        bound = list(bindings(function, node.id))
        if bound:
            ages = [self._of_binding(value, node, frame, depth) for value in bound if value is None or not _is_none(value)]
            return _either(ages)
        if node.id in function.positional and function.name in _ITEM_METHODS and function.positional.index(node.id) == 1:
            return _Age.VARIED
        given = [(value, caller) for value, caller in argument_origins(node, frame, self.frames) if not _is_none(value)]
        if given:
            return _either([self._given(node, value, caller, depth) for value, caller in given])
        return _Age.SAME if node.id in function.module.names else _Age.UNKNOWN

    def _given(self, node: ast.Name, value: ast.expr, caller: Frame, depth: int) -> _Age:
        if value is node:
            return _Age.UNKNOWN
        age = self.age(value, caller, depth)
        is_default = value not in caller.function.parents
        return _Age.ONCE if is_default and age is _Age.NEW else age

    def _of_binding(self, value: ast.expr | None, node: ast.Name, frame: Frame, depth: int) -> _Age:
        if value is None:
            unpacked = list(self._unpacked(node.id, frame))
            if unpacked:
                return _either([self.age(part, holder, depth) for part, holder in unpacked])
            return _of_iteration(frame.function, node.id)
        age = self.age(value, frame, depth)
        return _Age.ONCE if age is _Age.NEW and _is_outside(frame.function, value, node) else age

    def _unpacked(self, name: str, frame: Frame) -> Iterator[tuple[ast.expr, Frame]]:
        """Yield what a name is given by a with statement or out of a tuple, where that is readable."""
        for node in ast.walk(frame.function.node):
            if isinstance(node, ast.withitem):
                target, value = node.optional_vars, node.context_expr
            elif isinstance(node, ast.Assign):
                target, value = node.targets[0], node.value
            else:
                continue
            value = value.value if isinstance(value, ast.Await) else value
            inner = next((inner for edge, inner in frame.edges if edge is value), None)
            holder, given = (frame, [value]) if inner is None else (inner, _given_out(inner.function))
            if isinstance(target, ast.Name) and target.id == name and isinstance(node, ast.withitem) and inner is not None:
                yield from ((part, holder) for part in given)
            if isinstance(target, ast.Tuple):
                places = [index for index, item in enumerate(target.elts) if isinstance(item, ast.Name) and item.id == name]
                whole = [part.elts for part in given if isinstance(part, ast.Tuple) and len(part.elts) == len(target.elts)]
                yield from ((parts[index], holder) for parts in whole for index in places)


def _given_out(function: Function) -> list[ast.expr]:
    """Return the expressions that a function returns or yields."""
    found = [node.value for node in function.own_nodes() if isinstance(node, (ast.Return, ast.Yield))]
    return [value for value in found if value is not None]


def _is_outside(function: Function, made: ast.expr, used: ast.AST) -> bool:
    """Whether ``made`` stands before a loop that ``used`` stands in, or around a nested function that a loop calls."""
    around_made = {parent for _, parent in function.ancestors(made)}
    for child, parent in function.ancestors(used):
        if parent in around_made:
            return False
        if isinstance(parent, (ast.For, ast.AsyncFor)) and child is parent.iter:
            continue
        if isinstance(parent, _LOOPS):
            return True
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_used_often(function, parent.name):
            return True
    return False


def _is_used_often(function: Function, name: str) -> bool:
    """Whether a nested function is used in a loop, or handed to map; a single wait_for(attempt()) is one rollout."""
    for node in function.own_nodes():
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            parents = [parent for _, parent in function.ancestors(node)]
            is_mapped = isinstance(parents[0], ast.Call) and last_name(parents[0].func) == "map"
            if is_mapped or any(isinstance(parent, _LOOPS) for parent in parents):
                return True
    return False


def _of_iteration(function: Function, name: str) -> _Age:
    """Return the age of a name that a loop binds: items and indices come again, anything else is not known."""
    for node in ast.walk(function.node):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and any(
            isinstance(item, ast.Name) and item.id == name for item in ast.walk(node.target)
        ):
            calls = [item for item in ast.walk(node.iter) if isinstance(item, ast.Call)]
            names = [item.id for item in ast.walk(node.iter) if isinstance(item, ast.Name)]
            is_plain = all(isinstance(call.func, ast.Name) and call.func.id in _SPREADS for call in calls)
            known = {*function.positional[:1], *_SPREADS}
            return _Age.VARIED if is_plain and set(names) <= known else _Age.UNKNOWN
    return _Age.UNKNOWN


def _is_module(node: ast.expr, frame: Frame) -> bool:
    return isinstance(node, ast.Name) and any(item.module for item in frame.function.module.names.get(node.id, ()))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _together(ages: Iterable[_Age]) -> _Age:
    """Return the age of what is put together of several parts."""
    found = set(ages)
    if _Age.NEW in found:
        return _Age.NEW
    if _Age.UNKNOWN in found or {_Age.ONCE, _Age.VARIED} <= found:
        return _Age.UNKNOWN
    return next((age for age in (_Age.ONCE, _Age.VARIED) if age in found), _Age.SAME)


def _either(ages: list[_Age]) -> _Age:
    """Return the age of what is one of several: a shared one shows in the end."""
    found = set(ages)
    shared = next((age for age in (_Age.SAME, _Age.VARIED, _Age.ONCE) if age in found), None)
    if shared is not None:
        return shared
    return _Age.NEW if found == {_Age.NEW} else _Age.UNKNOWN


SCENARIOS = ("concurrent_groups", "evaluate", "evaluate_twice", "evaluate_beside_training")


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the ids of all rollouts of concurrent groups and of evaluations."""
    ran = evidence.scenarios(*SCENARIOS)
    events = [event for scenario in ran for event in (*scenario.events, *scenario.beside)]
    loops = [event for event in events if isinstance(event, LoopStarted)]
    if not loops:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS) or "no agent loop was run", "HE511", "HE701")
    of_loops = Counter(event.task_id for event in loops)
    contexts = [event for event in events if isinstance(event, ContextOpened) and event.task_id not in of_loops]
    of_contexts = Counter(event.task_id for event in contexts)
    shared = [event for event in loops if of_loops[event.task_id] > 1]
    shared_contexts = [event for event in contexts if of_contexts[event.task_id] > 1]
    findings = [
        *_findings(shared, of_loops, "rollouts had the task_id"),
        *_findings(shared_contexts, of_contexts, "ToolContexts were opened for the task_id"),
    ]
    return Verdict.of(findings, f"{len(loops)} rollouts had a task_id of their own")


def _findings(events: Iterable[LoopStarted | ContextOpened], count: Counter[str], what: str) -> Iterator[Finding]:
    """Yield one finding per place, for the id that was used there most often."""
    places: dict[Place, str] = {}
    for event in events:
        if count[event.task_id] > count[places.get(event.place, "")]:
            places[event.place] = event.task_id
    for place, task_id in places.items():
        yield finding_in("", place, f"{count[task_id]} {what} {task_id!r}")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=SCENARIOS)
