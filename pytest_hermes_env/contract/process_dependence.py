"""What in a reward may differ between two processes: clocks, hashes, the order of sets, random numbers that were drawn earlier.

It decides whether a second process is worth its time, and nothing else: sets and clocks are harmless in most rewards.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_hermes_env.source import ClassSource, Function, last_name, reach_of

_CLOCKS = frozenset({"time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.strftime", "time.ctime"})
_DATES = frozenset({"now", "utcnow", "today"})
_SETS = (ast.Set, ast.SetComp)
_ORDERED = frozenset(
    {"list", "tuple", "iter", "next", "enumerate", "join", "zip", "map", "filter", "reduce", "max", "min", "pop"}
)
"""What a set is handed to where its order may matter."""
_RANDOM = frozenset({"random", "secrets", "uuid", "urandom", "default_rng", "Random", "uuid4", "token_hex", "time", "datetime"})

Place = tuple[Function, ast.AST, str]


def process_dependent(source: ClassSource) -> Iterator[Place]:
    """Yield the places in what compute_reward runs that may give something else in another process, and what they depend on."""
    for function in reach_of(source).functions("compute_reward"):
        for call in reach_of(source).calls_in(function):
            if call.dotted in _CLOCKS or (call.name in _DATES and "date" in ast.unparse(call.node.func)):
                yield function, call.node, "the clock"
            elif call.name == "hash" and isinstance(call.node.func, ast.Name):
                yield function, call.node, "a hash, which PYTHONHASHSEED changes"
        for node in function.own_nodes():
            if _uses_order(function, node):
                yield function, node, "the order of a set, which PYTHONHASHSEED changes"
            elif what := _drawn_earlier(source, function, node):
                yield function, node, what


def _uses_order(function: Function, node: ast.AST) -> bool:
    """Whether ``node`` goes through a set, or hands one to something that does."""
    if isinstance(node, ast.For | ast.comprehension):
        return _is_set(function, node.iter)
    if not isinstance(node, ast.Call) or last_name(node.func) not in _ORDERED:
        return False
    receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return any(_is_set(function, part) for part in (*receiver, *node.args))


def _is_set(function: Function, node: ast.AST, depth: int = 0) -> bool:
    if isinstance(node, _SETS):
        return True
    if isinstance(node, ast.Call):
        return last_name(node.func) in {"set", "frozenset"} or (
            last_name(node.func) == "iter" and _is_set(function, node.args[0])
        )
    if isinstance(node, ast.BinOp):
        return _is_set(function, node.left) or _is_set(function, node.right)
    if not isinstance(node, ast.Name) or depth:
        return False
    values = [
        item.value
        for item in function.own_nodes()
        if isinstance(item, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in item.targets)
    ]
    values += [item.node for item in function.module.names.get(node.id, ()) if not item.module]  # type: ignore[misc]
    return any(_is_set(function, value, depth + 1) for value in values)


def _drawn_earlier(source: ClassSource, function: Function, node: ast.AST) -> str:
    """Return what was drawn at random where ``node`` is an attribute of self or a name of the module that holds it."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in function.positional:
        bound = [item.node for item in function.module.names.get(node.id, ()) if not item.module]
        return f"{node.id}, which is drawn when the module is imported" if any(map(_is_random, bound)) else ""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in function.positional[:1]:
        for name in ("__init__", "setup"):
            method = source.methods.get(name)
            if method is not None and any(_sets(item, node.attr) and _is_random(item) for item in method.own_nodes()):
                return f"self.{node.attr}, which {name} draws"
    return ""


def _sets(node: ast.AST, attribute: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(part, ast.Attribute) and part.attr == attribute for target in targets for part in ast.walk(target))


def _is_random(node: ast.AST) -> bool:
    """Whether an expression calls a source of random numbers, or a clock."""
    return any(
        isinstance(part, ast.Call) and not isinstance(part.func, ast.Call) and _RANDOM & set(ast.unparse(part.func).split("."))
        for part in ast.walk(node)
    )
