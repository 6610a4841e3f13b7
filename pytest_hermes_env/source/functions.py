"""One function or method as it is written: its parameters, its decorators, and what encloses each of its nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pytest_hermes_env.source.modules import Module
from pytest_hermes_env.source.syntax import (
    SCOPES,
    FunctionNode,
    defaults_of,
    is_annotated_as,
    last_name,
    parameters,
    positional_parameters,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Function:
    """A function of a readable file; ``owner`` is the class statement around a method."""

    node: FunctionNode
    module: Module
    owner: ast.ClassDef | None = None

    @property
    def name(self) -> str:
        """The name in the def line."""
        return self.node.name

    @property
    def path(self) -> str:
        """The path of the file, as it is displayed."""
        return self.module.path

    @cached_property
    def decorators(self) -> frozenset[str]:
        """The last parts of the decorators' names."""
        return frozenset(filter(None, (last_name(node) for node in self.node.decorator_list)))

    @property
    def is_async(self) -> bool:
        """Whether the def is an async def."""
        return isinstance(self.node, ast.AsyncFunctionDef)

    @property
    def is_static(self) -> bool:
        """Whether calls pass no self: a staticmethod, or a function outside a class."""
        return self.owner is None or "staticmethod" in self.decorators

    @property
    def is_abstract(self) -> bool:
        """Whether subclasses must define it."""
        return any(name.startswith("abstract") for name in self.decorators)

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """Names of the parameters that can be passed by position, self included."""
        return tuple(item.arg for item in positional_parameters(self.node.args))

    @property
    def positional_without_self(self) -> tuple[str, ...]:
        """Names of the parameters that a caller of the bound method passes by position."""
        return self.positional[0 if self.is_static else 1 :]

    @cached_property
    def defaults(self) -> Mapping[str, ast.expr]:
        """Default expressions by parameter name."""
        return defaults_of(self.node.args)

    def annotated_as(self, name: str) -> set[str]:
        """Return the names of the parameters that are annotated as ``name``, a class of the layer, perhaps quoted or optional."""
        arguments = [*positional_parameters(self.node.args), *self.node.args.kwonlyargs]
        return {item.arg for item in arguments if is_annotated_as(name, item.annotation)}

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """The parent of each node of the function."""
        return {child: node for node in ast.walk(self.node) for child in ast.iter_child_nodes(node)}

    def ancestors(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield (child, parent) from ``node`` outwards, up to the def."""
        parents = self.parents
        while node in parents:
            yield node, parents[node]
            node = parents[node]

    def scope_of(self, node: ast.AST) -> ast.AST:
        """Return the innermost def or lambda around ``node``."""
        return next((parent for _, parent in self.ancestors(node) if isinstance(parent, SCOPES)), self.node)

    def own_nodes(self) -> Iterator[ast.AST]:
        """Yield the nodes of the body, without those of nested functions, lambdas and classes."""
        pending: list[ast.AST] = [*reversed(self.node.body)]
        while pending:
            node = pending.pop()
            yield node
            if not isinstance(node, (*SCOPES, ast.ClassDef)):
                pending += reversed(list(ast.iter_child_nodes(node)))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The nodes of the body, nested functions included, without nested classes: their self is another one."""
        found: list[ast.AST] = []
        pending: list[ast.AST] = [*reversed(self.node.body)]
        while pending:
            node = pending.pop()
            found.append(node)
            if not isinstance(node, ast.ClassDef) and not (isinstance(node, SCOPES) and self._hides_self(node)):
                pending += reversed(list(ast.iter_child_nodes(node)))
        return tuple(found)

    def _hides_self(self, node: ast.AST) -> bool:
        return not self.is_static and bool(set(self.positional[:1]) & set(parameters(node)))

    def is_self(self, node: ast.AST) -> bool:
        """Tell whether an expression is the environment, or its class in a classmethod."""
        return isinstance(node, ast.Name) and not self.is_static and self.positional[:1] == (node.id,)

    @cached_property
    def local_names(self) -> frozenset[str]:
        """The names that the function binds itself: parameters, assigned names, imports, nested functions."""
        found = set(self.positional) | {item.arg for item in self.node.args.kwonlyargs}
        for node in self.nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.alias):
                found.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
        return frozenset(found)

    def values_of(self, name: str) -> list[ast.expr | None]:
        """Return the values that the function, or one inside it, gives a local name; None for one that is unpacked or iterated."""
        return list(assigned_values(self, name, iter(self.nodes)))


def function_of(node: FunctionNode, module: Module, owner: ast.ClassDef | None = None) -> Function:
    """Return the one Function of a def statement."""
    return module.once(Function, node, lambda: Function(node=node, module=module, owner=owner))


def assigned_values(function: Function, name: str, nodes: Iterator[ast.AST]) -> Iterator[ast.expr | None]:
    """Yield the values that ``nodes`` of a function assign to a local name; None for one that is unpacked or iterated."""
    for node in nodes:
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            around = function.parents.get(node)
            yield around.value if isinstance(around, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) else None
