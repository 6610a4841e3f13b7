"""The same program with other names."""

from __future__ import annotations

import ast

from .trees import SCOPES, Trees, add_import, functions_of, names_of, own_nodes


def rename_attributes(trees: Trees) -> None:
    """Rename the attributes that methods set on self."""
    every = [node for tree in trees.values() for node in ast.walk(tree)]
    words = {node.value for node in every if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    words |= {node.arg for node in every if isinstance(node, ast.keyword) and node.arg}
    words |= {node.name for node in every if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    attributes = [node for node in every if isinstance(node, ast.Attribute)]
    own = {
        node.attr
        for node in attributes
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"
    } - words
    own -= {node.attr for node in attributes if not (isinstance(node.value, ast.Name) and node.value.id == "self")}
    for node in attributes:
        if node.attr in own:
            node.attr = f"kept_{node.attr}"


def rename_locals(trees: Trees) -> None:
    """Rename the local names of functions without inner functions."""
    for function in functions_of(trees):
        nodes = list(own_nodes(function))
        if any(isinstance(node, (*SCOPES, ast.Global, ast.Nonlocal)) for node in nodes):
            continue
        stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        stored |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
        stored -= {item.arg for item in (*function.args.args, *function.args.kwonlyargs)} | set(names_of(function))
        stored -= {item.arg for item in (function.args.vararg, function.args.kwarg) if item}
        for node in nodes:
            if isinstance(node, ast.Name) and node.id in stored:
                node.id = f"the_{node.id}"
            elif (isinstance(node, ast.ExceptHandler) and node.name) or (
                isinstance(node, ast.MatchAs | ast.MatchStar) and node.name in stored
            ):
                node.name = f"the_{node.name}"


def import_modules(trees: Trees) -> None:
    """Import the layer's modules, and name what is in them with a dot."""
    for tree in trees.values():
        moved: dict[str, ast.expr] = {}
        modules = []
        for node in list(tree.body):
            if isinstance(node, ast.ImportFrom) and not node.level and str(node.module).startswith("environments."):
                alias = f"{str(node.module).rpartition('.')[2]}_module"
                modules.append((node.module, alias))
                for item in node.names:
                    moved[item.asname or item.name] = ast.Attribute(ast.Name(alias, ast.Load()), item.name, ast.Load())
                tree.body.remove(node)
        _Names(moved).visit(tree)
        for module, alias in modules:
            add_import(tree, f"import {module} as {alias}")


def import_as(trees: Trees) -> None:
    """Give what is imported from the layer other names."""
    for tree in trees.values():
        moved: dict[str, ast.expr] = {}
        for node in tree.body:
            if (
                isinstance(node, ast.ImportFrom)
                and not node.level
                and str(node.module).startswith(("environments.", "atroposlib."))
            ):
                for item in node.names:
                    moved[item.asname or item.name] = ast.Name(f"Imported{item.name}", ast.Load())
                    item.asname = f"Imported{item.name}"
        _Names(moved).visit(tree)


class _Names(ast.NodeTransformer):
    def __init__(self, moved: dict[str, ast.expr]) -> None:
        self._moved = moved

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a name that was moved."""
        return self._moved.get(node.id, node) if isinstance(node.ctx, ast.Load) else node
