"""The same program with other ways to call."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .trees import Trees, add_import, expression, functions_of, uses_super


def rewrite_calls(trees: Trees, change: Callable[[ast.Call], ast.expr]) -> None:
    """Replace the calls inside of functions, except of super and of what only the compiler understands."""
    for function in list(functions_of(trees)):
        function.body = [_Calls(change).visit(node) for node in function.body]


class _Calls(ast.NodeTransformer):
    def __init__(self, change: Callable[[ast.Call], ast.expr]) -> None:
        self._change = change

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Replace a call, after those inside of it."""
        self.generic_visit(node)
        return node if uses_super(node.func) else self._change(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """Leave functions inside of functions to themselves."""
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        """Leave functions inside of functions to themselves."""
        return node


def unpack_keywords(trees: Trees) -> None:
    """Pass keyword arguments as an unpacked dict."""

    def change(node: ast.Call) -> ast.expr:
        named = [word for word in node.keywords if word.arg]
        if not named or len(named) < len(node.keywords):
            return node
        keys: list[ast.expr | None] = [ast.Constant(word.arg) for word in named]
        values = ast.Dict(keys=keys, values=[word.value for word in named])
        return ast.Call(func=node.func, args=node.args, keywords=[ast.keyword(arg=None, value=values)])

    rewrite_calls(trees, change)


def through_partial(trees: Trees) -> None:
    """Bind the keyword arguments of a call with functools.partial first."""

    def change(node: ast.Call) -> ast.expr:
        if not node.keywords:
            return node
        bound = ast.Call(func=expression("functools.partial"), args=[node.func], keywords=node.keywords)
        return ast.Call(func=bound, args=node.args, keywords=[])

    rewrite_calls(trees, change)
    for tree in trees.values():
        add_import(tree, "import functools")


def through_alias(trees: Trees) -> None:
    """Give a method of self a name before it is called."""

    def change(node: ast.Call) -> ast.expr:
        if not (
            isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
        ):
            return node
        alias = ast.NamedExpr(target=ast.Name(f"call_{node.func.attr}", ast.Store()), value=node.func)
        return ast.Call(func=alias, args=node.args, keywords=node.keywords)

    _outside_comprehensions(trees, change)


def through_lambda(trees: Trees) -> None:
    """Call methods of self through a lambda."""

    def change(node: ast.Call) -> ast.expr:
        if not (
            isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
        ):
            return node
        passing = expression(f"lambda *args, **kwargs: {ast.unparse(node.func)}(*args, **kwargs)")
        return ast.Call(func=passing, args=node.args, keywords=node.keywords)

    rewrite_calls(trees, change)


def through_getattr(trees: Trees) -> None:
    """Look methods of self up by their names."""

    def change(node: ast.Call) -> ast.expr:
        if not (
            isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
        ):
            return node
        return ast.Call(func=expression(f"getattr(self, {node.func.attr!r})"), args=node.args, keywords=node.keywords)

    rewrite_calls(trees, change)


def await_a_task(trees: Trees) -> None:
    """Make a task of each awaited call of a method of self, and await that."""
    for function in list(functions_of(trees)):
        for node in ast.walk(function):
            match node:
                case ast.Await(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"))) as call):
                    node.value = ast.Call(func=expression("asyncio.ensure_future"), args=[call], keywords=[])
    for tree in trees.values():
        add_import(tree, "import asyncio")


def _outside_comprehensions(trees: Trees, change: Callable[[ast.Call], ast.expr]) -> None:
    """Replace calls where an assignment expression is allowed and stays in the function."""

    def unless_inner(node: ast.Call) -> ast.expr:
        return change(node) if id(node) not in inner else node

    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
    comprehensions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, kinds)]
    inner = {id(node) for whole in comprehensions for node in ast.walk(whole)}
    rewrite_calls(trees, unless_inner)
