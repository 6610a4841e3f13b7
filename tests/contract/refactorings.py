"""Refactorings that keep what a program does: the same environment in other clothes."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
Trees = dict[str, ast.Module]
"""The files of an environment's package, by name without ``.py``; a refactoring changes them in place and may add one."""
Refactoring = Callable[[Trees], None]

PLAIN = """
def passed(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)
    return inner
"""
AWAITED = (
    PLAIN.replace("passed", "awaited")
    .replace("def inner", "async def inner")
    .replace("return function", "return await function")
)


def rename_attributes(trees: Trees) -> None:
    """Rename the attributes that methods set on self."""
    every = [node for tree in trees.values() for node in ast.walk(tree)]
    words = {node.value for node in every if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    words |= {node.arg for node in every if isinstance(node, ast.keyword) and node.arg}
    words |= {node.name for node in every if isinstance(node, Function | ast.ClassDef)}
    attributes = [node for node in every if isinstance(node, ast.Attribute)]
    own = {node.attr for node in attributes if isinstance(node.ctx, ast.Store) and _is_of_self(node)} - words
    own -= {node.attr for node in attributes if not _is_of_self(node)}
    for node in attributes:
        if node.attr in own:
            node.attr = f"kept_{node.attr}"


def extract_methods(trees: Trees) -> None:
    """Move the body of each method into a method that it calls."""
    for owner, method in list(_methods_of(trees)):
        if _is_generator(method) or method.name == "__init__":
            continue
        inner = copy.copy(method)
        inner.name = f"do_{method.name.strip('_')}"
        inner.args = copy.deepcopy(method.args)
        call: ast.expr = ast.parse(f"self.{inner.name}({_passed_on(method)})", mode="eval").body
        call = ast.Await(value=call) if isinstance(method, ast.AsyncFunctionDef) else call
        method.body = [ast.Return(value=call)]
        owner.body.insert(owner.body.index(method) + 1, inner)


def decorate_methods(trees: Trees) -> None:
    """Put a decorator that only passes on around each method."""
    for _, method in list(_methods_of(trees)):
        if not _is_generator(method) and not method.name.startswith("__"):
            word = "awaited" if isinstance(method, ast.AsyncFunctionDef) else "passed"
            method.decorator_list.append(ast.Name(word, ast.Load()))
    for tree in trees.values():
        for text in (AWAITED, PLAIN, "import functools"):
            _add_import(tree, text)


def move_into_mixin(trees: Trees) -> None:
    """Move the methods of each environment into a mixin in front of it."""
    for tree in trees.values():
        for owner in _environments(tree):
            tree.body.insert(tree.body.index(owner), _mixin_of(owner))


def move_to_module(trees: Trees) -> None:
    """Move the methods and all that they use into another module, which is imported relatively."""
    for name, tree in list(trees.items()):
        owners = _environments(tree)
        if len(owners) != 1:
            continue
        (owner,) = owners
        guard = [node for node in tree.body if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)]
        kept = [node for node in tree.body if node is not owner and node not in guard]
        used = {node.id for node in ast.walk(owner) if isinstance(node, ast.Name)} - {"annotations"}
        trees[f"{name}_parts"] = ast.Module(body=[*kept, _mixin_of(owner)], type_ignores=[])
        names = sorted({item for node in kept for item in _bound(node)} & used | {f"{owner.name}Methods"})
        imports = _statement(f"from .{name}_parts import {', '.join(names)}")
        tree.body = [_statement("from __future__ import annotations"), imports, owner, *guard]


def gather_buffers(trees: Trees) -> None:
    """Keep the lists and dicts that setup empties in a dataclass on self."""
    every = [node for tree in trees.values() for node in ast.walk(tree)]
    words = {node.value for node in every if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for tree in trees.values():
        for owner in _environments(tree):
            setup = next((node for node in owner.body if isinstance(node, Function) and node.name == "setup"), None)
            names = {name for node in setup.body if (name := _emptied(node))} - words if setup else set()
            if setup is None or not names:
                continue
            for node in every:
                if isinstance(node, ast.Attribute) and _is_of_self(node) and node.attr in names:
                    node.value = ast.parse("self.kept", mode="eval").body
            fields = "; ".join(f"{name}: object = None" for name in sorted(names))
            tree.body.insert(tree.body.index(owner), _statement(f"@dataclasses.dataclass\nclass Kept:\n    {fields}"))
            _add_import(tree, "import dataclasses")
            setup.body.insert(int(ast.get_docstring(setup) is not None), _statement("self.kept = Kept()"))


def look_methods_up(trees: Trees) -> None:
    """Look methods of self up by their names where they are called."""
    for node in [node for tree in trees.values() for node in ast.walk(tree)]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_of_self(node.func):
            node.func = ast.parse(f"getattr(self, {node.func.attr!r})", mode="eval").body


def await_tasks(trees: Trees) -> None:
    """Make a task of each awaited call of a method of self, and await that."""
    for tree in trees.values():
        for node in ast.walk(tree):
            match node:
                case ast.Await(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"))) as call):
                    task = ast.parse("asyncio.ensure_future", mode="eval").body
                    node.value = ast.Call(func=task, args=[call], keywords=[])
        _add_import(tree, "import asyncio")


REFACTORINGS: tuple[Refactoring, ...] = (
    rename_attributes,
    extract_methods,
    decorate_methods,
    move_into_mixin,
    move_to_module,
    gather_buffers,
    look_methods_up,
    await_tasks,
)


def refactor(package: Path, refactoring: Refactoring) -> bool:
    """Rewrite the files of a package in place; return whether that changed anything."""
    files = {path.stem: path for path in sorted(package.glob("*.py")) if path.stem != "__init__"}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in files.items()}
    before = {name: ast.unparse(tree) for name, tree in trees.items()}
    refactoring(trees)
    after = {name: ast.unparse(ast.fix_missing_locations(tree)) for name, tree in trees.items()}
    for name, text in after.items():
        (package / f"{name}.py").write_text(text + "\n", encoding="utf-8")
    return after != before


def _is_of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _environments(tree: ast.Module) -> list[ast.ClassDef]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [node for node in classes if any(isinstance(item, ast.AsyncFunctionDef) for item in node.body)]


def _methods_of(trees: Trees) -> Iterator[tuple[ast.ClassDef, Function]]:
    """Yield the undecorated methods that take self, and their classes."""
    owners = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for owner in owners:
        for method in owner.body:
            if (
                isinstance(method, Function)
                and not method.decorator_list
                and [item.arg for item in method.args.args][:1] == ["self"]
            ):
                yield owner, method


def _is_generator(function: Function) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))


def _passed_on(function: Function) -> str:
    """Return the arguments of a call that passes on every parameter but the first."""
    arguments = function.args
    given = [item.arg for item in arguments.args[1:]]
    given += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    given += [f"{item.arg}={item.arg}" for item in arguments.kwonlyargs]
    given += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return ", ".join(given)


def _mixin_of(owner: ast.ClassDef) -> ast.ClassDef:
    """Move the plain methods of a class into a new one, which becomes its first base."""
    moved = [item for item in owner.body if isinstance(item, Function) and item.name != "__init__" and not item.decorator_list]
    owner.body = [item for item in owner.body if item not in moved] or [ast.Pass()]
    mixin = ast.ClassDef(name=f"{owner.name}Methods", bases=[], keywords=[], body=[*moved] or [ast.Pass()], decorator_list=[])
    owner.bases.insert(0, ast.Name(mixin.name, ast.Load()))
    return mixin


def _emptied(node: ast.stmt) -> str:
    """Return the attribute of self that a statement makes an empty list or dict; empty for other statements."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.List | ast.Dict):
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if ast.unparse(node.value) in {"[]", "{}"} and isinstance(target, ast.Attribute) and _is_of_self(target):
            return target.attr
    return ""


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module binds."""
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


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _add_import(tree: ast.Module, text: str) -> None:
    """Add an import behind the docstring and the imports from __future__."""
    heads = [
        index
        for index, node in enumerate(tree.body)
        if (index == 0 and isinstance(node, ast.Expr)) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    ]
    tree.body.insert(len(heads), _statement(text))
