"""Coding items: what one is, how rows of a data set become items, and how items are held out for evaluation.

Place in the flow: ``HermesSweEnv.setup`` loads with `load_items` and splits with `hold_out`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from environments.data_rows import load_rows
from environments.hermes_swe_env.sample_tasks import SAMPLE_TASKS

__all__ = ["CodingItem", "given_tests", "hold_out", "load_items"]

logger = logging.getLogger(__name__)

TEST_COLUMNS = ("test", "test_code", "tests", "test_list")
"""Where data sets keep their tests: a text, or a list of statements. The first that exists counts."""

MIN_EVAL_ITEMS = 20
EVAL_SHARE = 10
"""One item in so many is held out, once that is more than `MIN_EVAL_ITEMS`."""

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


# ---------------------------------------------------------------------- loading


def load_items(name: str | None, *, split: str, prompt_field: str, config_name: str | None = None) -> list[CodingItem]:
    """Return the items of a data set: a name on the hub, a directory written by ``save_to_disk``, or a file.

    Without a name, or when the hub cannot be reached, these are the sample tasks; the latter with a warning.

    Raises: ValueError when the data set is there and cannot be used, or is nowhere.
    """
    if name is None:
        return _samples()
    try:
        rows = load_rows(name, split, config_name=config_name, preferred_config=PREFERRED_CONFIG)
    except ConnectionError as error:
        logger.warning(
            "dataset_name %r is out of reach (%s): using the %d sample tasks that come with HermesSweEnv. Set dataset_name to "
            "null to choose them, or to a local path.",
            name,
            str(error)[:200],
            len(SAMPLE_TASKS),
        )
        return _samples()
    return items_of(rows, name=name, columns=list(rows.column_names), prompt_field=prompt_field)


def _samples() -> list[CodingItem]:
    return [CodingItem(prompt=task["prompt"], test=task["test"], entry_point=task["entry_point"]) for task in SAMPLE_TASKS]


# ---------------------------------------------------------------------- rows to items


def items_of(rows: Iterable[Mapping[str, Any]], *, name: str, columns: Sequence[str], prompt_field: str) -> list[CodingItem]:
    """Return one item per row that can be verified; a prompt that comes again, and a row without tests, is left out.

    Raises: ValueError when a column is missing or no row is left.
    """
    test_column = next((column for column in TEST_COLUMNS if column in columns), None)
    if prompt_field not in columns:
        raise ValueError(f"dataset_name {name!r} has no column {prompt_field!r} (prompt_field). Its columns: {sorted(columns)}")
    if test_column is None:
        raise ValueError(
            f"dataset_name {name!r} has no tests: none of {', '.join(TEST_COLUMNS)} is among its columns {sorted(columns)}. "
            "HermesSweEnv rewards what tests decide."
        )
    items: dict[str, CodingItem] = {}
    count = 0
    for row in rows:
        count += 1
        prompt, tests = _prompt_of(row, prompt_field), _tests_of(row, test_column)
        if prompt.strip() and tests.strip():
            items.setdefault(prompt, {"prompt": prompt, "test": tests, "entry_point": _text(row, "entry_point")})
    if not items:
        raise ValueError(f"dataset_name {name!r} has {count} rows, and none with both {prompt_field!r} and {test_column!r}")
    if len(items) < count:
        logger.warning(
            "%d of %d rows of %s have no prompt or no tests, or repeat a prompt; left out", count - len(items), count, name
        )
    return list(items.values())


def _prompt_of(row: Mapping[str, Any], field: str) -> str:
    """Return the prompt, with the declaration after it where the prompt does not show that."""
    prompt, declaration = _text(row, field), _text(row, "declaration").strip()
    if not prompt.strip() or not declaration or declaration in prompt:
        return prompt
    return f"{prompt.rstrip()}\n\nBegin with:\n{declaration}\n"


def _tests_of(row: Mapping[str, Any], column: str) -> str:
    """Return the tests, after what they need (columns ``import`` and ``test_setup`` of HumanEvalPack)."""
    tests = row[column]
    text = "\n".join(map(str, tests)) if isinstance(tests, (list, tuple)) else str(tests or "")
    before = [part for part in (_text(row, "import"), _text(row, "test_setup")) if part.strip()]
    return "\n".join([*before, text]) if text.strip() else ""


def _text(row: Mapping[str, Any], column: str) -> str:
    return str(row.get(column) or "")


# ---------------------------------------------------------------------- the split


def hold_out(items: Sequence[CodingItem], eval_size: int | None) -> tuple[list[CodingItem], list[CodingItem]]:
    """Return (training items, evaluation items): the last ones are held out, `MIN_EVAL_ITEMS` or a tenth, never over half.

    ``eval_size`` asks for another number. Raises: ValueError when one of the two sides would be empty.
    """
    size = min(max(MIN_EVAL_ITEMS, len(items) // EVAL_SHARE), len(items) // 2) if eval_size is None else eval_size
    if not 0 < size < len(items):
        raise ValueError(
            f"{len(items)} items cannot be split with {size} of them held out for evaluation: both sides need one at least. "
            "Set eval_size, or give a larger data set."
        )
    return list(items[:-size]), list(items[-size:])
