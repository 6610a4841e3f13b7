"""Discovery: which classes of a file are environments, and why others are skipped."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pytest_hermes_env.source.classes import ClassKind, ClassSource, class_of, resolve_name
from pytest_hermes_env.source.layer_names import LAYER_RUNS, REQUIRED_METHODS
from pytest_hermes_env.source.modules import FileProblem, Module, SourceTree
from pytest_hermes_env.source.syntax import flat_statements, named_values

ABSTRACT_BASE = "an abstract base of other environments: they are judged with what they inherit from it"
"""Why a class is skipped that only others make whole."""

NOT_HERMES = (
    "not a Hermes environment (it leads to Atropos' BaseEnv without HermesAgentBaseEnv): not judged without --hermes-base-env"
)
"""Why a class of Atropos is skipped."""

MADE_AT_RUN_TIME = "made at run time by {}: not readable from the source, and not judged; name it to pytest --hermes-env"
"""Why a class is skipped that no class statement of the module defines."""

_LOCALS = "<locals>"

_MIN_NAMES = 2
"""How many names of an environment a class with unreadable bases must define to be judged; one must be distinctive."""

_DISTINCTIVE_NAMES = frozenset({"compute_reward", "env_config_cls"})
_NAMES = _DISTINCTIVE_NAMES.union(REQUIRED_METHODS, LAYER_RUNS, {"config_init", "name", "wandb_log"})


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A class that was found and is not judged."""

    path: str
    line: int
    name: str
    reason: str
    is_environment: bool = False
    """Whether it is an environment of another kind, so that reports must mention it."""
    is_unreadable: bool = False
    """Whether it is an environment that the source does not show, so that reports must mention and count it."""


@dataclass(frozen=True, kw_only=True)
class FileReading:
    """The environment classes of one file, and what was skipped."""

    path: str
    classes: tuple[ClassSource, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    problem: FileProblem | None = None


def read_classes(path: str, tree: SourceTree | None = None, *, with_base_env: bool = False) -> FileReading:
    """Return the environment classes of a file, with ``with_base_env`` also those of Atropos without the Hermes layer.

    Abstract bases are included: `without_abstract_bases` removes them.
    """
    module = (tree or SourceTree()).read(path)
    if isinstance(module, FileProblem):
        return FileReading(path=path, problem=module)
    classes: list[ClassSource] = []
    skipped: list[Skipped] = []
    for source in classes_in(module):
        reason, is_environment = _reason_to_skip(source, with_base_env=with_base_env)
        if reason:
            skipped.append(_skipped(source, reason, is_environment=is_environment))
        else:
            classes.append(source)
    return FileReading(path=path, classes=tuple(classes), skipped=(*skipped, *_made_at_run_time(module)))


def read_class(path: str | os.PathLike[str], name: str, tree: SourceTree | None = None) -> ClassSource | None:
    """Return a class by its name or qualified name, also one that is imported from another file; None if it cannot be read."""
    module = (tree or SourceTree()).read(os.fspath(path))
    if isinstance(module, FileProblem):
        return None
    found = next((source for source in classes_in(module) if source.name == name), None)
    found = found or next((class_of(node, module) for full, node in _written(module) if full == name), None)
    if found is None and isinstance(imported := resolve_name(module, name), ClassSource):
        return imported
    return found


def _written(module: Module) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield every class statement with its qualified name, in the order of the file, those inside functions included."""
    pending: list[tuple[str, ast.AST]] = [("", module.tree)]
    while pending:
        prefix, node = pending.pop()
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, node
            prefix += f"{node.name}."
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            prefix += f"{node.name}.{_LOCALS}."
        inner = [
            child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))
        ]
        pending += [(prefix, child) for child in reversed(inner)]


def without_abstract_bases(readings: Iterable[FileReading]) -> list[FileReading]:
    """Return the readings with abstract bases moved to the skipped classes."""
    found = list(readings)
    bases = {base for reading in found for source in reading.classes for base in source.readable[1:]}
    result = []
    for reading in found:
        helpers = [
            source
            for source in reading.classes
            if source.is_marked_abstract or (source in bases and source.missing and not source.unreadable)
        ]
        notes = tuple(_skipped(source, ABSTRACT_BASE) for source in helpers)
        kept = tuple(source for source in reading.classes if source not in helpers)
        result.append(replace(reading, classes=kept, skipped=reading.skipped + notes))
    return result


def _skipped(source: ClassSource, reason: str, *, is_environment: bool = False) -> Skipped:
    return Skipped(path=source.path, line=source.line, name=source.name, reason=reason, is_environment=is_environment)


def classes_in(module: Module) -> Iterator[ClassSource]:
    """Yield the classes at module level and inside other classes, including those under an if or a try."""
    yield from (class_of(node, module) for name, node in _written(module) if _LOCALS not in name)


def _made_at_run_time(module: Module) -> Iterator[Skipped]:
    """Yield the environments that a function returns, or a call of type() makes."""
    for full, node in _written(module):
        maker, _, name = full.rpartition(f".{_LOCALS}.")
        if maker and "." not in maker and class_of(node, module).class_kind is ClassKind.HERMES:
            function = next(item for item in flat_statements(module.tree.body) if getattr(item, "name", "") == maker)
            returned = (item.value for item in ast.walk(function) if isinstance(item, ast.Return))
            if any(isinstance(value, ast.Name) and value.id == name for value in returned):
                yield _unreadable(module, node, name, f"{maker}()")
    for statement in flat_statements(module.tree.body):
        for name, value in named_values(statement):
            match value:
                case ast.Call(func=ast.Name(id="type"), args=[_, ast.Tuple(elts=bases), _]):
                    shown = ast.ClassDef(name=name, bases=bases, keywords=[], body=[ast.Pass()], decorator_list=[])
                    if ClassSource(node=ast.copy_location(shown, value), module=module).class_kind is ClassKind.HERMES:
                        yield _unreadable(module, value, name, "type()")


def _unreadable(module: Module, node: ast.AST, name: str, maker: str) -> Skipped:
    line, _ = module.place(node)
    return Skipped(path=module.path, line=line, name=name, reason=MADE_AT_RUN_TIME.format(maker), is_unreadable=True)


def _reason_to_skip(source: ClassSource, *, with_base_env: bool) -> tuple[str, bool]:
    if source.is_layer_base:
        return "the base class of the layer itself", False
    if source.class_kind is ClassKind.HERMES or (with_base_env and source.class_kind is ClassKind.ATROPOS):
        return "", False
    if source.class_kind is ClassKind.ATROPOS:
        return NOT_HERMES, True
    if source.class_kind is ClassKind.UNKNOWN:
        given = _NAMES.intersection(source.own_methods.keys() | source.own_attributes.keys())
        unread = [item for item in source.external if not item.is_known]
        if unread and given & _DISTINCTIVE_NAMES and len(given) >= _MIN_NAMES:
            return "", False
    return "no environment", False
