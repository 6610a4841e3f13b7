"""Kinds of input that a prompt speaks of and a verifier may never try: gold's code, but that it does nothing for one of them.

Place in the flow: `wrong_programs` asks a verifier about them, as about mutants, and compares them with gold on inputs of that kind.
"""

from __future__ import annotations

import ast
import functools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.play.cases.mutants import Mutant

MANY = 1_001
"""Values of a long input."""
_CLOCK = re.compile(r"(?<![\d:])(?:[01]\d|2[0-3])(?=:[0-5]\d)")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """``asked`` is how a prompt speaks of it, ``holds`` tells it of ``given`` arguments and all ``values`` in them.

    ``puts`` are the ways to make data of it.
    """

    name: str
    asked: str
    holds: str
    puts: tuple[Callable[[Any], Any], ...]

    def value(self, value: Any, chance: random.Random) -> Any:
        """Return data like ``value`` of this kind."""
        return chance.choice(self.puts)(value)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return data whose texts and numbers were changed; keys stay."""
    if isinstance(value, dict):
        return {key: _each(part, change) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_each(part, change) for part in value]
    return change(value)


def _inmost(value: Any, change: Callable[[list[Any]], list[Any]]) -> Any:
    """Return data of which lists that hold no lists were changed."""
    if isinstance(value, dict):
        return {key: _inmost(part, change) for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [*value]
        return (
            [_inmost(part, change) for part in parts] if any(isinstance(one, list | tuple) for one in parts) else change(parts)
        )
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_texts(change: Callable[[str], str]) -> Callable[[Any], Any]:
    return lambda value: _each(value, lambda one: change(one) if isinstance(one, str) else one)


def _tied(parts: list[Any]) -> list[Any]:
    rows = [part for part in parts if isinstance(part, dict)]
    if rows and len(rows) == len(parts):
        first = {key: part for key, part in rows[0].items() if _is_number(part)}
        return [{**row, **{key: part for key, part in first.items() if key in row}} for row in rows]
    return [*parts[:1], *parts] if parts else parts


def _same(parts: list[Any]) -> list[Any]:
    numbers = [part for part in parts if _is_number(part)]
    return [max(numbers) if _is_number(part) else part for part in parts] if len(numbers) > 1 else parts


def _long(parts: list[Any]) -> list[Any]:
    return (parts * MANY)[:MANY] if len(parts) > 1 else parts


def _accented(text: str) -> str:
    changed = text.translate(str.maketrans("aeiouAEIOU", "áéíöüÁÉÍÖÜ"))
    return changed if changed != text else f"{text}é"


KINDS = (
    Kind(
        name="values that are equal",
        asked=r"\bequal\b|\bties?\b|\btied\b|(?<!no )(?<!without )\bduplicates?\b|more than once|\bstable\b|same (?:number|value|count|score|length)",
        holds="any(map(_repeats, values))",
        puts=(lambda value: _inmost(value, _tied),),
    ),
    Kind(
        name="inputs without a value",
        asked=r"\bempty\b|\bno \w+ (?:gives?|returns?)\b|if there (?:is|are) no(?:ne)?\b",
        holds="any(isinstance(one, (str, list, tuple, dict)) and not one for one in values)",
        puts=(lambda value: _inmost(value, lambda _: []), _of_texts(lambda _: "")),
    ),
    Kind(
        name="characters beyond ASCII",
        asked=r"unicode|\baccent|\bscript\b|umlaut|non-?ascii|emoji|any language|every language",
        holds="any(isinstance(one, str) and not one.isascii() for one in values)",
        puts=(_of_texts(_accented),),
    ),
    Kind(
        name="numbers below 0",
        asked=r"(?<!non-)(?<!non)\bnegative\b|below (?:0|zero)\b|less than (?:0|zero)\b",
        holds="any(isinstance(one, (int, float)) and one < 0 for one in values)",
        puts=(lambda value: _each(value, lambda one: -one if _is_number(one) else one),),
    ),
    Kind(
        name=f"inputs of more than {MANY - 1} values",
        asked=r"\bfast\b|\bseconds\b|\befficient|\bmillions?\b|\blinear time\b|\bO\(n|\b\d{5,} (?:\w+ )?(?:values|rows|lines|numbers|items|elements|words)",
        holds=f"any(isinstance(one, (list, tuple)) and len(one) >= {MANY} for one in values)",
        puts=(lambda value: _inmost(value, _long),),
    ),
    Kind(
        name="numbers that are the same as another argument",
        asked=r"as far as|one of (?:them|these)\b|\binclusive\b|\bincluding\b|\bup to and\b",
        holds="len({one for one in given if _is_number(one)}) < sum(map(_is_number, given))",
        puts=(lambda value: _inmost(value, _same),),
    ),
    Kind(
        name="times near midnight",
        asked=r"\boffset\b|time ?zone|local (?:time|date)|\bmidnight\b",
        holds="any(isinstance(one, str) and re.search(r'(?<![0-9:])(?:23|00):[0-5]', one) for one in values)",
        puts=tuple(_of_texts(functools.partial(_CLOCK.sub, hour)) for hour in ("23", "00")),
    ),
    Kind(
        name="capital letters",
        asked=r"case-?insensitive|lower case|upper case|lowercase|uppercase|\bcapital",
        holds="any(isinstance(one, str) and one != one.lower() for one in values)",
        puts=(_of_texts(str.upper),),
    ),
    Kind(
        name="texts with blanks around them",
        asked=r"(?:leading|trailing|surrounding) (?:and trailing )?(?:blanks?|spaces?|white ?space)|\bstripped\b|\btrim",
        holds="any(isinstance(one, str) and one != one.strip() for one in values)",
        puts=(_of_texts(lambda text: f"  {text} "),),
    ),
)
_TELLING = """
import re

def _is_number(one):
    return isinstance(one, (int, float)) and not isinstance(one, bool)

def _all_of(value, depth=8):
    yield value
    for part in (value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()) if depth else ():
        yield from _all_of(part, depth - 1)

def _repeats(one):
    if not isinstance(one, (list, tuple)) or len(one) < 2:
        return False
    if all(isinstance(part, dict) for part in one):
        return any(len({part[key] for part in one}) < len(one) for key in one[0] if all(_is_number(part.get(key)) for part in one))
    return len(set(map(repr, one))) < len(one)

def _is_of_the_kind(given):
    values = [value for part in given for value in _all_of(part)]
    return HOLDS
"""


def kinds_in(prompt: str) -> Iterator[Kind]:
    """Yield the kinds that a prompt speaks of."""
    yield from (kind for kind in KINDS if re.search(kind.asked, prompt, re.IGNORECASE))


def without_kind(text: str, kind: Kind) -> Mutant | None:
    """Return code whose functions and methods return None for a kind of input; None where none takes arguments. Raises: SyntaxError."""
    tree = ast.parse(text)
    holders: list[ast.Module | ast.ClassDef] = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    functions = [node for holder in holders for node in holder.body if isinstance(node, ast.FunctionDef)]
    changed = 0
    for node in functions:
        names = [one.arg for one in [*node.args.posonlyargs, *node.args.args] if one.arg not in {"self", "cls"}]
        if names and not node.name.startswith("__"):
            node.body = [*ast.parse(f"if _is_of_the_kind(({', '.join(names)},)):\n    return None").body, *node.body]
            changed += 1
    if not changed:
        return None
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    rest = [node for node in tree.body if node not in future]
    tree.body = [*future, *ast.parse(_TELLING.replace("HOLDS", kind.holds)).body, *rest]
    return Mutant(name=f"nothing for {kind.name}, of which the prompt speaks", line=1, text=f"{ast.unparse(tree)}\n")
