"""The normal form of a file: what only says the same in another way is written in the way that the rules know.

Place in the flow: a file is rewritten once, when it is parsed; every node keeps its line. What changes the meaning stays as it is.
"""

from __future__ import annotations

import ast
import collections
import copy
from collections.abc import Mapping

from pytest_hermes_env.source.layer_names import INHERITED_METHODS

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def normalise(tree: ast.Module) -> None:
    """Rewrite a parsed file in place."""
    _Expressions().visit(tree)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                block[:] = [new for item in block for plain in _without_walrus(item) for new in _without_stack(plain)]
                _return_directly(block)
        if isinstance(node, _Function):
            _call_directly(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            named = collections.Counter(item.attr for item in ast.walk(node) if isinstance(item, ast.Attribute))
            methods = [item for item in node.body if isinstance(item, _Function)]
            own = {item.name: item for item in methods if named[item.name] == 1 and item.name not in INHERITED_METHODS}
            for method in methods:
                _take_in(method, own)


class _Expressions(ast.NodeTransformer):
    """Rewrites expressions and statements that have a plainer form."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``f(**{"a": 1})``, ``partial(f, a=1)()``, ``(lambda *a, **k: f(*a, **k))(1)`` and ``getattr(self, "f")()``."""
        self.generic_visit(node)
        words: list[ast.keyword] = []
        for word in node.keywords:
            words += [word] if word.arg else _unpacked(word)
        node.keywords = words
        while (func := _called(node.func)) is not None:
            inner, given, named = func
            node.func, node.args = inner, [*given, *node.args]
            node.keywords = [*[word for word in named if word.arg not in {item.arg for item in node.keywords}], *node.keywords]
        return _attribute(node) or node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """``(name := value)`` as a statement."""
        self.generic_visit(node)
        match node.value:
            case ast.NamedExpr(target=target, value=value):
                return ast.copy_location(ast.Assign(targets=[target], value=value), node)
            case ast.Call(
                func=ast.Name(id="setattr"), args=[ast.Name(id="self") as owner, ast.Constant(value=str(name)), value]
            ):
                target_ = ast.copy_location(ast.Attribute(value=owner, attr=name, ctx=ast.Store()), node.value)
                return ast.copy_location(ast.Assign(targets=[target_], value=value), node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """``vars(self)["name"]`` and ``self.__dict__["name"]``."""
        self.generic_visit(node)
        match node:
            case ast.Subscript(
                value=ast.Call(func=ast.Name(id="vars"), args=[ast.Name(id="self") as owner])
                | ast.Attribute(value=ast.Name(id="self") as owner, attr="__dict__"),
                slice=ast.Constant(value=str(name)),
            ):
                return ast.copy_location(ast.Attribute(value=owner, attr=name, ctx=node.ctx), node)
        return node

    def visit_TryStar(self, node: ast.TryStar) -> ast.stmt:
        """``except*``, which catches and releases like ``except``."""
        self.generic_visit(node)
        plain = ast.Try(body=node.body, handlers=node.handlers, orelse=node.orelse, finalbody=node.finalbody)
        return ast.copy_location(plain, node)

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        """``match`` with two cases: True or None, and the rest."""
        self.generic_visit(node)
        match node.cases:
            case [
                ast.match_case(pattern=ast.MatchSingleton(value=value), guard=None, body=body),
                ast.match_case(pattern=ast.MatchAs(pattern=None, name=None) | ast.MatchSingleton(), guard=None, body=rest),
            ] if (test := _test(node.subject, value)) is not None:
                rest = [] if all(isinstance(item, ast.Pass) for item in rest) else rest
                return ast.copy_location(ast.If(test=test, body=body, orelse=rest), node)
        return _compared(node) or node

    def visit_If(self, node: ast.If) -> ast.stmt:
        """``if not test: pass`` with an else, and a negated test with two branches."""
        self.generic_visit(node)
        if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not) and node.orelse:
            body = [] if all(isinstance(item, ast.Pass) for item in node.body) else node.body
            node.test, node.body, node.orelse = node.test.operand, node.orelse, body
        return node


def _test(subject: ast.expr, value: object) -> ast.expr | None:
    """Return the test for which a ``match`` of ``subject`` with True or None stands."""
    match subject:
        case ast.Call(func=ast.Name(id="bool"), args=[test], keywords=[]) if value is True:
            return test
    if value is None:
        nothing = ast.copy_location(ast.Constant(value=None), subject)
        return ast.copy_location(ast.Compare(left=subject, ops=[ast.Is()], comparators=[nothing]), subject)
    return None


def _compared(node: ast.Match) -> ast.stmt | None:
    """Return ``if`` and ``elif`` for a ``match`` whose cases are constants, and at the end perhaps the rest."""
    chain: list[ast.stmt] = []
    for index, case in enumerate(reversed(node.cases)):
        match case:
            case ast.match_case(pattern=ast.MatchAs(pattern=None, name=None), guard=None) if index == 0:
                chain = [] if all(isinstance(item, ast.Pass) for item in case.body) else case.body
            case ast.match_case(pattern=ast.MatchValue() | ast.MatchOr() as pattern, guard=None):
                values = [item.value for item in getattr(pattern, "patterns", [pattern]) if isinstance(item, ast.MatchValue)]
                if len(values) != len(getattr(pattern, "patterns", [pattern])):
                    return None
                held: ast.expr = ast.copy_location(ast.Tuple(elts=values, ctx=ast.Load()), pattern) if values[1:] else values[0]
                compared = ast.Compare(left=node.subject, ops=[ast.In() if values[1:] else ast.Eq()], comparators=[held])
                test = ast.copy_location(compared, pattern)
                chain = [ast.copy_location(ast.If(test=test, body=case.body, orelse=chain), pattern)]
            case _:
                return None
    return chain[0] if len(chain) == 1 else None


def _without_walrus(node: ast.stmt) -> list[ast.stmt]:
    """Return the assignment and the ``if`` for one whose test begins with ``(name := value)``."""
    match node:
        case ast.If(test=ast.NamedExpr(target=target, value=value) as named):
            node.test = ast.copy_location(ast.Name(id=target.id, ctx=ast.Load()), named)
        case ast.If(test=ast.Compare(left=ast.NamedExpr(target=target, value=value) as named) as test):
            test.left = ast.copy_location(ast.Name(id=target.id, ctx=ast.Load()), named)
        case _:
            return [node]
    return [ast.copy_location(ast.Assign(targets=[target], value=value), named), node]


def _unpacked(word: ast.keyword) -> list[ast.keyword]:
    """Return the keywords of an unpacked literal dict."""
    if not isinstance(word.value, ast.Dict):
        return [word]
    found = []
    for key, value in zip(word.value.keys, word.value.values, strict=True):
        if key is not None and not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            return [word]
        name = key.value if isinstance(key, ast.Constant) else None
        found.append(ast.copy_location(ast.keyword(arg=str(name) if name is not None else None, value=value), value))
    return found


def _called(func: ast.expr) -> tuple[ast.expr, list[ast.expr], list[ast.keyword]] | None:
    """Return what a partial or a lambda that passes everything on calls, and the arguments that it adds."""
    match func:
        case ast.Call(
            func=ast.Name(id="partial") | ast.Attribute(value=ast.Name(id="functools"), attr="partial"), args=[inner, *given]
        ):
            if not any(isinstance(item, ast.Starred) for item in [inner, *given]):
                return inner, given, func.keywords
        case ast.Lambda(
            args=ast.arguments(args=[], posonlyargs=[], kwonlyargs=[], vararg=ast.arg(arg=rest), kwarg=ast.arg(arg=words)),
            body=ast.Call(
                func=inner,
                args=[ast.Starred(value=ast.Name(id=given_rest))],
                keywords=[ast.keyword(arg=None, value=ast.Name(id=given_words))],
            ),
        ) if (rest, words) == (given_rest, given_words):
            return inner, [], []
    return None


def _attribute(node: ast.Call) -> ast.expr | None:
    """Return ``self.name`` for ``getattr(self, "name")``, which has no default to guard it; the same for ``super()``."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(name))], keywords=[]):
            if ast.unparse(owner) in {"self", "super()"}:
                return ast.copy_location(ast.Attribute(value=owner, attr=name, ctx=ast.Load()), node)
    return None


def _return_directly(block: list[ast.stmt]) -> None:
    """Return the value of a name that is assigned in the statement before."""
    match block:
        case [*_, ast.Assign(targets=[ast.Name(id=name)], value=value), ast.Return(value=ast.Name(id=returned))] if (
            name == returned
        ):
            block[-2:] = [ast.copy_location(ast.Return(value=value), value)]


def _call_directly(function: _Function) -> None:
    """Call what a local name stands for, where the name is bound once to a method or a partial, and only called."""
    nodes = list(ast.walk(function))
    bound: dict[str, list[ast.expr]] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.NamedExpr(target=ast.Name(id=name), value=value):
                bound.setdefault(name, []).append(value)
    uses: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name):
            uses[node.id] = uses.get(node.id, 0) + 1
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.NamedExpr)]
    for name, values in bound.items():
        own = [
            call
            for call in calls
            if name in {getattr(call.func, "id", ""), getattr(getattr(call.func, "target", None), "id", "")}
        ]
        named = sum(isinstance(call.func, ast.Name) for call in own)
        if len(values) != 1 or not own or uses[name] != 1 + named or not (_is_method(values[0]) or _is_partial(values[0])):
            continue
        for call in own:
            call.func = copy.deepcopy(values[0])
            _Expressions().visit(call)


def _is_method(node: ast.expr) -> bool:
    """Return whether an expression is an attribute of self or of ``super()``."""
    owner = node
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return owner is not node and ast.unparse(owner) in {"self", "super()"}


def _is_partial(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _called(node) is not None


def _without_stack(node: ast.stmt) -> list[ast.stmt]:
    """Return ``with`` and ``try`` for a block in an exit stack whose entries are all made at its top level."""
    match node:
        case (
            ast.With(items=[ast.withitem(context_expr=stack, optional_vars=ast.Name(id=name))])
            | ast.AsyncWith(items=[ast.withitem(context_expr=stack, optional_vars=ast.Name(id=name))])
        ) if isinstance(stack, ast.Call) and ast.unparse(stack).endswith("ExitStack()"):
            uses = sum(isinstance(part, ast.Name) and part.id == name for item in node.body for part in ast.walk(item))
            if uses == sum(_entry(item, name) is not None for item in node.body):
                return _entered(node.body, name)
    return [node]


def _entered(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    for at, item in enumerate(body):
        entry = _entry(item, name)
        if entry is None:
            continue
        target, call, wait = entry
        rest = _entered(body[at + 1 :], name) or [ast.copy_location(ast.Pass(), item)]
        kind = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if kind in {"enter_context", "enter_async_context"}:
            made = ast.AsyncWith if wait else ast.With
            inner: ast.stmt = made(items=[ast.withitem(context_expr=call.args[0], optional_vars=target)], body=rest)
        else:
            released: ast.expr = ast.copy_location(
                ast.Call(func=call.args[0], args=call.args[1:], keywords=call.keywords), call
            )
            if kind == "push_async_callback":
                released = ast.copy_location(ast.Await(value=released), call)
            inner = ast.Try(body=rest, handlers=[], orelse=[], finalbody=[ast.copy_location(ast.Expr(value=released), item)])
        return [*body[:at], ast.copy_location(inner, item)]
    return body


def _entry(item: ast.stmt, name: str) -> tuple[ast.expr | None, ast.Call, bool] | None:
    """Return the target, the call and whether it is awaited, where a statement makes an entry in the exit stack."""
    target = item.targets[0] if isinstance(item, ast.Assign) and len(item.targets) == 1 else None
    value = item.value if isinstance(item, ast.Expr | ast.Assign) else None
    is_awaited = isinstance(value, ast.Await)
    call = value.value if isinstance(value, ast.Await) else value
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=attr), args=[_, *_]) if owner == name:
            if attr in {"enter_context", "callback", "push_async_callback"} or (attr == "enter_async_context" and is_awaited):
                return target, call, is_awaited
    return None


def _take_in(method: _Function, methods: Mapping[str, _Function]) -> None:
    """Give a method that only passes its parameters on the body of what it calls: a function inside of it, or a helper of its own."""
    for _ in range(len(methods) + 1):
        called = _passed_to(method)
        if called is None:
            return
        name, is_method = called
        inner = methods.get(name) if is_method else method.body[-2]
        if (
            not isinstance(inner, _Function)
            or inner is method
            or inner.decorator_list
            or _signature(inner) != _signature(method)
        ):
            return
        docstring = method.body[:1] if ast.get_docstring(method) is not None else []
        method.body = [*docstring, *inner.body]


def _passed_to(method: _Function) -> tuple[str, bool] | None:
    """Return the name of the one function that a method calls with all its parameters, and whether it is a method."""
    body = method.body[1:] if ast.get_docstring(method) is not None else method.body
    if not body or not isinstance(body[-1], ast.Return):
        return None
    value = body[-1].value
    if isinstance(method, ast.AsyncFunctionDef):
        value = value.value if isinstance(value, ast.Await) else None
    if not isinstance(value, ast.Call):
        return None
    given = [ast.unparse(item) for item in value.args] + [
        f"{word.arg or '**'}={ast.unparse(word.value)}" for word in value.keywords
    ]
    match value.func:
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if len(body) == 1:
            return (name, True) if ["self", *given] == _arguments(method) else None
        case ast.Name(id=name) if len(body) == 2 and isinstance(body[0], _Function) and body[0].name == name:  # noqa: PLR2004
            return (name, False) if given == _arguments(method) else None
    return None


def _arguments(function: _Function) -> list[str]:
    """Return the arguments of a call that passes every parameter on."""
    given = function.args
    found = [item.arg for item in (*given.posonlyargs, *given.args)]
    found += [f"*{given.vararg.arg}"] if given.vararg else []
    found += [f"{item.arg}={item.arg}" for item in given.kwonlyargs]
    return found + ([f"**={given.kwarg.arg}"] if given.kwarg else [])


def _signature(function: _Function) -> tuple[type, list[str]]:
    return type(function), _arguments(function)
