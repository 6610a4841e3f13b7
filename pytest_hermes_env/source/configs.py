"""The configuration of an environment: its class, its own fields, and the calls that make it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_hermes_env.source.classes import ClassSource, External, Resolved, class_of, resolve, resolve_name
from pytest_hermes_env.source.installed import installed_config_fields
from pytest_hermes_env.source.modules import Module
from pytest_hermes_env.source.reach import Call, reach_of
from pytest_hermes_env.source.syntax import annotation_text, flat_statements

LAYER_CONFIG = "HermesAgentEnvConfig"
BASE_CONFIG = "BaseEnvConfig"


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfigField:
    """One field of a configuration class."""

    name: str
    node: ast.AnnAssign
    owner: ClassSource

    @property
    def is_own(self) -> bool:
        """Whether neither Atropos nor the layer has a field of this name."""
        return self.name not in installed_config_fields()


def config_class(source: ClassSource) -> Resolved | None:
    """Return what env_config_cls refers to: a class that was read or an External; None if it is missing or computed."""
    given = source.attribute("env_config_cls")
    if given is None:
        return None
    owner, node = given
    if isinstance(node, ast.Name):
        for statement in flat_statements(owner.node.body):
            if isinstance(statement, ast.ClassDef) and statement.name == node.id:
                return class_of(statement, owner.module)
    return resolve(owner.module, node)


def config_fields(config: ClassSource) -> Iterator[ConfigField]:
    """Yield the fields that a configuration class and its readable bases below the layer's declare; each name once, the nearest first."""
    seen: set[str] = set()
    for owner in config.readable:
        if owner.name == LAYER_CONFIG:
            return
        for name, node in _declared_in(owner):
            if name not in seen:
                seen.add(name)
                yield ConfigField(name=name, node=node, owner=owner)


def _declared_in(owner: ClassSource) -> Iterator[tuple[str, ast.AnnAssign]]:
    for statement in flat_statements(owner.node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            if not name.startswith("_") and name != "model_config" and "ClassVar" not in annotation_text(statement.annotation):
                yield name, statement


def names_taken(config: Resolved | None, module: Module) -> frozenset[str] | None:
    """Return the names of all fields that a configuration class takes, those of a fork's own layer included; None if unknown.

    ``module`` is the file that names the class.
    """
    if isinstance(config, External) and config.last in {LAYER_CONFIG, BASE_CONFIG}:
        layer = module.imported(config.dotted.rpartition(".")[0]) if "." in config.dotted else None
        own = resolve_name(layer, config.last) if layer is not None else None
        return names_taken(own, layer) if layer is not None and isinstance(own, ClassSource) else installed_config_fields()
    if not isinstance(config, ClassSource) or any(
        _takes_more(owner) for owner in config.readable if owner.name != LAYER_CONFIG
    ):
        return None
    found = set(installed_config_fields())
    for owner in config.readable:
        found |= {name for name, _ in _declared_in(owner)}
        for base in owner.bases:
            if isinstance(base, External) and base.last != "BaseModel" and not base.is_known:
                inherited = names_taken(base, owner.module)
                if inherited is None:
                    return None
                found |= inherited
    return frozenset(found)


def _takes_more(config: ClassSource) -> bool:
    """Return whether a class takes other names: it allows extra fields, has aliases, or changes what it is given first."""
    for node in ast.walk(config.node):
        if isinstance(node, ast.keyword) and node.arg in {"extra", "alias", "validation_alias", "alias_generator"}:
            return True
        if isinstance(node, ast.Constant) and node.value in {"extra", "before"}:
            return True
    return "__init__" in config.own_methods


def config_calls(source: ClassSource) -> Iterator[tuple[Call, Resolved | None]]:
    """Yield the calls that make a configuration in what config_init leads to, each with the class that is made."""
    for call in reach_of(source).calls("config_init"):
        if call.name == "env_config_cls":
            is_computed = source.unreadable or source.has("env_config_cls")
            yield call, config_class(source) or (None if is_computed else External(dotted=LAYER_CONFIG))
        elif call.makes(LAYER_CONFIG) or call.makes(BASE_CONFIG):
            yield call, call.target
