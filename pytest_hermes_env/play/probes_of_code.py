"""Python code beside other code: what each of them gives for the same inputs, which are made of those that somebody wrote down.

Place in the flow: `wrong_programs` asks in which inputs a mutant differs from gold. `PROGRAM` runs in the sandbox.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

VARIANTS, MOST = 10, 150
"""Other inputs made of one, and inputs in all."""
LONGEST = 400
"""Characters of a call that is looked for in a text."""
_INPUTS = frozenset({"input", "inputs", "args", "arguments", "given", "params", "stdin", "case", "x", "n", "text"})
PROGRAM = r"""
import contextlib, io, json, os, signal, subprocess, sys, tempfile, types

def stop(*_):
    raise TimeoutError

def outcomes(program, snippets):
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(2)
    try:
        exec(compile(program, "solution.py", "exec"), vars(module))
    except BaseException as error:
        return ["raised " + type(error).__name__] * len(snippets)
    made = []
    for snippet in snippets:
        out = io.StringIO()
        signal.alarm(1)
        try:
            with contextlib.redirect_stdout(out):
                exec(snippet, {**vars(module), "__name__": "snippet"})
            made.append(out.getvalue()[:2000])
        except BaseException as error:
            made.append("raised " + type(error).__name__)
        signal.alarm(0)
    return made

def printed(program, name, runs):
    made = []
    with tempfile.TemporaryDirectory() as place:
        with open(os.path.join(place, name), "w") as file:
            file.write(program)
        for argv, stdin in runs:
            try:
                done = subprocess.run([sys.executable, "-I", name, *argv], input=stdin, capture_output=True, text=True, timeout=5, cwd=place)
                made.append(done.stdout[:2000] if done.returncode == 0 else "raised %d" % done.returncode)
            except (subprocess.TimeoutExpired, ValueError, OSError):
                made.append("raised nothing")
    return made

given = json.load(open(sys.argv[1]))
if len(sys.argv) > 2:
    sys.stdout.write(json.dumps(outcomes(given["programs"][int(sys.argv[2])], given["snippets"])))
    sys.exit()
answers = []
for number, program in enumerate(given["programs"]):
    try:
        done = subprocess.run([sys.executable, "-I", *map(os.path.abspath, sys.argv[:2]), str(number)], capture_output=True, text=True, timeout=20, cwd="/")
        own = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        own = ["raised nothing"] * len(given["snippets"])
    answers.append(own + printed(program, given["name"], given["runs"]))
print("answers", json.dumps(answers))
"""


def snippets_of(code: str, texts: Sequence[str], item: Any) -> list[str]:
    """Return Python that prints what the functions and classes of code give, for inputs that texts and an item hold, and for others like them."""
    tree = ast.parse(code)
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    classes = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
    found = [call for text in texts for call in _calls(text, functions)]
    found += [call for function in functions.values() for call in _calls_of_data(function, item)]
    blocks = [block for text in texts for block in _blocks(text, classes)] if classes else []
    return _with_variants(list(dict.fromkeys([*found, *blocks])))


def runs_of(name: str, lines: Sequence[str], item: Any) -> list[tuple[list[str], str]]:
    """Return arguments and standard inputs of a program that lines of a shell and an item hold, and others like them."""
    found: dict[str, None] = {}
    for line in lines:
        for part in re.finditer(
            rf"(?:(?:echo|printf)\s+(.*?)\s*\|\s*)?\S*python[\d.]*(?:\s+-\w)*\s+\S*{re.escape(name)}([^|;&<>\n]*)", line
        ):
            words = [re.findall(r"'([^']*)'|\"([^\"]*)\"|(\S+)", text or "") for text in part.groups()]
            stdin, argv = ([one or two or three for one, two, three in text] for text in words)
            found[repr((argv, "\n".join(word.replace("\\n", "\n") for word in stdin if word not in {"-e", "-n", "%s"})))] = None
    for key, value in _inputs_in(item):
        found |= (
            {repr(([], f"{value}\n")): None}
            if isinstance(value, str | int) and key in {"stdin", "input", "given", "text"}
            else {}
        )
    return [ast.literal_eval(text) for text in _with_variants([*found])]


def _calls(text: str, functions: Mapping[str, Any]) -> Iterator[str]:
    """Yield the calls with written arguments in a text."""
    names = "|".join(map(re.escape, functions))
    for plain in dict.fromkeys([text, text.replace('\\"', '"').replace("'\"'\"'", "'")]) if names else ():
        for match in re.finditer(rf"(?<![\w.])(?:{names})\(", plain):
            for end in re.finditer(r"\)", plain[match.end() : match.end() + LONGEST]):
                call = plain[match.start() : match.end() + end.end()]
                try:
                    node = ast.parse(call, mode="eval").body
                except (SyntaxError, ValueError):
                    continue
                if isinstance(node, ast.Call) and all(map(_is_literal, _arguments(node))):
                    yield f"print(repr({ast.unparse(node)}))"
                break


def _arguments(node: ast.Call) -> list[ast.expr]:
    plain = [one.value if isinstance(one, ast.Starred) else one for one in node.args]
    return [*plain, *(one.value for one in node.keywords)]


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    return True


def _calls_of_data(function: ast.FunctionDef | ast.AsyncFunctionDef, item: Any) -> Iterator[str]:
    """Yield calls of a function with the inputs that an item holds as data."""
    names = [one.arg for one in function.args.args]
    least = len(names) - len(function.args.defaults)
    for _, value in _inputs_in(item):
        if isinstance(value, Mapping) and {*value} <= {*names} and value:
            given = [f"{name}={part!r}" for name, part in value.items()]
        elif isinstance(value, list | tuple) and len(value) in range(max(2, least), len(names) + 1):
            given = [repr(part) for part in value]
        elif least <= 1 <= len(names):
            given = [repr(value[0] if isinstance(value, list | tuple) and len(value) == 1 else value)]
        else:
            continue
        yield f"print(repr({function.name}({', '.join(given)})))"


def _inputs_in(value: Any, depth: int = 6) -> Iterator[tuple[str, Any]]:
    """Yield what stands under names of inputs, and the first of each pair in lists of pairs."""
    if depth and isinstance(value, Mapping):
        for key, part in value.items():
            if str(key).lower() in _INPUTS:
                yield str(key).lower(), part
            yield from _inputs_in(part, depth - 1)
    elif depth and isinstance(value, list | tuple):
        is_of_pairs = len(value) > 1 and all(isinstance(part, list | tuple) and len(part) == 2 for part in value)  # noqa: PLR2004
        for part in value:
            yield from [("", part[0])] if is_of_pairs else _inputs_in(part, depth - 1)


def _blocks(text: str, classes: set[str]) -> Iterator[str]:
    """Yield the bodies of tests in a text that use one of the classes: what they compare is printed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    holders: list[ast.Module | ast.FunctionDef] = [
        tree,
        *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)),
    ]
    for holder in holders:
        used = {node.id for one in holder.body for node in ast.walk(one) if isinstance(node, ast.Name)}
        own = [one for one in holder.body if not isinstance(one, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)]
        if classes & used and own:
            yield "\n".join(ast.unparse(_printing(one)) for one in own)


def _printing(node: ast.stmt) -> ast.AST:
    """Return a statement that prints what a test compares."""
    compared: ast.expr | None = None
    if isinstance(node, ast.Assert):
        compared = node.test.left if isinstance(node.test, ast.Compare) else node.test
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:
        is_of_unittest = isinstance(node.value.func, ast.Attribute) and node.value.func.attr.startswith("assert")
        compared = node.value.args[0] if is_of_unittest else None
    return ast.parse(f"print(repr({ast.unparse(compared)}))").body[0] if compared is not None else node


def _with_variants(snippets: list[str]) -> list[str]:
    """Return snippets with others like them: the same signs and kinds, other numbers, texts and lengths."""
    chance = random.Random(0)  # noqa: S311 - the same inputs in each run
    made = dict.fromkeys(snippets[:MOST])
    for _ in range(VARIANTS):
        for snippet in snippets:
            if len(made) >= MOST:
                return [*made]
            made[ast.unparse(_Varied(chance).visit(ast.parse(snippet)))] = None
    return [*made]


class _Varied(ast.NodeTransformer):
    """Changes the values that are written in code, some of them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        """Return another value of the same kind."""
        value: Any = node.value
        if isinstance(value, str):
            words = value.split()
            digits = re.sub(r"\d", lambda _: str(self._chance.randint(1, 9)), value)
            made: Any = self._chance.choice(
                [value, value + value, value[::-1], digits, " ".join(words[::-1]), value.swapcase()]
            )
        elif isinstance(value, bool) or not isinstance(value, int | float):
            return node
        else:
            step = -1 if value < 0 else 1
            made = self._chance.choice([value, value, value + step, 2 * value + step, 3 * value, 10 * value + 7 * step])
        return ast.Constant(value=made)

    def visit_List(self, node: ast.List) -> ast.List:
        """Return a list of another length or order; one that is in order stays so."""
        is_in_order = len(node.elts) > 1 and _is_in_order(node)
        self.generic_visit(node)
        parts = [*node.elts]
        chosen = self._chance.choice([parts, parts[::-1], parts + parts, parts[:-1] or parts, parts[1:] or parts])
        made = ast.List(elts=chosen, ctx=ast.Load())
        return (
            ast.List(elts=[ast.Constant(value=part) for part in sorted(ast.literal_eval(made))], ctx=ast.Load())
            if is_in_order
            else made
        )


def _is_in_order(node: ast.List) -> bool:
    """Tell whether a list is of numbers, or of texts, from the lowest to the highest."""
    try:
        values = ast.literal_eval(node)
        return bool(values == sorted(values)) and {*map(type, values)} <= {int, float, str}
    except (ValueError, TypeError):
        return False
