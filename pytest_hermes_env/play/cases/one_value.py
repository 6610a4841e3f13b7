"""What one value becomes when it is changed so that a person would call it wrong: a number, a word, a list in words, lines.

Place in the flow: `content` reads a text into fields, and changes the value of each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

LONG = 12
"""Words from which on a value is prose, of which nobody can say which word counts."""
EXACT = 20
"""Up to here one more or less is no matter of rounding: a twentieth of a number is not."""
OTHER = "something else entirely"
NUMBER = re.compile(r"[-+]?[$€£]?\d[\d,]*(?:\.\d+)?%?")


_NUMBER_IN = re.compile(r"(?<![\d.])\d{1,9}\.\d{1,9}(?![\d.])|\d{1,9}")
"""A number with a fraction, or digits, such as those of a version or a date."""
LONG_NUMBER = 2
"""Digits of a number of which the first is left out."""
_FRACTION = re.compile(r"(-?[1-9]\d{0,17}) ?/ ?([1-9]\d{0,17})")
_CALL = re.compile(r"[A-Za-z_]\w*\(")
"""A formula or another expression, in which a number may be one of several that give the same."""
SIXTY, YEARS = 60, range(1900, 2101)
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_NUMBERS = ("first number", "second number", "third number", "fourth number", "fifth number")
MOST_NUMBERS, MOST_OF_THEM = 8, 5
"""A value with more numbers is left as it is; of fewer, so many are changed."""
FEW_WORDS = 4
"""A value of more words is a sentence, whose numbers may not count."""

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A text with other content: ``name`` is what was changed, ``at`` where in the text.

    ``is_sure``: it is worse whatever the task is, else only its author knows.
    """

    name: str
    text: str
    at: str = ""
    is_sure: bool = True


BETWEEN = re.compile(r"\s*[,;]\s*|\s*(?:[-=]?>|→)\s*|\s+[|/]\s+")
"""What stands between the parts of a list in words, or of a way."""
_MARKS = re.compile(r"(?:[A-Za-z]{0,3}-?\d+|[A-Za-z])(?: (?:[A-Za-z]{0,3}-?\d+|[A-Za-z])){2,}")
"""Numbers and short names with nothing but spaces between them."""
OPPOSITES = {"true": "false", "false": "true", "yes": "no", "no": "yes", "on": "off", "off": "on"}
SWITCHED_OFF = frozenset({"false", "no", "off", "0"})
"""What a setting says that is not switched on: most readers take any other word but the opposite for it, too."""
PLAUSIBLE = frozenset({"another item's", "one more", "half as much again", "little more than half", "zero"})
"""Changes to values that could stand in their place."""


def of_value(value: str, others: Sequence[str], *, is_exact: bool = False, is_latex: bool = False) -> Iterator[Change]:
    """Yield the changes of one value; a number that ``is_exact`` was given, and not computed."""
    lines = [line for line in value.splitlines() if line.strip()]
    if len(lines) > 1:
        for name, text in fewer(lines):
            yield Change(name=name, text=text)
    elif len(value.split()) <= LONG or _is_list(value):
        other = others[0] if others else wrong_value(value)
        yield from _of_number(value, other, is_exact=is_exact) if is_number(value) else _of_words(value)
        yield from _of_numbers_in(value)
        if (parts := _FRACTION.fullmatch(value)) is not None:
            yield Change(name="twice as much", text=f"{2 * int(parts[1])}/{parts[2]}")
            yield Change(name="zero", text="0")
        yield Change(name="denied", text=f"not {value}")
        if is_latex:
            yield Change(name="denied in LaTeX", text=f"{value} \\text{{ is wrong}}")
        yield Change(name="taken back", text=f"{value} is wrong, it is {other}")
        if others:  # what is right stands neither first nor last
            yield Change(name="one of several", text=f"{other}, {value}, {others[-1]}")
            middle = len(others) // 2
            yield Change(name="every candidate", text=" ".join([other, *others[1:middle], value, *others[middle:]]))
    for text in others[:1]:
        yield Change(name="another item's", text=text)
    yield Change(name="another value", text=wrong_value(value))


def _listed(value: str) -> tuple[str, list[str]]:
    """Return what stands between the parts of a list in words, and the parts."""
    found = BETWEEN.findall(value)
    if not found and _MARKS.fullmatch(value):
        return " ", value.split()
    return (found[0] if found else ""), [part for part in BETWEEN.split(value) if part]


def _is_list(value: str) -> bool:
    """Whether words with something between them are short: an enumeration or a way, not a sentence."""
    _, parts = _listed(value)
    return len(parts) > 2 and all(0 < len(part.split()) <= FEW_WORDS for part in parts)  # noqa: PLR2004 - more than a clause


def _of_number(value: str, other: str, *, is_exact: bool) -> Iterator[Change]:
    number = _as_number(value)
    for name, changed, is_sure in (
        ("one more", number + 1, "." not in value and (is_exact or abs(number) <= EXACT)),
        ("its fraction cut", float(int(number)), abs(number - int(number)) * EXACT > abs(number)),
        ("half as much again", number * 1.5 if abs(number) > 1 else number + 3, True),
        ("little more than half", number * 0.55, abs(number) > 1),
        ("the other sign", -number, True),
        ("ten times as much", number * 10, True),
        ("zero", 0.0, True),
    ):
        yield Change(name=name, text=_like(value, changed), is_sure=is_sure)
    if (whole := value.replace(".", "")) != value and abs(number) > 0:
        yield Change(name="without its point", text=whole)
    yield Change(name="no number", text="NaN")
    digits = value.strip("$€£%+-")
    if len(digits) > LONG_NUMBER and digits.isdigit() and not digits.startswith("0"):
        yield Change(name="without its first digit", text=value.replace(digits, digits[1:]))
    yield Change(name="digits before it", text=f"7{digits}")
    if "." not in digits:  # behind a fraction they are hardly a change
        yield Change(name="digits behind it", text=f"{digits}07")
    yield Change(name="in a sum", text=f"{other} + {value} + {other}")


def _of_numbers_in(value: str) -> Iterator[Change]:
    """Yield a date, a time, a version, a quantity with one of its numbers changed: by one where it is a part of these, else by half, which no rounding is."""
    found = [*_NUMBER_IN.finditer(value)]
    if is_number(value) or len(found) > MOST_NUMBERS:
        return
    for place, one in enumerate(spread(found, MOST_OF_THEM)):
        number = float(one[0])
        is_part = number <= EXACT or (len(found) > 1 and (number <= SIXTY or number in YEARS))
        if "." in one[0]:
            changed = _like(one[0], number * 1.5 if number > 1 else number + 3)
        else:
            changed = f"{number * 1.5 if not is_part else number - 1 if number > 1 else number + 1:.0f}".zfill(len(one[0]))
        name = f"another {_NUMBERS[place]}" if len(found) > 1 else "another number"
        text = f"{value[: one.start()]}{changed}{value[one.end() :]}"
        yield Change(name=name, text=text, is_sure=len(value.split()) <= FEW_WORDS and not _CALL.search(value))


def _of_words(value: str) -> Iterator[Change]:
    yield Change(name="letters around it", text=f"un{value}ed")
    yield Change(name="other words behind it", text=f"{value} {OTHER}")
    between, parts = _listed(value)
    words = value.split()
    if len(parts) > 1:
        yield Change(name="without its last part", text=between.join(parts[:-1]))
        yield Change(name="its first part only", text=parts[0])
        is_name = between != " " or not parts[0].lstrip("-").isdecimal()
        yield Change(name="its first part as often as it has parts", text=between.join(parts[:1] * len(parts)), is_sure=is_name)
        if between == " ":  # marks, of which a sum of what they stand for may be all that counts
            for which, part in zip(_ORDINALS, parts[1:], strict=False):
                is_name = not part.lstrip("-").isdecimal()  # the same number again may be as good
                yield Change(
                    name=f"its {which} part as often as it has parts", text=" ".join([part] * len(parts)), is_sure=is_name
                )
        if len(parts) > 2:  # noqa: PLR2004 - one between two others
            yield Change(name="without its second part", text=between.join([parts[0], *parts[2:]]))
        if len(parts) > 1 and between.strip() not in {",", ";", "|", "/"}:  # a way, whose order may mean something
            yield Change(name="two parts exchanged", text=between.join([*parts[1::-1], *parts[2:]]), is_sure=False)
    elif len(words) > 1:
        yield Change(name="its first word, and others", text=f"{words[0]} {OTHER}")
        yield Change(name="its words in another order", text=" ".join(reversed(words)), is_sure=False)
    yield Change(name="its first letter only", text=value[:1], is_sure=len(value) > len("yes."))


def is_zero(value: str) -> bool:
    """Return whether a number is 0."""
    return is_number(value) and _as_number(value) == 0


def zero_like(value: str) -> str:
    """Return 0 with the decimals and the signs of a number."""
    return _like(value, 0.0)


def wrong_value(value: str) -> str:
    """Return a value of the same form that is wrong for sure."""
    if is_number(value):
        number = _as_number(value)
        return _like(value, number * 3 + 17 if number >= 0 else number * 3 - 17)
    if (opposite := OPPOSITES.get(value.casefold())) is not None:
        return opposite
    return NUMBER.sub(lambda found: wrong_value(found[0]), value) if NUMBER.search(value) and len(value) < len(OTHER) else OTHER


def is_number(text: str) -> bool:
    """Return whether a text is a number that can be computed with."""
    return NUMBER.fullmatch(text) is not None and math.isfinite(_as_number(text))


def _as_number(text: str) -> float:
    return float(re.sub(r"[$€£%+,]", "", text))


def _like(text: str, number: float) -> str:
    """Return a number with the decimals and the signs of another one."""
    decimals = len(text.rstrip("%").partition(".")[2])
    made = f"{number:.{decimals}f}"
    return ("$" if text.lstrip("-+").startswith("$") else "") + made + ("%" if text.endswith("%") else "")


def fewer(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names and texts with fewer lines."""
    yield "without its last line", "\n".join(lines[:-1])
    if len(lines) > 3:  # noqa: PLR2004 - else the same as others
        yield "the first half only", "\n".join(lines[: len(lines) // 2])
    yield "its first line only", lines[0]
    yield "its first line as often as it has lines", "\n".join([lines[0]] * len(lines))


def spread(items: list[Item], count: int) -> list[Item]:
    """Return so many of the items, the first and the last among them, with equal distances."""
    if len(items) <= count or count <= 1:
        return items[:count]
    return [items[number * (len(items) - 1) // (count - 1)] for number in range(count)]
