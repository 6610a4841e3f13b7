"""One function or method as it is written: its parameters, its decorators, and what encloses each of its nodes."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_hermes_env.source.layer_names import LAYER_CONTEXT, LAYER_RESULT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_hermes_env.source.classes import ClassSource
    from pytest_hermes_env.source.modules import Module

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_CONTEXT_MANAGERS = frozenset({"contextmanager", "asynccontextmanager"})
_QUOTED = {
    name: re.compile(rf"\s*(?:Optional\[)?[\w.]*\b{name}\]?(\s*\|\s*None)?\s*") for name in (LAYER_RESULT, LAYER_CONTEXT)
}
_PROPERTIES = frozenset({"property", "cached_property"})


@dataclass(frozen=True, kw_only=True, eq=False)
class Function:
    """A function of a readable file; ``owner`` is the class whose body holds it, if one does."""

    node: FunctionNode
    module: Module
    owner: ClassSource | None = None

    @property
    def name(self) -> str:
        """The name in the def line."""
        return self.node.name

    @property
    def label(self) -> str:
        """``Class.method`` or ``function``, for messages."""
        return f"{self.owner.name}.{self.name}" if self.owner else self.name

    @property
    def path(self) -> str:
        """The file, as it is shown."""
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
    def is_classmethod(self) -> bool:
        """Whether the first parameter is the class."""
        return "classmethod" in self.decorators or self.name in {"__init_subclass__", "__class_getitem__"}

    @property
    def is_property(self) -> bool:
        """Whether reading the attribute calls it."""
        return bool(_PROPERTIES & self.decorators)

    @property
    def is_abstract(self) -> bool:
        """Whether it is only a demand on subclasses."""
        return any(name.startswith("abstract") for name in self.decorators)

    @property
    def is_context_manager(self) -> bool:
        """Whether what it yields is what a with statement binds."""
        return bool(_CONTEXT_MANAGERS & self.decorators)

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """Names of the parameters that can be given by position, self included."""
        arguments = self.node.args
        return tuple(item.arg for item in (*arguments.posonlyargs, *arguments.args))

    @cached_property
    def defaults(self) -> Mapping[str, ast.expr]:
        """Default expressions by parameter name."""
        arguments = self.node.args
        found = dict(zip(self.positional[::-1], arguments.defaults[::-1], strict=False))
        for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                found[item.arg] = default
        return found

    @cached_property
    def result_parameters(self) -> tuple[str, ...]:
        """Names of the parameters that are annotated as AgentResult."""
        arguments = self.node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        return tuple(item.arg for item in every if is_result_annotation(item.annotation))

    @cached_property
    def context_parameters(self) -> tuple[str, ...]:
        """Names of the parameters that are annotated as ToolContext."""
        arguments = self.node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        return tuple(item.arg for item in every if is_annotated_as(LAYER_CONTEXT, item.annotation))

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """The node around each node of the function."""
        found: dict[ast.AST, ast.AST] = {}
        pending: list[ast.AST] = [self.node]
        while pending:
            node = pending.pop()
            inner = children(node)
            for child in inner:
                found[child] = node
            pending += inner
        return found

    def ancestors(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield (child, parent) from ``node`` outwards, up to the def."""
        parents = self.parents
        while node in parents:
            yield node, parents[node]
            node = parents[node]

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """Return the statement that ``node`` stands in."""
        current = node
        while not isinstance(current, ast.stmt):
            current = self.parents[current]
        return current

    def scope_of(self, node: ast.AST) -> ast.AST:
        """Return the innermost def or lambda around ``node``."""
        for _, parent in self.ancestors(node):
            if isinstance(parent, _SCOPES):
                return parent
        return self.node

    def finally_of(self, node: ast.AST) -> ast.Try | None:
        """Return the try statement in whose ``finally`` block ``node`` stands, if it stands in one."""
        for child, parent in self.ancestors(node):
            if isinstance(parent, ast.Try) and isinstance(child, ast.stmt) and child in parent.finalbody:
                return parent
        return None

    def own_nodes(self) -> Iterator[ast.AST]:
        """Yield the nodes of the body, those of nested functions, lambdas and classes left out."""
        pending: list[ast.AST] = [*reversed(self.node.body)]
        while pending:
            node = pending.pop()
            yield node
            if not isinstance(node, (*_SCOPES, ast.ClassDef)):
                pending += reversed(children(node))


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below ``node``; quicker than `ast.iter_child_nodes`, and it leaves Load and Store out."""
    found: list[ast.AST] = []
    for name in node._fields:
        part = getattr(node, name, None)
        if part.__class__ is list:
            found += [item for item in part if isinstance(item, ast.AST)]
        elif isinstance(part, ast.AST) and not isinstance(part, ast.expr_context):
            found.append(part)
    return found


def function_of(node: FunctionNode, module: Module, owner: ClassSource | None = None) -> Function:
    """Return the one Function of a def statement."""
    if node not in module.functions:
        module.functions[node] = Function(node=node, module=module, owner=owner)
    return module.functions[node]


def last_name(node: ast.AST) -> str:
    """Return the last part of a dotted name, seen through calls and subscripts; empty for anything else."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_result_annotation(node: ast.AST | None) -> bool:
    """Whether an annotation says AgentResult, perhaps quoted, perhaps optional."""
    return is_annotated_as(LAYER_RESULT, node)


def is_annotated_as(name: str, node: ast.AST | None) -> bool:
    """Whether an annotation says ``name``, a class of the layer, perhaps quoted, perhaps optional."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _QUOTED[name].fullmatch(node.value) is not None
    if isinstance(node, ast.BinOp):
        return is_annotated_as(name, node.left) or is_annotated_as(name, node.right)
    if isinstance(node, ast.Subscript):
        return last_name(node.value) == "Optional" and is_annotated_as(name, node.slice)
    return isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) == name


def annotation_text(node: ast.expr) -> str:
    """Return an annotation as text, whether it is quoted or not."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    try:
        return ast.unparse(node)
    except RecursionError:
        return ""
