"""Python code as somebody who is wrong in one place would write it.

Place in the flow: `code_changes` takes a few for what is played around gold, and `wrong_programs` all, to ask a verifier about.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_hermes_env.play.cases.one_value import spread

_OPPOSITE: Mapping[type, type] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_BOUNDARY: Mapping[type, type] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OPERATOR: Mapping[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Div, ast.Div: ast.FloorDiv, ast.Mod: ast.FloorDiv,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_PLAIN = frozenset(
    {"sorted", "set", "abs", "reversed", "round", "list", "strip", "lower", "upper", "casefold", "rstrip", "lstrip"}
)
"""Functions and methods whose argument, or object, may take their place."""


_OTHER: Mapping[str, str] = {
    one: other
    for pair in (
        "min max", "any all", "startswith endswith", "lstrip rstrip", "find rfind", "split rsplit", "floor ceil", "popleft pop", "lower upper",
        "append appendleft", "ROUND_HALF_UP ROUND_HALF_EVEN", "ROUND_FLOOR ROUND_CEILING", "keys values", "isdigit isalnum", "isalpha isalnum",
    )
    for one, other in (pair.split(), pair.split()[::-1])
}  # fmt: skip
"""Names that are taken for each other."""
_CALLED: Mapping[str, str] = {"round": "int", "fullmatch": "match", "match": "search", "isascii": "isprintable"}
"""Functions of one argument, and methods, that are called in place of others."""
_ARGUMENTS = frozenset({
    "key", "reverse", "default", "start", "rounding", "maxsplit", "flags", "sort_keys", "keepends", "delimiter", "strict", "count", "fold",
})  # fmt: skip
"""Arguments without which a call does something else."""
_NAIVE = (
    ("leap years forgotten", "calendar.monthrange[1]", 2, "[31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][{1} - 1]"),
    ("leap years forgotten", "calendar.isleap", 1, "{0} % 4 == 0"),
    ("quotes read as signs", "shlex.split", 1, "{0}.split()"),
    ("quotes read as signs", "csv.reader", 1, "[line.rstrip('\\n').split({delimiter}) for line in {0}]"),
    ("special signs not escaped", "re.escape", 1, "{0}"),
    ("special signs not escaped", "html.escape", 1, "{0}"),
)
"""What a library takes care of, of so many arguments, and what somebody would write by hand in its place."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """Code that is changed in one place: what was done, ``line`` of the code, and how it read ``before`` and ``after``."""

    name: str
    line: int
    text: str
    before: str = ""
    after: str = ""


def mutants(text: str, most: int) -> Iterator[Mutant]:
    """Yield the mutants of code; where there are more than ``most``, of places that are spread over it. Raises: SyntaxError."""
    tree = ast.parse(text)
    plain = ast.unparse(tree).splitlines()
    seen = {"\n".join(plain)}
    places = [(place, node, name) for place, node in enumerate(ast.walk(tree)) for name in _ways(node)]
    for place, node, name in spread(sorted(places, key=lambda one: getattr(one[1], "lineno", 0)), most):
        made = copy.deepcopy(tree)
        _change(list(ast.walk(made))[place], name, made)
        new = ast.unparse(ast.fix_missing_locations(made))
        if new not in seen:
            seen.add(new)
            lines = [
                line for line in difflib.unified_diff(plain, new.splitlines(), n=0, lineterm="") if line[:2] not in {"--", "++"}
            ]
            before, after = (" ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
            yield Mutant(name=name, line=getattr(node, "lineno", 0), text=f"{new}\n", before=before, after=after)


def _ways(node: ast.AST) -> Iterator[str]:
    """Yield what can be done to a node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OPPOSITE:
        yield "a comparison turned"
        yield from ["a boundary moved"] if type(node.ops[0]) in _BOUNDARY else []
    if isinstance(node, ast.BoolOp):
        yield from ("the last condition dropped", "the first condition dropped")
    is_zero = isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value == 0
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in _OPERATOR and not is_zero:
        yield "another operator"
    if isinstance(node, ast.Constant) and type(node.value) in {int, float}:
        yield from ("a number one higher", "a number one lower")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "a sign dropped"
    if isinstance(node, ast.If | ast.IfExp):
        yield from ("a branch always taken", "a branch never taken")
    if isinstance(node, ast.Call) and _inner(node) is not None:
        yield "a call dropped"
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.Continue | ast.Break) and not _is_doc(node):
        yield "a statement dropped"
    if (isinstance(node, ast.Name) and node.id in _OTHER) or (isinstance(node, ast.Attribute) and node.attr in _OTHER):
        yield "another name"
    if isinstance(node, ast.keyword) and node.arg in _ARGUMENTS:
        yield "an argument dropped"
    if isinstance(node, ast.Slice) and node.upper is not None:
        yield "a limit dropped"
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        parts = ast.walk(node.targets[0].slice)
        yield from [] if any(isinstance(part, ast.Slice) for part in parts) else ["the first value kept"]
    if isinstance(node, ast.Call) and _called(node):
        yield "another function"
    if _kinds(node):
        yield from ("the last of some dropped", "the first of some dropped")
    if isinstance(node, ast.Subscript | ast.Call):
        yield from (name for name, *_ in _naive(node))


def _kinds(node: ast.AST) -> list[ast.expr]:
    """Return the values, or types, of which something is asked to be one; none of another node."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        among = node.comparators[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) > 1:
        among = node.args[1]
    else:
        return []
    return among.elts if isinstance(among, ast.Tuple | ast.List | ast.Set) and len(among.elts) > 1 else []


def _called(node: ast.Call) -> str:
    """Return the function or method that may be called in place of the one that is; empty for another call."""
    if isinstance(node.func, ast.Attribute):
        return _CALLED.get(node.func.attr, "")
    return _CALLED.get(node.func.id, "") if isinstance(node.func, ast.Name) and len(node.args) == 1 else ""


def _naive(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield what somebody would write in place of a library's expression."""
    call = node.value if isinstance(node, ast.Subscript) else node
    if not isinstance(call, ast.Call) or any(isinstance(one, ast.Starred) for one in call.args):
        return
    called = ast.unparse(call.func) + (f"[{ast.unparse(node.slice)}]" if isinstance(node, ast.Subscript) else "")
    named = {one.arg: ast.unparse(one.value) for one in call.keywords}
    for name, function, count, other in _NAIVE:
        if (
            called == function
            and len(call.args) == count
            and (not named or ("{delimiter}" in other and [*named] == ["delimiter"]))
        ):
            given = [f"({ast.unparse(one)})" for one in call.args]
            yield name, ast.parse(other.format(*given, delimiter=named.get("delimiter", "','")), mode="eval").body


def _is_doc(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _inner(node: ast.Call) -> ast.expr | None:
    """Return what a call may be replaced with: its only argument, or the object of its method."""
    if isinstance(node.func, ast.Name) and node.func.id in _PLAIN and node.args:
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr in _PLAIN else None


def _change(node: ast.AST, name: str, tree: ast.Module) -> None:
    """Change a node of a tree in place."""
    if name.endswith("of some dropped"):
        del _kinds(node)[0 if name.startswith("the first") else -1]
    elif isinstance(node, ast.Compare):
        node.ops[0] = (_BOUNDARY if name == "a boundary moved" else _OPPOSITE)[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp) and name.endswith("condition dropped"):
        del node.values[0 if name.startswith("the first") else -1]
    elif name == "another operator":
        assert isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign)
        node.op = _OPERATOR[type(node.op)]()
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value = node.value + (1 if name == "a number one higher" else -1)
    elif isinstance(node, ast.Name):
        imported = (one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom))
        for one in imported:
            one.names += [ast.alias(name=_OTHER[node.id]) for alias in one.names if node.id == alias.name]
        node.id = _OTHER[node.id]
    elif isinstance(node, ast.Attribute):
        node.attr = _OTHER[node.attr]
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.Constant(value=name == "a branch always taken")
    elif isinstance(node, ast.Slice):
        node.upper = None
    elif isinstance(node, ast.Call) and name == "another function":
        node.func = (
            ast.Attribute(node.func.value, _called(node)) if isinstance(node.func, ast.Attribute) else ast.Name(_called(node))
        )
    else:
        _Replaced(node, name).visit(tree)


class _Replaced(ast.NodeTransformer):
    """Puts in place of one node what is left of it."""

    def __init__(self, node: ast.AST, name: str) -> None:
        self._node, self._name = node, name

    def visit(self, node: ast.AST) -> ast.AST | None:
        """Return what stands for a node."""
        if node is not self._node:
            return self.generic_visit(node)
        if isinstance(node, ast.Subscript | ast.Call) and self._name != "a call dropped":
            return dict(_naive(node))[self._name]
        if isinstance(node, ast.Call):
            return _inner(node)
        if isinstance(node, ast.Assign) and self._name == "the first value kept":
            (place, *_), value = node.targets, node.value
            assert isinstance(place, ast.Subscript)
            return ast.Expr(ast.Call(ast.Attribute(place.value, "setdefault", ast.Load()), [place.slice, value], []))
        if isinstance(node, ast.UnaryOp):
            return node.operand
        return None if isinstance(node, ast.keyword) else ast.Pass()
