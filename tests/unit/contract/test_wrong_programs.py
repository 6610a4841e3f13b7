"""Programs that are wrong in one place: how they are made, in what they differ from gold, and what a verifier that pays them is told."""

from __future__ import annotations

import ast
import datetime as dt
import json
import random
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.play.cases.kinds_of_input import kinds_in, without_kind
from pytest_hermes_env.play.cases.mutants import mutants
from pytest_hermes_env.play.cases.text_mutants import of_patterns_in
from pytest_hermes_env.play.inputs.calls import Like, snippets_of
from pytest_hermes_env.play.inputs.used import INSIDE, OWN, telling, used
from pytest_hermes_env.play.inputs.witnesses import differs

from .test_tampering import TripleEnv

SIGN = "def sign(n, zero=0):\n    '''Say which.'''\n    if n > 0 and not n == 7:\n        return abs(1)\n    return -1 if n < 0 else zero\n"


@pytest.mark.parametrize(
    "wrong",
    [
        "if n >= 0 and (not n == 7):",
        "if n <= 0 and (not n == 7):",
        "if n > 0:",
        "if n > 0 and n == 7:",
        "if n > 1 and (not n == 7):",
        "if True:",
        "return 1",
        "return -1 if n <= 0 else zero",
        "return 1 if n < 0 else zero",
        "return -1 if False else zero",
        "def sign(n, zero=1):",
    ],
)
def test_one_place_is_wrong(wrong: str) -> None:
    """Comparisons, boundaries, conditions, numbers, branches, calls, signs, defaults."""
    made = {one.after: one for one in mutants(SIGN, 100)}

    assert wrong in made
    compile(made[wrong].text, "wrong", "exec")
    assert made[wrong].text.count("Say which.") == 1


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        (
            "last = calendar.monthrange(day.year, day.month)[1]",
            "last = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][day.month - 1]",
        ),
        ("ok = calendar.isleap(year)", "ok = year % 4 == 0"),
        ("parts = shlex.split(line)", "parts = line.split()"),
        ("rows = csv.reader(file, delimiter=';')", "rows = [line.rstrip('\\n').split(';') for line in file]"),
        ("name = text[:16]", "name = text[:]"),
        ("found[key] = value", "found.setdefault(key, value)"),
        ("ok = isinstance(value, (dict, list))", "ok = isinstance(value, (dict,))"),
        ("ok = sign in ('a', 'b')", "ok = sign in ('b',)"),
        ("n = x.quantize(y, rounding=ROUND_HALF_UP)", "n = x.quantize(y)"),
        ("n = round(x)", "n = int(x)"),
    ],
)
def test_what_a_library_or_a_rule_takes_care_of_is_forgotten(line: str, wrong: str) -> None:
    """Leap years, quotes, limits, which value counts, kinds, and how a number is rounded."""
    assert wrong in {one.after for one in mutants(f"{line}\n", 100)}


@pytest.mark.parametrize(
    "line",
    [
        "t = html.escape(s, quote=True)",
        "t = html.escape(s).replace('x', 'y')",
        "t = shlex.split(s, comments=True)",
        "n = calendar.monthrange(*divmod(d, 12))[1]",
        "a[1:3] = [0]",
        "a[1:3, 0] = 1",
        "rows = csv.reader(f, dialect='excel')",
        "n = round(x, 2)",
        "match = re.match(p, s)",
    ],
)
def test_every_mutant_is_a_program(line: str) -> None:
    """Arguments of any kind may stand there."""
    made = [ast.parse(one.text) for one in mutants(f"{line}\n", 100)]

    assert made
    assert all(ast.dump(tree) != ast.dump(ast.parse(line)) for tree in made)


def test_another_name_is_imported() -> None:
    """A program that does not run is refused by everybody."""
    made = [
        one.text
        for one in mutants("from decimal import ROUND_HALF_UP\nway = ROUND_HALF_UP\n", 100)
        if one.name == "another name"
    ]

    assert made == ["from decimal import ROUND_HALF_UP, ROUND_HALF_EVEN\nway = ROUND_HALF_EVEN\n"]


def test_patterns_in_code_are_changed_too() -> None:
    """As those in files are."""
    made = {one.after for one in of_patterns_in('import re\nok = re.fullmatch(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]", text)\n')}

    assert "(?:[01][0-9]|2[0-9]):[0-5][0-9]" in made


def test_texts_keep_their_kinds() -> None:
    """Dates are days that there are, numbers numbers, of other lengths; others have signs that the code looks for."""
    like = Like.of("def f(text):\n    return text.split('=')", 'such as "-12.50"')
    made = snippets_of("def f(text): pass", ["f('2023-01-31') f('12.50') f('key')"], like)
    texts = [ast.literal_eval(one.removeprefix("print(repr(f(").removesuffix(")))")) for one in made]

    days = [dt.date.fromisoformat(one) for one in texts if one.count("-") == 2]
    numbers = [float(one) for one in texts if one.count("-") < 2 and one[-1:].isdigit()]
    assert dt.date(2024, 2, 29) in days or any(day.month == 2 for day in days)
    assert min(numbers) < 0 < max(numbers)
    assert {len(one.partition(".")[2]) for one in texts if "." in one} > {1}


def test_what_has_an_order_keeps_it() -> None:
    """Methods that are called once, or before others; the first day of two."""
    block = "t = Timer()\nt.start()\nprint(repr(t.tick()))\n"
    code = "class Timer:\n    def start(self): self.n = 0\n    def tick(self): return self.n\n"
    made = snippets_of(code, [], Like.of(code, "start() is called once, before tick()."), [block])
    free = snippets_of(code, [], Like.of(code, "A timer."), [block, "one = Timer()\none.start()\nprint(repr(one.tick()))"])
    days = snippets_of("def f(a, b): pass", ["f('2024-01-05', '2024-03-01')"], Like.of("def f(a, b): pass", ""))

    assert all(one.splitlines()[1] == "t.start()" and one.count("start") == 1 for one in made)
    assert all("start" in one.splitlines()[1] for one in free)
    assert any(one.count("tick") > 1 for one in free)
    assert all(first <= last for first, last in (ast.literal_eval(one[12:-2]) for one in days))


def test_the_uses_of_a_class_are_written_down(tmp_path: Path) -> None:
    """What was made, and what was called of it, in their order."""
    code = telling("held.py", CODE).replace(OWN, str(tmp_path))
    (tmp_path / "held.py").write_text(code)
    uses = "import held\none = held.Stack(2)\none.push(4)\none.pop()\nother = held.Stack()\nother.push([1])\nheld.double(3)\n"
    subprocess.run([sys.executable, "-c", uses], cwd=tmp_path, check=True)

    files = {f"{OWN}/{path.name}": path.read_bytes() for path in tmp_path.iterdir() if path.suffix in {".calls", ".objects"}}
    assert used(files, "held.py").calls == (
        "print(repr(double(3)))",
        "one = Stack(2)\nprint(repr(one.push(4)))\nprint(repr(one.pop()))",
        "one = Stack()\nprint(repr(one.push([1])))",
    )


def test_of_much_code_few_are_made() -> None:
    """They are spread over it, and each is another one."""
    code = "".join(f"def f{n}(x):\n    return x + {n + 2}\n" for n in range(200))
    made = [*mutants(code, 10)]

    assert len({one.text for one in made}) == len(made) == 10
    assert max(one.line for one in made) - min(one.line for one in made) > 300


LIKE = Like(names=[], is_signed=False)
CODE = "class Stack:\n    def __init__(self, size=3): self.parts = []\n    def push(self, part): self.parts.append(part)\n    def pop(self): return self.parts.pop()\n\ndef double(n):\n    return 2 * n\n"
TESTS = "from solution import Stack\n\ndef test_it():\n    stack = Stack()\n    stack.push(4)\n    assert stack.pop() == 4\n"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["It holds that double(4) is 8"], "print(repr(double(4)))"),
        (['python3 -c "print(double(\\"ab\\"))"'], "print(repr(double('ab')))"),
        (["double(n=-3)"], "print(repr(double(n=-3)))"),
        (["undouble(4), x.double(5), double(n)"], None),
        ([TESTS], "stack = Stack()\nstack.push(4)\nprint(repr(stack.pop()))"),
    ],
)
def test_inputs_are_those_that_somebody_wrote_down(texts: list[str], expected: str | None) -> None:
    """Calls in texts, bodies of tests; nothing where there are none."""
    found = snippets_of(CODE, texts, LIKE)

    assert found[:1] == ([expected] if expected else [])
    assert len(found) != 1


def test_inputs_like_them_keep_their_kind() -> None:
    """Signs, and the order of a list that is in order."""
    found = snippets_of("def f(x, y): ...", ["f([1, 5, 9], -3)"], LIKE)
    values = [eval(one, {"f": lambda x, y: (x, y), "print": eval}) for one in found]

    assert len(values) > 5
    assert all(x == sorted(x) and x and y < 0 for x, y in values)


def test_names_of_keys_and_places_of_records_stay() -> None:
    """A record is a list of a name and its arguments, or one of several with the same kinds in the same order."""
    given = {"size": 3, "ops": [["put", "a", 1], ["get", "b"]], "pairs": [[1, "x y"], [2, "y z"]]}
    made = [Like(names=["put", "get"], is_signed=False).value(given) for _ in range(30)]

    assert all({*one} == {*given} for one in made)
    assert {op[0] for one in made for op in one["ops"]} <= {"put", "get", "a", "b"}
    assert {len(op) for one in made for op in one["ops"]} == {2, 3}
    assert all([*map(type, pair)] == [int, str] for one in made for pair in one["pairs"])


@pytest.mark.parametrize("text", ["f([x, 1, [y]], 3)", "f([1, 2][0], g(4))", "f({**a, 'k': [b, 1]})"])
def test_what_is_no_value_stays(text: str) -> None:
    """Names and calls in the body of a test."""
    made = {ast.unparse(LIKE.varied(text).visit(ast.parse(text))) for _ in range(10)}

    assert len(made) > 1
    assert all(made_text.startswith("f(") for made_text in made)


def test_data_without_a_text_of_its_own_stays() -> None:
    """JSON can hold NaN, which cannot be written as a literal of Python."""
    assert repr(LIKE.value([float("nan"), 1])) == "[nan, 1]"


@pytest.mark.parametrize(
    ("prompt", "expected"), [("for integers n", True), ("non-negative integers", False), ("a word", False)]
)
def test_signs_change_where_the_prompt_says(prompt: str, expected: bool) -> None:
    """Of a positive number nobody knows whether it may be negative."""
    found = snippets_of("def f(x): ...", ["f(7)"], Like.of("def f(x): ...", prompt))

    assert any("-" in one for one in found) == expected


def test_what_does_not_end_is_an_outcome(tmp_path: Path) -> None:
    """Of an input, or of the whole program, beside others that go on."""
    programs = [
        "def f(n):\n    while n > 2:\n        try:\n            while True: pass\n        except Exception: pass\n    return n\n",
        "while True: pass",
        "import os\nos._exit(0)",
        "def f(n): return n\n",
    ]
    snippets = ["print(repr(f(1)))", "print(repr(f(9)))"]
    given = tmp_path / "given.json"
    given.write_text(json.dumps({"kind": "calls", "programs": programs, "inputs": snippets}))
    words = [sys.executable, "-I", INSIDE / "comparer.py", given]
    subprocess.run(words, check=True)

    looping, hanging, ending, plain = map(list, zip(*json.loads((tmp_path / "answers.json").read_text()), strict=True))
    assert (looping, plain) == (["1\n", "raised Endless"], ["1\n", "9\n"])
    assert (hanging, ending) == (["raised Endless"] * 2, ["raised nothing"] * 2)


def judged(ctx: ToolContext, numbers: list[int]) -> float:
    """Compare what the agent's function gives for these numbers."""
    code = f"import sys; sys.path.insert(0, '.'); from triple import triple; print(*map(triple, {numbers}))"
    done = ctx.terminal(f"python3 -I -c {shlex.quote(code)} 2> /dev/null")
    return float(done["output"].split() == [str(3 * abs(n)) for n in numbers])


class WeakEnv(TripleEnv):
    """Asks for the absolute value times three, and tests no negative number."""

    work = "def triple(n):\n    if n < 0:\n        n = -n\n    return 3 * n\n"

    def format_prompt(self, item: Any) -> str:
        """Ask."""
        return "Write triple.py: triple(-4) is 12, triple(2) is 6."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare a few."""
        return judged(ctx, [*item["numbers"], 0])


class StrongEnv(WeakEnv):
    """Tests both, and zero."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare all."""
        return judged(ctx, [*range(-20, 20), 41])


def verdict_of(env_class: type, effort: int) -> Any:
    """Return what HE405 says."""
    gold = item_cases(where="*", gold=lambda item: [call("write_file", path="triple.py", content=item["work"]), say("Done.")])
    return contract_of(env_class, [find_rule("HE405")], cases=cases([gold]), effort=effort).result(find_rule("HE405"))


def findings_of(env_class: type, effort: int) -> list[Any]:
    """Return what it says of wrong programs."""
    verdict = verdict_of(env_class, effort)
    assert verdict.outcome in {Outcome.PASSED, Outcome.FAILED}
    return [one for one in verdict.findings if "wrong programs" in one.message]


class HarnessEnv(WeakEnv):
    """Gives its numbers to a program of its own on standard input."""

    def format_prompt(self, item: Any) -> str:
        """Ask, without an example."""
        return "Write triple.py, for integers."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare a few."""
        code = "import json, sys; sys.path.insert(0, '.'); import triple as m; print(json.dumps([m.triple(*one) for one in json.load(sys.stdin)]))"
        done = ctx.terminal(
            f"printf %s {shlex.quote(json.dumps([[n] for n in item['numbers']]))} | python3 -I -c {shlex.quote(code)} 2> /dev/null"
        )
        return float(done["output"].strip() == json.dumps([3 * abs(n) for n in item["numbers"]]))


def test_a_harness_is_run_with_other_inputs() -> None:
    """No call of the function is written down anywhere."""
    (finding,) = findings_of(HarnessEnv, 2)

    assert "`pass` for `n = -n`" in finding.message + finding.seen
    assert "gives -" in finding.message


def test_a_verifier_that_pays_wrong_programs_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """How many, which, for which input they differ, and as a near miss to paste."""
    (finding,) = findings_of(WeakEnv, 2)

    assert "the verifier pays " in finding.message
    assert "`pass` for `n = -n`" in finding.message + finding.seen
    assert "triple(-4) gives -12, and with gold 12" in finding.message
    assert finding.reproduction.startswith("near_miss:\n- call: write_file")


def test_a_search_that_fails_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would have found nothing otherwise, and HE405 would pass."""

    async def broken(_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr("pytest_hermes_env.play.wrong_programs.WrongPrograms.run", broken)
    verdict = verdict_of(StrongEnv, 2)

    assert (verdict.outcome, verdict.findings) == (Outcome.NOT_EXERCISED, ())
    assert "the search for wrong programs ended" in verdict.note
    assert "no such thing" in verdict.note


def test_what_was_asked_is_told() -> None:
    """A pass says how many were refused, and what stayed open."""
    verdict = verdict_of(StrongEnv, 2)

    assert verdict.outcome is Outcome.PASSED
    assert " programs that are wrong in one place were refused on item 1" in verdict.note


@pytest.mark.parametrize(
    ("first", "again", "given", "expected"),
    [
        ("3", "3", "4", True),
        ("3", "3", "3.0", False),
        ("3", "4", "5", False),
        ("raised 1", "raised 1", "3", False),
        ("3", "3", "raised 1", True),
        ("3", "3", "raised 124", False),
        ("3", "3", "raised nothing", False),
        ("3", "3", "raised Endless", False),
    ],
)
def test_a_clock_shows_no_difference(first: str, again: str, given: str, expected: bool) -> None:
    """Nor does gold where it fails, or gives another result each time."""
    assert differs(first, again, given) == expected


@pytest.mark.parametrize(("env_class", "effort"), [(StrongEnv, 2), (WeakEnv, 1)])
def test_nothing_is_told_of_others(env_class: type, effort: int) -> None:
    """Where each wrong program is refused, or nobody asked for the search."""
    assert findings_of(env_class, effort) == []


def of_kind(prompt: str, code: str) -> dict[str, str]:
    """Return the programs that do nothing for a kind of input, by the kind's name."""
    made = {kind.name: without_kind(code, kind) for kind in kinds_in(prompt)}
    return {name: mutant.text for name, mutant in made.items() if mutant is not None}


@pytest.mark.parametrize(
    ("prompt", "name", "other", "like", "expected"),
    [
        ("Equal rows stay in order.", "values that are equal", [[{"n": 1}, {"n": 2}]], [[{"n": 1}, {"n": 1}]], True),
        ("Numbers may occur more than once.", "values that are equal", [[3, 4]], [[3, 3, 4]], True),
        ("An empty list gives 0.", "inputs without a value", [[3], "a"], [[], ""], False),
        ("Letters of every script count.", "characters beyond ASCII", ["a b", 3], ["á b", 3], True),
        ("For a negative number it raises.", "numbers below 0", [4], [-4], True),
        ("It must be fast.", "inputs of more than 1000 values", [[1, 2]], [([1, 2] * 501)[:1001]], True),
        ("As far as these pages exist.", "numbers that are the same as another argument", [4, 9], [9, 9], True),
        ("The offset from UTC.", "times near midnight", ["2030-01-02T11:08:09Z"], None, False),
        ("Put it in lower case.", "capital letters", ["ab"], ["AB"], True),
        ("Leading and trailing blanks do not count.", "texts with blanks around them", ["a"], ["  a "], True),
    ],
)
def test_nothing_is_done_for_a_kind_of_input(prompt: str, name: str, other: Any, like: Any, expected: bool) -> None:
    """The prompt speaks of it: inputs are made of the kind, and only for them the program gives nothing."""
    (program,) = (
        text for kind, text in of_kind(prompt, "def f(*, k=1): return 1\ndef g(a, b=None): return 2\n").items() if kind == name
    )
    made = next(kind for kind in kinds_in(prompt) if kind.name == name).value(other, random.Random(0))
    if expected:
        assert made == like

    space: dict[str, Any] = {}
    exec(program, space)

    assert space["g"](*other) == 2
    assert space["g"](*made) is None
    assert space["f"]() == 1


@pytest.mark.parametrize("prompt", ["Add two numbers.", "n is a non-negative number, without duplicates."])
def test_a_prompt_that_speaks_of_no_kind_asks_for_none(prompt: str) -> None:
    assert of_kind(prompt, "def g(a): return a\n") == {}


def test_code_without_arguments_has_no_kind() -> None:
    """A script reads them where nobody sees it."""
    assert of_kind("It must be fast.", "import sys\nprint(sys.stdin.read())\n") == {}


class TiesEnv(HarnessEnv):
    """Ranks texts by their numbers, and tries no two that are equal."""

    work = "def triple(rows):\n    return [row['name'] for row in sorted(rows, key=lambda row: row['n'])]\n"
    tables: ClassVar[Any] = [[{"name": "b", "n": 2}, {"name": "a", "n": 1}]]

    def format_prompt(self, item: Any) -> str:
        """Ask for them."""
        return "Write triple.py: triple(rows) gives the names by n; equal ones stay in the order in which they came."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare what it prints for all tables."""
        code = "import json, sys; sys.path.insert(0, '.'); import triple as m; print(json.dumps([m.triple(one) for one in json.loads(sys.argv[1])]))"
        line = shlex.join(["python3", "-I", "-c", code, json.dumps(self.tables)])
        wanted = [[row["name"] for row in sorted(rows, key=lambda row: row["n"])] for rows in self.tables]
        return float(ctx.terminal(f"{line} 2> /dev/null")["output"].strip() == json.dumps(wanted))


class TriedTiesEnv(TiesEnv):
    """Tries some."""

    tables: ClassVar[Any] = [*TiesEnv.tables, [{"name": "b", "n": 2}, {"name": "a", "n": 2}]]


def test_a_kind_of_input_that_the_verifier_never_tries_is_told() -> None:
    """With an input for which the program gives nothing; where it is tried, nothing is told."""
    (finding,) = findings_of(TiesEnv, 2)

    assert "nothing for values that are equal, of which the prompt speaks: triple([{" in finding.message
    assert findings_of(TriedTiesEnv, 2) == []
