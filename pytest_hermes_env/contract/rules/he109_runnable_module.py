"""HE109 runnable-module
The environment's file starts it: `if __name__ == "__main__": MyEnv.cli()`.

What: A file with an environment, or the `__main__.py` next to it, has a block under `if __name__ == "__main__"` that
calls `cli()` of the environment, directly or in a function of the file. No file calls `cli()` outside such a block.

Why: `serve`, `process` and `evaluate` are started as `python my_env.py ...`. Without the block the command ends at once
with exit code 0 and no output, and a job script takes that for success. Outside the block the command runs whenever the
file is imported: in every test.

Fix: Add `if __name__ == "__main__": MyEnv.cli()` at the end of the file.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnv.cli`.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Rule, Severity, Verdict
from pytest_hermes_env.source import ClassSource, Function, Module, finding_at, flat_statements, resolve

_MOST = 20
"""How many functions are followed from the block, each once."""


def static(source: ClassSource) -> Verdict:
    """Look for the block and for what it calls."""
    module = source.module
    blocks = [item for item in flat_statements(module.tree.body) if isinstance(item, ast.If) and _is_guard(item)]
    effect = f"`python {os.path.basename(source.path)} serve` would do nothing"
    if not blocks and (wrong := _almost_a_guard(module)) is not None:
        message = f'__name__ is compared with {wrong.value!r}, not with "__main__", so cli() is never called: {effect}'
        return Verdict.failed([finding_at(source, wrong, message)])
    if outside := next(_outside(module, blocks), None):
        return Verdict.failed(
            [finding_at(source, outside, "cli() is called when the file is imported, not only when it is run")]
        )
    started = [target for block in blocks for target in _started(module, block.body, set())]
    if not started:
        started = list(_beside(module))
    if not started:
        what = (
            'the block under if __name__ == "__main__" does not call cli()' if blocks else 'no if __name__ == "__main__": block'
        )
        return Verdict.failed([finding_at(source, source.node, f"{what}: {effect}")])
    names = {target for target in started if isinstance(target, ClassSource)}
    if names and len(names) == len(started) and not any(item is source or source in item.readable for item in names):
        other = min(item.name for item in names)
        return Verdict.failed([finding_at(source, source.node, f"the file starts {other}, but nothing starts {source.name}")])
    return Verdict.passed("the file starts the environment")


def _is_guard(node: ast.If) -> bool:
    return any(
        isinstance(item, ast.Compare)
        and {"__name__", "__main__"} <= {getattr(part, "id", getattr(part, "value", None)) for part in _sides(item)}
        for item in ast.walk(node.test)
    )


def _almost_a_guard(module: Module) -> ast.Constant | None:
    """Return the text that __name__ is compared with where it is not "__main__"."""
    for statement in flat_statements(module.tree.body):
        test = statement.test if isinstance(statement, ast.If) else None
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
            sides = _sides(test)
            texts = [part for part in sides if isinstance(part, ast.Constant) and part.value not in {"__main__", None}]
            if texts and any(isinstance(part, ast.Name) and part.id == "__name__" for part in sides):
                return texts[0]
    return None


def _sides(node: ast.Compare) -> list[ast.expr]:
    found = [node.left, *node.comparators]
    return found + [part for item in found if isinstance(item, (ast.Tuple, ast.List, ast.Set)) for part in item.elts]


def _started(module: Module, body: list[ast.stmt], entered: set[Function]) -> Iterator[object]:
    """Yield what cli() is called on, or handed over of, in a block and in the functions of the tree that it calls."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and node.attr == "cli" and getattr(statement, "value", None) is not node:
                yield resolve(module, node.value)
            elif isinstance(node, ast.Call) and len(entered) < _MOST:
                target = resolve(module, node.func)
                if isinstance(target, Function) and target not in entered:
                    entered.add(target)
                    yield from _started(target.module, target.node.body, entered)


def _beside(module: Module) -> Iterator[object]:
    """Yield what the __main__.py of the same package starts."""
    entry = module.imported(".__main__")
    if entry is not None and entry is not module:
        yield from _started(entry, entry.tree.body, set())


def _outside(module: Module, blocks: list[ast.If]) -> Iterator[ast.AST]:
    """Yield calls of cli() at module level that no block guards."""
    if os.path.basename(module.file) == "__main__.py":
        return
    guarded = {id(node) for block in blocks for node in ast.walk(block)}
    for statement in flat_statements(module.tree.body):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and id(statement) not in guarded:
            func = statement.value.func
            if isinstance(func, ast.Attribute) and func.attr == "cli" and isinstance(resolve(module, func.value), ClassSource):
                yield statement


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, holds_for_base_env=True)
