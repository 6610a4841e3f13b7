"""The same program, cut into other functions and classes."""

from __future__ import annotations

import ast
import copy

from .trees import (
    Trees,
    add_import,
    call_of,
    expression,
    is_generator,
    methods_of,
    names_of,
    passed_on,
    statement,
)


def extract_method(trees: Trees) -> None:
    """Move the body of each method into a method that it calls."""
    for owner, method in list(methods_of(trees)):
        if is_generator(method) or method.name == "__init__":
            continue
        inner = copy.copy(method)
        inner.name = f"do_{method.name.strip('_')}"
        inner.args = copy.deepcopy(method.args)
        is_async = isinstance(method, ast.AsyncFunctionDef)
        method.body = [ast.Return(value=call_of(expression(f"self.{inner.name}"), passed_on(method), is_async=is_async))]
        owner.body.insert(owner.body.index(method) + 1, inner)


def nest_function(trees: Trees) -> None:
    """Move the body of each method into a function inside of it."""
    for _, method in list(methods_of(trees)):
        if is_generator(method) or method.name == "__init__":
            continue
        inner = copy.copy(method)
        inner.name = "inner"
        inner.args = copy.deepcopy(method.args)
        is_async = isinstance(method, ast.AsyncFunctionDef)
        given = [expression("self"), *passed_on(method)]
        method.body = [inner, ast.Return(value=call_of(expression("inner"), given, is_async=is_async))]


def decorate(trees: Trees) -> None:
    """Put a decorator that only passes on around each method."""
    plain = "def passed(function):\n    @functools.wraps(function)\n    def inner(*args, **kwargs):\n        return function(*args, **kwargs)\n    return inner"
    awaited = (
        "def awaited(function):\n    @functools.wraps(function)\n    async def inner(*args, **kwargs):\n"
        "        return await function(*args, **kwargs)\n    return inner"
    )
    for _, method in list(methods_of(trees)):
        if not is_generator(method) and not method.name.startswith("__"):
            word = "awaited" if isinstance(method, ast.AsyncFunctionDef) else "passed"
            method.decorator_list.append(expression(word))
    for tree in trees.values():
        for text in (awaited, plain, "import functools"):
            add_import(tree, text)


def mix_in(trees: Trees) -> None:
    """Move the methods of each environment into a mixin in front of it."""
    for tree in trees.values():
        for owner in [node for node in tree.body if isinstance(node, ast.ClassDef) and _is_environment(node)]:
            tree.body.insert(tree.body.index(owner), _mixin_of(owner))


def move_to_module(trees: Trees) -> None:
    """Move the methods and all that they use into another module, which is imported relatively."""
    for name, tree in list(trees.items()):
        owners = [node for node in tree.body if isinstance(node, ast.ClassDef) and _is_environment(node)]
        if len(owners) != 1:
            continue
        (owner,) = owners
        guard = [node for node in tree.body if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)]
        kept = [node for node in tree.body if node is not owner and node not in guard]
        used = {node.id for node in ast.walk(owner) if isinstance(node, ast.Name)} - {"annotations"}
        trees[f"{name}_parts"] = ast.Module(body=[*kept, _mixin_of(owner)], type_ignores=[])
        names = sorted({item for node in kept for item in _bound(node)} & used | {f"{owner.name}Methods"})
        imports = statement(f"from .{name}_parts import {', '.join(names)}")
        tree.body = [statement("from __future__ import annotations"), imports, owner, *guard]


def inline_attributes(trees: Trees) -> None:
    """Keep the server and the config of self in locals at the beginning of each method that reads them."""
    for _, method in list(methods_of(trees)):
        for name in ("config", "server"):
            found = [
                node for node in ast.walk(method) if ast.unparse(node) == f"self.{name}" and isinstance(node, ast.Attribute)
            ]
            if method.name != "__init__" and found and f"own_{name}" not in names_of(method):
                _Replace(f"self.{name}", f"own_{name}").visit(method)
                method.body.insert(_after_docstring(method), statement(f"own_{name} = self.{name}"))


def inline_method(trees: Trees) -> None:
    """Write the expression that a method of one line returns where it is called, and drop the method.

    Only where all calls are in its own file, whose names the expression uses, and no other class has such a method.
    """
    text = "\n".join(ast.unparse(tree) for tree in trees.values())
    for owner, method in list(methods_of(trees)):
        call = f"self.{method.name}()"
        body = method.body[int(ast.get_docstring(method) is not None) :]
        is_short = (
            len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None and names_of(method) == ["self"]
        )
        own = ast.unparse(next(tree for tree in trees.values() if owner in tree.body))
        is_called_so = text.count(f".{method.name}") == own.count(call) > 0 and f"'{method.name}'" not in text
        is_called_so = is_called_so and text.count(f"def {method.name}(") == 1
        if is_short and is_called_so and isinstance(method, ast.FunctionDef) and isinstance(body[0], ast.Return):
            owner.body.remove(method)
            for tree in trees.values():
                _ReplaceCall(call, body[0].value or ast.Constant(None)).visit(tree)


class _ReplaceCall(ast.NodeTransformer):
    def __init__(self, text: str, value: ast.expr) -> None:
        self._text, self._value = text, value

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Replace a call by a copy of an expression."""
        if ast.unparse(node) == self._text:
            return copy.deepcopy(self._value)
        self.generic_visit(node)
        return node


def dataclass_of_buffers(trees: Trees) -> None:
    """Keep the lists and dicts that setup empties in a dataclass on self."""
    every = [node for tree in trees.values() for node in ast.walk(tree)]
    words = {node.value for node in every if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for owner, method in list(methods_of(trees)):
        if method.name != "setup" or not _is_environment(owner):
            continue
        names = {name for node in method.body if (name := _emptied(node))} - words
        for node in every:
            is_of_self = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
            if is_of_self and isinstance(node, ast.Attribute) and node.attr in names:
                node.value = expression("self.kept")
        if names:
            tree = next(tree for tree in trees.values() if owner in tree.body)
            fields = "; ".join(f"{name}: object = None" for name in sorted(names))
            tree.body.insert(tree.body.index(owner), statement(f"@dataclasses.dataclass\nclass Kept:\n    {fields}"))
            add_import(tree, "import dataclasses")
            method.body.insert(_after_docstring(method), statement("self.kept = Kept()"))


def _emptied(node: ast.stmt) -> str:
    """Return the attribute of self that a statement makes an empty list or dict; empty for other statements."""
    match node:
        case (
            ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.List(elts=[]) | ast.Dict(keys=[])
            )
            | ast.AnnAssign(
                target=ast.Attribute(value=ast.Name(id="self"), attr=name), value=ast.List(elts=[]) | ast.Dict(keys=[])
            )
        ):
            if isinstance(node, ast.AnnAssign):
                node.simple = 0
            return name
    return ""


class _Replace(ast.NodeTransformer):
    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Replace an attribute by a name."""
        if isinstance(node.ctx, ast.Load) and ast.unparse(node) == self._text:
            return ast.Name(self._name, ast.Load())
        self.generic_visit(node)
        return node


def _after_docstring(method: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return int(ast.get_docstring(method) is not None)


def _is_environment(node: ast.ClassDef) -> bool:
    return any(isinstance(item, ast.AsyncFunctionDef) for item in node.body)


def _mixin_of(owner: ast.ClassDef) -> ast.ClassDef:
    """Move the plain methods of a class into a new one, which becomes its first base."""
    moved = [
        item for item in owner.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name != "__init__"
    ]
    moved = [item for item in moved if not item.decorator_list]
    owner.body = [item for item in owner.body if item not in moved] or [ast.Pass()]
    mixin = statement(f"class {owner.name}Methods: pass")
    assert isinstance(mixin, ast.ClassDef)
    mixin.body = list(moved) or [ast.Pass()]
    owner.bases.insert(0, ast.Name(mixin.name, ast.Load()))
    return mixin


def _bound(node: ast.stmt) -> list[str]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [(item.asname or item.name).split(".")[0] for item in names]
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.If() | ast.Try():
            return [name for item in ast.walk(node) if item is not node and isinstance(item, ast.stmt) for name in _bound(item)]
        case _:
            loops = [item.target for item in ast.walk(node) if isinstance(item, ast.comprehension)]
            inside = {item for target in loops for item in ast.walk(target)}
            names = [item for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)]
            return [item.id for item in names if item not in inside]
