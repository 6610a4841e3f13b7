"""Loads items from a dataset: a name on the Hugging Face hub, a directory written by ``save_to_disk``, or a file.

Place in the flow: an environment's ``setup`` calls `load_items`, with a function that converts rows to items, usually by
`unique_items`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Mapping[str, Any])

READERS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}
"""Files that `datasets` reads, by suffix."""

CONVERTED = "refs/convert/parquet"
"""The branch on which the Hugging Face hub stores a dataset as Parquet files."""


def load_items(
    name: str | None, split: str, *, items_of: Callable[[Any], list[T]], samples: Sequence[T], **configs: str | None
) -> list[T]:
    """Return ``items_of`` the rows of a dataset, or the samples: without a name, or with a warning if the hub cannot be reached.

    ``configs`` go to `load_rows`. Raises: ValueError when the dataset does not exist or cannot be used.
    """
    if name is None:
        return list(samples)
    try:
        rows = load_rows(name, split, **configs)
    except ConnectionError as error:
        logger.warning(
            "dataset_name %r cannot be reached (%s): using the %d samples that come with the environment. Set dataset_name to "
            "null to choose them, or to a local path.",
            name,
            str(error)[:200],
            len(samples),
        )
        return list(samples)
    return items_of(rows)


def check_columns(name: str, columns: Iterable[str], **settings: str) -> None:
    """Raise ValueError when a column that a setting names is not among ``columns``."""
    known = sorted(columns)
    for setting, column in settings.items():
        if column not in known:
            raise ValueError(f"dataset_name {name!r} has no column {column!r} ({setting}). Its columns: {known}")


def unique_items(
    rows: Iterable[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], T], *, name: str, key: str, needs: str
) -> list[T]:
    """Return one item per row; a row that lacks ``key`` or ``needs``, or repeats a ``key``, is left out, with a warning.

    ``read`` returns the item of a row. Raises: ValueError when no row is left.
    """
    found: dict[str, T] = {}
    count = 0
    for row in rows:
        count += 1
        item = read(row)
        if item[key].strip() and item[needs].strip():
            found.setdefault(item[key], item)
    if not found:
        raise ValueError(f"dataset_name {name!r} has {count} rows, and none with both {key} and {needs}")
    if len(found) < count:
        logger.warning(
            "%d of %d rows of %s have no %s or no %s, or repeat a %s; left out",
            count - len(found),
            count,
            name,
            key,
            needs,
            key,
        )
    return list(found.values())


def load_rows(name: str, split: str, *, config_name: str | None = None, preferred_config: str | None = None) -> Any:
    """Return the rows of one split, as a Dataset.

    ``preferred_config`` is used if there are several configurations and ``config_name`` names none.
    Raises: ConnectionError when the hub cannot be reached, ValueError when the dataset does not exist or cannot be read.
    """
    import datasets  # noqa: PLC0415 - takes seconds, and items may come from elsewhere

    path = os.path.expanduser(name)
    try:
        if os.path.isdir(path):
            if any(os.path.exists(os.path.join(path, mark)) for mark in ("dataset_info.json", "dataset_dict.json")):
                return _split_of(datasets.load_from_disk(path), split)
        # also a path that does not exist, if it is meant as a file and not as a name on the hub
        elif os.path.isfile(path) or path.startswith(("/", "./", "../")) or _suffix_of(path) in READERS:
            return datasets.load_dataset(_reader_of(path), data_files={split.partition("[")[0]: path}, split=split)
        return _load_by_name(datasets, path, split, config_name, preferred_config)
    except ConnectionError:
        raise
    except Exception as error:
        raise ValueError(
            f"dataset_name {name!r}, split {split!r}, cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def _load_by_name(datasets: Any, name: str, split: str, config_name: str | None, preferred: str | None) -> Any:
    """Load from the hub or a local repository; several configurations without a choice mean the preferred one.

    A dataset that is a script, which `datasets` no longer runs, is taken from the hub's Parquet copy.
    """
    try:
        return datasets.load_dataset(name, config_name, split=split)
    except ValueError as error:
        if preferred is None or config_name is not None or "onfig name is missing" not in str(error):
            raise
        return _load_by_name(datasets, name, split, preferred, None)
    except RuntimeError as error:
        if "scripts are no longer supported" not in str(error):
            raise
        return datasets.load_dataset(name, config_name or preferred, split=split, revision=CONVERTED)


def _split_of(loaded: Any, split: str) -> Any:
    """Return the named split of a directory with several; a directory with a single split has no names."""
    if not isinstance(loaded, dict):
        return loaded
    if split not in loaded:
        raise ValueError(f"its splits are {sorted(loaded)}")
    return loaded[split]


def _suffix_of(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _reader_of(path: str) -> str:
    suffix = _suffix_of(path)
    if not os.path.exists(path):
        raise FileNotFoundError("there is no such file or directory")
    if suffix not in READERS:
        raise ValueError(f"a file with the suffix {suffix!r} is none of {', '.join(READERS)}")
    return READERS[suffix]
