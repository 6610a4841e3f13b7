"""Files of a project that Python imports in the place of installed modules."""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from pytest_hermes_env import stale_package
from pytest_hermes_env.versions import PACKAGES

TEST_DIRECTORIES = (".", "src", "tests")
"""Directories that pytest puts before the installed packages, below the current one."""
IMPORTED = frozenset(
    {"aiohttp", "fastapi", "httpx", "jsonlines", "numpy", "openai", "tenacity", "transformers", "wandb", "yaml"}
)
"""Distributions that Atropos and hermes import."""


def installed_modules() -> set[str]:
    """Return the top-level modules of the packages that this one needs, and of those that they import."""
    owners = {*PACKAGES, *IMPORTED, "PyYAML"}
    installed = metadata.packages_distributions()
    return {name for name, held in installed.items() if not owners.isdisjoint(held)} | {stale_package.PACKAGE}


def hiding(name: str) -> str:
    """Return the file of the project that hides an installed module, empty if none does."""
    spec = PathFinder.find_spec(name, sys.path[1:])  # the first one is the current directory, or that of the command
    known = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or [])]
    for directory in TEST_DIRECTORIES:
        for file in (Path.cwd() / directory / f"{name}.py", Path.cwd() / directory / name / "__init__.py"):
            if file.is_file() and str(file.resolve()) not in known and str(file.resolve().parent) not in known:
                return str(file)
    return ""


def imported_instead() -> str:
    """Return what to say of the first module that this process imported from the project in the place of an installed one; else empty."""
    here = f"{Path.cwd()}/"
    for name in sorted(installed_modules() - {stale_package.PACKAGE}):
        file = str(getattr(sys.modules.get(name), "__file__", None) or "")
        if file.startswith(here) and "site-packages" not in file and not _is_installed(name, file):
            return f"{file} hides the installed module {name}, which Atropos and hermes import: rename it"
    return ""


def _is_installed(name: str, file: str) -> bool:
    """Whether a file is the installed module itself, such as one of an editable installation in this directory."""
    spec = PathFinder.find_spec(name, [entry for entry in sys.path if "site-packages" in entry])
    return spec is None or str(spec.origin) == file
