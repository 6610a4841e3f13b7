"""The rows of a data set: a name on the Hugging Face hub, a directory written by ``save_to_disk``, or a file."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from typing import Any

__all__ = ["load_rows"]

READERS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}
"""Files that `datasets` reads, by suffix."""

CONVERTED = "refs/convert/parquet"
"""The branch on which the Hugging Face hub keeps a data set as Parquet files."""

HUB_TIMEOUT_S = 10
"""Seconds in which the hub must answer at all."""


def load_rows(name: str, split: str, *, config_name: str | None = None, preferred_config: str | None = None) -> Any:
    """Return the rows of one split, as a Dataset.

    ``preferred_config`` is taken where there are several configurations and ``config_name`` names none.
    Raises: ConnectionError when the hub cannot be reached, ValueError for what is wrong.
    """
    import datasets  # noqa: PLC0415 - takes seconds, and items may come from elsewhere

    path = os.path.expanduser(name)
    try:
        if os.path.isdir(path) and _was_saved_to_disk(path):
            return _split_of(datasets.load_from_disk(path), split)
        if os.path.isfile(path) or _looks_like_a_file(path):
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

    A data set that is a script, which `datasets` no longer runs, is taken from the hub's Parquet copy.
    """
    if not os.path.exists(name):
        _ask_the_hub(name)
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


def _ask_the_hub(name: str) -> None:
    """Raise ConnectionError when the hub does not answer and the data set was never fetched: `datasets` tries for 25 seconds."""
    import datasets  # noqa: PLC0415 - as above
    from huggingface_hub import constants  # noqa: PLC0415

    if constants.HF_HUB_OFFLINE or os.path.exists(os.path.join(datasets.config.HF_DATASETS_CACHE, name.replace("/", "___"))):
        return
    request = urllib.request.Request(f"{constants.ENDPOINT}/api/datasets/{name}", method="HEAD")  # noqa: S310 - the hub's address
    try:
        with urllib.request.urlopen(request, timeout=HUB_TIMEOUT_S):  # noqa: S310
            return
    except urllib.error.HTTPError:
        return  # it is there; what is wrong, `datasets` says
    except OSError as error:
        raise ConnectionError(f"{constants.ENDPOINT} does not answer: {error}") from error


def _was_saved_to_disk(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, mark)) for mark in ("dataset_info.json", "dataset_dict.json"))


def _looks_like_a_file(path: str) -> bool:
    """Tell a file that is not there from a name on the hub."""
    return not os.path.isdir(path) and (path.startswith(("/", "./", "../")) or _suffix_of(path) in READERS)


def _split_of(loaded: Any, split: str) -> Any:
    """Return the split of a directory that holds several; a directory that holds one has no names to choose from."""
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
