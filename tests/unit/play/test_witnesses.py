"""How a verifier uses gold's program, and for which inputs a wrong one gives something else: programs in six languages, run in a sandbox."""

from __future__ import annotations

import csv
import json
import shlex
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env import FakeSandbox
from pytest_hermes_env.play.cases.slots import ANSWER
from pytest_hermes_env.play.inputs.calls import Like
from pytest_hermes_env.play.inputs.data import Making
from pytest_hermes_env.play.inputs.databases import databases_like
from pytest_hermes_env.play.inputs.witnesses import Witnesses

SCHEMA = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL); CREATE TABLE gifts (people_id INTEGER, cents INTEGER NOT NULL);"
ROWS = "INSERT INTO people VALUES (1, 'Ann'), (2, 'Bob'); INSERT INTO gifts VALUES (1, 500), (2, 700);"
QUERY = "SELECT p.name, COALESCE(SUM(g.cents), 0) FROM people p LEFT JOIN gifts g ON g.people_id = p.id GROUP BY p.id ORDER BY p.name;\n"
COUNTS = "import sys\ncounts = {}\nfor word in sys.stdin.read().split():\n    counts[word] = counts.get(word, 0) + 1\nfor word in sorted(counts, key=lambda one: (-counts[one], one)):\n    print(word, counts[word])\n"
FUNCTION = "def price(count):\n    return 9 * count if count >= 12 else 10 * count\n\n\nif __name__ == '__main__':\n    print(price(1))\n"
TABLE = "import csv\nwith open('marks.csv') as file:\n    rows = [row for row in csv.DictReader(file) if int(row['mark']) >= 50]\nwith open('passed.csv', 'w') as file:\n    file.write(''.join(row['name'] + '\\n' for row in rows))\n"
LIST = '#!/bin/bash\nfor file in "$1"/*.log; do\n    [ -f "$file" ] || continue\n    wc -l < "$file" | tr -d " "\ndone\n'
COLUMN = 'BEGIN { FS = "," }\n$2 > 10 { print $1 }\n'
NODE = "const words = require('fs').readFileSync(0, 'utf8').split(/\\s+/).filter(Boolean);\nconsole.log(words.map((one) => one.toLowerCase()).join(' '));\n"


def run(command: str) -> tuple[str, dict[str, Any]]:
    """Return a call of the verifier."""
    return "terminal", {"command": command}


def upload(path: str, content: str) -> tuple[str, dict[str, Any]]:
    """Return another one."""
    return "write_file", {"path": path, "content": content}


def sqlite(code: str) -> tuple[str, dict[str, Any]]:
    """Return one that asks a query by Python's own library."""
    start = f"import sqlite3; base = sqlite3.connect(':memory:'); base.executescript({f'{SCHEMA}{ROWS}'!r}); query = open('query.sql').read(); "
    return run(shlex.join(["python3", "-I", "-c", start + code]))


def witnesses_of(path: str, work: str, calls: list[tuple[str, dict[str, Any]]], prompt: str) -> Witnesses:
    """Return what is known of gold's program, which a verifier used by these calls."""
    made = tuple(SimpleNamespace(name=name, arguments=arguments, by_agent=False) for name, arguments in calls)
    gold = SimpleNamespace(
        files={f"/workspace/{path}": SimpleNamespace(data=work.encode())}, records=(SimpleNamespace(tool_calls=made),)
    )
    stage: Any = SimpleNamespace(sandbox=FakeSandbox(), env=type("Env", (), {"compute_reward": lambda self: None})())
    slot: Any = SimpleNamespace(name=f"/workspace/{path}", text=work)
    return Witnesses(stage=stage, slot=slot, gold=gold, work=SimpleNamespace(prompt=prompt), item={})  # type: ignore[arg-type]


CASES = [
    ("count.py", COUNTS, [run("printf 'a b a' | python3 -I count.py")], "-counts[one], one", "-counts[one], 0"),
    ("count.py", COUNTS, [run("mkdir x && cp count.py x && cd x && echo a b a > in && env -i python3 $PWD/count.py < in")], "-counts[one], one", "-counts[one], 0"),
    ("price.py", FUNCTION, [upload("test_it.py", "from price import price\ndef test_it(): assert price(1) == 10\n"), run("python3 -m pytest -q test_it.py")], "count >= 12", "count > 12"),
    ("passed.py", TABLE, [upload("/tmp/t/marks.csv", "name,mark\nann,80\nbob,20\n"), run("cd /tmp/t && python3 /workspace/passed.py")], ">= 50", "> 50"),
    ("list.sh", LIST, [run("mkdir d && echo a > d/a.log && echo b > d/b.txt && bash list.sh d")], '-f "$file"', "-f $file"),
    ("list.sh", LIST, [run("mkdir d && echo a > d/a.log && chmod +x list.sh && ./list.sh d")], '"$1"/*.log', '"$1"/*'),
    ("column.awk", COLUMN, [run("printf 'a,5\\nb,30\\n' > in.csv; awk -f column.awk in.csv")], "> 10", ">= 10"),
    ("lower.js", NODE, [run("printf 'a b' | node lower.js")], ".toLowerCase()", ""),
    ("query.sql", QUERY, [run(f"sqlite3 x.db {shlex.quote(SCHEMA + ROWS)}; sqlite3 -readonly x.db < query.sql")], "LEFT JOIN", "JOIN"),
    ("query.sql", QUERY, [sqlite("print(base.execute(query).fetchall())")], "COALESCE(SUM(g.cents), 0)", "SUM(g.cents)"),
    ("time.txt", r"([01]\d|2[0-3]):[0-5]\d", [run("printf '10:30\\n' | grep -Ex \"$(cat time.txt)\""), upload("cases", "'09:15' '23:59'")], "2[0-3]", "2[0-9]"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "work", "calls", "old", "new"), CASES)
def test_a_wrong_program_is_told_from_gold(path: str, work: str, calls: list[Any], old: str, new: str) -> None:
    """By an input like those of the verifier, however it starts the program; the same program in other words is not."""
    told = witnesses_of(path, work, calls, "Count words, sorted by count, equal counts by name.")
    wrong, same = work.replace(old, new), f"{work}\n" if path.endswith(".txt") else work.replace("\n", "\n\n", 1)
    found = told.of(Like.of(work if path.endswith(".py") else "", told.work.prompt), [wrong, same])

    assert told.notes == []
    assert [*found] == [wrong]
    assert "gold" in found[wrong][1]


@pytest.mark.parametrize(
    ("prompt", "is_told"), [("Print each line.", False), ("A file that does not exist is an error: exit code 3.", True)]
)
def test_errors_are_compared_where_the_prompt_speaks_of_them(prompt: str, is_told: bool) -> None:
    """Otherwise nobody knows what a program should do."""
    work = 'if [ ! -f "$1" ]; then\n    exit 3\nfi\ncat "$1"\n'
    told = witnesses_of("show.sh", work, [run("echo a > a; bash show.sh a")], prompt)

    assert ([*told.of(Like.of("", prompt), [work.replace("exit 3", "exit 4")])] != []) == is_told


def test_other_inputs_have_the_form_of_those_that_were_used() -> None:
    """Columns, header, kinds of values; JSON stays JSON; an example of the prompt stands for data like it."""
    making = Making(
        code="50 'north'", prompt="For example\n\nname,mark\ncy,7\n\nis fine, `x y z` is not.", like=Like.of("", "")
    )
    tables = [*making.texts_like("name,mark\nann,80\nbob,20\n")]

    assert tables[0] == "name,mark\ncy,7\n"
    assert len({*tables}) > 10
    assert all(text.startswith("name,mark\n") and all(line.count(",") == 1 for line in text.splitlines()) for text in tables)
    assert any(",50\n" in text for text in tables)
    assert all({*json.loads(text)} == {"a"} for text in making.texts_like('{"a": [1, 2]}'))


def test_code_in_a_final_answer_is_run_where_the_verifier_puts_it() -> None:
    """It hands the text on."""
    told = witnesses_of(
        "x",
        FUNCTION,
        [upload("solution.py", FUNCTION), run("python3 -c 'import solution; solution.price(3)'")],
        "Answer with code.",
    )
    told.slot.name = ANSWER  # type: ignore[misc]

    assert [*told.of(Like.of(FUNCTION, ""), [FUNCTION.replace("count >= 12", "count > 12")])] != []


def test_what_programs_print_may_be_long() -> None:
    """More than a terminal shows."""
    work = "import sys\nprint(sys.stdin.read() * 3000)\n"
    told = witnesses_of("show.py", work, [run("printf 'a b c' | python3 show.py")], "Print it.")

    assert told.of(Like.of(work, ""), [work.replace("3000", "2900"), work.replace("read()", "read().upper()")]) != {}
    assert told.notes == []


def test_another_layout_of_json_is_the_same() -> None:
    """Of what is printed, and of files."""
    work = "import json, sys\nn = int(sys.argv[1])\nprint(json.dumps({'n': n, 'm': [n]}, indent=2))\nopen('out.json', 'w').write(json.dumps([n], indent=2))\n"
    told = witnesses_of("show.py", work, [run("python3 show.py 3")], "Print them.")

    assert told.of(Like.of(work, ""), [work.replace("indent=2", "indent=4")]) == {}
    assert told.of(Like.of(work, ""), [work.replace("[n]", "[n + 1]", 1)]) != {}


def test_rows_of_a_database_keep_what_refers_to_them() -> None:
    """A table that is named by another one stays whole; keys go on."""
    making = Making(code="", prompt="", like=Like.of("", ""))
    made = [script for script, _ in databases_like(making, f"{SCHEMA}\n{ROWS}")]

    assert len({*made}) > 10
    assert all(script.count('INTO "people"') >= 2 for script in made[1:])
    assert any('INTO "gifts"' not in script for script in made)


def test_data_has_the_shapes_that_the_prompt_speaks_of() -> None:
    """Parts inside of others, nothing, fields that are empty or hold what separates them; and none where it says nothing."""
    prompt = "Objects nest, empty arrays stay, null stays. A field may be quoted; an empty field becomes null."
    making, plain = (Making(code="", prompt=text, like=Like.of("", text)) for text in (prompt, "Sum it."))

    held = [json.loads(text) for text in making.texts_like('{"a": [1, 2], "b": "x"}')]
    assert {repr(one["a"]) for one in held} > {"[]", "None"}
    assert any(isinstance(one["b"], dict) for one in held)
    rows = [[*csv.reader(text.splitlines())] for text in making.texts_like("name,note\nann,big\nbob,red\n")]
    assert any("" in row for table in rows for row in table)
    assert any("," in part for table in rows for row in table for part in row)
    assert all({*map(type, json.loads(text)["a"])} <= {int} for text in plain.texts_like('{"a": [1, 2]}'))


def test_a_program_that_does_not_end_is_compared_with_no_other() -> None:
    """A service waits for its next caller: gold is started three times at most, and the search says so."""
    service = "import sys, time\nprint(sys.argv[1], flush=True)\ntime.sleep(600)\n"
    used = witnesses_of(
        "serve.py", service, [run("timeout 1 python3 serve.py 8000; true")], "Write serve.py, a service on a port."
    )
    wrong = service.replace("sys.argv[1]", "'other'")

    assert used.of(Like.of(service, ""), [wrong] * 3) == {}
    assert any("does not end by itself" in note for note in used.notes), used.notes
