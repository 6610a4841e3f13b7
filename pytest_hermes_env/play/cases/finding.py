"""Finds the cases of a class next to its file: ``<module>.contract.yaml`` first, then ``contract.yaml``, or the same in Python."""

from __future__ import annotations

import importlib.util
import inspect
import zlib
from pathlib import Path

from pytest_hermes_env.errors import BadCases, shorten
from pytest_hermes_env.play.cases.declaration import as_cases
from pytest_hermes_env.play.cases.values import Cases
from pytest_hermes_env.play.cases.yaml_file import read_cases

OBJECT = "CASES"
"""What a ``contract.py`` calls its cases."""


def cases_beside(env_class: type) -> Cases | None:
    """Return the cases in the file next to the class's own; None without one. Raises: BadCases."""
    own = _own_file(env_class)
    return cases_for(own, env_class.__name__) if own is not None else None


def cases_for(own: Path, class_name: str, *, is_imported: bool = True) -> Cases | None:
    """Return the cases of a class of the file ``own``; unless ``is_imported``, those of Python files count as none. Raises: BadCases."""
    for stem in (f"{own.stem}.{class_name}.contract", f"{own.stem}.contract", "contract"):
        found = [
            path for path in (own.with_name(f"{stem}.yaml"), own.with_name(f"{stem}.py")) if path.is_file() and path != own
        ]
        if len(found) > 1:
            raise BadCases(f"{found[0]} and {found[1].name} both declare cases for {class_name}: keep one of them")
        for path in found:
            if path.suffix == ".yaml":
                file = read_cases(path)
                if file.class_name in {"", class_name}:
                    return file.cases
            elif is_imported and (cases := _in_module(path, class_name)) is not None:
                return cases
    return None


def file_for(env_class: type, *, is_alone: bool) -> Path:
    """Return where the cases of a class are written: a file that no other class shares unless it ``is_alone`` in its module.

    Raises: the class has no file → BadCases.
    """
    own = _own_file(env_class)
    if own is None:
        raise BadCases(f"{env_class.__name__} has no source file, next to which its cases would be stored")
    return own.with_name(f"{own.stem}.contract.yaml" if is_alone else f"{own.stem}.{env_class.__name__}.contract.yaml")


def _own_file(env_class: type) -> Path | None:
    try:
        path = inspect.getsourcefile(env_class)
    except TypeError:
        return None
    return Path(path) if path else None


def _in_module(path: Path, class_name: str) -> Cases | None:
    """Return the cases of a Python file: ``CASES``, or ``CASES[name of the class]``. A file without the name is not ours."""
    name = f"hermes_env_cases_{zlib.crc32(str(path.absolute()).encode()):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return None
    if OBJECT not in path.read_text(encoding="utf-8", errors="replace"):
        return None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BadCases:
        raise
    except (Exception, SystemExit) as error:
        raise BadCases(f"{path} cannot be imported: {type(error).__name__}: {shorten(str(error))}") from error
    declared = getattr(module, OBJECT, None)
    if isinstance(declared, dict):
        declared = declared.get(class_name)
    return None if declared is None else as_cases(declared)
