"""Inputs like those that a verifier gave to a program: other lines and values of the same kinds, other names of files, other rows of a database.

Place in the flow: `wrong_programs` compares gold with a wrong program for them; `used_inputs` has those that they are made of.
"""

from __future__ import annotations

import csv
import io
import json
import posixpath
import random
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.play.cases.kinds_of_input import kinds_in
from pytest_hermes_env.play.probes_of_code import Like

Start = Mapping[str, Any]
ROUNDS = 14
"""Other inputs that are made of each place of one."""
MOST_ROWS, MOST_STRINGS, MOST_MATCHING = 400, 300, 60
MOSTLY = 0.6
"""The share of lines that hold what separates their parts; others are notes."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SEPARATORS = ("\t", ",", ";", "|")
_OF_ERRORS = re.compile(r"\berror|exit (?:code|status)|does not exist|doesn't exist|\bmissing\b|not found", re.IGNORECASE)
_OF_BLANK_LINES = re.compile(r"(?:blank|empty) lines?", re.IGNORECASE)
_CODE = (".py", ".sh", ".js", ".cjs", ".mjs", ".awk", ".sed", ".sql", ".toml", ".ini", ".cfg")
_QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`")


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
        found = ("".join(match) for match in _QUOTED.findall(self.code))
        return [text for text in dict.fromkeys(found) if re.search(r"\w", text) and not re.search(r"[\\$%{}()/]", text)]

    def starts(self, starts: Sequence[Start]) -> Iterator[tuple[Start, str]]:
        """Yield the starts of a program, and others like them, each with what is other in words; of each start in turn."""
        yield from ((start, "") for start in starts)
        for made in _in_turn([self._like(start) for start in starts]):
            if made[0] not in starts:
                yield made

    def _like(self, start: Start) -> Iterator[tuple[Start, str]]:
        texts: list[tuple[str, str]] = [("", start["stdin"])] if start["stdin"] else []
        texts += [(path, text) for path, text in start["files"].items() if not path.endswith(_CODE)]
        ways = [self._texts(start, path, text) for path, text in texts if "\0" not in text]
        yield from _in_turn([*ways, self._names(start), self._words(start)])

    def _texts(self, start: Start, path: str, text: str) -> Iterator[tuple[Start, str]]:
        for made in self.texts_like(text):
            if path:
                yield {**start, "files": {**start["files"], path: made}}, f"{posixpath.basename(path)} with {made}"
            else:
                yield {**start, "stdin": made}, made

    def texts_like(self, text: str) -> Iterator[str]:
        """Yield other data for data: examples of the prompt, nothing, the same in another order, then lines and values by chance."""
        table = _Table.of(text)
        longest = 2 * max(map(len, text.splitlines()), default=0)
        yield from (
            one for one in self._shown() if _Table.of(one).shape == table.shape and max(map(len, one.splitlines())) <= longest
        )
        if table.rows is None:
            value = json.loads(text)
            kinds = [*kinds_in(self.prompt)]
            yield from (json.dumps(kind.value(value, self.chance)) for kind in kinds)
            yield from (json.dumps(self.like.value(value)) for _ in range(ROUNDS))
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

    def _row(self, row: Sequence[str], table: _Table) -> list[str]:
        is_line = table.separator == " " and self.chance.random() < 0.5  # noqa: PLR2004 - a line of words, of another length
        row = (
            [self.chance.choice(row) for _ in range(self.chance.randint(1, len(row) + 1))]
            if is_line and table.are_words and row
            else row
        )
        return [self._part(part, table.column(place)) for place, part in enumerate(row)]

    def _part(self, part: str, pool: Sequence[str]) -> str:
        chance = self.chance.random()
        if _NUMBER.fullmatch(part):
            return self._number(part, pool, chance)
        if chance < 0.2 and self.texts:  # noqa: PLR2004
            return self.chance.choice(self.texts)
        if chance < 0.3:  # noqa: PLR2004
            return part.swapcase()
        return self.chance.choice([part, *(one for one in pool if not _NUMBER.fullmatch(one))])

    def _number(self, part: str, pool: Sequence[str], chance: float) -> str:
        is_signed = self.like.is_signed or any(one.startswith("-") for one in pool)
        if chance < 0.4:  # noqa: PLR2004
            return self.chance.choice([part, *filter(_NUMBER.fullmatch, pool)])
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

    def _names(self, start: Start) -> Iterator[tuple[Start, str]]:
        """Yield starts with other names of files: blanks, dots, capital letters, a name that is taken, files below, empty ones."""
        own = [path for path in start["files"] if not path.endswith(_CODE)]
        is_named = any(posixpath.basename(path) in word for path in own for word in [*start["words"][1:], self.code])
        for path in own if not is_named else ():
            place, name = posixpath.split(path)
            stem, dot = posixpath.splitext(name)
            taken = [
                f"{stem}{other}"
                for other in {posixpath.splitext(one)[1] for one in own} | {*re.findall(r"\.\w{2,5}\b", self.code)}
            ]
            news = [f"{stem} x{dot}", f".{name}", f"{stem}.x{dot}", f"{stem}{dot.upper()}", stem, f"sub/{name}", f"{name}~"]
            for new in news:
                files = {other: text for other, text in start["files"].items() if other != path}
                yield (
                    {**start, "files": {**files, posixpath.join(place, new): start["files"][path]}},
                    f"a file {new!r} in place of {name!r}",
                )
            for new in [one for one in taken if one != name]:
                yield (
                    {**start, "files": {**start["files"], posixpath.join(place, new): "other\n"}},
                    f"a file {new!r} beside {name!r}",
                )
            yield {**start, "files": {**start["files"], path: ""}}, f"an empty file {name!r}"
        for place in start["directories"]:
            if place != start["cwd"] and not is_named and own:
                name = f"{posixpath.splitext(posixpath.basename(own[0]))[0]} dir{posixpath.splitext(own[0])[1]}"
                yield {**start, "directories": [*start["directories"], posixpath.join(place, name)]}, f"a directory {name!r}"

    def _words(self, start: Start) -> Iterator[tuple[Start, str]]:
        """Yield starts with other arguments: data is other data, and what is there may be missing where the prompt speaks of errors."""
        words = [*start["words"]]
        first = next(
            (place + 1 for place, word in enumerate(words) if word == start["inline"] or _is_same(word, start["path"])),
            len(words),
        )
        for place in range(first, len(words)):
            word = words[place]
            path = posixpath.join(start["cwd"], word)
            if any(path == one or one.startswith(f"{path.rstrip('/')}/") for one in [*start["files"], *start["directories"]]):
                news = [f"{word.rstrip('/')}-missing"] if _OF_ERRORS.search(self.prompt) else []
            elif word.startswith("-") and not _NUMBER.fullmatch(word):
                continue
            else:
                news = [*self.texts_like(word)]
                others = [
                    part
                    for text in [start["stdin"], *start["files"].values()]
                    for row in _Table.of(text).rows or ()
                    for part in row
                ]
                news += (
                    self.chance.sample(others, min(len(others), 4)) if not _NUMBER.fullmatch(word) and " " not in word else []
                )
            for new in dict.fromkeys(one.rstrip("\n") for one in news):
                if "\n" in new or (_NUMBER.fullmatch(word) and not _NUMBER.fullmatch(new)):
                    continue
                yield (
                    {**start, "words": [*words[:place], new, *words[place + 1 :]]},
                    " ".join([*words[first:place], new, *words[place + 1 :]]),
                )

    def databases(self, script: str) -> Iterator[tuple[str, str]]:
        """Yield a database as SQL, and others like it: tables without rows, with some, with equal values, with the values of the query.

        A table that others name stays whole.
        """
        yield script, "its own rows"
        tables = [*_rows_of(script)]
        named = {name for name, _ in tables if re.search(rf"\b{re.escape(name.lower().rstrip('s'))}_?id\b", script.lower())}
        for name, rows in tables:
            if rows and name not in named:
                yield from self._database(script, {name: []}, f"no row in {name}")
        for _ in range(3 * ROUNDS):
            made = {name: self._rows(rows, len(rows) if name in named else 1) for name, rows in tables if rows}
            for name in self.chance.sample([*made], 1) if len(made) > 1 and self.chance.random() < 0.5 else [*made]:  # noqa: PLR2004
                yield from self._database(script, {name: made[name]}, "")

    def _rows(self, rows: Sequence[Sequence[Any]], least: int) -> list[list[Any]]:
        """Return other rows, at least so many: the first column, if it tells them apart, goes on."""
        columns = [[*column] for column in zip(*rows, strict=True)]
        is_key = [
            len({*map(repr, column)}) == len(column) and all(isinstance(one, int) for one in column) for column in columns
        ]
        made = []
        for number in range(min(MOST_ROWS, self.chance.randint(least, 2 * len(rows)))):
            row = [*self.chance.choice(rows)]
            made.append(
                [
                    max(columns[0]) + number
                    if place == 0 and is_key[0] and number >= len(rows)
                    else self._value(row[place], columns[place])
                    for place in range(len(row))
                ]
            )
            if is_key[0] and number < len(rows):
                made[-1][0] = columns[0][number]
        return made

    def _value(self, value: Any, column: Sequence[Any]) -> Any:
        chance = self.chance.random()
        if chance < 0.7 or value is None:  # noqa: PLR2004
            return self.chance.choice(column)
        if isinstance(value, int | float):
            made = self._number(str(abs(value)), [str(one) for one in column if isinstance(one, int | float)], chance)
            return float(made) if "." in made else int(made)
        same = [text for text in self.texts if len(text) == len(value)] or self.texts if isinstance(value, str) else []
        return self.chance.choice([value, *same])

    def _database(self, script: str, rows: Mapping[str, Sequence[Sequence[Any]]], told: str) -> Iterator[tuple[str, str]]:
        """Yield a database with other rows in some tables, unless its own constraints refuse them."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            connection.executescript(script)
            for name, values in rows.items():
                connection.execute(f'DELETE FROM "{name}"')  # noqa: S608 - the name stands in the database
                blanks = ", ".join("?" for _ in values[0]) if values else ""
                if values:
                    connection.executemany(f'INSERT OR IGNORE INTO "{name}" VALUES ({blanks})', values)  # noqa: S608
            if connection.execute("PRAGMA foreign_key_check").fetchone() is None:
                made = "\n".join(connection.iterdump())
                shown = "; ".join(f"{name}: {', '.join(str((*row,)) for row in values)}" for name, values in rows.items())
                yield made, told or f"the rows {shown}"
        except sqlite3.Error:
            pass
        finally:
            connection.close()

    def strings(self, texts: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
        """Yield texts for patterns: such as match them, lines and quoted texts of what somebody wrote, and others that differ in a few characters."""
        yield from _in_turn([iter(_matching(pattern)) for pattern in patterns])
        found = ["".join(match) for text in [self.prompt, *texts] for match in _QUOTED.findall(text)]
        found += [line.strip() for text in texts for line in text.splitlines() if len(line) <= 80]  # noqa: PLR2004
        plain = [*dict.fromkeys(one for one in found if one)]
        yield from plain
        for _ in range(max(ROUNDS, MOST_STRINGS // max(1, len(plain)))):
            for one in plain:
                place = self.chance.randrange(len(one) + 1)
                same = "0123456789" if one[place : place + 1].isdigit() else self.chance.choice(plain)
                other = self.chance.choice(same)
                before, after = one[:place], one[place + 1 :]
                ways = [
                    f"{before}{other}{after}",
                    f"{before}{after}",
                    f"{before}{other}{one[place:]}",
                    f"{one}{other}",
                    f"{other}{one}",
                ]
                yield self.chance.choice([*ways, ways[0], f"{one} {one}", one.swapcase()])


@dataclass(frozen=True, kw_only=True)
class _Table:
    """Data as rows of parts, or JSON, whose ``rows`` are None."""

    separator: str
    header: tuple[str, ...]
    rows: list[list[str]] | None
    end: str

    @classmethod
    def of(cls, text: str) -> _Table:
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
        return not any(_NUMBER.fullmatch(part) for row in rows for part in row) or len({*map(len, rows)}) > 1

    @property
    def shape(self) -> tuple[Any, ...]:
        """What data must have in common to stand for each other."""
        rows = self.rows or []
        kinds = {tuple(_NUMBER.fullmatch(part) is not None for part in row) for row in rows}
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


def _matching(pattern: str) -> list[str]:
    """Return texts that match a pattern, as `hypothesis` makes them; none of one that it does not know."""
    from hypothesis import HealthCheck, Phase, given, seed, settings, strategies  # noqa: PLC0415 - heavy
    from hypothesis.errors import HypothesisException  # noqa: PLC0415

    found: list[str] = []
    try:
        texts = strategies.from_regex(
            pattern.strip(), fullmatch=True, alphabet=strategies.characters(min_codepoint=32, max_codepoint=126)
        )
        asked = given(texts)(lambda text: found.append(text))  # noqa: PLW0108 - which needs a signature
        few = settings(
            max_examples=MOST_MATCHING,
            database=None,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=[*HealthCheck],
        )
        seed(0)(few(asked))()
    except (re.error, HypothesisException, ValueError):
        return found
    return found


def _value_of(part: str) -> Any:
    return (float(part) if "." in part else int(part)) if _NUMBER.fullmatch(part) else part


def _is_same(word: str, path: str) -> bool:
    return bool(path) and posixpath.basename(word) == posixpath.basename(path)


def _rows_of(script: str) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Yield the tables of a database with their rows."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall():
        yield name, connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - the name stands in the database
    connection.close()


def _in_turn(ways: Sequence[Iterator[Any]]) -> Iterator[Any]:
    """Yield one of each in turn, until all are at their ends."""
    open_ones = [*ways]
    while open_ones:
        for way in [*open_ones]:
            try:
                yield next(way)
            except StopIteration:
                open_ones.remove(way)
