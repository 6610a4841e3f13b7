"""What a contract judges: a class that a test has at hand, or one that a user named and nobody has imported yet."""

from __future__ import annotations

import ast
import difflib
import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pytest_hermes_env.errors import BadTarget, shorten
from pytest_hermes_env.layer import BASE, ancestors_package, parse_target
from pytest_hermes_env.missing_files import files_below, no_file
from pytest_hermes_env.play.class_record import written_names
from pytest_hermes_env.source import ClassSource, SourceTree, last_name, read_class, read_classes, without_abstract_bases
from pytest_hermes_env.source.configs import config_calls, names_taken


@dataclass(frozen=True, eq=False)
class Subject:
    """One class: ``target`` is how `find_class` finds it, ``env_class`` the class itself where a test has it."""

    target: str
    name: str
    module: str
    path: str
    env_class: type | None = None

    @functools.cached_property
    def source(self) -> ClassSource | None:
        """The class as its file says it; None where no file does."""
        names = written_names(self.env_class) if self.env_class is not None else (self.name,)
        return next(filter(None, (read_class(self.path, name) for name in names)), None) if self.path else None

    @property
    def about(self) -> dict[str, str]:
        """What an evidence file says of the class, so that it can be judged later: the fields of `from_evidence`."""
        return {"name": self.name, "module": self.module, "path": self.path, "sha256": _hash(self.path)}

    @classmethod
    def from_evidence(cls, target: str, about: dict[str, str]) -> Self:
        """Return the class that an evidence file is about."""
        return cls(target=target, name=about["name"], module=about["module"], path=about["path"])

    @property
    def label(self) -> str:
        """The class as ledgers name it."""
        return f"{self.module}:{self.name}"

    def check_cases(self) -> None:
        """Read the cases next to the class. Raises: BadCases."""
        from pytest_hermes_env.play.cases.yaml_file import cases_for  # noqa: PLC0415 - it loads the room of the model

        if self.path:
            cases_for(Path(self.path), self.name)


def subject_of(env_class: type) -> Subject:
    """Return the subject for a class at hand."""
    try:
        path = inspect.getsourcefile(env_class) or ""
    except TypeError:
        path = ""
    name = env_class.__qualname__
    return Subject(target=f"{path}:{name}", name=name, module=env_class.__module__, path=path, env_class=env_class)


def subjects_of(text: str) -> list[Subject]:
    """Return the classes of a target, by reading their file. Raises: BadTarget."""
    if os.path.isdir(text):
        return _of_directory(text)
    target = parse_target(text)
    is_file = target.module.endswith(".py")
    path = os.path.abspath(target.module) if is_file else _file_of(target.module)
    if not os.path.isfile(path):
        raise BadTarget(no_file(target.module))
    module = ".".join([*ancestors_package(Path(path)), Path(path).stem]) if is_file else target.module
    reading = read_classes(path, SourceTree())
    if reading.problem is not None:
        raise BadTarget(f"{target.module}: {reading.problem.message} ({path}, line {reading.problem.line})")
    (reading,) = without_abstract_bases([reading])
    found = [source.name for source in reading.classes]
    names = [target.class_name] if target.class_name else found
    written = {name: read_class(path, name) for name in names}
    if target.class_name and written[target.class_name] is None and target.class_name not in _names_in(path):
        raise BadTarget(f"{target.module} has no class {target.class_name}. Environments in it: {', '.join(found) or 'none'}.")
    if not names:
        seen = [item.name for item in reading.skipped]
        raise BadTarget(
            f"{target.module} defines no environment: no class in it derives from {BASE}. "
            f"Classes in it: {', '.join(seen) or 'none'}. {_where_it_is(path, target.module)}"
        )
    place = path if is_file else target.module
    return [
        Subject(target=f"{place}:{name}", name=name, module=module, path=source.module.file if source else path)
        for name, source in written.items()
    ]


def _of_directory(folder: str) -> list[Subject]:
    """Return the environments below a directory. Raises: there is none → BadTarget."""
    files = sorted(file for file in files_below(folder) if file.endswith(".py"))
    tree = SourceTree()
    found = [subject for file in files if read_classes(file, tree).classes for subject in subjects_of(file)]
    if not found:
        raise BadTarget(
            f"no environment is in the {len(files)} Python files below {folder}: no class in them derives from {BASE}"
        )
    return found


def _hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def unknown_setting(settings: Mapping[str, Any], subject: Subject) -> str:
    """Return that --hermes-set names what the configuration does not have, where the source shows all that it has; else empty."""
    calls = config_calls(subject.source) if settings and subject.source is not None else ()
    taken = [names_taken(config, call.function.module) for call, config in calls]
    known = {name for names in taken for name in names or ()}
    if taken and None not in taken and (unknown := next((name for name in settings if name not in known), "")):
        near = difflib.get_close_matches(unknown, sorted(known), n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        return f"--hermes-set: the configuration of {subject.name} has no field {unknown}.{meant}"
    return ""


def _where_it_is(path: str, module: str) -> str:
    """Return what to do about a file without an environment: one of Atropos' own base, one that only imports an environment, or another."""
    tree = ast.parse(Path(path).read_bytes())
    bases = {name: node for node in tree.body if isinstance(node, ast.ClassDef) for name in map(last_name, node.bases)}
    if "BaseEnv" in bases:
        node = bases["BaseEnv"]
        return f"{node.name} (line {node.lineno}) derives from atroposlib's BaseEnv: derive it from {BASE}."
    taken = [(one.module, name.name) for one in tree.body if isinstance(one, ast.ImportFrom) for name in one.names]
    if found := next((f"{origin.replace('.', '/')}.py" for origin, name in taken if origin and name.endswith("Env")), ""):
        return f"It imports one: --hermes-env {found}"
    return f"A class that a function makes must be named: {module}:Class."


def _names_in(path: str) -> frozenset[str]:
    """Return the names that the statements of a module bind, imported ones included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(SourceTree().text_of(path))):
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return frozenset(names)


def _file_of(module: str) -> str:
    """Return the file of a module without importing the packages around it. Raises: there is none → BadTarget."""
    parts = os.path.join(*module.split("."))
    for folder in [*sys.path, os.getcwd()]:
        for place in (f"{parts}.py", os.path.join(parts, "__init__.py")):
            if os.path.isfile(found := os.path.join(folder, place)):
                return os.path.abspath(found)
    near = no_file(f"{parts}.py").partition(". ")[2]
    raise BadTarget(
        f"{shorten(module)} cannot be imported: there is no such module on sys.path or in {os.getcwd()}. {near}".rstrip(". ")
    )
