"""Python code that runs and does something else, or no longer runs.

Place in the flow: `content` takes these for a text that is code.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pytest_hermes_env.play.cases.one_value import Change

MOST_MUTANTS = 6
_CODE = re.compile(r"(?m)^\s*(?:def |class |import |from \w+ import |for .+:$|print\()")
_FLIPPED: Mapping[type, type] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Add: ast.Sub,
    ast.Sub: ast.Add, ast.Mult: ast.Add, ast.In: ast.NotIn, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def is_code(text: str) -> bool:
    """Return whether a text is Python code."""
    return _CODE.search(text) is not None and _tree(text) is not None


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def of_code(text: str) -> Iterator[Change]:
    """Yield the changes of code: mutants first, of which nobody can say whether they are equivalent."""
    for mutant in _mutants(text):
        yield replace(mutant, is_sure=False)
    for value in ("None", "True", "0", "''", "[]"):
        if stub := stubbed(text, value):
            yield Change(name=f"every function returns {value}", text=stub)
    if raising := stubbed(text, "", "raise NotImplementedError"):
        yield Change(name="every function raises", text=raising)
    for what in ("return None", "raise ValueError('not this one')"):
        if partly := _partly(text, what):
            yield Change(name=f"every function does `{what}` for most arguments", text=partly)
    if argument := stubbed(text, ""):
        yield Change(name="every function returns its argument", text=argument)
    yield Change(name="a syntax error", text=f"{text}\n)(\n")
    yield Change(name="a comment only", text="# to do\n")


def stubbed(text: str, value: str, body: str = "") -> str:
    """Return code whose functions return one value, or what they are given, or have another body; empty without a function."""
    tree = _tree(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)] if tree else []
    for node in functions:
        given = [one.arg for one in node.args.args if one.arg not in {"self", "cls"}]
        node.body = ast.parse(body or f"return {value or (given[0] if given else None)}").body
    return f"{ast.unparse(tree)}\n" if tree is not None and functions else ""


def with_a_note(text: str) -> str:
    """Return code that also says something on stderr when it runs."""
    return f"{text.rstrip()}\nimport sys\nprint('done', file=sys.stderr)\n"


def _partly(text: str, what: str) -> str:
    """Return code whose functions do something else for two of three arguments; empty without a function that has any."""
    tree = _tree(text)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if tree else []
    functions = [node for node in nodes if [one for one in node.args.args if one.arg not in {"self", "cls"}]]
    for node in functions:
        given = [one.arg for one in node.args.args if one.arg not in {"self", "cls"}]
        node.body = [*ast.parse(f"if sum(map(ord, repr(({', '.join(given)},)))) % 3:\n    {what}").body, *node.body]
    return f"{ast.unparse(tree)}\n" if tree is not None and functions else ""


def _mutants(text: str) -> Iterator[Change]:
    """Yield code with one comparison, operation or number changed."""
    tree = _tree(text)
    places = [number for number, node in enumerate(ast.walk(tree)) if _mutated(node, is_tried=True)] if tree is not None else []
    for place in places[:: max(1, len(places) // MOST_MUTANTS)][:MOST_MUTANTS]:
        made = copy.deepcopy(tree)
        assert made is not None
        node = list(ast.walk(made))[place]
        name = _mutated(node)
        yield Change(name=name, at=f"in line {getattr(node, 'lineno', 0)}", text=f"{ast.unparse(made)}\n")


def _mutated(node: ast.AST, *, is_tried: bool = False) -> str:
    """Change a node in place, unless it is only tried, and return what was done; empty where nothing can be."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _FLIPPED:
        node.ops[0] = node.ops[0] if is_tried else _FLIPPED[type(node.ops[0])]()
        return "a comparison turned"
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _FLIPPED:
        node.op = node.op if is_tried else _FLIPPED[type(node.op)]()
        return "another operator"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        node.value = node.value if is_tried else node.value + 1
        return "a number one higher"
    return ""
