"""Refactorings that keep what a program does: the same environment in other clothes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from . import of_calls, of_functions, of_names, of_statements
from .trees import Trees

TRANSFORMATIONS: tuple[Callable[[Trees], None], ...] = (
    of_names.rename_attributes,
    of_names.rename_locals,
    of_names.import_modules,
    of_names.import_as,
    of_functions.extract_method,
    of_functions.nest_function,
    of_functions.decorate,
    of_functions.mix_in,
    of_functions.move_to_module,
    of_functions.inline_attributes,
    of_functions.inline_method,
    of_functions.dataclass_of_buffers,
    of_statements.try_finally,
    of_statements.exit_stack,
    of_statements.loops_as_comprehensions,
    of_statements.comprehensions_as_loops,
    of_statements.if_as_match,
    of_statements.invert_conditions,
    of_statements.return_early,
    of_statements.return_late,
    of_statements.walrus,
    of_statements.return_through_name,
    of_statements.group_of_errors,
    of_calls.unpack_keywords,
    of_calls.through_partial,
    of_calls.through_alias,
    of_calls.through_lambda,
    of_calls.through_getattr,
    of_calls.await_a_task,
)


def refactor(package: Path, transformation: Callable[[Trees], None]) -> bool:
    """Rewrite the files of a package in place; return whether that changed anything."""
    files = {path.stem: path for path in sorted(package.glob("*.py")) if path.stem != "__init__"}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in files.items()}
    before = {name: ast.unparse(tree) for name, tree in trees.items()}
    transformation(trees)
    after = {name: ast.unparse(ast.fix_missing_locations(tree)) for name, tree in trees.items()}
    for name, text in after.items():
        (package / f"{name}.py").write_text(text + "\n", encoding="utf-8")
    return after != before
