"""Taint analysis of texts: whether the author wrote a value, or the item, the model or the sandbox decides it.

An expression is *trusted* (constants, numbers, quoted values, settings), *tainted* (fields of the item, the transcript, what the
sandbox returned) or *unknown*. Texts are followed through f-strings, ``%``, ``format``, ``+``, ``join``, templates, locals and
helpers.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.source.flow import data_flow
from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.layer_names import LAYER_CONTEXT
from pytest_hermes_env.source.local_names import assignments, binds, is_membership_test, statements_around
from pytest_hermes_env.source.syntax import SCOPES, all_parameters, last_name
from pytest_hermes_env.source.values import Kind, Values

if TYPE_CHECKING:
    from pytest_hermes_env.source.classes import ClassSource
    from pytest_hermes_env.source.frames import Call
    from pytest_hermes_env.source.modules import Module

_MAX_DEPTH = 12
_TRUSTED_CALLS = frozenset(
    {
        "quote", "list2cmdline",
        "int", "float", "len", "round", "abs", "sum", "bool", "ord", "hash", "id", "range", "time", "monotonic",
        "uuid4", "uuid1", "hexdigest", "hex", "b64encode", "urlsafe_b64encode", "b32encode", "token_hex", "mkdtemp", "mktemp",
    }
)  # fmt: skip
"""Functions that quote, or that return numbers or texts without special characters."""
_PASS_THROUGH = frozenset(
    {
        "str", "repr", "list", "tuple", "sorted", "reversed", "set", "frozenset", "dict", "enumerate", "zip", "next", "iter", "min",
        "max", "dedent", "indent", "Path", "PurePosixPath", "PurePath", "Template", "dumps", "normpath", "abspath", "basename",
        "dirname", "fspath", "filter", "cast", "deepcopy", "copy", "chain", "format",
    }
)  # fmt: skip
_PASS_THROUGH_METHODS = frozenset(
    {
        "format", "format_map", "join", "strip", "lstrip", "rstrip", "lower", "upper", "title", "replace", "split", "rsplit",
        "splitlines", "get", "substitute", "safe_substitute", "removeprefix", "removesuffix", "encode", "decode", "values", "items",
        "keys", "pop", "setdefault", "copy", "as_posix", "joinpath", "with_suffix", "partition", "rpartition", "ljust", "zfill",
    }
)  # fmt: skip
_VALIDATORS = frozenset(
    {
        "fullmatch", "match", "isalnum", "isalpha", "isidentifier", "isdigit", "isdecimal", "isnumeric", "isascii",
        "is_relative_to",
    }
)  # fmt: skip
_NUMERIC_FORMAT = re.compile(r"[bcdeEfFgGnoxX%]$")
_COMMAND_FIELD = re.compile(r"cmd|command|script|shell", re.IGNORECASE)
"""Fields of an item that are whole commands, not values in one."""
_NUMERIC_FIELDS = frozenset({"turns_used", "finished_naturally"})


class _Level(enum.IntEnum):
    TRUSTED = 0
    UNKNOWN = 1
    TAINTED = 2


@dataclass(frozen=True, kw_only=True)
class Taint:
    """Where a text comes from.

    ``what`` is the part that decided. ``is_interpolated``: values were put into another text.
    """

    level: _Level = _Level.TRUSTED
    what: str = ""
    is_interpolated: bool = False

    @property
    def is_tainted(self) -> bool:
        """Whether it contains a value that the author did not write, unquoted."""
        return self.level is _Level.TAINTED

    @property
    def is_unknown(self) -> bool:
        """Whether the source cannot tell."""
        return self.level is _Level.UNKNOWN


_TRUSTED = Taint()
_Bindings = tuple[tuple[str, Taint], ...]


class TaintAnalysis:
    """Follows taint through the methods of a class to its sinks.

    ``sinks`` yields the expressions of a call that must not be tainted; ``found`` holds the taints that reach them.
    """

    def __init__(self, source: ClassSource, sinks: Callable[[Call], Iterator[ast.expr]]) -> None:
        """Start with nothing analysed."""
        self.source = source
        self.found: dict[tuple[ast.AST, Taint], Function] = {}
        self.calls: dict[ast.AST, list[Call]] = {}  # a function that is reached in several ways makes each call in as many
        for frame in data_flow(source).every_frame():
            for call in frame.calls:
                self.calls.setdefault(call.node, []).append(call)
        self._sinks = sinks
        self._returns: dict[tuple[Function, _Bindings], Taint] = {}

    def analyse(self, function: Function, bindings: _Bindings, depth: int = 0) -> Taint:
        """Analyse one function with the taints of its parameters, and return the taint of what it returns."""
        key = function, bindings
        if key in self._returns:
            return self._returns[key]
        self._returns[key] = _TRUSTED
        if depth > _MAX_DEPTH:
            return _unknown(f"{function.name}(...)")
        text = _FunctionTaint(self, function, dict(bindings), depth)
        for node in ast.walk(function.node):
            calls = self.calls.get(node, ())
            for sink in {sink for call in calls for sink in self._sinks(call)}:
                self.found.setdefault((node, text.taint(sink)), function)
            if isinstance(node, ast.Call) and calls:
                text.call(node)
        returned = [text.taint(node.value) for node in function.own_nodes() if isinstance(node, ast.Return) and node.value]
        self._returns[key] = _merged(returned)
        return self._returns[key]


def entry_taints(function: Function) -> _Bindings:
    """Return the taints of the parameters of compute_reward: its item and its result are tainted."""
    names = function.positional_without_self
    given = [Taint(level=_Level.TAINTED, what=name) for name in names[:2]]
    return tuple(zip(names, [*given, _TRUSTED], strict=False))


def is_context(values: Values) -> bool:
    """Return whether ``values`` may be a tool context."""
    return any(
        (value.kind is Kind.CONTEXT and not value.name) or (value.kind is Kind.INSTANCE and value.name == LAYER_CONTEXT)
        for value in values
    )


def _known_parameters(method: Function) -> dict[str, Taint]:
    return dict(entry_taints(method)) if method.name == "compute_reward" else {}


def _unknown(what: str) -> Taint:
    return Taint(level=_Level.UNKNOWN, what=what)


def _tainted(node: ast.AST) -> Taint:
    text = ast.unparse(node)
    return Taint(level=_Level.TAINTED, what=text if len(text) <= 40 else text[:39] + "…")  # noqa: PLR2004 - a message's line


def _merged(taints: list[Taint], *, is_interpolated: bool = False) -> Taint:
    worst = max(taints, key=lambda taint: taint.level, default=_TRUSTED)
    return Taint(
        level=worst.level, what=worst.what, is_interpolated=is_interpolated or any(taint.is_interpolated for taint in taints)
    )


class _FunctionTaint:
    """The taints of the expressions of one function, given those of its parameters."""

    def __init__(self, analysis: TaintAnalysis, function: Function, bindings: dict[str, Taint], depth: int) -> None:
        self._analysis, self.function, self._bindings, self._depth = analysis, function, bindings, depth
        self._pending: set[ast.AST] = set()

    def taint(self, node: ast.AST | None) -> Taint:
        """Return the taint of an expression."""
        if node is None or node in self._pending:  # a name that is built on itself: its other bindings decide
            return _TRUSTED
        self._pending.add(node)
        try:
            return self._taint(node)
        finally:
            self._pending.discard(node)

    def _taint(self, node: ast.AST) -> Taint:
        match node:
            case ast.Constant() | ast.Compare() | ast.Lambda():
                return _TRUSTED
            case ast.JoinedStr(values=parts):
                values = [part for part in parts if isinstance(part, ast.FormattedValue)]
                return _merged([self.taint(part) for part in values], is_interpolated=bool(values))
            case ast.FormattedValue(value=value, format_spec=spec):
                return _TRUSTED if spec is not None and _is_numeric(spec) else self.taint(value)
            case ast.BinOp(left=left, right=right):
                return _merged([self.taint(left), self.taint(right)], is_interpolated=True)
            case ast.Name(id=name):
                return self._name(name, node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=base, slice=index):
                return self._field(node, self.taint(base), index)
            case ast.Call():
                return self.call(node)
            case ast.IfExp(body=body, orelse=orelse):
                return _merged([self.taint(body), self.taint(orelse)])
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return _merged([self.taint(part) for part in parts])
            case ast.BoolOp(values=parts) | ast.Dict(values=parts):
                return _merged([self.taint(part) for part in parts])
            case ast.Await(value=part) | ast.Starred(value=part) | ast.NamedExpr(value=part) | ast.keyword(value=part):
                return self.taint(part)
            case ast.UnaryOp(operand=part) | ast.DictComp(value=part):
                return self.taint(part)
            case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.GeneratorExp(elt=part):
                return self.taint(part)
            case _:
                return _unknown(ast.unparse(node)[:40])

    def _field(self, node: ast.AST, base: Taint, index: ast.AST | None) -> Taint:
        """Return the taint of an entry: of a tainted value it is tainted too, unless its name says that it is a command."""
        if base.level is not _Level.TAINTED:
            return base
        if isinstance(index, ast.Constant) and isinstance(index.value, str) and _COMMAND_FIELD.search(index.value):
            return _TRUSTED
        return _tainted(node)

    def _attribute(self, node: ast.Attribute) -> Taint:
        if _is_of_self(node, self.function):
            return self._of_self(node.attr)
        base = node.value
        if isinstance(base, ast.Attribute) and base.attr == "config" and last_name(base.value) in self.function.positional[:1]:
            return _TRUSTED
        taint = self.taint(base)
        if taint.level is not _Level.TAINTED:
            return taint
        return _TRUSTED if node.attr in _NUMERIC_FIELDS or _COMMAND_FIELD.search(node.attr) else _tainted(node)

    def _of_self(self, name: str) -> Taint:
        """Return the taint of an attribute of self: a setting, a constant of the class, or what methods assign."""
        if name == "config":
            return _TRUSTED
        given = self._analysis.source.attribute(name)
        if given is not None:
            return _module_expression(given[1], given[0].module)
        if name.isupper():
            return _TRUSTED
        assigned = [
            (method, node.value)
            for owner in self._analysis.source.readable
            for method in owner.own_methods.values()
            for node in method.own_nodes()
            if isinstance(node, ast.Assign) and any(_is_of_self(target, method, name) for target in node.targets)
        ]
        if not assigned or self._depth > _MAX_DEPTH:
            return _unknown(f"self.{name}")
        texts = [
            (_FunctionTaint(self._analysis, method, _known_parameters(method), self._depth + 4), value)
            for method, value in assigned
        ]
        return _merged([text.taint(value) for text, value in texts])

    def _name(self, name: str, use: ast.AST) -> Taint:
        bound = self._bound(name, use)
        if bound is not None:
            found = bound
        elif name in self._bindings:
            found = self._bindings[name]
        elif name in _parameters(self.function):
            found = _TRUSTED if _is_number(self.function, name) else _unknown(name)
        else:
            return _module_name(name, self.function.module)
        if found.is_tainted and self._is_checked(name, use):
            return _unknown(f"{name} (checked before)")
        return found

    def _bound(self, name: str, use: ast.AST) -> Taint | None:
        """Return the taint of the assignments that reach ``use``; None when there are none."""
        for _, parent in self.function.ancestors(use):
            for item in getattr(parent, "generators", ()):
                if binds(item.target, name):
                    return self.taint(item.iter)
        line = getattr(use, "lineno", 0)
        bindings = sorted(assignments(self.function, name), key=lambda pair: getattr(pair[0], "lineno", 0))
        before = [pair for pair in bindings if getattr(pair[0], "lineno", 0) < line or isinstance(pair[0], ast.NamedExpr)]
        certain = statements_around(self.function, use)
        found: list[Taint] = []
        for statement, value in reversed(before or bindings):
            found.append(self._assigned(name, statement, value))
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement in certain:
                break
        else:
            if name in self._bindings:
                found.append(self._bindings[name])
        return _merged(found) if bindings else None

    def _assigned(self, name: str, statement: ast.AST, value: ast.AST | None) -> Taint:
        if value is None:
            return _unknown(f"the exception {name}")
        return _merged([self.taint(value)], is_interpolated=isinstance(statement, ast.AugAssign))

    def _is_checked(self, name: str, use: ast.AST) -> bool:
        """Return whether the value was validated before: by a pattern, by isalnum, or by a list that must contain it."""
        for node in ast.walk(self.function.node):
            if getattr(node, "lineno", 0) > getattr(use, "lineno", 0):
                continue
            if isinstance(node, ast.Call) and last_name(node.func) in _VALIDATORS:
                parts = [*node.args, node.func.value] if isinstance(node.func, ast.Attribute) else node.args
                if any(isinstance(part, ast.Name) and part.id == name for part in parts):
                    return True
            if isinstance(node, ast.Compare) and is_membership_test(node, name):
                return True
        return False

    def call(self, node: ast.Call) -> Taint:
        """Return the taint of what a call returns; the function that it calls is analysed if it can be read."""
        name = last_name(node.func)
        arguments = [self.taint(item) for item in (*node.args, *node.keywords)]
        calls = self._analysis.calls.get(node, ())
        target = next((target for call in calls if (target := _function_called(call)) is not None), None)
        if target is not None:
            return self._analysis.analyse(target, self._given(node, target), self._depth + 1)
        if any(is_context(call.receiver) for call in calls):
            return _tainted(node)
        if name in _TRUSTED_CALLS or (name == "join" and ast.unparse(node.func) == "shlex.join"):
            return _TRUSTED
        if name == "map" and node.args:
            return _TRUSTED if last_name(node.args[0]) in _TRUSTED_CALLS else _merged(arguments[1:])
        if isinstance(node.func, ast.Attribute) and name in _PASS_THROUGH_METHODS | _PASS_THROUGH:
            base = self.taint(node.func.value) if not _is_module_name(node.func.value, self.function.module) else _TRUSTED
            if name == "get" and node.args:
                return _merged([self._field(node, base, node.args[0]), *arguments[1:]])
            return _merged(
                [base, *arguments], is_interpolated=name in {"format", "format_map", "join", "substitute", "safe_substitute"}
            )
        if name in _PASS_THROUGH:
            return _merged(arguments)
        if name.isupper() and not node.args:
            return _TRUSTED
        return _unknown(f"{name}(...)" if name else "a call")

    def _given(self, node: ast.Call, target: Function) -> _Bindings:
        """Return the taints that a call passes to the parameters of ``target``."""
        if any(isinstance(item, ast.Starred) for item in node.args) or any(word.arg is None for word in node.keywords):
            return ()
        found = {name: _module_expression(default, target.module) for name, default in target.defaults.items()}
        found |= {name: self.taint(item) for name, item in zip(target.positional_without_self, node.args, strict=False)}
        found |= {word.arg: self.taint(word.value) for word in node.keywords if word.arg}
        return tuple(sorted(found.items()))


def _is_numeric(spec: ast.expr) -> bool:
    last = spec.values[-1] if isinstance(spec, ast.JoinedStr) and spec.values else None
    return isinstance(last, ast.Constant) and _NUMERIC_FORMAT.search(str(last.value)) is not None


def _is_of_self(node: ast.AST, method: Function, name: str = "") -> bool:
    """Return whether ``node`` is an attribute of self, the one that is called ``name``."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or method.is_static:
        return False
    return method.positional[:1] == (node.value.id,) and name in {"", node.attr}


def _parameters(function: Function) -> frozenset[str]:
    arguments = function.node.args
    variadic = [item for item in (arguments.vararg, arguments.kwarg) if item is not None]
    nested = [item for node in ast.walk(function.node) if isinstance(node, SCOPES) for item in node.args.args]
    return frozenset(item.arg for item in (*all_parameters(arguments), *variadic, *nested))


def _is_number(function: Function, name: str) -> bool:
    for item in all_parameters(function.node.args):
        if item.arg == name and item.annotation is not None:
            return last_name(item.annotation) in {"int", "float", "bool"}
    return False


def _function_called(call: Call) -> Function | None:
    if len(call.callee) != 1:
        return None
    (value,) = call.callee
    return value.target if isinstance(value.target, Function) else None


def _module_name(name: str, module: Module) -> Taint:
    if name.strip("_").isupper():
        return _TRUSTED
    bindings = module.names.get(name, ())
    if not bindings:
        return _unknown(name)
    return _merged([_unknown(name) if item.module else _module_expression(item.node, module) for item in bindings])


def _module_expression(node: ast.AST, module: Module) -> Taint:
    """Return the taint of an expression of module or class scope, which the author wrote."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in module.names and part.id.islower():
            return _unknown(part.id)
        if isinstance(part, ast.Call):
            return _unknown(ast.unparse(part)[:40])
    return _TRUSTED


def _is_module_name(node: ast.AST, module: Module) -> bool:
    """Return whether a name is an imported module, such as ``os.path`` in ``os.path.join``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and any(item.module and not item.attribute for item in module.names.get(node.id, ()))
