"""Names that the installed hermes-agent, Atropos and environment layer define: read from their files, never imported."""

from __future__ import annotations

import ast
import functools
import glob
import importlib.util
import itertools
import os
import re
from collections.abc import Iterator

from pytest_hermes_env.source.syntax import named_values

_REGISTERED = re.compile(rb"""\btoolset\s*=\s*["']([\w-]+)["']""")
_TOOL = re.compile(rb"""\bregister\(\s*name\s*=\s*["']([\w-]+)["']""")
_EVERYTHING = frozenset({"all", "*"})
"""Names that hermes-agent accepts for all toolsets."""


@functools.lru_cache(maxsize=1)
def installed_toolsets() -> frozenset[str]:
    """Return the names that the installed hermes-agent accepts as toolsets; empty if it is not installed."""
    found = set(_keys_of("toolsets", "TOOLSETS"))
    if not found:
        return frozenset()
    found |= set(_keys_of("model_tools", "_LEGACY_TOOLSET_MAP"))
    return frozenset(found).union(_matches_in_tools(_REGISTERED), _EVERYTHING)


@functools.lru_cache(maxsize=1)
def installed_tools() -> frozenset[str]:
    """Return the names of all tools of the installed hermes-agent, whatever they require; empty if it is not installed."""
    found = set(_matches_in_tools(_TOOL))
    spec = importlib.util.find_spec("toolsets")
    tree = _parsed(_read(spec.origin)) if spec is not None and spec.origin else ast.Module(body=[], type_ignores=[])
    for node in ast.walk(tree):
        if isinstance(node, ast.List):
            found |= {item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)}
    return frozenset(found)


@functools.lru_cache(maxsize=1)
def installed_distributions() -> frozenset[str]:
    """Return the names of the toolset distributions of hermes-agent; empty if it is not installed."""
    return frozenset(_keys_of("toolset_distributions", "DISTRIBUTIONS"))


@functools.lru_cache(maxsize=1)
def installed_config_fields() -> frozenset[str]:
    """Return the configuration fields of Atropos and of the layer; empty if one of them is not installed."""
    files = [os.path.join(folder, "envs", "base.py") for folder in folders_of("atroposlib")]
    found = [frozenset(name for file in part for name in _fields_in(_read(file))) for part in (files, _layer_files())]
    return found[0] | found[1] if all(found) else frozenset()


def _layer_files() -> Iterator[str]:
    """Yield the file of the layer's base, and those of the modules that it imports from its own package."""
    for folder in folders_of("environments"):
        base = os.path.join(folder, "hermes_base_env.py")
        yield base
        for node in _parsed(_read(base)).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("environments."):
                yield os.path.join(folder, *str(node.module).split(".")[1:]) + ".py"


@functools.lru_cache(maxsize=8)
def base_names(layer: str = "") -> frozenset[str]:
    """Return the names of methods and attributes in the files of Atropos and of the layer in a folder; empty if one is missing.

    By default the installed layer.
    """
    folders = [layer] if layer else folders_of("environments")
    files = [glob.glob(os.path.join(folder, "*.py")) for folder in folders]
    files += [glob.glob(os.path.join(folder, "envs", "*.py")) for folder in folders_of("atroposlib")]
    if not folders or not folders_of("atroposlib"):
        return frozenset()
    found: set[str] = set()
    for file in itertools.chain.from_iterable(files):
        for node in ast.walk(_parsed(_read(file))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                found |= {name for name, _ in named_values(node)}
    return frozenset(found)


def _matches_in_tools(pattern: re.Pattern[bytes]) -> Iterator[str]:
    """Yield what ``pattern`` captures in the files of hermes-agent's tools."""
    for folder in folders_of("tools"):
        for name in os.listdir(folder):
            if name.endswith(".py"):
                yield from (word.decode() for word in pattern.findall(_read(os.path.join(folder, name))))


def _fields_in(text: bytes) -> Iterator[str]:
    for node in _parsed(text).body:
        if isinstance(node, ast.ClassDef) and node.name in {"BaseEnvConfig", "HermesAgentEnvConfig"}:
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    yield item.target.id


def _keys_of(module: str, name: str) -> list[str]:
    """Return the keys of the dict ``name`` in a top-level module of hermes-agent."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return []
    for statement in _parsed(_read(spec.origin)).body:
        for target, value in named_values(statement):
            if target == name and isinstance(value, ast.Dict):
                return [key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return []


def folders_of(package: str) -> list[str]:
    """Return the directories of an installed package; none if it is not installed."""
    spec = importlib.util.find_spec(package)
    found = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [folder for folder in found if os.path.isdir(folder)]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _parsed(text: bytes) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
