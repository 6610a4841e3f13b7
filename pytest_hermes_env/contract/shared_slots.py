"""Slots: single places that all rollouts share, such as ``self.state["item"]``, ``self.slot[0]`` or an entry of a module's dict.

A place whose key is computed, such as ``self.seen[ctx.task_id]``, is no slot: each rollout may have its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_hermes_env.source import UNKNOWN, Function, constant_value, last_name

_MAPPINGS = frozenset({"dict", "defaultdict", "OrderedDict", "SimpleNamespace", "Namespace"})


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A place: ``holder`` is an attribute of self ("self.state"), a name of the module, or "globals()"; ``key`` is what is under it."""

    holder: str
    key: object

    @property
    def is_of_the_module(self) -> bool:
        """Whether it outlives the environment."""
        return not self.holder.startswith("self.")


@dataclass(frozen=True, kw_only=True, eq=False)
class SlotUse:
    """A read or a write of a slot, as it is written; ``value`` is what is written."""

    slot: Slot
    node: ast.AST
    text: str
    value: ast.expr | None = None


def writes_of_slots(function: Function) -> Iterator[SlotUse]:
    """Yield what a function puts into slots: by assignment, ``update`` or ``setattr``."""
    for node in function.own_nodes():
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if (slot := _slot(function, target)) is not None:
                    yield SlotUse(slot=slot, node=node, text=ast.unparse(target), value=node.value)
        elif isinstance(node, ast.Call):
            yield from _written_by(function, node)


def _written_by(function: Function, call: ast.Call) -> Iterator[SlotUse]:
    name = last_name(call.func)
    if name == "update" and isinstance(call.func, ast.Attribute):
        holder, entries = _holder(function, call.func.value), _entries(call)
    elif name == "setattr" and len(call.args) == 3:  # noqa: PLR2004 - object, name, value
        holder, entries = _holder(function, call.args[0]), [(call.args[1], call.args[2])]
    else:
        return
    for key, value in entries:
        word = key if isinstance(key, str) else _constant(function, key)
        if holder and word is not UNKNOWN:
            yield SlotUse(slot=Slot(holder=holder, key=word), node=call, text=ast.unparse(call.func), value=value)


def _entries(call: ast.Call) -> list[tuple[ast.expr | str, ast.expr]]:
    found: list[tuple[ast.expr | str, ast.expr]] = [(word.arg, word.value) for word in call.keywords if word.arg]
    for given in call.args:
        if isinstance(given, ast.Dict):
            found += [(key, value) for key, value in zip(given.keys, given.values, strict=True) if key is not None]
    return found


def reads_of_slots(function: Function) -> Iterator[SlotUse]:
    """Yield what a function takes out of slots: by a subscript, an attribute, ``get`` or ``getattr``."""
    for node in function.own_nodes():
        slot = None
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Load):
            slot = _slot(function, node)
        elif isinstance(node, ast.Call) and node.args and last_name(node.func) in {"get", "pop"}:
            slot = _slot_of(function, node.func.value if isinstance(node.func, ast.Attribute) else node, node.args[0])
        elif isinstance(node, ast.Call) and last_name(node.func) == "getattr" and len(node.args) > 1:
            slot = _slot_of(function, node.args[0], node.args[1])
        if slot is not None:
            yield SlotUse(slot=slot, node=node, text=ast.unparse(node))


def _slot(function: Function, node: ast.expr) -> Slot | None:
    """Return the slot that an expression names; None for anything else."""
    if isinstance(node, ast.Subscript):
        return _slot_of(function, node.value, node.slice)
    if isinstance(node, ast.Attribute) and (holder := _holder(function, node.value)):
        return Slot(holder=holder, key=node.attr)
    return None


def _slot_of(function: Function, base: ast.expr, key: ast.expr) -> Slot | None:
    holder, word = _holder(function, base), _constant(function, key)
    return Slot(holder=holder, key=word) if holder and word is not UNKNOWN else None


def _constant(function: Function, node: ast.expr) -> object:
    """Return a text or number that an expression is known to be; ``UNKNOWN`` for the rest."""
    value = constant_value(node, function.module, function)
    return value if isinstance(value, str | int) else UNKNOWN


def _holder(function: Function, node: ast.expr) -> str:
    """Return the shared object that an expression is: an attribute of self, or a mapping of the module; empty for others."""
    if isinstance(node, ast.Call):
        return "globals()" if last_name(node.func) == "globals" else ""
    if isinstance(node, ast.Attribute) and not function.is_static:
        root, _, path = ast.unparse(node).partition(".")
        is_of_self = root in function.positional[:1] and path.partition(".")[0] not in {"__dict__", "config", "server"}
        return f"self.{path}" if is_of_self and path.replace(".", "_").isidentifier() else ""
    if not isinstance(node, ast.Name) or node.id in function.positional or _is_bound_in(function, node.id):
        return ""
    bound = [item.node for item in function.module.names.get(node.id, ()) if not item.module]
    values = [item.value if isinstance(item, ast.Assign | ast.AnnAssign) else item for item in bound]
    is_mapping = any(isinstance(value, ast.Dict) or last_name(value) in _MAPPINGS for value in values if value is not None)
    return node.id if is_mapping else ""


def _is_bound_in(function: Function, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in function.own_nodes()
    )
