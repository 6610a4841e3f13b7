"""Finds an environment class, and the layer that it is built on.

The harness serves any Hermes environment: one on the `environments` package of this distribution, or one on a checkout or fork
with its own layer. So it never imports the layer by name, but starts from the class under test.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_hermes_env import stale_package
from pytest_hermes_env.errors import BadTarget, shorten
from pytest_hermes_env.garbage_collection import no_garbage_collection
from pytest_hermes_env.missing_files import no_file

BASE = "HermesAgentBaseEnv"
BASE_VARIABLE = "HERMES_ENV_BASE"
"""The variable that names the base class of a fork which calls it otherwise; ``--hermes-base`` sets it."""
BASE_DEFINES = frozenset({"_resolve_tools_for_group", "collect_trajectory"})
"""What a layer's base defines, whatever its name: it collects rollouts with tools, on Atropos' BaseEnv."""
ATROPOS_ENV = "BaseEnv"
DEFAULT_PACKAGE = "environments"
ADVICE_LIMIT = 1_500
"""Characters of an import error that are shown; it may contain advice, such as which project file hides a module of hermes."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The base class of one environment layer, and the modules of its HermesAgentLoop and its ToolContext."""

    base: type
    agent_loop: ModuleType
    tool_context: ModuleType


def names_of_base() -> frozenset[str]:
    """Return the names of the layer's base class: its own, and that of a fork's, as ``AcmeEnv``, ``acme.base:AcmeEnv`` or ``acme.base.AcmeEnv``."""
    return frozenset({BASE, *os.environ.get(BASE_VARIABLE, "").replace(":", ".").split(".")[-1:]} - {""})


def layer_of(cls: type) -> Layer:
    """Return the layer of ``cls``. Raises: ``cls`` is not the class of a Hermes environment → BadTarget."""
    __tracebackhide__ = True
    given: Any = cls
    if not isinstance(given, type):
        name = getattr(given, "__name__", "")
        is_test = name.startswith("test")  # under a decorator that was given nothing
        way = "write @env_contract(MyEnv), with the class" if is_test else "pass the class itself, such as MyEnv"
        shown = f"the function {name}" if is_test else shorten(repr(given))
        raise BadTarget(f"an environment class was expected, not {shown}: {way}")
    base = _base_of(cls)
    if base is None:
        raise BadTarget(_not_an_environment(cls))
    return Layer(
        base=base,
        agent_loop=_neighbour(base, "agent_loop", "HermesAgentLoop"),
        tool_context=_neighbour(base, "tool_context", "ToolContext"),
    )


def _base_of(cls: type) -> type | None:
    """Return the layer's base class above ``cls``: by its name, by that of ``--hermes-base``, or by what it does."""
    names = names_of_base()
    named = next((ancestor for ancestor in cls.__mro__ if ancestor.__name__ in names), None)
    if named is not None or not any(ancestor.__name__ == ATROPOS_ENV for ancestor in cls.__mro__):
        return named
    return next((above for above in cls.__mro__[1:] if vars(above).keys() >= BASE_DEFINES), None)


def _neighbour(base: type, name: str, member: str) -> ModuleType:
    """Return the module of a layer that defines ``member``: next to the base, else where the base has it from."""
    package = base.__module__.rpartition(".")[0] or DEFAULT_PACKAGE
    try:
        return importlib.import_module(f"{package}.{name}")
    except ModuleNotFoundError:
        held = getattr(sys.modules.get(base.__module__), member, None)
        return sys.modules.get(getattr(held, "__module__", "")) or importlib.import_module(f"{DEFAULT_PACKAGE}.{name}")


def rollout_file() -> ModuleType:
    """Return the module that reads files of rollouts, and writes their page."""
    return importlib.import_module(f"{DEFAULT_PACKAGE}.rollout.file")


def service_command() -> ModuleType:
    """Return the module with the command of the rollout service."""
    return importlib.import_module(f"{DEFAULT_PACKAGE}.service.command")


def _not_an_environment(cls: type) -> str:
    names = [ancestor.__name__ for ancestor in cls.__mro__]
    if "BaseEnv" in names:
        return (
            f"{cls.__qualname__} is an Atropos environment (it derives from BaseEnv), but not a Hermes one: the contract judges "
            f"classes that derive from {BASE}. `hermes-env check --hermes-base-env FILE` reads its source by the rules that concern BaseEnv."
        )
    return (
        f"{cls.__qualname__} is not an environment: it does not derive from {BASE}. "
        f"Its bases are {', '.join(names[1:-1]) or 'none'}."
    )


@dataclass(frozen=True, kw_only=True)
class Target:
    """A class or file that a user named: ``package.module:Class``, ``path/to/file.py`` or ``path/to/file.py:Class``."""

    module: str
    class_name: str


def parse_target(text: str) -> Target:
    """Parse a target. Raises: it has none of these forms → BadTarget."""
    module, colon, class_name = text.rpartition(":")
    if not colon or (len(module) == 1 and module.isalpha()):
        module, class_name = text, ""
    if not module.endswith(".py") and not class_name:
        head, _, last = text.rpartition(".")
        near = f"Did you mean {head}:{last}?" if last[:1].isupper() else no_file(f"{text}.py").partition(". ")[2]
        known = "write package.module:Class, path/to/file.py, path/to/file.py:Class or a directory"
        raise BadTarget(f"{text!r} names no class: {known}. {near}".rstrip(". "))
    return Target(module=module, class_name=class_name)


def find_class(text: str) -> list[type]:
    """Import the target and return its environment classes, or the class that it names.

    Raises: the module cannot be imported, or defines no environment → BadTarget.
    """
    target = parse_target(text)
    with (
        stale_package.stale_package_explained(),
        no_garbage_collection(),
    ):  # it takes a fifth of the time that atroposlib and hermes need to load, and finds nothing
        module = _load_file(Path(target.module)) if target.module.endswith(".py") else _load_module(target.module)
    if target.class_name:
        found = getattr(module, target.class_name, None)
        if not isinstance(found, type):
            known = [cls.__name__ for cls in _environments(module)]
            raise BadTarget(
                f"{target.module} has no class {target.class_name}. Environments in it: {', '.join(known) or 'none'}."
            )
        layer_of(found)
        return [found]
    classes = _environments(module)
    if not classes:
        seen = [name for name, value in vars(module).items() if isinstance(value, type) and value.__module__ == module.__name__]
        raise BadTarget(
            f"{target.module} defines no environment: no class in it derives from {BASE}. "
            f"Classes in it: {', '.join(seen) or 'none'}."
        )
    return classes


def _environments(module: ModuleType) -> list[type]:
    """Return the environment classes that ``module`` defines: concrete ones, and those without a subclass in it."""
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and _base_of(value) not in {None, value}
    ]
    leaves = [cls for cls in own if not any(other is not cls and issubclass(other, cls) for other in own)]
    concrete = [cls for cls in own if not getattr(cls, "__abstractmethods__", None)]
    return list(dict.fromkeys([*(cls for cls in own if cls in concrete or cls in leaves)]))


def _load_module(name: str) -> ModuleType:
    here = str(Path.cwd())
    sys.path.append(here)  # last, because a project file must not hide one of hermes' top-level modules
    try:
        return importlib.import_module(name)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise BadTarget(_import_failure(name, error)) from error
    finally:
        sys.path.remove(here)


def _load_file(path: Path) -> ModuleType:
    """Import a file by path, under its dotted name if it lies in a package."""
    path = path.resolve()
    if not path.is_file():
        raise BadTarget(no_file(str(path)))
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(path):
            return module
    directory = str(path.parent)
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadTarget(f"{path} cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(directory)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise BadTarget(_import_failure(str(path), error)) from error
    finally:
        sys.path.remove(directory)
    return module


def ancestors_package(path: Path) -> list[str]:
    """Return the names of the packages that a file lies in, the outermost first."""
    parts: list[str] = []
    for directory in path.parents:
        if not (directory / "__init__.py").is_file():
            break
        parts.insert(0, directory.name)
    return parts


def _module_name(path: Path) -> str:
    """Return a module name with which the file's relative imports work: dotted, if its directories are packages."""
    packages = ancestors_package(path)
    if packages:
        package, directory = ".".join(packages), path.parents[len(packages)]
        sys.path.append(str(directory))
        try:
            importlib.import_module(package)
        except (Exception, SystemExit) as error:
            raise BadTarget(_import_failure(package, error)) from error
        finally:
            sys.path.remove(str(directory))
        return f"{package}.{path.stem}"
    taken: Any = sys.modules.get(path.stem)
    return path.stem if taken is None else f"{path.stem}_{abs(hash(path)):x}"


def _import_failure(what: str, error: BaseException) -> str:
    import traceback  # noqa: PLC0415

    if isinstance(error, SyntaxError):
        return f"{what} does not parse: {error.msg} ({error.filename}, line {error.lineno})"
    hidden = ("importlib", __file__, stale_package.__file__)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not any(part in frame.filename for part in hidden)
    ]
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return (
        f"{what} cannot be imported: {type(error).__name__}: {shorten(str(error), ADVICE_LIMIT)}{where}. "
        f"`hermes-env check` judges a file without importing it."
    )
