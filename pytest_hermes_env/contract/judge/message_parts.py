"""Where methods hold an AgentResult, and which part of its messages an expression is, by the names and keys that are written there.

Followed are parameters, other names, loops, and the arguments and results of helpers. What is certain of none of these has no part.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_hermes_env.source import LAYER_LOOP, LAYER_RESULT, ClassSource, Function, argument, keyword, last_name, reach_of

_MEMBERS: Mapping[str, str] = {"messages": "message", "calls": "call", "names": "name"}
"""What the members of a list are."""
DICTS = frozenset({"message", "call", "function"})
_SAME = frozenset({"str", "list", "tuple", "set", "frozenset", "sorted", "reversed", "Counter", "iter"})
"""Functions that give the members of their argument."""
_EMPTY = frozenset({"list", "set", "dict", "Counter", "OrderedDict"})
"""Containers that are empty where they are made of nothing."""
_FUNCTIONS = (ast.Name, ast.Attribute)
_DEEPEST = 24


def results_in(source: ClassSource) -> Mapping[Function, frozenset[str]]:
    """Return the names that certainly hold an AgentResult, by function."""
    reach = reach_of(source)
    functions = reach.every_function()
    found: dict[Function, set[str]] = defaultdict(set)
    pending = [(function, function.annotated_as(LAYER_RESULT) | _given_to_reward(function)) for function in functions]
    pending += [(function, set(_of_loops(source, function))) for function in functions]
    while pending:
        function, names = pending.pop()
        names = {name for name in names if name not in found[function] and not _may_be_another(function, name)}
        for name in names:
            names = names | {alias for alias in function.local_names if _is_alias(function, alias, name)}
        if names:
            found[function] |= names
            pending += [(target, given) for target, given in _passed(source, function, found[function])]
    return {function: frozenset(names) for function, names in found.items()}


def _given_to_reward(function: Function) -> set[str]:
    is_reward = function.name == "compute_reward" and function.owner is not None
    return set(function.positional_without_self[1:2]) if is_reward else set()


def _of_loops(source: ClassSource, function: Function) -> Iterator[str]:
    """Yield the names that hold ``await agent.run(...)``, where the agent is made in the same function."""
    loops = {call.node for call in reach_of(source).calls_in(function) if call.makes(LAYER_LOOP)}
    for name in function.local_names if loops else ():
        for value in function.values_of(name):
            run = value.value.func if isinstance(value, ast.Await) and isinstance(value.value, ast.Call) else None
            if isinstance(run, ast.Attribute) and run.attr == "run" and isinstance(run.value, ast.Name):
                made = function.values_of(run.value.id)
                if len(made) == 1 and made[0] in loops:
                    yield name


def _may_be_another(function: Function, name: str) -> bool:
    """Tell whether a function gives a name several values, or asks of what type it is."""
    given = len(function.values_of(name)) + (name in function.positional)
    asks = (
        node for node in function.nodes if isinstance(node, ast.Call) and last_name(node.func) == "isinstance" and node.args
    )
    return given > 1 or any(isinstance(node.args[0], ast.Name) and node.args[0].id == name for node in asks)


def _is_alias(function: Function, alias: str, name: str) -> bool:
    values = function.values_of(alias)
    is_same = len(values) == 1 and isinstance(values[0], ast.Name) and values[0].id == name
    return is_same and alias not in function.positional


def _passed(source: ClassSource, function: Function, names: set[str]) -> Iterator[tuple[Function, set[str]]]:
    """Yield the functions that are given a result by name, each with the parameters that hold one in every call."""
    reach = reach_of(source)
    for target in {call.target for call in reach.calls_in(function) if isinstance(call.target, Function)}:
        calls = [call for other in reach.every_function() for call in reach.calls_in(other) if call.target is target]
        by_word = [item.arg for item in target.node.args.kwonlyargs]
        for index, parameter in enumerate([*target.positional_without_self, *by_word]):
            given = [
                keyword(call.node, parameter) if parameter in by_word else argument(call.node, index, parameter)
                for call in calls
            ]
            if all(isinstance(item, ast.Name) and item.id in names for item in given):
                yield target, {parameter}


@dataclass(frozen=True, kw_only=True)
class MessageParts:
    """Tells which part of messages an expression is: a list of messages or calls, one of these, a call's function, or a tool's name."""

    source: ClassSource
    results: Mapping[Function, frozenset[str]]
    _known: dict[ast.AST, str] = field(default_factory=dict)

    def of(self, function: Function, node: ast.AST, depth: int = 0) -> str:
        """Return the part; empty where it is another thing, or not certain."""
        if node not in self._known:
            self._known[node] = ""  # a name may be made of itself
            self._known[node] = self._of(function, node, depth + 1) if depth < _DEEPEST else ""
        return self._known[node]

    def _of(self, function: Function, node: ast.AST, depth: int) -> str:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="messages") if name in self.results.get(function, ()):
                return "messages"
            case ast.Subscript(value=holder, slice=ast.Slice()):
                return self.of(function, holder, depth)
            case (
                ast.Subscript(value=holder, slice=key) | ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[key, *_])
            ):
                return self._under(function, holder, key, depth)
            case ast.IfExp(body=body, orelse=other):
                return self.of(function, body, depth) or self.of(function, other, depth)
            case ast.BoolOp(values=values):
                return next((part for value in values if (part := self.of(function, value, depth))), "")
            case ast.NamedExpr(value=value):
                return self.of(function, value, depth)
            case ast.ListComp(elt=value) | ast.SetComp(elt=value) | ast.GeneratorExp(elt=value):
                return "names" if self.of(function, value, depth) == "name" else ""
            case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in _SAME:
                return self.of(function, inner, depth)
            case ast.Call(func=func):
                target = reach_of(self.source).target(function, func) if isinstance(func, _FUNCTIONS) else None
                return self._given_by(target, depth) if isinstance(target, Function) else ""
            case ast.Name(id=name):
                parts = set(self._of_name(function, name, depth))
                return parts.pop() if len(parts) == 1 else ""
        return ""

    def _under(self, function: Function, holder: ast.AST, key: ast.AST, depth: int) -> str:
        word = key.value if isinstance(key, ast.Constant) else None
        if word in {"tool_calls", "function"}:
            return "calls" if word == "tool_calls" else "function"
        part = self.of(function, holder, depth)
        if word == "name" and part == "function":
            return "name"
        return "" if isinstance(word, str) else _MEMBERS.get(part, "")

    def _given_by(self, function: Function, depth: int) -> str:
        returned = [node.value for node in function.own_nodes() if isinstance(node, ast.Return) and node.value is not None]
        parts = {self.of(function, value, depth) for value in returned}
        return parts.pop() if len(parts) == 1 else ""

    def _of_name(self, function: Function, name: str, depth: int) -> Iterator[str]:
        """Yield the part that each binding of a name gives it; an empty list is what is put into it."""
        if name in function.positional:
            yield ""
        for node in function.nodes:
            if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
                target, iterated = node.target, node.iter
                if isinstance(target, ast.Tuple) and isinstance(iterated, ast.Call) and last_name(iterated.func) == "enumerate":
                    target, iterated = target.elts[-1], iterated.args[0]
                if isinstance(target, ast.Name) and target.id == name:
                    yield _MEMBERS.get(self.of(function, iterated, depth), "")
        for value in function.values_of(name):
            if value is not None and not _is_empty(value):
                yield self.of(function, value, depth)
            elif value is not None:
                yield from self._put_into(function, name, depth)

    def _put_into(self, function: Function, name: str, depth: int) -> Iterator[str]:
        for node in function.nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=holder), attr="append" | "add"), args=[put]) if (
                    holder == name
                ):
                    yield "names" if self.of(function, put, depth) == "name" else ""
                case ast.Subscript(value=ast.Name(id=holder), slice=put, ctx=ast.Store()) if holder == name:
                    yield "names" if self.of(function, put, depth) == "name" else ""


def _is_empty(node: ast.expr) -> bool:
    is_new = isinstance(node, ast.Call) and last_name(node.func) in _EMPTY and not (node.args or node.keywords)
    is_new = is_new or (isinstance(node, ast.Call) and last_name(node.func) == "defaultdict")
    return is_new or (isinstance(node, (ast.List, ast.Set)) and not node.elts) or (isinstance(node, ast.Dict) and not node.keys)
