"""What a method returns that is measured by what earlier calls left: the best so far, a running mean, the rewards until now.

Place in the flow: HE603 asks for it of `compute_reward`. Followed are attributes of self, and names of the file or of an enclosing function;
what is kept under a key that is the call's own, such as its text or its task id, is a memory and no measure.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from pytest_hermes_env.source.classes import ClassSource
from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.reach import Reach, reach_of
from pytest_hermes_env.source.syntax import last_name

_ADDING = frozenset({"append", "appendleft", "extend", "add", "insert", "update"})
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_MEASURING = frozenset({"min", "max", "sum", "mean", "fmean", "median", "average", "stdev", "pstdev", "std"})


@dataclass(frozen=True, kw_only=True)
class Measure:
    """``place`` is what earlier calls changed, at ``node`` of ``function``, and what the method returns depends on it."""

    function: Function
    node: ast.AST
    place: str


def measures_in(source: ClassSource, method: str) -> Iterator[Measure]:
    """Yield each place once."""
    found = _Followed(source, method)
    start = source.methods.get(method)
    for place, (function, node) in (found.running() if start is not None else {}).items():
        if start is not None and found.returns(start, place):
            yield Measure(function=function, node=node, place=place)


class _Followed:
    def __init__(self, source: ClassSource, method: str) -> None:
        self._reach: Reach = reach_of(source)
        self._method = method
        self._functions = self._reach.functions(method)
        self._own: dict[Function, frozenset[str]] = {}
        self._of: dict[tuple[Function, str], bool] = {}

    def running(self) -> dict[str, tuple[Function, ast.AST]]:
        """Return the places that a call changes by its own work and by what was there, unless it begins by setting them anew."""
        found: dict[str, tuple[Function, ast.AST]] = {}
        reset: set[str] = set()
        for function in self._functions:
            own = self._names_of_own(function)
            for node in function.nodes:
                for place, key, value in _writes(function, node):
                    if key is None and isinstance(node, ast.Assign) and not self._reads(function, value, place):
                        reset.add(place)
                    is_own = key is not None and _has(key, own)
                    if not is_own and self._is_running(function, node, value, place) and _has(value, own):
                        found.setdefault(place, (function, node))
        return {place: where for place, where in found.items() if place not in reset}

    def returns(self, function: Function, place: str) -> bool:
        """Tell whether what a function returns depends on a place."""
        if (known := self._of.get((function, place))) is not None:
            return known
        self._of[function, place] = False  # of a function that calls itself
        given = [node.value for node in function.own_nodes() if isinstance(node, ast.Return) and node.value is not None]
        self._of[function, place] = any(self._reads(function, value, place) for value in given)
        return self._of[function, place]

    def _reads(self, function: Function, value: ast.AST, place: str) -> bool:
        """Tell whether an expression depends on a place, by itself, by a name, or by a function that it calls."""
        names = _closed(function, lambda node: self._is_read(function, node, place))
        return any(self._is_read(function, node, place) or _is_name(node, names) for node in ast.walk(value))

    def _is_read(self, function: Function, node: ast.AST, place: str) -> bool:
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            around = function.parents.get(node)
            is_added_to = isinstance(around, ast.Attribute) and around.attr in _ADDING
            return _place_of(function, node) == place and not is_added_to
        if isinstance(node, ast.Call) and node in {call.node for call in self._reach.calls_in(function)}:
            target = self._reach.target(function, node.func)
            return isinstance(target, Function) and target in self._functions and self.returns(target, place)
        return False

    def _is_running(self, function: Function, node: ast.AST, value: ast.AST, place: str) -> bool:
        """Tell whether a write takes what was there into account: it adds to it, or takes the larger one."""
        if isinstance(node, ast.AugAssign | ast.Call):
            return not (isinstance(node, ast.Call) and last_name(node.func) in {"setdefault", "update"})
        measuring = [
            one for one in ast.walk(value) if isinstance(one, ast.BinOp) or last_name(getattr(one, "func", one)) in _MEASURING
        ]
        if any(self._reads(function, one, place) for one in measuring):
            return True
        tests = [parent.test for _, parent in function.ancestors(node) if isinstance(parent, ast.If | ast.IfExp)]
        compared = [
            one for test in tests for one in ast.walk(test) if isinstance(one, ast.Compare) and isinstance(one.ops[0], _ORDERED)
        ]
        return any(self._reads(function, one, place) for one in compared)

    def _names_of_own(self, function: Function) -> frozenset[str]:
        """Return the names in a function that depend on the work: of the method, what it is given behind the item."""
        if function not in self._own:
            self._own[function] = frozenset()
            if function.name == self._method:
                given = set(function.positional_without_self[1:])
            else:
                given = {name for name in function.positional_without_self if self._is_given_own(function, name)}
            self._own[function] = frozenset(_closed(function, lambda node: _is_name(node, given)) | given)
        return self._own[function]

    def _is_given_own(self, function: Function, name: str) -> bool:
        passed = [*self._reach.given_to(function, name, self._method)]
        return any(_has(value, self._names_of_own(caller)) for caller, value in passed)


def _writes(function: Function, node: ast.AST) -> Iterator[tuple[str, ast.AST | None, ast.AST]]:
    """Yield the places that a statement or a call changes, with the key and the value."""
    held: list[ast.expr] = []
    value: ast.AST = node
    match node:
        case ast.Assign(targets=targets, value=value):
            held = targets
        case ast.AugAssign(target=target, value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            held = [target]
        case ast.Call(func=ast.Attribute(value=owner, attr="setdefault"), args=[key, value, *_]):
            held = [ast.Subscript(value=owner, slice=key, ctx=ast.Store())]
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Attribute(value=owner, attr="setdefault"), args=[key, *_]), attr=name),
            args=[*_, value],
        ) if name in _ADDING:
            held = [ast.Subscript(value=owner, slice=key, ctx=ast.Store())]
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[*_, value]) if name in _ADDING:
            held = [owner]
    for one in held:
        whole, part = (one.value, one.slice) if isinstance(one, ast.Subscript) else (one, None)
        if place := _place_of(function, whole):
            yield place, part, value


def _place_of(function: Function, node: ast.AST) -> str:
    """Return what outlives the call: an attribute of self or of a class, or a name from outside of the function; empty for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        is_class = node.value.id[:1].isupper() and node.value.id not in function.local_names
        return ast.unparse(node) if is_class or function.is_self(node.value) else ""
    outer = {name for one in function.nodes if isinstance(one, ast.Global | ast.Nonlocal) for name in one.names}
    is_outer = isinstance(node, ast.Name) and (node.id in outer or node.id not in function.local_names)
    return node.id if is_outer and isinstance(node, ast.Name) else ""


def _closed(function: Function, is_it: Callable[[ast.AST], bool]) -> set[str]:
    """Return the local names that are given what a condition holds for, or what depends on such a name."""
    names: set[str] = set()
    given = [pair for node in function.nodes for pair in _given(node)]
    while True:
        more = {
            name
            for targets, value in given
            if any(is_it(one) or _is_name(one, names) for one in ast.walk(value))
            for name in targets
            if name not in names
        }
        if not more:
            return names
        names |= more


def _given(node: ast.AST) -> Iterator[tuple[list[str], ast.AST]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            pass
        case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            targets = [target]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            targets = [target]
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            targets = [target]
        case ast.comprehension(target=target, iter=value):
            targets = [target]
        case _:
            return
    names = [one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    yield [one.id for one in names if isinstance(one.ctx, ast.Store)], value


def _is_name(node: ast.AST, names: Collection[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _has(node: ast.AST, names: Collection[str]) -> bool:
    return any(_is_name(one, names) for one in ast.walk(node))
