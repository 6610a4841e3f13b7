"""Modules of hermes, imported when they are needed: a test of a reward loads only those of the file tools."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import FunctionType
from typing import Any

from hermes_env_shared import hermes_names
from pytest_hermes_env.errors import ShadowedModule


def hermes_module(name: str) -> Any:
    """Return a module of hermes, imported without a warning, which would fail a test under ``-W error``.

    hermes 0.19 opens databases at import and does not close them; Python 3.13 warns of that.
    Raises: a module of the project hides it → ShadowedModule.
    """
    if name in sys.modules:
        return importlib.import_module(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            return importlib.import_module(name)
    except ImportError as error:
        place = getattr(sys.modules.get("tools"), "__file__", None)
        raise ShadowedModule(
            f"hermes-agent's module {name} cannot be imported: {error}.\n"
            "  expected  the package `tools` of hermes-agent, not a module of the project\n"
            f"  seen      {place or 'no package of that name'}\n"
            "  fix       rename the project's module `tools`, or keep its directory off sys.path; is hermes-agent installed?"
        ) from error


def hermes_name(module: str, name: str) -> Any:
    """Return a name of a module of hermes, or of a part that was split off it. Raises: as `hermes_module`; HermesNameMissing."""
    hermes_module(module)
    return hermes_names.hermes_name(module, name)


def with_names(name: str, replaced: dict[str, Any]) -> dict[str, Any]:
    """Return the names of a module of hermes, and of parts that were split off it, with some replaced, which its functions and methods see,
    too. Raises: as `hermes_module`.
    """
    hermes_module(name)
    modules = hermes_names.parts_of(name)
    scopes = {id(vars(module)) for module in modules}
    names = {key: value for module in reversed(modules) for key, value in vars(module).items()} | replaced

    def bound(value: Any) -> Any:
        if isinstance(value, FunctionType) and id(value.__globals__) in scopes:
            twin = FunctionType(value.__code__, names, value.__name__, value.__defaults__, value.__closure__)
            twin.__kwdefaults__ = value.__kwdefaults__
            return twin
        if isinstance(value, type) and value.__module__ in {module.__name__ for module in modules}:
            return type(value.__name__, (value,), {name: bound(one) for name, one in vars(value).items() if callable(one)})
        return value

    names.update({key: bound(value) for key, value in names.items() if key not in replaced})
    return names


def answer_of_the_project(name: str, arguments: dict[str, Any], task_id: str) -> Any:
    """Return what a tool that the project itself registered answers: its code is part of what is tested. None: the tool is hermes', or unknown."""
    registry = hermes_module("tools.registry").registry
    handler = getattr(registry.get_entry(name), "handler", None)
    module = getattr(getattr(handler, "func", handler), "__module__", None) or type(handler).__module__
    if handler is None or module.partition(".")[0] in OF_HERMES:
        return None
    return type(registry).dispatch(
        registry, name, arguments, task_id=task_id
    )  # not the instance's, which a double has replaced


OF_HERMES = frozenset({"tools", "plugins"})
"""Packages of hermes-agent whose functions answer the tools of its registry."""
