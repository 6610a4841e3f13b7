"""Classes and name resolution: bases are followed through aliases, imports and files of the same tree."""

from __future__ import annotations

import ast
import builtins
import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pytest_hermes_env.layer import ATROPOS_ENV, BASE_DEFINES, names_of_base
from pytest_hermes_env.source.functions import Function, function_of
from pytest_hermes_env.source.layer_names import (
    INHERITED_METHODS,
    LAYER_ENV,
    LAYER_FILES,
    LAYER_NAMES,
    LAYER_PACKAGE,
    REQUIRED_METHODS,
)
from pytest_hermes_env.source.modules import Binding, Module
from pytest_hermes_env.source.syntax import flat_statements, last_name, named_values

_BUILTINS = frozenset(vars(builtins))
_PLAIN_DECORATORS = frozenset({"dataclass", "final", "runtime_checkable", "total_ordering"})
_PLAIN_METACLASSES = frozenset({"ABCMeta", "type"})


class ClassKind(enum.StrEnum):
    """The kind of a class, judged by the classes that it inherits from."""

    HERMES = "a Hermes environment"
    ATROPOS = "an Atropos environment without HermesAgentBaseEnv"
    UNKNOWN = "a class with bases that cannot be read"
    OTHER = "another class"


@dataclass(frozen=True, kw_only=True)
class External:
    """A name from outside the readable tree: the layer, Atropos, the standard library, or a module that is missing."""

    dotted: str
    base: ClassSource | None = field(default=None, compare=False, repr=False)
    """The class, where it is the base of a layer whose file could be read."""

    @property
    def last(self) -> str:
        """The last part of the dotted name."""
        return self.dotted.rpartition(".")[2]

    @property
    def is_known(self) -> bool:
        """Whether it is known to add no methods that the contract judges."""
        return self.last in {LAYER_ENV, ATROPOS_ENV} or is_standard(self.dotted)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassSource:
    """A class, read from its file without importing it."""

    node: ast.ClassDef
    module: Module

    @property
    def name(self) -> str:
        """The name in the class line."""
        return self.node.name

    @property
    def path(self) -> str:
        """The path of the file, as it is displayed."""
        return self.module.path

    @property
    def line(self) -> int:
        """The line of the class statement."""
        return self.node.lineno

    @cached_property
    def bases(self) -> tuple[ClassSource | External, ...]:
        """The resolved bases; one that cannot be resolved is an External named after its expression."""
        found: list[ClassSource | External] = []
        for base in self.node.bases:
            target = resolve(self.module, base)
            if isinstance(target, ClassSource) and target.is_layer_base:
                found.append(External(dotted=f"{target.path}.{LAYER_ENV}", base=target))
            elif isinstance(target, External) and target.last in names_of_base():
                found.append(External(dotted=f"{target.dotted.rpartition('.')[0]}.{LAYER_ENV}".lstrip(".")))
            elif isinstance(target, (ClassSource, External)):
                found.append(target)
            else:
                found.append(External(dotted=f"<{ast.unparse(base)}>"))
        return tuple(found)

    @cached_property
    def is_layer_base(self) -> bool:
        """Whether it is the layer's base class, under whatever name: it collects rollouts with tools, on Atropos' BaseEnv."""
        if self.name in names_of_base():
            return True
        if not self.own_methods.keys() >= BASE_DEFINES:
            return False
        bases = (resolve(self.module, base) for base in self.node.bases)  # not self.bases: a class may inherit from itself
        return any(isinstance(base, External) and base.last == ATROPOS_ENV for base in bases)

    @cached_property
    def mro(self) -> tuple[ClassSource | External, ...]:
        """The class and its bases, in the order in which Python looks for attributes."""
        return tuple(_linearise(self, ()))

    @cached_property
    def readable(self) -> tuple[ClassSource, ...]:
        """The classes of the MRO that were read."""
        return tuple(item for item in self.mro if isinstance(item, ClassSource))

    @cached_property
    def external(self) -> tuple[External, ...]:
        """The classes of the MRO that were not read."""
        return tuple(item for item in self.mro if isinstance(item, External))

    def is_subclass_of(self, name: str) -> bool:
        """Return whether this is the class ``name``, or inherits from a class of that name."""
        return any((item.last if isinstance(item, External) else item.name) == name for item in self.mro)

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """The files of the class and its readable bases, without those of the layer."""
        layer = {item.module for item in self.readable if item.name in LAYER_NAMES}
        return tuple(dict.fromkeys(item.module for item in self.readable if item.module not in layer))

    @cached_property
    def unreadable(self) -> tuple[str, ...]:
        """Bases, metaclasses and decorators that may add methods that were not read."""
        found = [item.dotted for item in self.external if not item.is_known]
        for item in self.readable:
            found += [
                f"metaclass {last_name(word.value)}"
                for word in item.node.keywords
                if word.arg == "metaclass" and last_name(word.value) not in _PLAIN_METACLASSES
            ]
            found += [
                f"decorator @{last_name(node)}" for node in item.node.decorator_list if last_name(node) not in _PLAIN_DECORATORS
            ]
        return tuple(found)

    @cached_property
    def class_kind(self) -> ClassKind:
        """The kind of the class, judged by the classes that it inherits from."""
        names = {item.last for item in self.external}
        if LAYER_ENV in names:
            return ClassKind.HERMES
        if ATROPOS_ENV in names:
            return ClassKind.ATROPOS
        return ClassKind.UNKNOWN if self.unreadable else ClassKind.OTHER

    @cached_property
    def own_methods(self) -> Mapping[str, Function]:
        """Methods defined in the class body, including those under an if or a try."""
        found: dict[str, Function] = {}
        for statement in flat_statements(self.node.body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if any(last_name(node) in {"setter", "deleter", "overload"} for node in statement.decorator_list):
                    continue
                found[statement.name] = function_of(statement, self.module, self.node)
        return found

    @cached_property
    def own_attributes(self) -> Mapping[str, ast.expr]:
        """Values assigned in the class body."""
        return {name: value for statement in flat_statements(self.node.body) for name, value in named_values(statement)}

    @cached_property
    def methods(self) -> Mapping[str, Function]:
        """Own and inherited methods, without abstract ones."""
        found: dict[str, Function] = {}
        taken: set[str] = set()
        for item in self.mro:
            if isinstance(item, External):
                taken |= INHERITED_METHODS if item.last in {LAYER_ENV, ATROPOS_ENV} else set()
                continue
            found |= {
                name: function for name, function in item.own_methods.items() if name not in taken and not function.is_abstract
            }
            taken |= item.own_methods.keys() | item.own_attributes.keys()
        return found

    def attribute(self, name: str) -> tuple[ClassSource, ast.expr] | None:
        """Return the class that assigns ``name`` in its body, and the value; None if no readable class does."""
        for item in self.readable:
            if name in item.own_methods:
                return None
            if name in item.own_attributes:
                return item, item.own_attributes[name]
        return None

    def has(self, name: str) -> bool:
        """Return whether readable code defines ``name``, as a method or as a class-level value."""
        return name in self.methods or self.attribute(name) is not None

    def after(self, owner: ast.ClassDef | None, name: str) -> Function | External | None:
        """Return what ``super().name`` is in a method of ``owner``: a method, or the base that cannot be read."""
        before = [index for index, item in enumerate(self.mro) if isinstance(item, ClassSource) and item.node is owner]
        for item in self.mro[before[0] + 1 if before else 1 :]:
            if isinstance(item, External):
                if item.last in {LAYER_ENV, ATROPOS_ENV} or not item.is_known:
                    return item
            elif name in item.own_methods:
                return item.own_methods[name]
        return None

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Required methods that readable code does not define."""
        return tuple(name for name in REQUIRED_METHODS if not self.has(name))

    @cached_property
    def is_marked_abstract(self) -> bool:
        """Whether the class is declared abstract: ABC is among its bases, or an abstract method is not defined."""
        if any(isinstance(base, External) and base.last == "ABC" for base in self.bases):
            return True
        names = {name for item in self.readable for name, function in item.own_methods.items() if function.is_abstract}
        return any(not self.has(name) for name in names)


Resolved = ClassSource | Function | Module | External


def class_of(node: ast.ClassDef, module: Module) -> ClassSource:
    """Return the one ClassSource of a class statement."""
    return module.once(ClassSource, node, lambda: ClassSource(node=node, module=module))


def is_standard(dotted: str) -> bool:
    """Return whether a dotted name is a builtin or from the standard library."""
    root, _, rest = dotted.partition(".")
    return root in sys.stdlib_module_names or (not rest and root in _BUILTINS)


def resolve(module: Module, node: ast.AST, seen: frozenset[tuple[str, str]] = frozenset()) -> Resolved | None:
    """Return what an expression at module scope refers to, or None if only running it would tell."""
    if isinstance(node, ast.Subscript):
        return resolve(module, node.value, seen)
    if isinstance(node, ast.Name):
        return resolve_name(module, node.id, seen)
    if isinstance(node, ast.Attribute):
        base = resolve(module, node.value, seen)
        return resolve_attribute(module, base, node.attr, seen) if base is not None else None
    return None


def resolve_name(module: Module, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> Resolved | None:
    """Return what a module-level name refers to: of several bindings, the one from the layer, else the last."""
    if (module.file, name) in seen:
        return None
    seen |= {(module.file, name)}
    targets = [target for item in module.names.get(name, ()) if (target := resolve_binding(module, item, seen))]
    for target in targets:
        if isinstance(target, External) and target.last in LAYER_NAMES:
            return target
    if targets:
        return targets[-1]
    if name in module.names:
        return None
    for star in module.stars:
        if name in LAYER_NAMES and _is_layer_file(star):
            return External(dotted=f"{star}.{name}")
        source = module.imported(star)
        target = resolve_name(source, name, seen) if source else None
        if target is not None:
            return target
    if name in LAYER_NAMES or name == ATROPOS_ENV or (name in _BUILTINS and not module.stars):
        return External(dotted=name)
    unread = [star for star in module.stars if module.imported(star) is None]
    return External(dotted=f"{unread[-1]}.{name}") if unread and name not in _BUILTINS else None


def resolve_binding(module: Module, binding: Binding, seen: frozenset[tuple[str, str]] = frozenset()) -> Resolved | None:
    """Return what one binding refers to."""
    if isinstance(binding.node, ast.ClassDef):
        return class_of(binding.node, module)
    if isinstance(binding.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return function_of(binding.node, module)
    if not binding.module:
        return resolve(module, binding.node, seen)
    if is_standard(binding.module) or (not binding.attribute and _is_layer_file(binding.module)):
        return External(dotted=_joined(binding.module, binding.attribute))
    if not binding.attribute:
        return module.imported(binding.module) or External(dotted=binding.module)
    if binding.attribute in LAYER_NAMES and (_is_layer_file(binding.module) or binding.module == LAYER_PACKAGE):
        return External(dotted=_joined(binding.module, binding.attribute))
    source = module.imported(binding.module)
    target = resolve_name(source, binding.attribute, seen) if source else None
    if target is None or (isinstance(target, External) and target.dotted == binding.attribute):
        inner = module.imported(_joined(binding.module, binding.attribute))
        return inner or External(dotted=_joined(binding.module, binding.attribute))
    return target


def resolve_attribute(
    module: Module, base: Resolved, name: str, seen: frozenset[tuple[str, str]] = frozenset()
) -> Resolved | None:
    """Return what ``base.name`` refers to."""
    if isinstance(base, Module):
        return resolve_name(base, name, seen)
    if isinstance(base, External):
        dotted = _joined(base.dotted, name)
        if name in LAYER_NAMES or is_standard(dotted) or _is_layer_file(dotted):
            return External(dotted=dotted)
        return module.imported(dotted) or External(dotted=dotted)
    if isinstance(base, ClassSource):
        for statement in flat_statements(base.node.body):
            if isinstance(statement, ast.ClassDef) and statement.name == name:
                return class_of(statement, base.module)
        return base.methods.get(name)
    return None


def _is_layer_file(dotted: str) -> bool:
    return dotted.rpartition(".")[2] in LAYER_FILES


def _joined(module: str, name: str) -> str:
    if not name:
        return module
    return module + name if module.endswith(".") else f"{module}.{name}"


def _linearise(source: ClassSource, above: tuple[ClassSource, ...]) -> list[ClassSource | External]:
    if "mro" in vars(source):
        return list(source.mro)
    if source in above:
        return [External(dotted=f"<{source.name}, which inherits from itself>")]
    rows = [_linearise(base, (*above, source)) if isinstance(base, ClassSource) else [base] for base in source.bases]
    merged: list[ClassSource | External] = [source]
    if len(rows) == 1:  # a chain of hundreds of classes takes no merging
        return merged + rows[0]
    rows.append(list(source.bases))
    rows = [row for row in rows if row]
    while rows:
        head = next((row[0] for row in rows if not any(row[0] in other[1:] for other in rows)), rows[0][0])
        merged.append(head)
        rows = [rest for row in rows if (rest := [item for item in row if item != head])]
    return merged
