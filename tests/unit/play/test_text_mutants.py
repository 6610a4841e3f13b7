"""SQL, shell scripts and patterns that are wrong in one place."""

from __future__ import annotations

import pytest

from pytest_hermes_env.play.cases.text_mutants import text_mutants

QUERY = "SELECT p.id, COALESCE(SUM(d.n), 0) FROM p LEFT JOIN d ON d.p = p.id AND d.n >= 3 GROUP BY p.id HAVING 1 ORDER BY 2 DESC, 1;\n"
SCRIPT = '#!/bin/sh\nfor one in "$1"/*.txt; do\n    [ -f "$one" ] || continue\n    sort -n "$one" | grep -x a | uniq\ndone\n'
PIPE = "cat | sort -k2,2nr | head -n 3\n"
NODE = "if (a < b && c.map(b => b.trim()) && (a === 2)) {\n  d = e.replace(/x/gi, '');\n  return a + 1;\n}\n"


@pytest.mark.parametrize(
    ("path", "text", "wrong"),
    [
        ("/w/q.sql", QUERY, "FROM p JOIN d ON"),
        ("/w/q.txt", QUERY, "d.n > 3"),
        ("/w/q.sql", QUERY, "SELECT p.id, SUM(d.n) FROM"),
        ("/w/q.sql", QUERY, "ORDER BY 2 ASC, 1;"),
        ("/w/q.sql", QUERY, "HAVING 1;"),
        ("/w/q.sql", QUERY, "GROUP BY p.id ORDER BY"),
        ("/w/q.sql", QUERY, "ON d.p = p.id OR d.n"),
        ("/w/a.sh", SCRIPT, "[ -f $one ]"),
        ("/w/a", SCRIPT, "in $1/*.txt"),
        ("/w/a.sh", SCRIPT, "    :\n"),
        ("/w/a.sh", SCRIPT, "grep -x a \ndone"),
        ("/w/a.sh", PIPE, "cat | head -n 3"),
        ("/w/a.sh", PIPE, "sort | head"),
        ("/w/a.sh", PIPE, "head 3"),
        ("/w/p.txt", r"^\d{3}\.[a-z]+$", r"\d{3}\.[a-z]+$"),
        ("/w/p.txt", r"^\d{3}\.[a-z]+$", r"^\d{3}\.[a-z]+"),
        ("/w/p.txt", r"^\d{3}\.[a-z]+$", r"^\d{3}.[a-z]+$"),
        ("/w/p.txt", r"^\d{3}\.[a-z]+$", r"^\d{3}\.[a-z]*$"),
        ("/w/p.txt", r"^\d{3}\.[a-z]+$", r"^\d+\.[a-z]+$"),
        ("/w/a.js", NODE, "a <= b && c"),
        ("/w/a.js", NODE, "a < b || c"),
        ("/w/a.js", NODE, "(a !== 2)"),
        ("/w/a.js", NODE, "return a - 1;"),
        ("/w/a.js", NODE, "(b => b)"),
        ("/w/a.awk", NODE, "/x/i"),
    ],
)
def test_one_place_is_wrong(path: str, text: str, wrong: str) -> None:
    """Joins, boundaries, orders, defaults, groups, quotes, checks, borders."""
    made = text_mutants(path, text, 100)

    assert any(wrong in one.text for one in made)
    assert all(one.text != text and one.before != one.after for one in made)
    assert len({one.text for one in made}) == len(made)


@pytest.mark.parametrize(
    "text", ["", "the total is 42\n", "^", "(not closed$", '{"a": [1]}', "a,b\n1,2\n", "# Title\n\nSome words.\n"]
)
def test_other_texts_have_none(text: str) -> None:
    """Prose and data are no programs."""
    assert text_mutants("/w/notes.txt", text, 10) == []


def test_few_are_spread_over_the_text() -> None:
    """Not only the first ones."""
    few = text_mutants("/w/q.sql", QUERY, 3)

    assert len(few) == 3
    assert len(text_mutants("/w/q.sql", QUERY, 1)) == 1
