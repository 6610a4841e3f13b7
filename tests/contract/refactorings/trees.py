"""What refactorings need to know about the files of an environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
Trees = dict[str, ast.Module]
"""The files of an environment's package, by name without ``.py``; a refactoring changes them in place and may add one."""

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def functions_of(trees: Trees) -> Iterator[Function]:
    """Yield every function and method."""
    for tree in trees.values():
        yield from (node for node in ast.walk(tree) if isinstance(node, Function))


def methods_of(trees: Trees) -> Iterator[tuple[ast.ClassDef, Function]]:
    """Yield the undecorated methods that take self."""
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    if isinstance(method, Function) and not method.decorator_list and names_of(method)[:1] == ["self"]:
                        yield node, method


def names_of(function: Function) -> list[str]:
    """Return the names of the parameters that are passed by position."""
    return [item.arg for item in (*function.args.posonlyargs, *function.args.args)]


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions and classes inside of it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, SCOPES):
            yield from own_nodes(child)


def is_generator(function: Function) -> bool:
    """Return whether calling the function runs nothing yet."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function))


def statement(text: str) -> ast.stmt:
    """Return one parsed statement."""
    return ast.parse(text).body[0]


def expression(text: str) -> ast.expr:
    """Return a parsed expression."""
    return ast.parse(text, mode="eval").body


def passed_on(function: Function) -> list[ast.expr | ast.keyword]:
    """Return the arguments of a call that passes on every parameter but the first."""
    arguments = function.args
    given: list[ast.expr | ast.keyword] = [expression(name) for name in names_of(function)[1:]]
    if arguments.vararg:
        given.append(ast.Starred(value=expression(arguments.vararg.arg), ctx=ast.Load()))
    given += [ast.keyword(arg=item.arg, value=expression(item.arg)) for item in arguments.kwonlyargs]
    if arguments.kwarg:
        given.append(ast.keyword(arg=None, value=expression(arguments.kwarg.arg)))
    return given


def call_of(func: ast.expr, given: list[ast.expr | ast.keyword], *, is_async: bool) -> ast.expr:
    """Return a call, awaited where it must be."""
    call = ast.Call(
        func=func,
        args=[item for item in given if isinstance(item, ast.expr)],
        keywords=[item for item in given if isinstance(item, ast.keyword)],
    )
    return ast.Await(value=call) if is_async else call


def blocks_of(trees: Trees) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements inside of functions."""
    for function in list(functions_of(trees)):
        for node in [function, *own_nodes(function)]:
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    yield block


def add_import(tree: ast.Module, text: str) -> None:
    """Add an import behind the docstring and the imports from __future__."""
    at = 0
    for index, node in enumerate(tree.body):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            at = index + 1
        else:
            break
    tree.body.insert(at, statement(text))


def uses_super(node: ast.AST) -> bool:
    """Return whether ``super()`` is called, which needs the method's own frame."""
    return any(isinstance(item, ast.Name) and item.id == "super" for item in ast.walk(node))
