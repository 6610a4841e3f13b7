"""Data like other data: lines and values of the same kinds, JSON of the same keys, examples of the prompt.

Place in the flow: `starts`, `databases` and `strings` make inputs of them, like those that a verifier was seen to give.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.play.cases.kinds_of_input import kinds_in
from pytest_hermes_env.play.inputs.calls import Like

ROUNDS = 30
"""Other inputs that are made of each place of one."""
MOSTLY = 0.6
"""The share of lines that hold what separates their parts; others are notes."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SEPARATORS = ("\t", ",", ";", "|")
_OF_BLANK_LINES = re.compile(r"(?:blank|empty) lines?", re.IGNORECASE)
_OF_EMPTY_FIELDS = re.compile(r"(?:empty|missing|blank) (?:\w+ )?(?:fields?|cells?|values?|columns?)", re.IGNORECASE)
_OF_QUOTES = re.compile(r"\bquot", re.IGNORECASE)
_SHAPES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    (r"\bnest|\bany (?:\w+ )?values?\b|\bany depth|\bflatten", lambda one: [one, one]),
    (r"\bnest|\bany (?:\w+ )?values?\b|\bany depth|\bflatten", lambda one: {"inner": one}),
    (r"empty[^.;]{0,40}(?:array|list)|(?:array|list)s?[^.;]{0,40}empty", lambda _: []),
    (r"empty[^.;]{0,40}(?:object|dict)|(?:object|dict\w*)s?[^.;]{0,40}empty", lambda _: {}),
    (r"\bnull\b|\bNone\b", lambda _: None),
    (r"\bfalse\b|\bboolean", lambda _: False),
)
"""What a prompt says of JSON, and a part that is such."""
QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`")


@dataclass(frozen=True, kw_only=True)
class Making:
    """How inputs are made of others: numbers and texts of gold's ``code`` may stand in them, and what the ``prompt`` shows or speaks of."""

    code: str
    prompt: str
    like: Like
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - the same inputs in each run

    @property
    def numbers(self) -> list[int]:
        """The whole numbers of the code."""
        return [int(one) for one in dict.fromkeys(re.findall(r"(?<![\w.$])\d{1,9}(?![\w.])", self.code))]

    @property
    def texts(self) -> list[str]:
        """The texts in quotes in the code."""
        found = ("".join(match) for match in QUOTED.findall(self.code))
        return [text for text in dict.fromkeys(found) if re.search(r"\w", text) and not re.search(r"[\\$%{}()/]", text)]

    def texts_like(self, text: str) -> Iterator[str]:
        """Yield other data for data: examples of the prompt, nothing, the same in another order, then lines and values by chance."""
        table = Table.of(text)
        longest = 2 * max(map(len, text.splitlines()), default=0)
        yield from (
            one for one in self._shown() if Table.of(one).shape == table.shape and max(map(len, one.splitlines())) <= longest
        )
        if table.rows is None:
            value = json.loads(text)
            kinds = [*kinds_in(self.prompt)]
            yield from (json.dumps(kind.value(value, self.chance)) for kind in kinds)
            yield from (json.dumps(self.like.value(value)) for _ in range(ROUNDS))
            yield from (json.dumps(self._reshaped(value, is_whole=True)) for _ in range(ROUNDS))
            return
        yield from (table.text_of(rows) for rows in (table.rows[::-1], table.rows[:1], []))
        for kind in kinds_in(self.prompt):
            if kind.name != "inputs without a value":
                made = kind.value([[_value_of(part) for part in row] for row in table.rows], self.chance)
                yield table.text_of([[str(part) for part in row] for row in made])
        if _OF_BLANK_LINES.search(self.prompt):
            yield text.rstrip("\n").replace("\n", "\n\n") + "\n\n"
        for _ in range(ROUNDS):
            rows = (
                [
                    self._row(row, table)
                    for row in self.chance.choices(table.rows, k=self.chance.randint(1, 2 * len(table.rows)))
                ]
                if table.rows
                else []
            )
            yield table.text_of(rows)

    def _reshaped(self, value: Any, *, is_whole: bool = False) -> Any:
        """Return JSON of which a part is inside another one, or empty, or nothing, as far as the prompt speaks of such."""
        parts = list(value) if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
        if parts and (is_whole or self.chance.random() < 0.5):  # noqa: PLR2004
            place = self.chance.choice(parts)
            made = copy.copy(value)
            made[place] = self._reshaped(value[place])
            return made
        ways = [way for asked, way in _SHAPES if re.search(asked, self.prompt, re.IGNORECASE)]
        return self.chance.choice(ways)(value) if ways and not is_whole else value

    def _row(self, row: Sequence[str], table: Table) -> list[str]:
        is_line = table.separator == " " and self.chance.random() < 0.5  # noqa: PLR2004 - a line of words, of another length
        row = (
            [self.chance.choice(row) for _ in range(self.chance.randint(1, len(row) + 1))]
            if is_line and table.are_words and row
            else row
        )
        return [self._part(part, table.column(place), table.separator) for place, part in enumerate(row)]

    def _part(self, part: str, pool: Sequence[str], separator: str) -> str:
        chance = self.chance.random()
        if separator != " " and _OF_EMPTY_FIELDS.search(self.prompt) and self.chance.random() < 0.2:  # noqa: PLR2004
            return ""
        if NUMBER.fullmatch(part):
            return self.number(part, pool, chance)
        if chance < 0.2 and self.texts:  # noqa: PLR2004
            return self.chance.choice(self.texts)
        if chance < 0.3:  # noqa: PLR2004
            return part.swapcase()
        if separator != " " and chance < 0.5 and _OF_QUOTES.search(self.prompt):  # noqa: PLR2004
            return self.chance.choice([f"{part}{separator}{part}", f'{part} "{part}"', f'"{part}"'])
        return self.chance.choice([part, *(one for one in pool if not NUMBER.fullmatch(one))])

    def number(self, part: str, pool: Sequence[str], chance: float) -> str:
        """Return a number like one of a pool, as ``chance`` from 0 to 1 decides: one of them, one near those of the code, or a multiple."""
        is_signed = self.like.is_signed or any(one.startswith("-") for one in pool)
        if chance < 0.4:  # noqa: PLR2004
            return self.chance.choice([part, *filter(NUMBER.fullmatch, pool)])
        digits = len(part.partition(".")[2])
        steps = [self.chance.choice([-1, 0, 0, 1]) / 10**digits + one for one in self.numbers if chance < 0.75]  # noqa: PLR2004
        value = float(part)
        made = self.chance.choice(steps or [value + 1, value - 1, 2 * value, 10 * value, value / 2])
        made = -made if is_signed and self.chance.random() < 0.3 else abs(made)  # noqa: PLR2004
        return f"{made:.{digits}f}"

    def _shown(self) -> Iterator[str]:
        """Yield what the prompt shows: its blocks, and what it quotes, one by one and as lines."""
        blocks = [block.strip("\n") for block in re.split(r"\n[ \t]*\n|```\w*\n", self.prompt)]
        quoted = re.findall(r"`([^`\n]+)`", self.prompt)
        runs = [re.findall(r"`([^`\n]+)`", run) for run in re.findall(r"(?:`[^`\n]+`(?:, | and |; )?){2,}", self.prompt)]
        yield from dict.fromkeys(f"{one}\n" for one in [*blocks, *quoted, *("\n".join(run) for run in runs)] if one.strip())


@dataclass(frozen=True, kw_only=True)
class Table:
    """Data as rows of parts, or JSON, whose ``rows`` are None."""

    separator: str
    header: tuple[str, ...]
    rows: list[list[str]] | None
    end: str

    @classmethod
    def of(cls, text: str) -> Table:
        """Return data by its form."""
        if text.lstrip()[:1] in {"[", "{"}:
            try:
                json.loads(text)
                return cls(separator="json", header=(), rows=None, end="")
            except ValueError:
                pass
        lines = [line for line in text.split("\n") if line.strip()]
        found = [one for one in _SEPARATORS if sum(one in line for line in lines) > MOSTLY * len(lines)]
        separator = found[0] if found else " "
        rows = [line.split() for line in lines] if separator == " " else [*csv.reader(lines, delimiter=separator)]
        with_digits = [re.search(r"\d", "".join(row)) is not None for row in rows]
        is_headed = separator != " " and len(rows) > 1 and not with_digits[0] and sum(with_digits) > (len(rows) - 1) / 2
        end = "\n" if text.endswith("\n") else ""
        return cls(separator=separator, header=tuple(rows[0]) if is_headed else (), rows=rows[is_headed:], end=end)

    @property
    def are_words(self) -> bool:
        """Whether the lines are words, of any number."""
        rows = self.rows or []
        return not any(NUMBER.fullmatch(part) for row in rows for part in row) or len({*map(len, rows)}) > 1

    @property
    def shape(self) -> tuple[Any, ...]:
        """What data must have in common to stand for each other."""
        rows = self.rows or []
        kinds = {tuple(NUMBER.fullmatch(part) is not None for part in row) for row in rows}
        return (
            (self.separator, self.header, *sorted(kinds))
            if not self.are_words or self.rows is None
            else (self.separator, self.header)
        )

    def column(self, place: int) -> list[str]:
        """Return the parts at one place of all rows; of lines of words, all words."""
        rows = self.rows or []
        return [part for row in rows for part in (row if self.are_words and self.separator == " " else row[place : place + 1])]

    def text_of(self, rows: Sequence[Sequence[str]]) -> str:
        """Return rows as a text of this form."""
        out = io.StringIO()
        if self.separator == " ":
            out.write("".join(f"{' '.join(row)}\n" for row in rows))
        else:
            csv.writer(out, delimiter=self.separator, lineterminator="\n").writerows(
                [*([self.header] if self.header else []), *rows]
            )
        return out.getvalue() if self.end else out.getvalue().removesuffix("\n")


def _value_of(part: str) -> Any:
    return (float(part) if "." in part else int(part)) if NUMBER.fullmatch(part) else part


def in_turn(ways: Sequence[Iterator[Any]]) -> Iterator[Any]:
    """Yield one of each in turn, until all are at their ends."""
    open_ones = [*ways]
    while open_ones:
        for way in [*open_ones]:
            try:
                yield next(way)
            except StopIteration:
                open_ones.remove(way)
