"""The tasks of a terminal benchmark: their fields, how to load them from a dataset, and how to choose some of them by name."""

from __future__ import annotations

import difflib
import functools
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import yaml

from environments.benchmarks.terminalbench_2.archives import packed
from environments.rollout.data_rows import check_columns, load_items, unique_items

logger = logging.getLogger(__name__)

REQUIRED = ("task_name", "instruction", "test_sh")


class TerminalTask(TypedDict):
    """One task. Archives are base64 of a tar file; a field that a dataset lacks is empty."""

    task_name: str
    category: str
    instruction: str
    docker_image: str
    environment_tar: str
    """The files that the agent starts with."""
    tests_tar: str
    """The files that ``test_sh`` needs."""
    test_sh: str


@functools.cache
def sample_tasks() -> tuple[TerminalTask, ...]:
    """Return the tasks of ``sample_tasks.yaml``."""
    text = Path(__file__).with_name("sample_tasks.yaml").read_text(encoding="utf-8")
    return tuple(
        TerminalTask(
            task_name=row["task_name"],
            category=row["category"],
            instruction=row["instruction"],
            docker_image="",
            environment_tar=packed(row["environment"]),
            tests_tar=packed(row["tests"]),
            test_sh=row["test_sh"],
        )
        for row in yaml.safe_load(text)
    )


def load_tasks(name: str | None, *, split: str) -> list[TerminalTask]:
    """Return the tasks of a dataset, or the samples; see `data_rows.load_items`."""

    def items_of(rows: Any) -> list[TerminalTask]:
        check_columns(name or "", rows.column_names, **{f"required for {field}": field for field in REQUIRED})
        return unique_items(rows, _task_of, name=name or "", key="task_name", needs="test_sh")

    return load_items(name, split, items_of=items_of, samples=sample_tasks())


def _task_of(row: Mapping[str, Any]) -> TerminalTask:
    values = {field: str(row.get(field) or "") for field in TerminalTask.__annotations__}
    return TerminalTask(**{**values, "category": values["category"] or "uncategorized"})  # type: ignore[typeddict-item]


def chosen_tasks(tasks: Sequence[TerminalTask], *, only: str | None, skipped: str | None) -> list[TerminalTask]:
    """Return the tasks whose names are in ``only``, if it is set, and not in ``skipped``: names with commas between them.

    Raises: ValueError for a name that no task has, and when no task is left.
    """
    names = [task["task_name"] for task in tasks]
    wanted, unwanted = _names(only, "task_filter", names), _names(skipped, "skip_tasks", names)
    chosen = [task for task in tasks if task["task_name"] not in unwanted and (not wanted or task["task_name"] in wanted)]
    if not chosen:
        raise ValueError(f"No task is left: task_filter={only!r} and skip_tasks={skipped!r} leave none of {len(tasks)}")
    return chosen


def _names(text: str | None, setting: str, known: Collection[str]) -> set[str]:
    names = {name.strip() for name in (text or "").split(",") if name.strip()}
    for name in sorted(names.difference(known)):
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise ValueError(f"{setting} names {name!r}, which is none of the {len(known)} tasks{hint}")
    return names
