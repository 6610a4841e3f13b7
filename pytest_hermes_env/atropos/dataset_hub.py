"""Answers ``load_dataset("any/name")`` with tables of a test, by the real datasets library, and refuses every other dataset at once.

Place in the flow: the fixture ``hub``. The library gets a local directory in place of the repository's name. Without the fixture,
`hub_offline` switches the hub off for libraries that are imported already: an environment whose ``setup`` loads a dataset, and has
built-in items to fall back on, then uses those at once, as on a machine without a network.

Source: datasets 5.2, ``load.py``: ``load_dataset`` builds every dataset through ``load_dataset_builder``; files named
``<split>-00000-of-00001.<suffix>`` in ``data`` are the split's.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_hermes_env.errors import LeftoverTables, UnexpectedRequest, UsageError, shorten
from pytest_hermes_env.patches import assign, intercept, replace

Table = Iterable[Mapping[str, Any]] | str | Path
"""Rows, or the path of a .jsonl, .json, .parquet or .csv file."""

TARGETS = ("datasets.load.load_dataset_builder", "datasets.load_dataset_builder", "datasets.inspect.load_dataset_builder")
SUFFIXES = (".jsonl", ".json", ".parquet", ".csv")
REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
SPLIT = re.compile(r"\w+(\.\w+)*")


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One dataset that was asked for."""

    name: str
    config: str | None

    def __str__(self) -> str:
        return f"{self.name!r}" if self.config is None else f"{self.name!r}, {self.config!r}"


class DatasetHub:
    """The tables of a test. ``loaded`` has the names of the datasets that were asked for, in order."""

    def __init__(self, directory: Path, *, allow_leftovers: bool = False) -> None:
        self._directory = directory
        self._allow_leftovers = allow_leftovers
        self._tables: dict[_Asked, Path] = {}
        self._refused: set[str] = set()
        self._refuses_all = False
        self._asked: list[_Asked] = []
        self._used: set[Path] = set()

    @property
    def loaded(self) -> list[str]:
        """The names of the datasets that were asked for, refused ones too."""
        return [asked.name for asked in self._asked]

    def add(self, name: str, table: Table | Mapping[str, Table], *, split: str = "train", config: str | None = None) -> None:
        """Answer ``load_dataset(name)`` with a table: rows, a path, or one of these for each split.

        ``config`` answers only ``load_dataset(name, config)``; without it every configuration is answered.
        Raises: no rows, an unknown kind of file, or no name of a repository or split → UsageError.
        """
        if not REPOSITORY.fullmatch(name):
            raise UsageError(
                f"hub.add was given the name {shorten(repr(name))}; expected the name of a repository, as 'any/name'"
            )
        place = self._tables.setdefault(
            _Asked(name=name, config=config), self._directory / str(len(self._tables)) / name.rpartition("/")[2]
        )
        (place / "data").mkdir(parents=True, exist_ok=True)
        tables = table if isinstance(table, Mapping) else {split: table}
        for each, content in tables.items():
            if not SPLIT.fullmatch(each):
                raise UsageError(f"hub.add was given the split {shorten(repr(each))}; expected letters, digits and underscores")
            _write(content, place / "data" / f"{each}-00000-of-00001")

    def refuse(self, name: str | None = None) -> None:
        """Expect that a dataset, or with no name every other one, is asked for, and refuse it as a machine without a network."""
        if name is None:
            self._refuses_all = True
        else:
            self._refused.add(name)

    def load_dataset_builder(self, real: Any, path: str, name: str | None = None, *args: Any, **kwargs: Any) -> Any:
        """Stand in for ``datasets.load_dataset_builder``."""
        from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES  # noqa: PLC0415 - heavy

        repository = str(path).removeprefix("hf://datasets/")
        is_local = path in _PACKAGED_DATASETS_MODULES or Path(path).exists() or not REPOSITORY.fullmatch(repository)
        if is_local:
            return real(path, name, *args, **kwargs)
        asked = _Asked(name=repository, config=name)
        self._asked.append(asked)
        table = self._tables.get(asked) or self._tables.get(_Asked(name=repository, config=None))
        if table is None or repository in self._refused:
            return real(path, name, *args, **kwargs)  # offline and without caches: it refuses
        self._used.add(table)
        of_a_repository = {"data_dir", "data_files", "revision", "token"}
        return real(str(table), **{key: value for key, value in kwargs.items() if key not in of_a_repository})

    def verify(self) -> None:
        """Raise for a dataset that nobody expected, or a table that nobody loaded.

        Raises: UnexpectedRequest, LeftoverTables.
        """
        unexpected = next((asked for asked in self._asked if not self._is_expected(asked)), None)
        if unexpected is not None:
            raise UnexpectedRequest(
                f"load_dataset({unexpected}) was called, and the hub of this test has no such dataset.\n"
                f"  expected  {', '.join(map(str, self._tables)) or 'no dataset: the hub is empty'}\n"
                f"  fix       hub.add({unexpected.name!r}, [{{...}}]), or hub.refuse({unexpected.name!r}) to test the fallback"
            )
        unused = [str(asked) for asked, table in self._tables.items() if table not in self._used]
        if unused and not self._allow_leftovers:
            raise LeftoverTables(
                f"a dataset of the hub was not loaded: {', '.join(unused)}.\n"
                f"  seen      {', '.join(map(str, self._asked)) or 'no load_dataset'}\n"
                "  fix       remove the table, or mark the test @pytest.mark.hermes_allow_leftovers"
            )

    def _is_expected(self, asked: _Asked) -> bool:
        known = asked in self._tables or _Asked(name=asked.name, config=None) in self._tables
        return known or self._refuses_all or asked.name in self._refused


@contextlib.contextmanager
def answering_datasets(*, allow_leftovers: bool = False) -> Iterator[DatasetHub]:
    """Let a hub answer the datasets library while the context lasts; the real hub and all caches are out of reach."""
    with (
        tempfile.TemporaryDirectory(prefix="hermes-env-hub-") as directory,
        hub_offline_without_caches(),
        contextlib.ExitStack() as answered,
    ):
        hub = DatasetHub(Path(directory), allow_leftovers=allow_leftovers)
        for target in TARGETS:
            answered.enter_context(intercept(target, hub.load_dataset_builder))
        yield hub


def _write(table: Table, stem: Path) -> None:
    """Write a table as a file of the datasets library."""
    if isinstance(table, str | Path):
        source = Path(table)
        if source.suffix not in SUFFIXES or not source.is_file():
            raise UsageError(
                f"hub.add cannot read {shorten(str(table))}.\n"
                f"  expected  rows, or a file that exists and ends in {', '.join(SUFFIXES)}"
            )
        shutil.copyfile(source, stem.with_name(stem.name + source.suffix))
        return
    rows = [json.dumps(dict(row), ensure_ascii=False) for row in table]
    if not rows:
        raise UsageError("hub.add was given a table without rows, which the datasets library cannot read; give it at least one")
    stem.with_name(f"{stem.name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")


_VARIABLES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
_SWITCHES = (
    "huggingface_hub.constants.HF_HUB_OFFLINE",
    "datasets.config.HF_HUB_OFFLINE",
    "datasets.config.HF_DATASETS_OFFLINE",
)
_CACHES = (
    "huggingface_hub.constants.HF_HUB_CACHE",
    "huggingface_hub.constants.HUGGINGFACE_HUB_CACHE",
    "datasets.config.HF_DATASETS_CACHE",
    "datasets.config.HF_MODULES_CACHE",
)
"""What the libraries read at each call, computed from the variables at their import.

Source: huggingface_hub 1.x constants.py, datasets 4.x config.py.
"""


@contextlib.contextmanager
def hub_offline() -> Iterator[None]:
    """Switch the hub off; cached datasets can still be loaded. Does nothing in a run that sets one of the variables itself."""
    if any(name in os.environ for name in _VARIABLES):
        yield
        return
    with _replaced(dict.fromkeys(_SWITCHES, True)):
        os.environ.update(dict.fromkeys(_VARIABLES, "1"))
        try:
            yield
        finally:
            for name in _VARIABLES:
                os.environ.pop(name, None)


@contextlib.contextmanager
def hub_offline_without_caches() -> Iterator[None]:
    """Switch the hub off, and let the libraries find empty caches, so that a cached dataset does not hide a download."""
    with tempfile.TemporaryDirectory(prefix="hermes-env-offline-") as empty:
        caches = {
            target: type(before)(Path(empty) / target.rpartition(".")[2].lower())
            for target in _CACHES
            if (before := _value(target)) is not None
        }
        with _replaced(dict.fromkeys(_SWITCHES, True) | caches):
            yield


@contextlib.contextmanager
def _replaced(values: Mapping[str, Any]) -> Iterator[None]:
    """Give constants of loaded libraries other values. A library that is loaded meanwhile was loaded offline: switch it back on."""
    loaded = [target for target in values if _value(target) is not None]
    with contextlib.ExitStack() as replaced:
        for target in loaded:
            replaced.enter_context(replace(target, values[target]))
        yield
    is_offline = os.environ.get(_VARIABLES[0], "").upper() in {"1", "ON", "YES", "TRUE"}
    for target in set(_SWITCHES) - set(loaded):
        if _value(target) is not None:
            assign(target, is_offline)


def _value(target: str) -> Any:
    """Return the value of a constant; None where its library is not loaded or has no such constant."""
    module, _, name = target.rpartition(".")
    return getattr(sys.modules.get(module), name, None)
