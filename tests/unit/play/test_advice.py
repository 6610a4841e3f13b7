"""What to write at a line that raised, as far as the exception shows it; nothing where it does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.play.advice import advice_for
from pytest_hermes_env.play.journal import Place

ITEM: Any = {"path": "a.txt", "content": "x"}


class Base:
    """Sets what subclasses use."""

    def __init__(self) -> None:
        self.config = {}
        self.eval_rows = [1]

    def describe(self) -> str:
        return "base"


class WithoutBase(Base):
    """Uses what its base sets before that."""

    def __init__(self) -> None:
        self.limit = len(self.config)


class Own(Base):
    """Calls async methods of its own."""

    async def score(self) -> float:
        return 1.0

    async def total(self) -> float:
        found: Any = [self.score(), 1.0]
        kept = found[0]
        try:
            return sum(found)
        finally:
            kept.close()


def raised_by(act: Callable[[], Any]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - each case raises its own
        act()
    return caught.value


def advice(act: Callable[[], Any]) -> str:
    return advice_for(raised_by(act), Place(path=__file__, line=1))


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda: ITEM["paht"], "Write ITEM['path']: it has no 'paht'."),
        (lambda: ITEM["question"], "ITEM has no 'question'; it has 'path', 'content'."),
        (lambda: {}["a"], ""),
        (lambda: ITEM.path, "It is a dict: write ITEM['path']."),
        (lambda: Own().eval_row, "Write `.eval_rows`: Own has no eval_row."),
        (lambda: Own().held_out_items, ""),
        (WithoutBase, "`super().__init__(…)` sets self.config, and had not run: call it first in `__init__`."),
        (lambda: jsno.loads("1"), "Write `json`: there is no jsno."),  # type: ignore[name-defined]  # noqa: F821
        (lambda: glob.glob("*"), "Add `import glob` at the top of the file."),  # type: ignore[name-defined]  # noqa: F821
        (lambda: 1 / len([]), "`len([])` is 0 here: look at it before you divide."),
        (lambda: json.loads('{"users": 27 "minutes": 15}'), """Correct the text near '{"users": 27 "minutes": 15}'."""),
        (lambda: json.loads(""), "The text is empty where JSON is expected."),
        (lambda: asyncio.run(Own().total()), "Write `await self.score()` in line 44."),
        (lambda: int("x"), ""),
    ],
)
def test_advice_names_what_to_write(act: Callable[[], Any], expected: str) -> None:
    assert advice(act) == expected


def test_an_import_names_what_is_there() -> None:
    def misspelt() -> None:
        from json import laods  # type: ignore[attr-defined]  # noqa: F401

    def missing() -> None:
        import no_such_thing_at_all  # type: ignore[import-not-found]  # noqa: F401

    assert advice(misspelt) == "Write `from json import loads`: it has no laods."
    assert advice(missing) == "Install what has the module no_such_thing_at_all, where the tests run."


def test_a_file_of_a_similar_name_is_named(tmp_path: Path) -> None:
    Path(tmp_path, "items.jsonl").write_text("", encoding="utf-8")

    assert advice(lambda: Path(tmp_path, "item.jsonl").read_text("utf-8")).startswith("Write ")
    assert "Path(__file__).parent" in advice(lambda: Path("nothing/like/this").read_text("utf-8"))


def test_names_inside_of_libraries_are_not_advised() -> None:
    """Only imports, files and what a base class sets say something where a library raised."""
    error = raised_by(lambda: json.dumps(object()))

    assert advice_for(error, Place(path=__file__, line=1)) == ""
