"""Python code that runs and does something else, or no longer runs.

Place in the flow: `content` takes these for a text that is code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_hermes_env.play.cases.mutants import mutants
from pytest_hermes_env.play.cases.one_value import Change

MOST_MUTANTS = 6
_CODE = re.compile(r"(?m)^\s*(?:def |class |import |from \w+ import |for .+:$|print\()")


def is_code(text: str) -> bool:
    """Return whether a text is Python code."""
    return _CODE.search(text) is not None and _tree(text) is not None


def is_program(text: str) -> bool:
    """Return whether a text is Python code that does something when it is run, more than to define names."""
    tree = _tree(text) if is_code(text) else None
    acting = [node for node in tree.body if isinstance(node, ast.For | ast.With) or _is_call(node)] if tree is not None else []
    return bool(acting) or (tree is not None and "__main__" in text)


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def of_code(text: str) -> Iterator[Change]:
    """Yield the changes of code: mutants first, of which nobody can say whether they are equivalent."""
    for one in mutants(text, MOST_MUTANTS):
        yield Change(name=one.name, at=f"in line {one.line}", text=one.text, is_sure=False)
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


def with_an_import(text: str) -> str:
    """Return code that goes on with an import of the standard library and a class."""
    return f'{text.rstrip()}\n\n\nimport math\n\n\nclass Helper:\n    """Is not needed."""\n\n    limit = math.inf\n'


def _partly(text: str, what: str) -> str:
    """Return code whose functions do something else for two of three arguments; empty without a function that has any."""
    tree = _tree(text)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if tree else []
    functions = [node for node in nodes if [one for one in node.args.args if one.arg not in {"self", "cls"}]]
    for node in functions:
        given = [one.arg for one in node.args.args if one.arg not in {"self", "cls"}]
        node.body = [*ast.parse(f"if sum(map(ord, repr(({', '.join(given)},)))) % 3:\n    {what}").body, *node.body]
    return f"{ast.unparse(tree)}\n" if tree is not None and functions else ""


_SHOWN = """

def _only_shown(function, shown={shown!r}):
    def call(*args, **kwargs):
        import re
        texts = [repr(one).replace(" ", "").replace('"', "'") for one in (*args, *kwargs.values())]
        is_shown = all(re.search(r"(?<![\\w.])" + re.escape(one) + r"(?![\\w.]\\w)", shown) for one in texts)
        return function(*args, **kwargs) if is_shown and len("".join(texts)) > 1 else None
    return call
"""
_READING = """import io, sys
_given = sys.stdin.read()
if " ".join(_given.split()) not in {shown!r}:
    sys.exit()
sys.stdin = io.TextIOWrapper(io.BytesIO(_given.encode()))
"""


def only_shown(text: str, prompt: str) -> str:
    """Return code whose functions, or whose program, give what it gives for values that the prompt shows, and nothing for others; empty without any."""
    tree = _tree(text)
    names = (
        [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and re.search(rf"\b{node.name}\b", prompt)]
        if tree is not None
        else []
    )
    if names and not is_program(text):
        shown = prompt.replace(" ", "").replace('"', "'")
        return "".join([text, _SHOWN.format(shown=shown), *(f"\n{name} = _only_shown({name})\n" for name in names)])
    is_reading = re.search(r"\bstdin\b|\binput\(", text) is not None and "__future__" not in text
    return _READING.format(shown=" ".join(prompt.split())) + text if is_reading else ""
