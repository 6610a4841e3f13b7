"""The configuration of an environment: its class, its own fields, and the calls that make it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.source.classes import ClassSource, External, Resolved, class_of, resolve
from pytest_hermes_env.source.frames import Call, Frame, calls_in, constructs
from pytest_hermes_env.source.installed import installed_config_fields
from pytest_hermes_env.source.syntax import annotation_text, flat_statements, last_name
from pytest_hermes_env.source.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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

    @property
    def is_described(self) -> bool:
        """Whether the field has a description."""
        if self._has_docstring:
            return True
        candidates = [self.node.value, *_annotated(self.node.annotation)]
        calls = [item for item in candidates if isinstance(item, ast.Call)]
        return any(_describes(word) for call in calls for word in call.keywords) or (
            self.node.value is not None and not calls and not _is_plain(self.node.value)
        )

    @property
    def _has_docstring(self) -> bool:
        """Whether a string follows the field, in a class whose model_config uses such strings as descriptions."""
        settings = self.owner.own_attributes.get("model_config")
        if settings is None or "use_attribute_docstrings" not in ast.unparse(settings):
            return False
        body = self.owner.node.body
        after = body[body.index(self.node) + 1 :] if self.node in body else []
        return bool(after) and isinstance(after[0], ast.Expr) and isinstance(after[0].value, ast.Constant)


def _annotated(annotation: ast.expr) -> list[ast.expr]:
    """Return the metadata of ``Annotated[type, ...]``."""
    if isinstance(annotation, ast.Subscript) and last_name(annotation.value) == "Annotated":
        return annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else []
    return []


def _is_plain(value: ast.expr) -> bool:
    """Return whether a default is a bare value without a description; a name may refer to a described Field."""
    return isinstance(value, (ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.Set, ast.UnaryOp, ast.BinOp, ast.JoinedStr))


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


def is_layer_config(target: Resolved | None) -> bool | None:
    """Return whether a class inherits from the layer's configuration; None if its bases cannot all be read."""
    if isinstance(target, External):
        return True if target.last == LAYER_CONFIG else False if target.last == BASE_CONFIG else None
    if not isinstance(target, ClassSource):
        return None
    if any(item.is_subclass_of(LAYER_CONFIG) for item in target.readable):
        return True
    strange = [item for item in target.external if not item.is_known and item.last not in {BASE_CONFIG, "BaseModel"}]
    return None if strange else False


def config_fields(config: ClassSource) -> Iterator[ConfigField]:
    """Yield the fields that a configuration class and its readable bases declare; each name once, the nearest first."""
    seen: set[str] = set()
    for owner in config.readable:
        if owner.name == LAYER_CONFIG:
            return
        for statement in flat_statements(owner.node.body):
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                continue
            name = statement.target.id
            if name.startswith("_") or name in seen or name == "model_config":
                continue
            if "ClassVar" in annotation_text(statement.annotation):
                continue
            seen.add(name)
            yield ConfigField(name=name, node=statement, owner=owner)


def config_calls(frames: Iterable[Frame]) -> Iterator[Call]:
    """Yield the calls that make a configuration of the layer or of Atropos."""
    for call in calls_in(frames):
        if any(constructs(call, name) for name in (LAYER_CONFIG, BASE_CONFIG)) or any(
            value.kind in {Kind.ATTRIBUTE, Kind.PART} and value.name == "env_config_cls" for value in call.callee
        ):
            yield call


def is_handed_on(made: Call, frames: Iterable[Frame]) -> bool:
    """Return whether what a call makes is given to another call than that of a list, or a method of it is called."""
    return any(
        value.node is made.node
        for call in calls_in(frames)
        if call.name not in {"append", "extend", "insert"}
        for values in (call.receiver, *call.every_argument)
        for value in values
        if value.kind is Kind.INSTANCE
    )


def _describes(word: ast.keyword) -> bool:
    """Return whether a keyword of Field is a description that is not empty, or ``**`` keywords that cannot be read."""
    is_empty = isinstance(word.value, ast.Constant) and not word.value.value
    return word.arg is None or (word.arg == "description" and not is_empty)
