"""Where the text of a shell command comes from: what the source wrote, what it quoted, and what somebody else said.

An expression is *written* (constants, numbers, quoted values, settings), *foreign* (fields of the item, the transcript, what the
sandbox gave) or *unknown*. Texts are followed through f-strings, ``%``, ``format``, ``+``, ``join``, templates, locals and helpers.
"""

from __future__ import annotations

import ast
import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.source.flow import data_flow
from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.layer_names import LAYER_CONTEXT
from pytest_hermes_env.source.syntax import SCOPES, all_parameters, last_name
from pytest_hermes_env.source.values import Kind, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_hermes_env.source.classes import ClassSource
    from pytest_hermes_env.source.frames import Call
    from pytest_hermes_env.source.modules import Module

_DEEPEST = 12
_TERMINAL = "terminal"

_QUOTES = frozenset({"quote", "list2cmdline"})
_NUMBERS = frozenset({"int", "float", "len", "round", "abs", "sum", "bool", "ord", "hash", "id", "range", "time", "monotonic"})
_OF_LETTERS = frozenset(
    {"uuid4", "uuid1", "hexdigest", "hex", "b64encode", "urlsafe_b64encode", "b32encode", "token_hex", "mkdtemp", "mktemp"}
)
_SAME = frozenset(
    {
        "str", "repr", "list", "tuple", "sorted", "reversed", "set", "frozenset", "dict", "enumerate", "zip", "next", "iter", "min",
        "max", "dedent", "indent", "Path", "PurePosixPath", "PurePath", "Template", "dumps", "normpath", "abspath", "basename",
        "dirname", "fspath", "filter", "cast", "deepcopy", "copy", "chain", "format",
    }
)  # fmt: skip
_METHODS = frozenset(
    {
        "format", "format_map", "join", "strip", "lstrip", "rstrip", "lower", "upper", "title", "replace", "split", "rsplit",
        "splitlines", "get", "substitute", "safe_substitute", "removeprefix", "removesuffix", "encode", "decode", "values", "items",
        "keys", "pop", "setdefault", "copy", "as_posix", "joinpath", "with_suffix", "partition", "rpartition", "ljust", "zfill",
    }
)  # fmt: skip
_CHECKS = frozenset(
    {
        "fullmatch",
        "match",
        "isalnum",
        "isalpha",
        "isidentifier",
        "isdigit",
        "isdecimal",
        "isnumeric",
        "isascii",
        "is_relative_to",
    }
)
_GROWS = frozenset({"append", "extend", "insert", "add"})
_NUMERIC_FORMAT = re.compile(r"[bcdeEfFgGnoxX%]$")
_COMMANDS = re.compile(r"cmd|command|script|shell", re.IGNORECASE)
"""Fields of an item that are commands themselves, and not values in one."""
_OF_NUMBERS = frozenset({"turns_used", "finished_naturally"})


class _Level(enum.IntEnum):
    WRITTEN = 0
    UNKNOWN = 1
    FOREIGN = 2


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a text comes from; ``what`` shows the part that decided. ``is_built``: values were put into another text."""

    level: _Level = _Level.WRITTEN
    what: str = ""
    is_built: bool = False

    @property
    def is_foreign(self) -> bool:
        """Whether somebody else's words are in it, unquoted."""
        return self.level is _Level.FOREIGN

    @property
    def is_unknown(self) -> bool:
        """Whether the source cannot tell."""
        return self.level is _Level.UNKNOWN


@dataclass(frozen=True, kw_only=True, eq=False)
class Command:
    """One command that is given to a terminal of the tool context."""

    function: Function
    node: ast.AST
    origin: Origin


_WRITTEN = Origin()
_Bindings = tuple[tuple[str, Origin], ...]


def commands_of(source: ClassSource, *methods: str) -> tuple[Command, ...]:
    """Return the commands that these methods of a class lead to, each once for every way that its values take."""
    reader = _Reader(source)
    for name in methods:
        function = source.methods.get(name)
        if function is not None:
            reader.enter(function, _entry_of(function))
    return tuple(reader.found.values())


def _entry_of(function: Function) -> _Bindings:
    names = function.positional[0 if function.is_static else 1 :]
    given = [Origin(level=_Level.FOREIGN, what=name) for name in names[:2]]
    return tuple(zip(names, [*given, _WRITTEN], strict=False))


def _known_in(method: Function) -> dict[str, Origin]:
    return dict(_entry_of(method)) if method.name == "compute_reward" else {}


def _unknown(what: str) -> Origin:
    return Origin(level=_Level.UNKNOWN, what=what)


def _foreign(node: ast.AST) -> Origin:
    text = ast.unparse(node)
    return Origin(level=_Level.FOREIGN, what=text if len(text) <= 40 else text[:39] + "…")  # noqa: PLR2004 - a message's line


def _joined(origins: list[Origin], *, is_built: bool = False) -> Origin:
    worst = max(origins, key=lambda origin: origin.level, default=_WRITTEN)
    return Origin(level=worst.level, what=worst.what, is_built=is_built or any(origin.is_built for origin in origins))


class _Reader:
    """Reads functions with what their parameters are known to be."""

    def __init__(self, source: ClassSource) -> None:
        self.source = source
        self.found: dict[tuple[ast.AST, Origin], Command] = {}
        self.calls: dict[ast.AST, Call] = {call.node: call for frame in data_flow(source).every_frame() for call in frame.calls}
        self._returns: dict[tuple[Function, _Bindings], Origin] = {}

    def enter(self, function: Function, bindings: _Bindings, depth: int = 0) -> Origin:
        """Read one function; return what it gives back."""
        key = function, bindings
        if key in self._returns:
            return self._returns[key]
        self._returns[key] = _WRITTEN
        if depth > _DEEPEST:
            return _unknown(f"{function.name}(...)")
        text = _Text(self, function, dict(bindings), depth)
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call):
                self._look_at(node, text)
        returned = [text.origin(node.value) for node in function.own_nodes() if isinstance(node, ast.Return) and node.value]
        self._returns[key] = _joined(returned)
        return self._returns[key]

    def _look_at(self, node: ast.Call, text: _Text) -> None:
        call = self.calls.get(node)
        if call is None:
            return
        for command in _given_to_terminal(call):
            origin = text.origin(command)
            self.found.setdefault((node, origin), Command(function=text.function, node=node, origin=origin))
        text.called(node)


def _given_to_terminal(call: Call) -> Iterator[ast.expr]:
    """Yield the expressions that a call gives to the terminal of a tool context."""
    arguments = [item for item in call.node.args if not isinstance(item, ast.Starred)]
    words = {word.arg: word.value for word in call.node.keywords}
    is_direct = call.name == _TERMINAL and _is_context(call.receiver)
    if is_direct or any(value.kind is Kind.CONTEXT and value.name == _TERMINAL for value in call.callee):
        yield from arguments[:1]
        if "command" in words:
            yield words["command"]
    elif call.name == "call_tool" and _is_context(call.receiver) and arguments:
        given = arguments[1] if len(arguments) > 1 else words.get("arguments")
        if isinstance(arguments[0], ast.Constant) and arguments[0].value == _TERMINAL and isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "command":
                    yield value
    for index, values in enumerate(call.arguments[:-1]):
        if any(value.kind is Kind.CONTEXT and value.name == _TERMINAL for value in values):
            yield call.node.args[index + 1]


def _is_context(values: Values) -> bool:
    return any(
        (value.kind is Kind.CONTEXT and not value.name) or (value.kind is Kind.INSTANCE and value.name == LAYER_CONTEXT)
        for value in values
    )


class _Text:
    """The expressions of one function, with what its parameters are known to be."""

    def __init__(self, reader: _Reader, function: Function, bindings: dict[str, Origin], depth: int) -> None:
        self._reader, self.function, self._bindings, self._depth = reader, function, bindings, depth
        self._pending: set[ast.AST] = set()

    def origin(self, node: ast.AST | None) -> Origin:
        """Return where the value of an expression comes from."""
        if node is None:
            return _WRITTEN
        if node in self._pending:
            return _WRITTEN  # a name that is built on itself: the other bindings tell
        self._pending.add(node)
        try:
            return self._origin(node)
        finally:
            self._pending.discard(node)

    def _origin(self, node: ast.AST) -> Origin:
        match node:
            case ast.Constant() | ast.Compare() | ast.Lambda():
                return _WRITTEN
            case ast.JoinedStr(values=parts):
                values = [part for part in parts if isinstance(part, ast.FormattedValue)]
                return _joined([self.origin(part) for part in values], is_built=bool(values))
            case ast.FormattedValue(value=value, format_spec=spec):
                return _WRITTEN if spec is not None and _is_numeric(spec) else self.origin(value)
            case ast.BinOp(left=left, right=right):
                return _joined([self.origin(left), self.origin(right)], is_built=True)
            case ast.Name(id=name):
                return self._name(name, node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=holder, slice=index):
                return self._field(node, self.origin(holder), index)
            case ast.Call():
                return self.called(node)
            case ast.Await(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value) | ast.keyword(value=value):
                return self.origin(value)
            case ast.IfExp(body=body, orelse=orelse):
                return _joined([self.origin(body), self.origin(orelse)])
            case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return _joined([self.origin(part) for part in parts])
            case ast.Dict(values=parts):
                return _joined([self.origin(part) for part in parts])
            case ast.UnaryOp(operand=operand):
                return self.origin(operand)
            case ast.ListComp(elt=elt) | ast.SetComp(elt=elt) | ast.GeneratorExp(elt=elt):
                return self.origin(elt)
            case ast.DictComp(value=value):
                return self.origin(value)
            case _:
                return _unknown(ast.unparse(node)[:40])

    def _field(self, node: ast.AST, holder: Origin, index: ast.AST | None) -> Origin:
        """Return what an entry of something foreign is: a command by its name, or foreign as well."""
        if holder.level is not _Level.FOREIGN:
            return holder
        if isinstance(index, ast.Constant) and isinstance(index.value, str) and _COMMANDS.search(index.value):
            return _WRITTEN
        return _foreign(node)

    def _attribute(self, node: ast.Attribute) -> Origin:
        holder = node.value
        if isinstance(holder, ast.Name) and self._is_self(holder.id):
            return self._of_self(node.attr)
        if (
            isinstance(holder, ast.Attribute)
            and holder.attr == "config"
            and last_name(holder.value) in self.function.positional[:1]
        ):
            return _WRITTEN
        origin = self.origin(holder)
        if origin.level is not _Level.FOREIGN:
            return origin
        return _WRITTEN if node.attr in _OF_NUMBERS or _COMMANDS.search(node.attr) else _foreign(node)

    def _is_self(self, name: str) -> bool:
        function = self.function
        return not function.is_static and function.positional[:1] == (name,)

    def _of_self(self, name: str) -> Origin:
        """Return what an attribute of self holds: settings, a constant of the class, or what methods assign."""
        if name == "config":
            return _WRITTEN
        given = self._reader.source.attribute(name)
        if given is not None:
            return _in_module(given[1], given[0].module)
        if name.isupper():
            return _WRITTEN
        assigned = [
            (method, node.value)
            for owner in self._reader.source.readable
            for method in owner.own_methods.values()
            for node in method.own_nodes()
            if isinstance(node, ast.Assign) and any(_is_own_attribute(target, method, name) for target in node.targets)
        ]
        if not assigned or self._depth > _DEEPEST:
            return _unknown(f"self.{name}")
        texts = [(_Text(self._reader, method, _known_in(method), self._depth + 4), value) for method, value in assigned]
        return _joined([text.origin(value) for text, value in texts])

    def _name(self, name: str, use: ast.AST) -> Origin:
        bound = self._bound(name, use)
        if bound is not None:
            found = bound
        elif name in self._bindings:
            found = self._bindings[name]
        elif name in _parameters(self.function):
            found = _WRITTEN if _is_number(self.function, name) else _unknown(name)
        else:
            return _of_module(name, self.function.module)
        if found.is_foreign and self._is_checked(name, use):
            return _unknown(f"{name} (checked before)")
        return found

    def _bound(self, name: str, use: ast.AST) -> Origin | None:
        """Return what the assignments that reach ``use`` give; None when there are none."""
        for _, parent in self.function.ancestors(use):
            for item in getattr(parent, "generators", ()):
                if _binds(item.target, name):
                    return self._element(item.iter)
        parents = self.function.parents
        above = {use, *(parent for _, parent in self.function.ancestors(use))}
        line = getattr(use, "lineno", 0)
        bindings = sorted(_assignments(self.function, name), key=lambda pair: getattr(pair[0], "lineno", 0))
        before = [pair for pair in bindings if getattr(pair[0], "lineno", 0) < line or isinstance(pair[0], ast.NamedExpr)]
        found: list[Origin] = []
        for statement, value in reversed(before or bindings):
            found.append(value(self))
            if (
                isinstance(statement, (ast.Assign, ast.AnnAssign))
                and parents.get(statement) in above
                and statement in _block(parents.get(statement), above)
            ):
                break
        else:
            if name in self._bindings:
                found.append(self._bindings[name])
        return _joined(found) if bindings else None

    def _element(self, node: ast.AST) -> Origin:
        """Return what the members of a series are."""
        origin = self.origin(node)
        return origin if origin.level is not _Level.FOREIGN else Origin(level=origin.level, what=origin.what)

    def _is_checked(self, name: str, use: ast.AST) -> bool:
        """Tell whether the value was looked at before: a pattern, isalnum, or a list that it must stand in."""
        for node in ast.walk(self.function.node):
            if getattr(node, "lineno", 0) > getattr(use, "lineno", 0):
                continue
            if isinstance(node, ast.Call) and last_name(node.func) in _CHECKS:
                parts = [*node.args, node.func.value] if isinstance(node.func, ast.Attribute) else node.args
                if any(isinstance(part, ast.Name) and part.id == name for part in parts):
                    return True
            if isinstance(node, ast.Compare) and _asks_for_membership(node, name):
                return True
        return False

    def called(self, node: ast.Call) -> Origin:
        """Return what a call gives, having read the function that it calls, if it can be read."""
        name = last_name(node.func)
        arguments = [self.origin(item) for item in (*node.args, *node.keywords)]
        call = self._reader.calls.get(node)
        target = _readable(call)
        if target is not None:
            return self._reader.enter(target, self._given(node, target), self._depth + 1)
        if call is not None and _is_context(call.receiver):
            return _foreign(node)
        if name in _QUOTES or (name == "join" and ast.unparse(node.func) == "shlex.join"):
            return _WRITTEN
        if name in _NUMBERS or name in _OF_LETTERS:
            return _WRITTEN
        if name == "map" and node.args:
            return _WRITTEN if last_name(node.args[0]) in _QUOTES | _NUMBERS else _joined(arguments[1:])
        if isinstance(node.func, ast.Attribute) and name in _METHODS | _SAME:
            holder = self.origin(node.func.value) if not _is_module_name(node.func.value, self.function.module) else _WRITTEN
            if name == "get" and node.args:
                return _joined([self._field(node, holder, node.args[0]), *arguments[1:]])
            return _joined(
                [holder, *arguments], is_built=name in {"format", "format_map", "join", "substitute", "safe_substitute"}
            )
        if name in _SAME:
            return _joined(arguments)
        if name.isupper() and not node.args:
            return _WRITTEN
        return _unknown(f"{name}(...)" if name else "a call")

    def _given(self, node: ast.Call, target: Function) -> _Bindings:
        """Return what the parameters of a readable function get."""
        names = list(target.positional)
        if target.owner is not None and not target.is_static:
            names = names[1:]
        if any(isinstance(item, ast.Starred) for item in node.args) or any(word.arg is None for word in node.keywords):
            return ()
        found = {name: _in_module(default, target.module) for name, default in target.defaults.items()}
        found |= {name: self.origin(item) for name, item in zip(names, node.args, strict=False)}
        found |= {word.arg: self.origin(word.value) for word in node.keywords if word.arg}
        return tuple(sorted(found.items()))


def _is_numeric(spec: ast.expr) -> bool:
    last = spec.values[-1] if isinstance(spec, ast.JoinedStr) and spec.values else None
    return isinstance(last, ast.Constant) and _NUMERIC_FORMAT.search(str(last.value)) is not None


def _is_own_attribute(target: ast.AST, method: Function, name: str) -> bool:
    return (
        isinstance(target, ast.Attribute)
        and target.attr == name
        and isinstance(target.value, ast.Name)
        and method.positional[:1] == (target.value.id,)
    )


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


def _readable(call: Call | None) -> Function | None:
    if call is None or len(call.callee) != 1:
        return None
    (value,) = call.callee
    is_function = value.kind in {Kind.METHOD, Kind.FUNCTION} and isinstance(value.target, Function)
    return value.target if is_function and isinstance(value.target, Function) else None


def _binds(target: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))


def _assignments(function: Function, name: str) -> Iterator[tuple[ast.AST, _Value]]:
    """Yield the statements that bind a name, with what each binds it to."""
    for node in ast.walk(function.node):
        if isinstance(node, ast.Assign) and any(_binds(target, name) for target in node.targets if _is_plain(target)):
            yield node, _Value(_part_of(node, name))
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None and _binds(node.target, name):
            yield node, _Value(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            yield node, _Value(node.value, is_built=True)
        elif isinstance(node, (ast.For, ast.AsyncFor)) and _binds(node.target, name):
            yield node, _Value(node.iter)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None and _binds(item.optional_vars, name):
                    yield node, _Value(item.context_expr)
        elif isinstance(node, ast.ExceptHandler) and node.name == name:
            yield node, _Value(None, unknown=f"the exception {name}")
        elif isinstance(node, ast.Call) and node.args and _is_method_of(node.func, name, _GROWS):
            yield node, _Value(node.args[-1])


def _asks_for_membership(node: ast.Compare, name: str) -> bool:
    is_of_name = isinstance(node.left, ast.Name) and node.left.id == name
    return is_of_name and any(isinstance(operator, (ast.In, ast.NotIn)) for operator in node.ops)


def _is_method_of(node: ast.AST, name: str, methods: frozenset[str]) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in methods and last_name(node.value) == name


@dataclass(frozen=True)
class _Value:
    """What a binding gives its name."""

    node: ast.AST | None
    is_built: bool = False
    unknown: str = ""

    def __call__(self, text: _Text) -> Origin:
        if self.unknown:
            return _unknown(self.unknown)
        return _joined([text.origin(self.node)], is_built=self.is_built)


def _is_plain(target: ast.AST) -> bool:
    return isinstance(target, (ast.Name, ast.Tuple, ast.List))


def _part_of(node: ast.Assign, name: str) -> ast.expr:
    """Return the part of a tuple that a name gets, where both sides are written out."""
    for target in node.targets:
        if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(node.value, (ast.Tuple, ast.List)):
            continue
        pairs = zip(target.elts, node.value.elts, strict=False)
        found = [value for part, value in pairs if _binds(part, name)]
        if found and len(target.elts) == len(node.value.elts):
            return found[0]
    return node.value


def _block(parent: ast.AST | None, above: set[ast.AST]) -> list[ast.stmt]:
    """Return the block of ``parent`` that leads on to the use, so that what is assigned there surely reaches it."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and any(statement in above for statement in block):
            return block
    return []


def _of_module(name: str, module: Module) -> Origin:
    if name.strip("_").isupper():
        return _WRITTEN
    bindings = module.names.get(name, ())
    if not bindings:
        return _unknown(name)
    return _joined([_unknown(name) if item.module else _in_module(item.node, module) for item in bindings])


def _in_module(node: ast.AST, module: Module) -> Origin:
    """Return what an expression of module or class scope is: what is written there, was written by the author."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in module.names and part.id.islower():
            return _unknown(part.id)
        if isinstance(part, ast.Call):
            return _unknown(ast.unparse(part)[:40])
    return _WRITTEN


def _is_module_name(node: ast.AST, module: Module) -> bool:
    """Tell whether a name is an imported module, such as ``os.path`` in ``os.path.join``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and any(item.module and not item.attribute for item in module.names.get(node.id, ()))
