"""Rollouts in other formats: trajectories of ATIF, messages of OpenAI as JSON Lines, a data set with a card."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from hermes_env_shared.rollout_record import Record
from pytest_hermes_env.atomic_files import write_text
from pytest_hermes_env.records.atif import document_of
from pytest_hermes_env.records.observed import text_of
from pytest_hermes_env.records.reading import Line, read_records

_CARD = """\
---
configs:
  - config_name: default
    data_files: rollouts.jsonl
tags: [agent, rollouts, hermes-env]
---

# {name}

{count} agent rollouts of {items} items, as `hermes-env export --dataset` wrote them.

| field | holds |
|---|---|
| `messages` | the conversation: `role`, `content` (JSON, where it has parts that are no text), `tool_calls` (JSON), `tool_call_id`, `name` |
| `reward` | the reward, null where nothing was earned |
| `end` | how the rollout ended |
| `group`, `place`, `attempt`, `run`, `id`, `time` | what tells rollouts apart |
| `item` | the item, as JSON |

| | |
|---|---|
| mean reward | {mean} |
| models | {models} |
| environments | {environments} |
| ends | {ends} |
| versions | {versions} |
"""


def write_atif(file: Path) -> Path:
    """Write a trajectory for each rollout into a directory next to a file, and return it."""
    directory = file.with_name(f"{_stem(file)}.atif")
    lines = read_records([file], tell=sys.stderr.write)
    keys = Counter(line.record.key for line in lines if line.record)
    for line, record in _records(lines):
        name = re.sub(r"[^\w.-]", "-", record.key if keys[record.key] == 1 else f"{record.key}-{line.line}")
        write_text(str(directory / f"{name}.json"), json.dumps(document_of(record), ensure_ascii=False, indent=1) + "\n")
    return directory


def write_openai(file: Path) -> Path:
    """Write the messages of each rollout with its reward and group as a line of ``<stem>.messages.jsonl``, and return that file."""
    return _write(
        file.with_name(f"{_stem(file)}.messages.jsonl"),
        read_records([file], tell=sys.stderr.write),
        lambda record: {"messages": record.messages, **_facts(record)},
    )


def write_dataset(file: Path) -> Path:
    """Write a directory that ``datasets.load_dataset`` reads, with a card; every row has the same columns."""
    directory = file.with_name(f"{_stem(file)}.dataset")
    lines = read_records([file], tell=sys.stderr.write)
    _write(
        directory / "rollouts.jsonl",
        lines,
        lambda record: {"messages": list(map(_row, record.messages)), **_facts(record), "item": json.dumps(record.item)},
    )
    records = [record for _, record in _records(lines)]
    rewards = [record.reward for record in records if record.reward is not None]
    card = _CARD.format(
        name=_stem(file),
        count=f"{len(records):,}",
        items=len({json.dumps(record.item) if record.item is not None else record.prompt for record in records}),
        mean=f"{fmean(rewards):.3f} of {len(rewards):,}" if rewards else "none",
        models=_counted(record.model for record in records),
        environments=_counted(record.environment for record in records),
        ends=_counted(record.end for record in records),
        versions=_counted(f"{name} {version}" for record in records for name, version in record.versions.items()),
    )
    write_text(str(directory / "README.md"), card)
    return directory


EXPORTS: dict[str, Callable[[Path], Path]] = {"atif": write_atif, "openai": write_openai, "dataset": write_dataset}


def _stem(file: Path) -> str:
    return file.name.removesuffix(".jsonl").removesuffix(".json")


def _records(lines: Sequence[Line]) -> Iterator[tuple[Line, Record]]:
    yield from ((line, line.record) for line in lines if line.record is not None)


def _write(target: Path, lines: Sequence[Line], row: Callable[[Record], dict[str, Any]]) -> Path:
    rows = (_strict(row(record)) for _, record in _records(lines))
    write_text(str(target), "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows))
    return target


def _strict(value: Any) -> Any:
    """Return a value without numbers that JSON does not have: they become null."""
    if isinstance(value, dict):
        return {key: _strict(part) for key, part in value.items()}
    if isinstance(value, list):
        return list(map(_strict, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


_FACTS = ("id", "run", "environment", "model", "group", "place", "attempt", "time", "item", "prompt", "end", "turns", "reward")


def _facts(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _FACTS}


def _row(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with the columns that all have."""
    calls, content = message.get("tool_calls"), message.get("content")
    is_of_text = not isinstance(content, list) or all(isinstance(part, dict) and part.get("type") == "text" for part in content)
    return {
        "role": str(message.get("role")),
        "content": content if content is None else text_of(content) if is_of_text else json.dumps(content),
        "reasoning_content": message.get("reasoning_content"),
        "tool_calls": json.dumps(calls) if calls else None,
        "tool_call_id": message.get("tool_call_id"),
        "name": message.get("name"),
    }


def _counted(values: Iterator[str]) -> str:
    return ", ".join(f"{value or 'unknown'} ({count:,})" for value, count in Counter(values).most_common(6))
