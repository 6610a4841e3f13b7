"""Each rewriting keeps the meaning, and what only looks alike stays as it is."""

from __future__ import annotations

import ast

import pytest

from pytest_hermes_env.source.normal_form import normalise

CASES = {
    "unpacked keywords": ("f(1, **{'a': 2, **rest})", "f(1, a=2, **rest)"),
    "keys that are computed": ("f(**{key: 2})", "f(**{key: 2})"),
    "a partial": ("functools.partial(f, 1, a=2)(3, b=4)", "f(1, 3, a=2, b=4)"),
    "a partial whose keyword is overridden": ("partial(f, a=1)(a=2)", "f(a=2)"),
    "a lambda that passes on": ("(lambda *a, **k: f(*a, **k))(1)", "f(1)"),
    "a lambda that adds": ("(lambda *a, **k: f(*a, 2, **k))(1)", "(lambda *a, **k: f(*a, 2, **k))(1)"),
    "getattr without a default": ("getattr(self, 'log')(1)", "self.log(1)"),
    "getattr with a default": ("getattr(self, 'log', None)", "getattr(self, 'log', None)"),
    "setattr": ("setattr(self, 'item', item)", "self.item = item"),
    "vars": ("vars(self)['item'] = item", "self.item = item"),
    "match of a test": ("match bool(a):\n    case True:\n        b()\n    case _:\n        pass", "if a:\n    b()"),
    "match of None": (
        "match a:\n    case None:\n        b()\n    case _:\n        c()",
        "if a is None:\n    b()\nelse:\n    c()",
    ),
    "match of texts": (
        "match a:\n    case 'x' | 'y':\n        b()\n    case 'z':\n        c()",
        "if a in ('x', 'y'):\n    b()\nelif a == 'z':\n    c()",
    ),
    "match of a shape": ("match a:\n    case [x]:\n        b()", "match a:\n    case [x]:\n        b()"),
    "a negated test": ("if not a:\n    b()\nelse:\n    c()", "if a:\n    c()\nelse:\n    b()"),
    "a walrus": ("if (a := b) is None:\n    c()", "a = b\nif a is None:\n    c()"),
    "except*": ("try:\n    a()\nexcept* ValueError:\n    b()", "try:\n    a()\nexcept ValueError:\n    b()"),
    "an exit stack": (
        "with ExitStack() as stack:\n    a = stack.enter_context(b())\n    stack.callback(a.close, 1)\n    c(a)",
        "with b() as a:\n    try:\n        c(a)\n    finally:\n        a.close(1)",
    ),
    "an exit stack that is handed on": (
        "with ExitStack() as stack:\n    stack.callback(a.close)\n    c(stack)",
        "with ExitStack() as stack:\n    stack.callback(a.close)\n    c(stack)",
    ),
}

FUNCTIONS = {
    "a name for what is returned": ("def f():\n    a = g()\n    return a", "def f():\n    return g()"),
    "a name for a method": (
        "def f(self):\n    log = self.log\n    log(1)",
        "def f(self):\n    log = self.log\n    self.log(1)",
    ),
    "a name that is bound twice": (
        "def f(self):\n    log = self.log\n    log = print\n    log(1)",
        "def f(self):\n    log = self.log\n    log = print\n    log(1)",
    ),
}

METHODS = {
    "a method that passes on": (
        "class A:\n\n    def f(self, a, *, b):\n        return self.g(a, b=b)\n\n    def g(self, a, *, b):\n        return a + b",
        "class A:\n\n    def f(self, a, *, b):\n        return a + b\n\n    def g(self, a, *, b):\n        return a + b",
    ),
    "a function inside": (
        "class A:\n\n    async def f(self, a):\n\n        async def g(self, a):\n            return a\n        return await g(self, a)",
        "class A:\n\n    async def f(self, a):\n        return a",
    ),
    "a method that passes something else on": (
        "class A:\n\n    def f(self, a):\n        return self.g(a + 1)\n\n    def g(self, a):\n        return a",
        "class A:\n\n    def f(self, a):\n        return self.g(a + 1)\n\n    def g(self, a):\n        return a",
    ),
    "methods that pass on to each other": (
        "class A:\n\n    def f(self, a):\n        return self.g(a)\n\n    def g(self, a):\n        return self.f(a)",
        None,
    ),
}


def normal(text: str) -> str:
    tree = ast.parse(text)
    normalise(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


@pytest.mark.parametrize(("text", "expected"), [*CASES.values(), *FUNCTIONS.values()], ids=[*CASES, *FUNCTIONS])
def test_what_says_the_same_gets_one_form(text, expected):
    assert normal(text) == ast.unparse(ast.parse(expected))


@pytest.mark.parametrize(("text", "expected"), METHODS.values(), ids=METHODS)
def test_a_method_that_only_passes_on_is_read_as_what_it_calls(text, expected):
    seen = normal(text)

    assert expected is None or seen == expected


def test_every_node_keeps_a_line():
    tree = ast.parse("\n".join(text for text, _ in CASES.values()))

    normalise(tree)

    assert [node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)) and not hasattr(node, "lineno")] == []
