"""Stale ``environments/__init__.py`` files of checked projects, which hide the layer that their environments import."""

from __future__ import annotations

import os
from collections.abc import Iterable

from pytest_hermes_env.source.layer_names import LAYER_FILES
from pytest_hermes_env.source.modules import FileProblem, Module
from pytest_hermes_env.stale_package import PACKAGE

STALE_PACKAGE = "stale-package"


def stale_packages(modules: Iterable[Module]) -> list[FileProblem]:
    """Return a problem for each such file, if a module or the file itself imports from the layer what its package does not have."""
    found: dict[str, FileProblem] = {}
    for module in modules:
        package = module.imported(PACKAGE) if any(name.partition(".")[0] == PACKAGE for name in module.imports) else None
        if package is None or package.file in found or not _is_top_level_package(package.file):
            continue
        if missing := _missing(module) or _missing(package):
            message = f"{missing} cannot be imported because of this file"
            found[package.file] = FileProblem(path=package.path, message=message, id=STALE_PACKAGE, name="hides-the-layer")
    return list(found.values())


def _is_top_level_package(file: str) -> bool:
    folder, name = os.path.split(file)
    return name == "__init__.py" and not os.path.exists(os.path.join(os.path.dirname(folder), name))


def _missing(module: Module) -> str:
    """Return a module of the layer that ``module`` imports and the project does not have."""
    names = (f"{PACKAGE}.{file}" for file in sorted(LAYER_FILES))
    return next((name for name in names if name in module.imports and module.imported(name) is None), "")
