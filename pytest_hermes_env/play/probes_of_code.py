"""Python code beside other code: what each of them gives for the same inputs, which are made of those that somebody wrote down.

Place in the flow: `wrong_programs` asks in which inputs a mutant differs from gold. `PROGRAM` runs in the sandbox.
"""

from __future__ import annotations

import ast
import copy
import json
import random
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.play.cases.kinds_of_input import Kind

VARIANTS, MOST = 10, 150
"""Other inputs made of one, and inputs in all."""
MANY_CASES, CASES_AT_ONCE = 0.7, 8
"""How often data is taken for a list of cases, and how many lists like it are put together then."""
LONGEST = 400
"""Characters of a call that is looked for in a text."""
_SIGNED = re.compile(r"\bnegative|\bsigned|\bintegers?\b", re.IGNORECASE)
_UNSIGNED = re.compile(r"non-?negative|positive (?:int|num|whole)|natural|at least [01]\b", re.IGNORECASE)
_DATA = {"terminal": "command", "write_file": "content"}
"""Where a call of a tool holds data."""
_INPUTS = frozenset({"input", "inputs", "args", "arguments", "given", "params", "stdin", "case", "x", "n", "text"})
PROGRAM = r"""
import contextlib, io, json, os, signal, subprocess, sys, types

class Endless(BaseException):  # which no `except Exception` stops
    pass

def stop(*_):
    raise Endless

def outcomes(program, snippets):
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, 2)  # of the processor, so that a busy machine changes nothing
    try:
        exec(compile(program, "solution.py", "exec"), vars(module))
    except BaseException as error:
        return ["raised " + type(error).__name__] * len(snippets)
    made = []
    for snippet in snippets:
        out = io.StringIO()
        signal.setitimer(signal.ITIMER_PROF, 1)
        try:
            with contextlib.redirect_stdout(out):
                exec(snippet, {**vars(module), "__name__": "snippet"})
            made.append(out.getvalue()[:2000])
        except BaseException as error:
            made.append("raised " + type(error).__name__)
        signal.setitimer(signal.ITIMER_PROF, 0)
    return made

given = json.load(open(sys.argv[1]))
if len(sys.argv) > 2:
    sys.stdout.write(json.dumps(outcomes(given["programs"][int(sys.argv[2])], given["snippets"])))
    sys.exit()
answers = []
for number, program in enumerate(given["programs"]):
    try:
        done = subprocess.run([sys.executable, "-I", *map(os.path.abspath, sys.argv[:2]), str(number)], capture_output=True, text=True, timeout=60, cwd="/")
        own = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        own = ["raised nothing"] * len(given["snippets"])
    answers.append(own)
print("answers", json.dumps(answers))
"""


@dataclass(kw_only=True)
class Like:
    """How inputs are made of others: ``names`` may stand for names, and numbers may be of the other sign if ``is_signed``.

    With a ``kind``, each is made one of it, and otherwise stays.
    """

    names: list[str]
    is_signed: bool
    kind: Kind | None = None
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - the same inputs in each run

    @classmethod
    def of(cls, code: str, prompt: str) -> Like:
        """Return what code and a prompt say of its inputs."""
        texts = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
        return cls(
            names=[str(text) for text in texts if _is_name(text)],
            is_signed=bool(_SIGNED.search(prompt)) and not _UNSIGNED.search(prompt),
        )

    def value(self, value: Any) -> Any:
        """Return data like other data."""
        if self.kind is not None:
            return self.kind.value(value, self.chance)
        text = repr(value)
        node = ast.parse(text, mode="eval").body
        return ast.literal_eval(self.varied(text).visit(node)) if _is_literal(node) else value  # NaN is not written as Python

    def varied(self, text: str) -> ast.NodeTransformer:
        """Return what changes code like ``text``."""
        return _Varied(self, text) if self.kind is None else _OfKind(self)


def snippets_of(code: str, texts: Sequence[str], item: Any, like: Like) -> list[str]:
    """Return Python that prints what the functions and classes of code give, for inputs that texts and an item hold, and for others like them."""
    tree = ast.parse(code)
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    classes = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
    found = [call for text in texts for call in _calls(text, functions)]
    found += [call for function in functions.values() for call in _calls_of_data(function, item)]
    blocks = [block for text in texts for block in _blocks(text, classes)] if classes else []
    return _with_variants(list(dict.fromkeys([*found, *blocks])), like)


def calls_like(
    calls: Sequence[tuple[str, Mapping[str, Any]]], work: str, like: Like
) -> Iterator[tuple[list[tuple[str, dict[str, Any]]], str]]:
    """Yield a verifier's calls, but for one input that is another one like it, and in words which: data in a command or in an upload.

    ``work`` is the path of the work, which stays.
    """
    plain = [(name, dict(arguments)) for name, arguments in calls]
    yield plain, ""
    places = [place for place, (name, arguments) in enumerate(plain) if name in _DATA and _DATA[name] in arguments]
    for _ in range(VARIANTS):
        for place in places:
            name, arguments = plain[place]
            text = str(arguments[_DATA[name]])
            made, told = _command_like(text, like) if name == "terminal" else _file_like(str(arguments.get("path")), text, like)
            if made != text and not str(arguments.get("path") or "x").endswith(work):
                yield [*plain[:place], (name, {**arguments, _DATA[name]: made}), *plain[place + 1 :]], told


def _command_like(line: str, like: Like) -> tuple[str, str]:
    """Return a command line with another value for one of its words that is data: JSON, a number, words with numbers in quotes."""
    try:
        words = [word for word in dict.fromkeys(shlex.split(line)) if _is_data(word) and line.count(shlex.quote(word)) == 1]
    except ValueError:
        words = []
    if not words:
        return line, ""
    word = like.chance.choice(words)
    made = _data_like(word, like)
    return line.replace(shlex.quote(word), shlex.quote(made)), made


def _is_data(word: str) -> bool:
    if isinstance(_json(word), list | dict | int | float):
        return True
    is_code = re.search(r"\b(?:import|print|def|lambda)\b|[=$;&|<>]", word) is not None
    return not is_code and re.search(r"\s", word) is not None and re.search(r"\d", word) is not None


def _file_like(path: str, text: str, like: Like) -> tuple[str, str]:
    """Return a file of data with other values; code stays."""
    if path.endswith((".py", ".sh", ".js", ".sql", ".toml", ".ini", ".cfg")) or path.rpartition("/")[2] == "Makefile":
        return text, ""
    made = _data_like(text, like)
    return made, f"{path} with {made}"


def _data_like(text: str, like: Like) -> str:
    chance, value = like.chance, _json(text)
    if value is not None:
        is_of_cases = (
            isinstance(value, list) and all(isinstance(part, list | dict) for part in value) and chance.random() < MANY_CASES
        )
        made = [like.value(value) for _ in range(CASES_AT_ONCE if is_of_cases and like.kind is None else 1)]
        return json.dumps([part for one in made for part in one] if is_of_cases else made[0])
    if like.kind is not None:
        return str(like.value(text))
    lines = text.split("\n")
    body = [line for line in lines[1:] if line]
    if len(body) > 1 and chance.random() < 0.5:  # noqa: PLR2004 - by half the chances, the order or number of lines
        return "\n".join(
            [
                lines[0],
                *chance.choice([body[::-1], body[1:], body + body[:1], body + body]),
                *([""] if text.endswith("\n") else []),
            ]
        )
    return re.sub(r"\d", lambda found: found[0] if chance.random() < 0.5 else str(chance.randint(1, 9)), text)  # noqa: PLR2004


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


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
    except (ValueError, TypeError, RecursionError):
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


def _with_variants(snippets: list[str], like: Like) -> list[str]:
    """Return snippets with others like them: the same signs and kinds, other numbers, texts and lengths."""
    made = dict.fromkeys(snippets[:MOST])
    for _ in range(VARIANTS):
        for snippet in snippets:
            if len(made) >= MOST:
                return [*made]
            made[ast.unparse(like.varied(snippet).visit(ast.parse(snippet)))] = None
    return [*made]


class _Varied(ast.NodeTransformer):
    """Changes some of the values that are written in code: their kinds, their signs, names of keys and whatever looks like a name stay."""

    def __init__(self, like: Like, text: str) -> None:
        self._chance, self._is_signed = like.chance, like.is_signed
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant | ast.List | ast.Dict)]
        self._names = [
            str(node.value) for node in nodes if isinstance(node, ast.Constant) and _is_name(node.value)
        ] + like.names
        self._whole = next((node for node in nodes if isinstance(node, ast.List | ast.Dict)), None)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        """Return another value of the same kind, or the same."""
        value: Any = node.value
        if self._chance.random() < 0.4 or isinstance(value, bool) or not isinstance(value, str | int | float):  # noqa: PLR2004
            return node
        if _is_name(value) and len({*self._names}) > 1:
            return ast.Constant(value=self._chance.choice(self._names)) if self._chance.random() < 0.3 else node  # noqa: PLR2004
        if isinstance(value, str):
            digits = re.sub(r"\d", lambda _: str(self._chance.randint(1, 9)), value)
            words = " ".join(value.split()[::-1])
            return ast.Constant(value=self._chance.choice([value + value, value[::-1], digits, words, value.swapcase()]))
        value = -value if self._is_signed and self._chance.random() < 0.3 else value  # noqa: PLR2004
        step = -1 if value < 0 else 1
        return ast.Constant(
            value=self._chance.choice([value, value + step, 2 * value + step, 3 * value, 10 * value + 7 * step])
        )

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        """Return the same keys with other values."""
        return ast.Dict(keys=node.keys, values=[self.visit(value) for value in node.values])

    def visit_List(self, node: ast.List) -> ast.AST:
        """Return a list of another length, order or depth; one that is in order stays so."""
        if not _is_literal(node):
            return self.generic_visit(node)
        is_in_order = len(node.elts) > 1 and _is_in_order(node)
        is_of_lists = all(isinstance(part, ast.List | ast.Dict) for part in node.elts)
        if _are_records(node.elts):
            parts: list[Any] = [self.generic_visit(part) for part in node.elts]
        else:
            parts = [self.visit(part) for part in node.elts]
        ways = [parts[::-1], parts + parts, parts[:-1] or parts, parts[1:] or parts, self._chance.sample(parts, len(parts))]
        if is_of_lists and isinstance(self._whole, ast.Dict):
            ways.append([*parts, copy.deepcopy(self._whole)])  # as deep again as the whole
        is_plain = len({type(ast.literal_eval(part)) for part in node.elts}) > 1 or self._chance.random() < 0.5  # noqa: PLR2004
        made = ast.List(elts=parts if is_plain else self._chance.choice(ways), ctx=ast.Load())
        return (
            ast.List(elts=[ast.Constant(value=part) for part in sorted(ast.literal_eval(made))], ctx=ast.Load())
            if is_in_order
            else made
        )


class _OfKind(ast.NodeTransformer):
    """Makes the written arguments of calls inputs of a kind."""

    def __init__(self, like: Like) -> None:
        self._like = like

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call with other arguments, together, since a kind may be of several."""
        self.generic_visit(node)
        if node.args and all(map(_is_literal, node.args)):
            made = self._like.value([ast.literal_eval(one) for one in node.args])
            node.args = [ast.parse(repr(one), mode="eval").body for one in made]
        return node


def _are_records(nodes: Sequence[ast.expr]) -> bool:
    """Tell whether lists have places of meaning: all begin with a name, or have the same kinds in the same order."""
    lists = [ast.literal_eval(node) for node in nodes if isinstance(node, ast.List)]
    if len(lists) < len(nodes) or not lists:
        return False
    return all(one and _is_name(one[0]) for one in lists) or (
        len(lists) > 1 and len({(*map(type, one),) for one in lists}) == 1
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _is_in_order(node: ast.List) -> bool:
    """Tell whether a list is of numbers, or of texts, from the lowest to the highest."""
    try:
        values = ast.literal_eval(node)
        return bool(values == sorted(values)) and {*map(type, values)} <= {int, float, str}
    except (ValueError, TypeError):
        return False
