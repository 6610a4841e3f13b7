"""What a project says about its contract: the table ``[tool.hermes-env]`` of its pyproject.toml.

Place in the flow: both entry points read it once. The command line wins over it.
"""

from __future__ import annotations

import datetime as dt
import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_hermes_env.contract.rules import find_rule, nearest, rules_named
from pytest_hermes_env.errors import BadSettings, UnknownRule, shorten
from pytest_hermes_env.redaction.shown_text import shown_path

_T = TypeVar("_T")

FILE = "pyproject.toml"
TABLE = "hermes-env"
_KEYS = ("select", "ignore", "strict", "waivers")
_WAIVER_KEYS = ("paths", "rules", "reason", "expires")
_HEADER = re.compile(r"""^\s*\[\[\s*tool\s*\.\s*["']?hermes-env["']?\s*\.\s*["']?waivers["']?\s*\]\]""")


@dataclass(frozen=True, kw_only=True)
class PathWaiver:
    """One entry of ``[[tool.hermes-env.waivers]]``: violations of ``rules`` in files that fit ``paths`` are accepted."""

    paths: tuple[str, ...]
    rules: tuple[str, ...]
    reason: str
    expires: dt.date | None
    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The table, checked. ``file`` is the pyproject.toml that it stands in; empty when there is none."""

    file: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict: bool = False
    waivers: tuple[PathWaiver, ...] = ()

    @property
    def root(self) -> str:
        """The directory that globs start from."""
        return os.path.dirname(self.file)


def settings_for(target: str) -> Settings:
    """Return the settings that hold for a file or directory: of the nearest pyproject.toml with our table, from there upwards.

    Raises: BadSettings when the table says what it cannot mean.
    """
    folder = os.path.abspath(target)
    if not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    while True:
        file = os.path.join(folder, FILE)
        if os.path.isfile(file):
            settings = read_settings(file)
            if settings is not None:
                return settings
        parent = os.path.dirname(folder)
        if parent == folder:
            return Settings()
        folder = parent


_ENDLESS_NUMBER = re.compile(r"[0-9_]{4301}")
"""More digits than Python reads; tomllib takes 100 bytes for each before it says so."""


def read_settings(file: str) -> Settings | None:
    """Return the settings in a pyproject.toml, or None when it has no table of ours. Raises: BadSettings."""
    try:
        with open(file, "rb") as stream:
            text = stream.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{shown_path(file)} cannot be read: {error}") from error
    if TABLE not in text:
        return None
    if _ENDLESS_NUMBER.search(text):
        raise BadSettings(f"{shown_path(file)} has a number of thousands of digits")
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        raise BadSettings(f"{shown_path(file)} is not TOML: {error}") from error
    tool = document.get("tool")
    table = tool.get(TABLE) if isinstance(tool, dict) else None
    if table is None:
        return None
    return _Reader(file=file, lines=text.splitlines()).settings(table)


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Checks one table and says, for what is wrong, the file, the line, and what was expected."""

    file: str
    lines: list[str]

    def settings(self, table: object) -> Settings:
        if not isinstance(table, dict):
            raise self._wrong(self._line_of(TABLE), f"[tool.{TABLE}] must be a table, not {_kind(table)}")
        self._check_keys(table, _KEYS, f"[tool.{TABLE}]", self._line_of)
        waivers = table.get("waivers", [])
        if not isinstance(waivers, list) or not all(isinstance(item, dict) for item in waivers):
            raise self._wrong(
                self._line_of("waivers"),
                f"waivers must be tables: write [[tool.{TABLE}.waivers]] with {', '.join(_WAIVER_KEYS)}",
            )
        return Settings(
            file=self.file,
            select=self._prefixes(table, "select"),
            ignore=self._prefixes(table, "ignore"),
            strict=self._typed(table, "strict", self._line_of("strict"), False, "true or false"),
            waivers=tuple(
                self._waiver(item, line) for item, line in zip(waivers, self._waiver_lines(len(waivers)), strict=True)
            ),
        )

    def _waiver(self, entry: Mapping[str, Any], line: int) -> PathWaiver:
        self._check_keys(entry, _WAIVER_KEYS, f"[[tool.{TABLE}.waivers]]", lambda _: line)
        rules = self._words(entry, "rules", line)
        paths = self._words(entry, "paths", line)
        reason = self._typed(entry, "reason", line, "", "a string")
        if not rules or not paths:
            missing = "rules" if not rules else "paths"
            example = '["HE409"]' if missing == "rules" else '["legacy/**"]'
            raise self._wrong(line, f"a waiver needs {missing}, for example {missing} = {example}")
        try:
            rules = tuple(find_rule(word).id for word in rules)
        except UnknownRule as error:
            raise self._wrong(line, f"a waiver must name rules: {error}") from error
        if not reason.strip():
            raise self._wrong(line, f"a waiver of {', '.join(rules)} has no reason: write why the violation is accepted")
        expires = entry.get("expires")
        if isinstance(expires, str):
            try:
                expires = dt.date.fromisoformat(expires)
            except ValueError as error:
                raise self._wrong(line, f"expires must be a date such as 2026-12-31, not {shorten(repr(expires))}") from error
        if isinstance(expires, dt.datetime):
            expires = expires.date()
        if expires is not None and not isinstance(expires, dt.date):
            raise self._wrong(line, f"expires must be a date such as 2026-12-31, not {_kind(expires)}")
        return PathWaiver(paths=paths, rules=rules, reason=reason.strip(), expires=expires, file=self.file, line=line)

    def _prefixes(self, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        words = self._words(table, key, self._line_of(key))
        for word in words:
            if not rules_named(word):
                raise self._wrong(
                    self._line_of(key), f"{key} names {word!r}: no rule has this name or an id that begins so.{nearest(word)}"
                )
        return words

    def _words(self, table: Mapping[str, Any], key: str, line: int) -> tuple[str, ...]:
        value = table.get(key, [])
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise self._wrong(line, f"{key} must be a list of strings, not {_kind(value)}")
        return tuple(value)

    def _typed(self, table: Mapping[str, Any], key: str, line: int, default: _T, what: str) -> _T:
        """Return a value of the type of ``default``."""
        value = table.get(key, default)
        if not isinstance(value, type(default)):
            raise self._wrong(line, f"{key} must be {what}, not {_kind(value)}")
        return value

    def _check_keys(self, table: Mapping[str, Any], known: Iterable[str], where: str, line_of: Any) -> None:
        names = list(known)
        for key in table:
            if key not in names:
                hint = _nearest(key, names)
                raise self._wrong(line_of(key), f"{where} has no key {key!r}.{hint} Its keys are: {', '.join(names)}.")

    def _line_of(self, key: str) -> int:
        """Return the line in which our table, or a key of it, begins."""
        is_ours = False
        table = 1
        header = re.compile(rf"""^\s*\[+\s*tool\s*\.\s*["']?{TABLE}["']?\s*(\.[^\]]*)?\]""")
        named = re.compile(rf"""^\s*(?:tool\s*\.\s*)?(?:["']?{TABLE}["']?\s*\.\s*)?["']?{re.escape(key)}["']?\s*[=.]""")
        for number, text in enumerate(self.lines, 1):
            if text.lstrip().startswith("["):
                is_ours = header.match(text) is not None
                if is_ours and table == 1:
                    table = number
                if is_ours and re.search(rf"\.\s*{re.escape(key)}\s*\]", text):
                    return number
            elif (is_ours or TABLE in text) and named.match(text):
                return number
        return table

    def _waiver_lines(self, count: int) -> list[int]:
        found = [number for number, text in enumerate(self.lines, 1) if _HEADER.match(text)]
        return found if len(found) == count else [self._line_of("waivers")] * count

    def _wrong(self, line: int, message: str) -> BadSettings:
        return BadSettings(f"{shown_path(self.file)}:{line}: {message}")


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "a table"}
    return f"{names.get(type(value), type(value).__name__)} ({shorten(repr(value))})"


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" Nearest: {', '.join(near)}." if near else ""
