"""What methods lead to: the functions that they name, and the calls in them.

Names are followed and values are not: ``self.x`` is the method x of the class, ``super().x`` that of the class behind it, and any other
name what its file says. What comes out of a container, a factory or a call is not followed.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from pytest_hermes_env.source.classes import ClassSource, External, Resolved, resolve, resolve_binding
from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.layer_names import INHERITED_METHODS, LAYER_ENV
from pytest_hermes_env.source.modules import Module, import_bindings
from pytest_hermes_env.source.syntax import argument, last_name

_MOST_FILES = 40
"""How many files are read for what a class imports."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """A call in a function. ``target`` is what it calls, None where the name does not tell."""

    function: Function
    node: ast.Call
    target: Resolved | None

    @property
    def name(self) -> str:
        """The name that is called: ``append`` in ``x.append()``."""
        return last_name(self.node.func)

    @property
    def dotted(self) -> str:
        """The dotted name of what is called, where it is not in the readable files."""
        return self.target.dotted if isinstance(self.target, External) else ""

    def makes(self, name: str) -> bool:
        """Tell whether it makes an instance of the layer's class ``name``, or of a readable subclass of it."""
        if isinstance(self.target, ClassSource):
            return self.target.is_subclass_of(name)
        return isinstance(self.target, External) and self.target.last == name

    def is_of_base(self, names: Container[str]) -> bool:
        """Tell whether it calls one of these methods as the layer's base defines them."""
        *_, owner, name = ("", *self.dotted.split("."))
        return owner == LAYER_ENV and name in names


def reach_of(source: ClassSource) -> Reach:
    """Return the one `Reach` of a class."""
    return source.module.once(Reach, source.node, lambda: Reach(source))


class Reach:
    """What the methods of one class lead to. It lives as long as the class is judged."""

    def __init__(self, source: ClassSource) -> None:
        self._source = source
        self._calls: dict[Function, tuple[Call, ...]] = {}
        self._next: dict[Function, tuple[Function, ...]] = {}
        self._every: tuple[Function, ...] | None = None

    def functions(self, *methods: str, without: Container[str] = ()) -> tuple[Function, ...]:
        """Return the named methods and the functions that they lead to, nearest first; those called ``without`` are not entered."""
        starts = [self._source.methods[name] for name in methods if name in self._source.methods]
        return self.functions_from(*starts, without=without)

    def functions_from(self, *starts: Function, without: Container[str] = ()) -> tuple[Function, ...]:
        """Return some functions and those that they lead to, nearest first; those called ``without`` are not entered."""
        found: dict[Function, None] = {}
        pending = deque(starts)
        while pending:
            function = pending.popleft()
            if function not in found and (function in starts or function.name not in without):
                found[function] = None
                pending.extend(self._leads_to(function))
        return tuple(found)

    def every_function(self) -> tuple[Function, ...]:
        """Return the methods of the class and of its readable bases, overridden ones too, and the functions that they lead to."""
        if self._every is None:
            own = (item for owner in self._source.readable for item in owner.own_methods.values() if not item.is_abstract)
            self._every = self.functions_from(*own)
        return self._every

    def calls(self, *methods: str, without: Container[str] = ()) -> Iterator[Call]:
        """Yield the calls in what the named methods lead to."""
        for function in self.functions(*methods, without=without):
            yield from self.calls_in(function)

    def calls_where(self, is_reached: Callable[[Call], bool], *methods: str) -> Iterator[Call]:
        """Yield the calls that the named methods make, and those in functions that they call, where a condition holds for each."""
        seen: set[Function] = set()
        waiting = [self._source.methods[name] for name in methods if name in self._source.methods]
        while waiting:
            function = waiting.pop()
            if function in seen:
                continue
            seen.add(function)
            for call in filter(is_reached, self.calls_in(function)):
                yield call
                if isinstance(call.target, Function):
                    waiting.append(call.target)

    def given_to(self, function: Function, name: str, method: str) -> Iterator[tuple[Function, ast.expr]]:
        """Yield what the calls in what ``method`` leads to pass for a parameter of a function, each with its caller."""
        names = function.positional_without_self
        if (rest := function.node.args.vararg) is not None and rest.arg == name:
            own = (call for call in self.calls(method) if call.target is function)
            yield from ((call.function, given) for call in own for given in call.node.args[len(names) :])
        for call in self.calls(method) if name in names else ():
            given = argument(call.node, names.index(name), name) if call.target is function else None
            if given is not None:
                yield call.function, given

    def calls_in(self, function: Function) -> tuple[Call, ...]:
        """Return the calls in a function, those in nested functions included."""
        if function not in self._calls:
            self._calls[function] = tuple(
                Call(function=function, node=node, target=self.target(function, node.func))
                for node in function.nodes
                if isinstance(node, ast.Call)
            )
        return self._calls[function]

    def target(self, function: Function, node: ast.expr) -> Resolved | None:
        """Return what an expression in a function refers to, None where its name does not tell."""
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str() as name), *_]):
                node = ast.Attribute(value=owner, attr=name, ctx=ast.Load())
        if isinstance(node, ast.Attribute) and function.is_self(node.value):
            return self._of_self(node.attr)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call) and last_name(node.value.func) == "super":
            found = self._source.after(function.owner, node.attr)
            return External(dotted=f"{LAYER_ENV}.{node.attr}") if isinstance(found, External) else found
        if isinstance(node, ast.Name) and node.id in function.local_names:
            return self._of_local(function, node.id)
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in function.local_names:
            inner = self._of_local(function, root.id)
            return (
                External(dotted=f"{inner.dotted}.{ast.unparse(node).partition('.')[2]}")
                if isinstance(inner, External)
                else None
            )
        return resolve(function.module, node)

    def _of_self(self, name: str) -> Resolved | None:
        if name in self._source.methods:
            return self._source.methods[name]
        if (given := self._source.attribute(name)) is not None:
            return resolve(given[0].module, given[1])
        return External(dotted=f"{LAYER_ENV}.{name}") if name in INHERITED_METHODS else None

    def _of_local(self, function: Function, name: str) -> Resolved | None:
        """Return what a local name is: an import in the function, or another name for something, given once."""
        for node in function.nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for bound, binding in import_bindings(node):
                    if bound == name:
                        return resolve_binding(function.module, binding)
        values = function.values_of(name)
        is_name = len(values) == 1 and isinstance(values[0], (ast.Attribute, ast.Name)) and name not in function.positional
        return self.target(function, values[0]) if is_name and last_name(values[0]) != name else None  # type: ignore[arg-type]

    def _leads_to(self, function: Function) -> tuple[Function, ...]:
        """Return the functions that one names, called or handed on, such as ``asyncio.to_thread(self.work)``."""
        if function not in self._next:
            called = [call.target for call in self.calls_in(function)]
            named = [self.target(function, node) for node in function.nodes if isinstance(node, ast.Attribute)]
            self._next[function] = tuple(dict.fromkeys(item for item in (*called, *named) if isinstance(item, Function)))
        return self._next[function]


def imported_modules(*modules: Module) -> Iterator[Module]:
    """Yield files and those that they import from their own tree, each parsed when it is reached."""
    found = dict.fromkeys(modules)
    yield from found
    waiting = deque(found)
    while waiting and len(found) < _MOST_FILES:
        module = waiting.popleft()
        for dotted in module.imports:
            imported = module.imported(dotted)
            if imported is not None and imported not in found:
                found[imported] = None
                waiting.append(imported)
                yield imported
