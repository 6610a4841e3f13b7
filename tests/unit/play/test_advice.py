"""What to write at a line that raised, as far as the exception shows it; nothing where it does not."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import json
import linecache
import os
from collections.abc import Callable
from pathlib import Path
from time import time as clock
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_hermes_env.play.advice import advice_for
from pytest_hermes_env.play.journal import Place

ITEM: Any = {"path": "a.txt", "content": "x"}
PAIR = (ITEM, 1)


def prompt_of(item: Any) -> Any:
    """Take an item for a dict."""
    return item["path"]


class Base:
    """Sets what subclasses use."""

    def __init__(self) -> None:
        self.config: Any = {}
        self.eval_rows = [1]
        self.limit = getattr(self.config, "group_size", 0)

    def describe(self) -> str:
        return "base"


class Configured(Base):
    """Uses a setting as its own attribute; the constructor of its base reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.config: Any = SimpleNamespace(group_size=4)


class WithoutBase(Base):
    """Uses what its base sets before that."""

    def __init__(self) -> None:
        self.limit = len(self.config)


class Own(Base):
    """Calls async methods of its own."""

    @property
    def fixed(self) -> int:
        return 1

    async def score(self) -> float:
        return 1.0

    async def total(self) -> float:
        found: Any = [self.score(), 1.0]
        kept = found[0]
        try:
            return sum(found)
        finally:
            kept.close()


class Unset(Base):
    """Uses what its setup sets, what nothing sets, and what only the layer calls."""

    async def setup(self) -> None:
        self.train_items = [1]

    def first(self) -> Any:
        return self.train_items[0]

    def ordered(self) -> Any:
        words = ["b", "a"]
        found: Any = None
        found = words.sort()  # type: ignore[func-returns-value]
        return found[0]

    def next(self) -> Any:
        return self.next_number  # type: ignore[attr-defined]


class Checked(BaseModel):
    """A configuration."""

    group_size: int = 1


def raised_by(act: Callable[[], Any]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - each case raises its own
        act()
    return caught.value


def advice(act: Callable[[], Any]) -> str:
    return advice_for(raised_by(act), Place(path=__file__, line=1))


class OfTheClass(Unset):
    """Reads on the class what its setup sets on an instance."""

    @classmethod
    def taken(cls) -> Any:
        return cls.train_items


class Rewarding:
    """Reads what the agent left."""

    def compute_reward(self, text: str) -> float:
        """Read JSON, then a key of it."""
        return float(json.loads(text)["score"])

    def score(self, text: str) -> float:
        """Read a number."""

        def compute_reward() -> float:
            return float(text)

        return compute_reward()


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda: ITEM["paht"], "Write ITEM['path']: it has no 'paht'."),
        (lambda: ITEM["question"], "ITEM has no 'question'; it has 'path', 'content'."),
        (lambda: {}["a"], ""),
        (lambda: ITEM.path, "It is a dict: write ITEM['path']."),
        (lambda: Own().eval_row, "Write `.eval_rows`: Own has no eval_row."),
        (
            OfTheClass.taken,
            "Remove `@classmethod`, and write `self.train_items`: `setup` sets it on the environment, and not on its class.",
        ),
        (lambda: Own().held_out_items, ""),
        (WithoutBase, "Call `super().__init__(…)` first in `__init__`: it sets self.config, and had not run."),
        (lambda: Configured().group_size, "Write `.config.group_size`: it is a field of the configuration."),
        (lambda: jsno.loads("1"), "Write `json`: no name `jsno` is defined."),  # type: ignore[name-defined]  # noqa: F821
        (lambda: glob.glob("*"), "Add `import glob` at the top of the file."),  # type: ignore[name-defined]  # noqa: F821
        (lambda: token, ""),  # type: ignore[name-defined]  # noqa: F821
        (lambda: 1 / len([]), "`len([])` is 0 here: divide only where it is not."),
        (lambda: json.loads('{"users": 27 "minutes": 15}'), """Correct the text near '{"users": 27 "minutes": 15}'."""),
        (
            lambda: json.loads('{"a": 1}\n{"a": 2}\n'),
            "Each line is a JSON value of its own: `[json.loads(line) for line in text.split('\\n') if line.strip()]`.",
        ),
        (lambda: json.loads('{"a": 1} x'), """Correct the text near '{"a": 1} x'."""),
        (lambda: clock.time() + 1, "Write `clock` alone: `clock` is time.time here, by `from time import time`."),  # type: ignore[attr-defined]
        (lambda: clock.sleep(0), "Write `import time`: `clock` is time.time here, by `from time import time`."),  # type: ignore[attr-defined]
        (lambda: dt.now() + 1, "Write `dt.datetime.now`: `dt` is the module."),  # type: ignore[attr-defined]
        (lambda: PAIR["path"], "Write `PAIR[0]['path']`: `PAIR` is a tuple here."),  # type: ignore[call-overload]
        (
            lambda: prompt_of(PAIR),
            "Return the item alone in `get_next_item`: `item` is a tuple here, and its part 0 has 'path'.",
        ),
        (lambda: prompt_of([ITEM["path"]]), "`item` is a list here, and has no keys: make it a dict, or take a number."),
        (
            lambda: Checked(group_size=(4,)),  # type: ignore[arg-type]
            "`group_size` is a tuple of one value: take away the comma behind it.",
        ),
        (lambda: json.loads(""), "The text is empty where JSON is expected."),
        (lambda: asyncio.run(Own().total()), "Write `await self.score()` in line 70."),
        (lambda: int("x"), ""),
        (lambda: Unset().first(), "Await `setup()` first: it sets train_items, and had not run."),
        (lambda: Unset().next(), "Set self.next_number in `setup()`: nothing has set it."),
        (
            lambda: Checked(group_size="four"),  # type: ignore[arg-type]
            "Correct `group_size`: input should be a valid integer, unable to parse string as an integer.",
        ),
        (
            lambda: '{"hour": {hour}}'.format(hour=1),  # noqa: F524
            'Double the braces that stay, in the text that is formatted: `{{` and `}}` around "hour".',
        ),
        (
            lambda: Unset().ordered(),
            "Line 90 sets found to what sort() returns, which is None: it changes its object in place.",
        ),
        (
            lambda: dataclasses.make_dataclass("D", [("names", list, [])]),
            "Write `names: list = field(default_factory=list)`.",
        ),
        (
            lambda: type("Own", (Checked,), {"group_size": 4}),
            "Write its type: `group_size: TYPE = …`. Or set it in `config_init`.",
        ),
        (
            lambda: setattr(Own(), "fixed", 1),
            "Call the attribute otherwise: `fixed` is a property of Own, which nothing can be set to.",
        ),
        (lambda: prompt_of(SimpleNamespace(path="a")), "Write `item.path`: `item` is a SimpleNamespace, and no dict."),
        (lambda: prompt_of(3), ""),
        (lambda: Rewarding().score("x"), "Give 0.0 where `float(text)` raises ValueError: the agent may write anything."),
    ],
)
def test_advice_names_what_to_write(act: Callable[[], Any], expected: str) -> None:
    assert advice(act) == expected


def test_a_variable_and_a_file_in_another_encoding_are_named(tmp_path: Path) -> None:
    """However the file is read."""
    (file := tmp_path / "rows.jsonl").write_bytes("é".encode("latin-1"))

    def of_variable() -> str:
        return os.environ["NO_SUCH_KEY"]

    def lines() -> list[str]:
        with file.open(encoding="utf-8") as text:
            return [line.strip() for line in text]

    place = Place(path=__file__, line=of_variable.__code__.co_firstlineno + 1)
    written = "rows.jsonl is not UTF-8: save it so, or read it with `encoding='latin-1'`."
    assert advice_for(raised_by(of_variable), place) == (
        "Set the variable NO_SUCH_KEY where this runs, or write `os.environ.get('NO_SUCH_KEY', …)`."
    )
    assert [advice(lines), advice(lambda: file.read_text(encoding="utf-8"))] == [written, written]
    assert advice(b"\xe9".decode) == ""


def test_a_method_that_the_layer_cannot_call_is_written_out() -> None:
    """A call in the project's own file is its own mistake."""

    def compute_reward(item: Any) -> float:
        return float(item)

    error = raised_by(lambda: compute_reward(1, 2, 3))  # type: ignore[call-arg]

    assert advice_for(error, Place()) == "Write `compute_reward(self, item, result, ctx)` where it is defined."
    assert advice_for(error, Place(path=__file__, line=1)) == ""


def test_an_import_names_what_is_there() -> None:
    def misspelt() -> None:
        from json import laods  # type: ignore[attr-defined]  # noqa: F401

    def missing() -> None:
        import no_such_thing_at_all  # type: ignore[import-not-found]  # noqa: F401

    assert advice(misspelt) == "Write `from json import loads`: it has no laods."
    assert advice(missing) == (
        "Install the package that has the module `no_such_thing_at_all` in the environment that runs the tests."
    )


def test_a_file_of_a_similar_name_is_named(tmp_path: Path) -> None:
    Path(tmp_path, "items.jsonl").write_text("", encoding="utf-8")

    assert advice(lambda: Path(tmp_path, "item.jsonl").read_text("utf-8")).startswith("Write ")
    assert "Path(__file__).parent" in advice(lambda: Path("nothing/like/this").read_text("utf-8"))


def test_a_file_below_the_environment_is_named(tmp_path: Path) -> None:
    """One of the same name, nearest to it."""
    own = tmp_path / "envs" / "data" / "words.json"
    for file in (own, tmp_path / "envs" / "old" / "data" / "words.json"):
        file.parent.mkdir(parents=True)
        file.touch()
    error = raised_by(lambda: (tmp_path / "data" / "words.json").read_text("utf-8"))

    found = advice_for(error, Place(path=str(tmp_path / "envs" / "env.py"), line=1))

    assert found == "Write `Path(__file__).parent / 'data' / 'words.json'`: that file is there."


def test_a_name_that_a_module_defines_too_late_is_a_circle(tmp_path: Path) -> None:
    """Python says so only of some."""
    file = tmp_path / "walks.py"
    file.write_text("import other\n\nSTEPS = 3\n")

    for name, is_circle in (("STEPS", True), ("STEP", False)):
        error = ImportError(f"cannot import name '{name}' from 'walks'", name="walks", path=str(file))
        assert ("import each other" in advice_for(error, Place())) is is_circle


TEXT = """
A text that begins at the first column.
"""


class Prompting:
    """Has a prompt within a method."""

    def ask(self, rows: Any) -> Any:
        """Fail with nothing, beside it."""
        told = """
At the first column, too.
"""
        rows = None
        return rows[len(told)]


def test_advice_never_fails_while_an_error_is_told() -> None:
    """Whatever the code looks like that raised."""
    found = {"rows": None}

    assert advice(lambda: Prompting().ask([])) == ""
    assert advice(lambda: sorted(found["rows"], key=lambda row: row["a"])) == ""  # type: ignore[call-overload]


def test_names_inside_of_libraries_are_not_advised() -> None:
    """Only imports, files and what a base class sets say something where a library raised."""
    error = raised_by(lambda: json.dumps(object()))

    assert advice_for(error, Place(path=__file__, line=1)) == ""


def test_a_line_that_runs_too_early_or_again_is_told(tmp_path: Path) -> None:
    """By what it says and what it raised."""
    file = tmp_path / "env.py"

    def told(line: str, error: BaseException) -> str:
        file.write_text(f"{line}\n", encoding="utf-8")
        linecache.checkcache()
        return advice_for(error, Place(path=str(file), line=1))

    lone = TypeError("A non-annotated attribute was detected: `limit = 3`. All model fields require a type annotation")
    running = RuntimeError("asyncio.run() cannot be called from a running event loop")
    assert told("MyEnv.cli()", SystemExit(2)) == 'Put `MyEnv.cli()` below `if __name__ == "__main__":`.'
    assert told("    self.items = asyncio.run(self.load(1))", running) == "Write `await self.load(1)`: a loop runs already."
    assert told("class MyConfig(HermesAgentEnvConfig):", lone) == "Write its type: `limit: TYPE = …`."
    assert told("class MyEnv(HermesAgentBaseEnv, MyConfig):", lone).startswith("Take MyConfig out of the bases")


@pytest.mark.parametrize("text", ['{"score": ', '{"value": 1}'])
def test_what_the_agent_left_is_no_mistake_of_the_author(text: str) -> None:
    """A reward must bear it: its rule says how."""
    assert advice(lambda: Rewarding().compute_reward(text)) == ""


def test_a_missing_module_is_not_taken_for_one_of_a_distant_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Path(tmp_path, "yarl_of_mine.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    assert advice(lambda: __import__("yaml_of_me")).startswith("Install the package")
    assert advice(lambda: __import__("yarl_of_mime")) == "Import `yarl_of_mine`: no module is called `yarl_of_mime`."


def test_what_gather_awaits_is_not_forgotten() -> None:
    """The line that is named must be the one to change."""

    class Gathering(Own):
        async def total(self) -> Any:
            found = await asyncio.gather(*[self.score() for _ in range(2)])
            later = self.score
            forgotten: Any = later()
            try:
                return found[0] + forgotten
            finally:
                forgotten.close()

    assert advice(lambda: asyncio.run(Gathering().total())) == "Await the call that made the coroutine."
