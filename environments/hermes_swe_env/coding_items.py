"""Coding items: their fields, how to load them from a dataset, and how to hold some out for evaluation.

Place in the flow: ``HermesSweEnv.setup`` loads with `load_coding_items` and splits with `hold_out`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import yaml

from environments.rollout.data_rows import check_columns, load_items, unique_items

TEST_COLUMNS = ("test", "test_code", "tests", "test_list")
"""Columns in which datasets keep their tests: a text, or a list of statements. The first that exists is used."""

MIN_EVAL_ITEMS = 20
EVAL_SHARE = 10
"""One in this many items is held out, if that is more than `MIN_EVAL_ITEMS`."""

PREFERRED_CONFIG = "python"


class CodingItem(TypedDict):
    """One task. ``test`` is Python text that `verifier.run_tests` runs; older items call it ``test_code``."""

    prompt: str
    test: NotRequired[str]
    test_code: NotRequired[str]
    entry_point: NotRequired[str]


def given_tests(item: Mapping[str, Any]) -> str:
    """Return the test text of an item, or "" when it has none."""
    return str(item.get("test") or item.get("test_code") or "")


@functools.cache
def sample_tasks() -> tuple[CodingItem, ...]:
    """Return the tasks of ``sample_tasks.yaml``."""
    text = Path(__file__).with_name("sample_tasks.yaml").read_text(encoding="utf-8")
    return tuple(
        CodingItem(
            prompt=f"Write this Python function:\n\n    def {task['signature']}\n\n{task['text'].strip()}",
            test=task["tests"],
            entry_point=task["signature"].partition("(")[0],
        )
        for task in yaml.safe_load(text)
    )


def load_coding_items(name: str | None, *, split: str, prompt_field: str, config_name: str | None = None) -> list[CodingItem]:
    """Return the items of a dataset, or the sample tasks; see `data_rows.load_items`."""

    def items_of(rows: Any) -> list[CodingItem]:
        columns = rows.column_names
        check_columns(name or "", columns, prompt_field=prompt_field)
        test_column = next((column for column in TEST_COLUMNS if column in columns), None)
        if test_column is None:
            raise ValueError(
                f"dataset_name {name!r} has no tests: none of {', '.join(TEST_COLUMNS)} is among its columns {sorted(columns)}. "
                "HermesSweEnv computes rewards from tests."
            )

        def read(row: Mapping[str, Any]) -> CodingItem:
            tests = _tests_of(row, test_column)
            return {"prompt": _prompt_of(row, prompt_field), "test": tests, "entry_point": _text(row, "entry_point")}

        return unique_items(rows, read, name=name or "", key="prompt", needs="test")

    return load_items(
        name, split, items_of=items_of, samples=sample_tasks(), config_name=config_name, preferred_config=PREFERRED_CONFIG
    )


def _prompt_of(row: Mapping[str, Any], field: str) -> str:
    """Return the prompt, followed by the declaration unless the prompt contains it."""
    prompt, declaration = _text(row, field), _text(row, "declaration").strip()
    if not prompt.strip() or not declaration or declaration in prompt:
        return prompt
    return f"{prompt.rstrip()}\n\nBegin with:\n{declaration}\n"


def _tests_of(row: Mapping[str, Any], column: str) -> str:
    """Return the tests, preceded by their imports and set-up (columns ``import`` and ``test_setup`` of HumanEvalPack)."""
    tests = row[column]
    text = "\n".join(map(str, tests)) if isinstance(tests, (list, tuple)) else str(tests or "")
    before = [part for part in (_text(row, "import"), _text(row, "test_setup")) if part.strip()]
    return "\n".join([*before, text]) if text.strip() else ""


def _text(row: Mapping[str, Any], column: str) -> str:
    return str(row.get(column) or "")


def hold_out(items: Sequence[CodingItem], eval_size: int | None) -> tuple[list[CodingItem], list[CodingItem]]:
    """Return (training items, evaluation items): the last ones are held out, `MIN_EVAL_ITEMS` or a tenth, at most half.

    ``eval_size`` sets another number. Raises: ValueError when one of the two sides would be empty.
    """
    size = min(max(MIN_EVAL_ITEMS, len(items) // EVAL_SHARE), len(items) // 2) if eval_size is None else eval_size
    if not 0 < size < len(items):
        raise ValueError(
            f"{len(items)} items cannot be split with {size} of them held out for evaluation: both sides require at least one. "
            "Set eval_size, or use a larger dataset."
        )
    return list(items[:-size]), list(items[-size:])
