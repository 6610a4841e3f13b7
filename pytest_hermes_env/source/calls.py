"""Calls as plain functions of a `Call`: how arguments reach parameters, what a call changes, and what it returns.

The results are those of code that is not read: builtins, the standard library, and methods of known values. A function that
calls one of its arguments takes ``apply``, which calls a value with arguments and returns the result.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pytest_hermes_env.source.layer_names import LAYER_RESULT, RESULT_FIELDS
from pytest_hermes_env.source.syntax import last_name, parameters
from pytest_hermes_env.source.values import (
    ANYTHING,
    DICTS,
    EMPTY,
    FALSE,
    LISTS,
    NOTHING,
    RESULT,
    SELF,
    TRUE,
    Kind,
    Value,
    Values,
    attributes_of_self,
    elements,
    may_be,
    message_part,
    must_be,
    sequence_of,
    single,
    union,
)

if TYPE_CHECKING:
    from pytest_hermes_env.source.frames import Call, Frame
    from pytest_hermes_env.source.functions import Function

Apply = Callable[[Values, list[Values]], Values]

_RETURN_FIRST_ARGUMENT = frozenset(
    {"create_task", "ensure_future", "shield", "wait_for", "run", "tqdm", "partial", "nullcontext"}
)
_SEQUENCES = frozenset({"list", "tuple", "set", "sorted", "reversed", "iter", "frozenset", "as_completed", "deque", "Counter"})
_MAX_STARRED = 12
"""How many parameters a starred argument may fill."""
MUTATORS = frozenset(
    {
        "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop", "popitem",
        "popleft", "put", "put_nowait", "remove", "reverse", "rotate", "setdefault", "sort", "subtract", "update",
    }
)  # fmt: skip
"""Methods that change the object that they are called on."""

_MUTATE_FIRST_ARGUMENT = frozenset({"heappush", "heappushpop", "insort", "insort_left", "insort_right", "shuffle"})
_BUILTIN_CLASSES = frozenset({"dict", "list", "tuple", "set", "str", "bytes", "int", "float", "bool", "Mapping"})


def spread_arguments(call: Call) -> list[Values]:
    """Return the positional arguments; a starred one stands for as many as there may be."""
    found: list[Values] = []
    for item, values in zip(call.node.args, call.arguments, strict=True):
        if isinstance(item, ast.Starred):
            return found + [values | ANYTHING] * _MAX_STARRED
        found.append(values)
    return found


def bind_arguments(callee: Value, function: Function, given: list[Values], keywords: Mapping[str, Values]) -> dict[str, Values]:
    """Return what each parameter of ``function`` gets when ``callee``, it or a method bound to it, is called."""
    bound: list[Values] = []
    if callee.kind is Kind.METHOD and not function.is_static:
        bound = [callee.items[0] if callee.items else SELF]
    elif function.is_classmethod:
        bound = [SELF]
    found = dict(zip(function.positional, [*bound, *given], strict=False))
    for name in parameters(function.node):
        if name in keywords:
            found[name] = keywords[name]
        elif name not in found:
            found[name] = ANYTHING if "**" in keywords else value_of_literal(function.defaults.get(name))
    return found


def value_of_literal(node: ast.expr | None) -> Values:
    """Return the value of a literal None, True or False; anything else is unknown."""
    if isinstance(node, ast.Constant):
        if node.value is None:
            return NOTHING
        if isinstance(node.value, bool):
            return TRUE if node.value else FALSE
    return ANYTHING


def record_changes(call: Call, frame: Frame) -> None:
    """Record in ``frame`` what a call changes on self: by a mutating method, by setattr, or by a function such as shuffle."""
    if call.name in MUTATORS and isinstance(call.node.func, ast.Attribute):
        for name, value in _put_into_dict(call).items():
            frame.add_change(name, "set", call.node, value)
        frame.add_changes_inside(call.receiver, call.name, call.node)
    first = call.arguments[0] if call.arguments else NOTHING
    is_passed_on = any(value.kind is Kind.EXTERNAL and value.name == "setattr" for value in first)
    if call.name == "setattr" or is_passed_on:
        _record_setattr(call, frame, start=int(is_passed_on))
    if call.name in _MUTATE_FIRST_ARGUMENT:
        frame.add_changes_inside(first, call.name, call.node)


def _put_into_dict(call: Call) -> Mapping[str, Values]:
    """Return the attributes that ``vars(self).update(name=value)`` sets."""
    is_dict = any(value.kind is Kind.ATTRIBUTE and value.name == "__dict__" for value in call.receiver)
    return {name: value for name, value in call.keywords.items() if name != "**"} if is_dict and call.name == "update" else {}


def _record_setattr(call: Call, frame: Frame, start: int) -> None:
    """Record ``setattr(self, name, value)``, also passed on: ``stack.callback(setattr, self, name, value)``."""
    given = call.arguments[start : start + 3]
    if len(given) == 3 and may_be(given[0], Kind.SELF):  # noqa: PLR2004  # self, name, value
        name = text_of(call.node.args[start + 1])
        frame.add_change("*" if name is None else name, "set", call.node, given[2])


def result_of_external(dotted: str, call: Call, apply: Apply) -> Values:  # a table of names
    """Return what a function or class from outside the tree returns."""
    name = dotted.rpartition(".")[2]
    arguments = call.arguments
    first = arguments[0] if arguments else NOTHING
    if name == LAYER_RESULT:
        return RESULT
    if name == "gather":
        return sequence_of(union(arguments))
    if name in {"to_thread", "run_in_executor"}:
        index = 0 if name == "to_thread" else 1
        called = arguments[index] if len(arguments) > index else NOTHING
        return apply(called, list(arguments[index + 1 :]))
    if name in {"copy", "deepcopy", "replace"} and must_be(first, Kind.RESULT):
        return RESULT
    if name in _RETURN_FIRST_ARGUMENT and dotted != "subprocess.run":
        return first or ANYTHING
    if name in _SEQUENCES:
        return sequence_of(elements(first)) if first and first != EMPTY else (ANYTHING if arguments else EMPTY)
    if dotted == "str" and may_be(first, Kind.MESSAGE):
        return first
    if name in {"dict", "Counter", "OrderedDict"} and not arguments and not call.keywords:
        return EMPTY
    if name == "defaultdict" and len(arguments) <= 1 and not call.keywords:
        return EMPTY
    if name == "enumerate":
        return sequence_of(frozenset({Value(Kind.TUPLE, items=(ANYTHING, elements(first)))}))
    if name == "zip":
        return sequence_of(frozenset({Value(Kind.TUPLE, items=tuple(elements(item) for item in arguments))}))
    if name == "map" and arguments:
        return sequence_of(apply(first, [elements(item) for item in arguments[1:]]))
    if name == "filter" and len(arguments) > 1:
        return sequence_of(elements(arguments[1]))
    if name == "next":
        return elements(first)
    if name == "vars" and must_be(first, Kind.SELF):
        return single(Kind.ATTRIBUTE, "__dict__")
    if name == "isinstance" and len(arguments) > 1:
        return _isinstance(first, call.node.args[1])
    if name == "hasattr" and len(arguments) > 1:
        return _hasattr(first, call.node.args[1])
    return single(Kind.INSTANCE, name, node=call.node) if name[:1].isupper() else ANYTHING


def result_of_method(call: Call) -> Values:
    """Return what a method of a known value returns, judged by the method's name and the receiver."""
    if call.name == "enter_async_context":
        return union(call.arguments[:1])
    if call.name == "__aenter__":
        return call.receiver
    if call.name in {"get", "pop"} and may_be(call.receiver, Kind.MESSAGE) and call.node.args:
        key = text_of(call.node.args[0]) or "?"
        found = union(message_part(value.name, key) for value in call.receiver if value.kind is Kind.MESSAGE)
        return found | union(call.arguments[1:2])
    if call.name in {"copy", "strip", "lower"} and must_be(call.receiver, Kind.MESSAGE):
        return call.receiver
    found = NOTHING
    for attribute in attributes_of_self(call.receiver):
        part = single(Kind.PART, attribute)
        if call.name in {"get", "setdefault", "pop", "popleft"}:
            found |= part
        elif call.name == "values":
            found |= sequence_of(part)
        elif call.name == "items":
            found |= sequence_of(frozenset({Value(Kind.TUPLE, items=(ANYTHING, part))}))
    if call.name == "pop" and is_sequence(call.receiver):
        found |= elements(call.receiver)
    return found or ANYTHING


def text_of(node: ast.AST) -> str | None:
    """Return the text of a string literal, or None if ``node`` is something else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def is_sequence(values: Values) -> bool:
    """Return whether ``values`` is certainly a list or another sequence."""
    return bool(values) and all(value.kind in {Kind.MANY, Kind.EMPTY} for value in values)


def _hasattr(first: Values, word: ast.expr) -> Values:
    name = text_of(word)
    if name is None:
        return ANYTHING
    if must_be(first, Kind.RESULT):
        return TRUE if name in RESULT_FIELDS else FALSE
    if must_be(first, Kind.MESSAGE) and all(value.name in DICTS for value in first):
        return TRUE if hasattr(dict, name) else FALSE
    return ANYTHING


def _isinstance(first: Values, classes: ast.expr) -> Values:
    names = {last_name(item) for item in (classes.elts if isinstance(classes, ast.Tuple) else [classes])}
    if must_be(first, Kind.RESULT):
        if LAYER_RESULT in names:
            return TRUE
        return FALSE if names <= _BUILTIN_CLASSES else ANYTHING
    if must_be(first, Kind.MESSAGE):
        return _is_message_of(first, names)
    return ANYTHING


def _is_message_of(first: Values, names: set[str]) -> Values:
    """Return the result of isinstance for parts of messages: only dicts and lists are known for certain."""
    kinds = {"dict" if value.name in DICTS else "list" if value.name in LISTS else "" for value in first}
    if "" in kinds or not names <= _BUILTIN_CLASSES:
        return ANYTHING
    if kinds <= names or (kinds == {"dict"} and "Mapping" in names):
        return TRUE
    return ANYTHING if kinds & names else FALSE
