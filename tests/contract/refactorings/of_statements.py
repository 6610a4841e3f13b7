"""The same program with other statements."""

from __future__ import annotations

import ast
from collections.abc import Callable

from .trees import Trees, add_import, blocks_of, functions_of, own_nodes, statement


def rewrite(trees: Trees, change: Callable[[ast.stmt], list[ast.stmt] | None]) -> None:
    """Replace each statement inside of functions for which ``change`` gives others."""
    for block in list(blocks_of(trees)):
        for node in list(block):
            if (new := change(node)) is not None:
                at = block.index(node)
                block[at : at + 1] = new


def try_finally(trees: Trees) -> None:
    """Call __enter__ and __exit__ in place of ``with`` of one manager."""
    counter = iter(range(1000))

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(node, ast.With | ast.AsyncWith) or len(node.items) != 1:
            return None
        name, item = f"manager_{next(counter)}", node.items[0]
        letter, wait = ("a", "await ") if isinstance(node, ast.AsyncWith) else ("", "")
        enter = f"{wait}{name}.__{letter}enter__()"
        target = f"{ast.unparse(item.optional_vars)} = " if item.optional_vars else ""
        guarded = statement(
            f"try:\n    pass\nexcept BaseException:\n    if not {wait}{name}.__{letter}exit__(*sys.exc_info()):\n        raise\n"
            f"else:\n    {wait}{name}.__{letter}exit__(None, None, None)"
        )
        if any(isinstance(inner, ast.Return | ast.Break | ast.Continue) for inner in own_nodes(node)):
            if "suppress" in ast.unparse(item.context_expr):
                return None  # a finally cannot swallow the exception
            guarded = statement(f"try:\n    pass\nfinally:\n    {wait}{name}.__{letter}exit__(*sys.exc_info())")
        assert isinstance(guarded, ast.Try)
        guarded.body = node.body
        return [statement(f"{name} = {ast.unparse(item.context_expr)}"), statement(f"{target}{enter}"), guarded]

    rewrite(trees, change)
    for tree in trees.values():
        add_import(tree, "import sys")


def exit_stack(trees: Trees) -> None:
    """Enter each manager in an exit stack, and call there what a ``finally`` calls."""

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        match node:
            case ast.With() | ast.AsyncWith():
                is_async = isinstance(node, ast.AsyncWith)
                stack, enter = (
                    ("AsyncExitStack", "await stack.enter_async_context") if is_async else ("ExitStack", "stack.enter_context")
                )
                entered = [
                    statement(
                        f"{f'{ast.unparse(item.optional_vars)} = ' if item.optional_vars else ''}{enter}({ast.unparse(item.context_expr)})"
                    )
                    for item in node.items
                ]
                return [
                    _with(f"{'async ' if is_async else ''}with contextlib.{stack}() as stack: pass", [*entered, *node.body])
                ]
            case ast.Try(finalbody=[ast.Expr(value=ast.Call(func=func, args=args, keywords=words))]):
                if any(isinstance(part, ast.Await) for part in ast.walk(node.finalbody[0])):
                    return None
                callback = ast.Expr(
                    value=ast.Call(func=ast.parse("stack.callback", mode="eval").body, args=[func, *args], keywords=words)
                )
                node.finalbody = []
                inner = [node] if node.handlers else node.body
                return [_with("with contextlib.ExitStack() as stack: pass", [callback, *inner])]
        return None

    rewrite(trees, change)
    for tree in trees.values():
        add_import(tree, "import contextlib")


def _with(text: str, body: list[ast.stmt]) -> ast.stmt:
    node = ast.parse(text if not text.startswith("async") else f"async def f():\n    {text}").body[0]
    if isinstance(node, ast.AsyncFunctionDef):
        node = node.body[0]
    assert isinstance(node, ast.With | ast.AsyncWith)
    node.body = body
    return node


def loops_as_comprehensions(trees: Trees) -> None:
    """Write a loop that only appends as a comprehension."""

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        match node:
            case ast.For(
                target=target,
                iter=source,
                body=[ast.Expr(value=ast.Call(func=ast.Attribute(value=found, attr="append"), args=[element]))],
                orelse=[],
            ):
                loop = f"for {ast.unparse(target)} in {ast.unparse(source)}"
                changing = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
                if any(isinstance(part, ast.Name) and part.id in changing for part in ast.walk(found)):
                    return [statement(f"[{ast.unparse(found)}.append({ast.unparse(element)}) {loop}]")]
                return [statement(f"{ast.unparse(found)}.extend([{ast.unparse(element)} {loop}])")]
        return None

    rewrite(trees, change)


def comprehensions_as_loops(trees: Trees) -> None:
    """Write an assigned list comprehension as a loop."""

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp(elt=element, generators=[part])) if (
                not part.is_async
            ):
                names = {item.id for item in ast.walk(part) if isinstance(item, ast.Name)}
                if name in names:
                    return None
                loop = statement(f"for {ast.unparse(part.target)} in {ast.unparse(part.iter)}: pass")
                assert isinstance(loop, ast.For)
                body: list[ast.stmt] = [statement(f"{name}.append({ast.unparse(element)})")]
                for test in part.ifs:
                    body = [ast.If(test=test, body=body, orelse=[])]
                loop.body = body
                return [statement(f"{name} = []"), loop]
        return None

    rewrite(trees, change)


def if_as_match(trees: Trees) -> None:
    """Write ``if`` as ``match``."""

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(node, ast.If):
            return None
        cases = [ast.match_case(pattern=ast.MatchSingleton(value=True), body=node.body)]
        cases.append(ast.match_case(pattern=ast.MatchAs(), body=node.orelse or [ast.Pass()]))
        test = ast.Call(func=ast.Name("bool", ast.Load()), args=[node.test], keywords=[])
        return [ast.Match(subject=test, cases=cases)]

    rewrite(trees, change)


def invert_conditions(trees: Trees) -> None:
    """Swap the branches of each ``if``."""

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(node, ast.If):
            return None
        return [ast.If(test=ast.UnaryOp(ast.Not(), node.test), body=node.orelse or [ast.Pass()], orelse=node.body)]

    rewrite(trees, change)


def return_early(trees: Trees) -> None:
    """Take the else branch out of an ``if`` that returns or raises, and what follows an ``if`` into its else branch."""

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        if isinstance(node, ast.If) and node.orelse and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue):
            rest, node.orelse = node.orelse, []
            return [node, *rest]
        return None

    rewrite(trees, change)


def return_late(trees: Trees) -> None:
    """Move what follows an ``if`` that returns or raises into an else branch."""
    for block in list(blocks_of(trees)):
        for at, node in reversed(list(enumerate(block))):
            if (
                isinstance(node, ast.If)
                and not node.orelse
                and isinstance(node.body[-1], ast.Return | ast.Raise)
                and block[at + 1 :]
            ):
                node.orelse = block[at + 1 :]
                del block[at + 1 :]


def walrus(trees: Trees) -> None:
    """Write assignments to local names as expressions."""
    declared = {
        name
        for function in functions_of(trees)
        for node in own_nodes(function)
        if isinstance(node, ast.Global)
        for name in node.names
    }

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in declared:
                return [ast.Expr(value=ast.NamedExpr(target=ast.Name(name, ast.Store()), value=value))]
        return None

    rewrite(trees, change)


def return_through_name(trees: Trees) -> None:
    """Give what is returned a name first."""

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Name | ast.Constant):
            return [ast.Assign(targets=[ast.Name("outcome_", ast.Store())], value=node.value), statement("return outcome_")]
        return None

    rewrite(trees, change)
    for tree in trees.values():
        ast.fix_missing_locations(tree)


def group_of_errors(trees: Trees) -> None:
    """Write ``except`` as ``except*`` where the block neither returns nor leaves a loop."""

    def change(node: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(node, ast.Try) or not node.handlers or any(handler.type is None for handler in node.handlers):
            return None
        leaves = (ast.Return, ast.Break, ast.Continue)
        if any(isinstance(part, leaves) for handler in node.handlers for part in ast.walk(handler)):
            return None
        if any(handler.name for handler in node.handlers):
            return None
        return [ast.TryStar(body=node.body, handlers=node.handlers, orelse=node.orelse, finalbody=node.finalbody)]

    rewrite(trees, change)
