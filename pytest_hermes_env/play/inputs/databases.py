"""Databases like those on which a verifier asks a query: other rows, which the constraints allow.

Place in the flow: `witnesses` compares gold with a wrong query on them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_hermes_env.play.inputs.data import ROUNDS, Making

MOST_ROWS = 400


def databases_like(making: Making, script: str) -> Iterator[tuple[str, str]]:
    """Yield a database as SQL, and others like it: tables without rows, with some, with equal values, with the values of the query.

    A table that others name stays whole.
    """
    yield script, "its own rows"
    tables = [*_rows_of(script)]
    named = {name for name, _ in tables if re.search(rf"\b{re.escape(name.lower().rstrip('s'))}_?id\b", script.lower())}
    for name, rows in tables:
        if rows and name not in named:
            yield from _database(script, {name: []}, f"no row in {name}")
    for _ in range(3 * ROUNDS):
        made = {name: _rows(making, rows, len(rows) if name in named else 1) for name, rows in tables if rows}
        for name in making.chance.sample([*made], 1) if len(made) > 1 and making.chance.random() < 0.5 else [*made]:  # noqa: PLR2004
            yield from _database(script, {name: made[name]}, "")


def _rows(making: Making, rows: Sequence[Sequence[Any]], least: int) -> list[list[Any]]:
    """Return other rows, at least so many: the first column, if it tells them apart, goes on."""
    columns = [[*column] for column in zip(*rows, strict=True)]
    is_key = [len({*map(repr, column)}) == len(column) and all(isinstance(one, int) for one in column) for column in columns]
    made = []
    for number in range(min(MOST_ROWS, making.chance.randint(least, 2 * len(rows)))):
        row = [*making.chance.choice(rows)]
        made.append(
            [
                max(columns[0]) + number
                if place == 0 and is_key[0] and number >= len(rows)
                else _value(making, row[place], columns[place])
                for place in range(len(row))
            ]
        )
        if is_key[0] and number < len(rows):
            made[-1][0] = columns[0][number]
    return made


def _value(making: Making, value: Any, column: Sequence[Any]) -> Any:
    chance = making.chance.random()
    if chance < 0.7 or value is None:  # noqa: PLR2004
        return making.chance.choice(column)
    if isinstance(value, int | float):
        made = making.number(str(abs(value)), [str(one) for one in column if isinstance(one, int | float)], chance)
        return float(made) if "." in made else int(made)
    same = [text for text in making.texts if len(text) == len(value)] or making.texts if isinstance(value, str) else []
    return making.chance.choice([value, *same])


def _database(script: str, rows: Mapping[str, Sequence[Sequence[Any]]], told: str) -> Iterator[tuple[str, str]]:
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


def _rows_of(script: str) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Yield the tables of a database with their rows."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall():
        yield name, connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - the name stands in the database
    connection.close()
