"""Python code beside other code: what each of them gives for the same inputs, which are made of those that somebody wrote down.

Place in the flow: `witnesses` asks for which inputs a mutant differs from gold.
"""

from __future__ import annotations

import ast
import calendar
import copy
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.play.cases.kinds_of_input import Kind, kinds_in

VARIANTS, MOST = 10, 150
"""Other inputs made of one, and inputs in all."""
LONGEST, LONGEST_SIGN = 400, 2
"""Characters of a call that is looked for in a text, and of a sign."""
_SIGNED = re.compile(r"\bnegative|\bsigned|\bintegers?\b|[\"'`]-\d", re.IGNORECASE)
_UNSIGNED = re.compile(r"non-?negative|positive (?:int|num|whole)|natural|at least [01]\b", re.IGNORECASE)
OF_DATA = frozenset({"date", "datetime", "time", "timedelta", "Decimal", "Fraction"})
"""Classes of data, which `comparer` knows by these names."""
_OF_ORDER = re.compile(r"\b(?:once|before|after|first)\b", re.IGNORECASE)
"""Where a prompt may say in which order something is called, and how often."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")
_OF_DATETIME = re.compile(r"\bdatetime\.(?=(?:date|datetime|time|timedelta)\()")


@dataclass(kw_only=True)
class Like:
    """How inputs are made of others: ``names`` may stand for names, ``numbers`` and those beside them for numbers, which may be of the other
    sign if ``is_signed``. Some are made of ``kinds``, of which the prompt speaks.

    ``signs`` are what the code looks for in texts. Methods are called again where they ``may_repeat``. With a ``kind``, each is made one of it, and otherwise stays.
    """

    names: list[str]
    is_signed: bool
    kind: Kind | None = None
    numbers: Sequence[int] = ()
    signs: Sequence[str] = ()
    may_repeat: bool = True
    kinds: Sequence[Kind] = ()
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - the same inputs in each run

    @classmethod
    def of(cls, code: str, prompt: str) -> Like:
        """Return what code and a prompt say of its inputs."""
        texts = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
        return cls(
            names=[str(text) for text in texts if _is_name(text)],
            is_signed=bool(_SIGNED.search(prompt)) and not _UNSIGNED.search(prompt),
            numbers=[node for node in texts if type(node) is int],
            signs=[
                text for text in texts if isinstance(text, str) and 0 < len(text.strip()) <= LONGEST_SIGN and not _is_name(text)
            ],
            may_repeat=not _OF_ORDER.search(prompt),
            kinds=[*kinds_in(prompt)],
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


def snippets_of(code: str, texts: Sequence[str], like: Like, used: Sequence[str] = ()) -> list[str]:
    """Return Python that prints what the functions and classes of code give, for inputs that texts hold, and for others like them.

    ``used`` are such calls that were seen.
    """
    tree = ast.parse(code)
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    classes = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
    found = [call for text in texts for call in _calls(text, functions)]
    blocks = [block for text in texts for block in _blocks(text, classes)] if classes else []
    return _with_variants(list(dict.fromkeys([*used, *found, *blocks])), like)


def _calls(text: str, functions: Mapping[str, Any]) -> Iterator[str]:
    """Yield the calls with written arguments in a text."""
    names = "|".join(map(re.escape, functions))
    text = _OF_DATETIME.sub("", text)
    for plain in dict.fromkeys([text, text.replace('\\"', '"').replace("'\"'\"'", "'")]) if names else ():
        for match in re.finditer(rf"(?<![\w.])(?:{names})\(", plain):
            for end in re.finditer(r"\)", plain[match.end() : match.end() + LONGEST]):
                call = plain[match.start() : match.end() + end.end()]
                try:
                    if is_of_data(call):
                        yield f"print(repr({ast.unparse(ast.parse(call))}))"
                except (SyntaxError, ValueError):
                    continue
                break


def _arguments(node: ast.Call) -> list[ast.expr]:
    plain = [one.value if isinstance(one, ast.Starred) else one for one in node.args]
    return [*plain, *(one.value for one in node.keywords)]


def is_of_data(call: str) -> bool:
    """Tell whether all arguments of a call are data. Raises: SyntaxError."""
    node = ast.parse(call, mode="eval").body
    return isinstance(node, ast.Call) and all(map(_is_data, _arguments(node)))


def _is_data(node: ast.expr) -> bool:
    """Tell whether a node is data: what Python writes as such, and dates, times and exact numbers."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OF_DATA:
        return all(map(_is_literal, _arguments(node)))
    return all(map(_is_data, node.elts)) if isinstance(node, ast.List | ast.Tuple | ast.Set) else _is_literal(node)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


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
    for kind in like.kinds if like.kind is None else ():
        for snippet in snippets[:VARIANTS]:
            made[ast.unparse(replace(like, kind=kind).varied(snippet).visit(ast.parse(snippet)))] = None
    for _ in range(max(VARIANTS, MOST // max(1, len(snippets)))):
        for snippet in snippets:
            if len(made) >= MOST:
                return [*made]
            made[ast.unparse(like.varied(snippet).visit(ast.parse(snippet)))] = None
    return [*made]


class _Varied(ast.NodeTransformer):
    """Changes some of the values that are written in code: their kinds, their signs, names of keys and whatever looks like a name stay."""

    def __init__(self, like: Like, text: str) -> None:
        self._chance, self._is_signed, self._numbers, self._signs = like.chance, like.is_signed, like.numbers, like.signs
        self._may_repeat = like.may_repeat
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant | ast.List | ast.Dict)]
        self._names = [
            str(node.value) for node in nodes if isinstance(node, ast.Constant) and _is_name(node.value)
        ] + like.names
        self._whole = next((node for node in nodes if isinstance(node, ast.List | ast.Dict)), None)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Return code with other values; of the calls of an object's methods some may be left out at the end, or come again."""
        first, *calls = node.body
        if self._may_repeat and len(calls) > 1 and isinstance(first, ast.Assign) and self._chance.random() < 0.7:  # noqa: PLR2004
            kept = calls[: self._chance.randint(1, len(calls))]
            node.body = [first, *kept, *map(copy.deepcopy, self._chance.choices(kept, k=self._chance.randint(1, 4)))]
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        """Return another value of the same kind, or the same."""
        value: Any = node.value
        if self._chance.random() < 0.4 or isinstance(value, bool) or not isinstance(value, str | int | float):  # noqa: PLR2004
            return node
        if _is_name(value) and len({*self._names}) > 1:
            return ast.Constant(value=self._chance.choice(self._names)) if self._chance.random() < 0.3 else node  # noqa: PLR2004
        if isinstance(value, str):
            return ast.Constant(value=self._text(value))
        value = -value if self._is_signed and self._chance.random() < 0.3 else value  # noqa: PLR2004
        step = -1 if value < 0 else 1
        near = [step * abs(one) + self._chance.choice([-1, 0, 1]) for one in self._numbers]
        if near and isinstance(value, int) and self._chance.random() < 0.4:  # noqa: PLR2004
            made = self._chance.choice(near)
            return ast.Constant(value=made if made * step >= 0 or self._is_signed else -made)
        return ast.Constant(
            value=self._chance.choice([value, value + step, 2 * value + step, 3 * value, 10 * value + 7 * step])
        )

    def _text(self, text: str) -> str:
        """Return a text like another one: other numbers and dates, other words, or a sign more, less or other."""
        chance = self._chance
        if _NUMBER.fullmatch(text):
            sign = "-" if self._is_signed and chance.random() < 0.4 else ""  # noqa: PLR2004
            whole, places = chance.randint(0, 10 ** len(text.partition(".")[0])), chance.randint(0, 3)
            return f"{sign}{whole}" + (f".{chance.randrange(10**places):0{places}}" if "." in text and places else "")
        if _DATE.search(text):
            return _DATE.sub(lambda found: _date_like(found[0], chance), text)
        digits = re.sub(r"\d", lambda _: str(chance.randint(1, 9)), text)
        words = " ".join(text.split()[::-1])
        signs = self._signs if self._signs and chance.random() < 0.7 else [*"".join(text.split())] or ["x"]  # noqa: PLR2004
        ways: list[str] = [text + text, text[::-1], digits, words, text.swapcase()]
        if len(text) > 2:  # noqa: PLR2004 - its ends stay
            place, sign = chance.randrange(1, len(text) - 1), chance.choice(signs)
            before, after = text[:place], text[place + 1 :]
            ways += 2 * [before + sign + text[place:], before + after, before + sign + after]
        return ways[chance.randrange(len(ways))]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call with other arguments; the first two may be the wrong way round. Days that are in order stay so."""
        days = _days_in(node)
        self.generic_visit(node)
        before = [str(one.value) for one in days]
        if len(days) > 1 and before == sorted(before):
            others = _days_in(node)
            for one, day in zip(others, sorted(str(one.value) for one in others), strict=True):
                one.value = day
            return node
        if len(node.args) > 1 and _is_like(*node.args[:2]) and self._chance.random() < 0.2:  # noqa: PLR2004
            node.args[:2] = node.args[1::-1]
        return node

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


def _days_in(node: ast.Call) -> list[ast.Constant]:
    """Return the arguments of a call that are days."""
    return [
        one for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str) and _DATE.fullmatch(one.value)
    ]


def _date_like(text: str, chance: random.Random) -> str:
    """Return a date of the same form: in the same year or one that is, or is not, a leap year; most at the end of a month."""
    year, month = chance.choice([int(text[:4]), 1900, 2000, 2023, 2024]), chance.choice([2, 2, 2, *range(1, 13)])
    last = calendar.monthrange(year, month)[1]
    return f"{year:04}-{month:02}-{chance.choice([1, last - 1, last, last, chance.randint(1, last)]):02}"


def _are_records(nodes: Sequence[ast.expr]) -> bool:
    """Tell whether lists have places of meaning: all begin with a name, or have the same kinds in the same order."""
    lists = [ast.literal_eval(node) for node in nodes if isinstance(node, ast.List)]
    if len(lists) < len(nodes) or not lists:
        return False
    return all(one and _is_name(one[0]) for one in lists) or (
        len(lists) > 1 and len({(*map(type, one),) for one in lists}) == 1
    )


def _is_like(one: ast.expr, other: ast.expr) -> bool:
    """Tell whether two arguments are data of one class."""
    names = [node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else "" for node in (one, other)]
    return names[0] == names[1] != "" or (
        _is_literal(one) and _is_literal(other) and type(ast.literal_eval(one)) is type(ast.literal_eval(other))
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
