"""Starts of a program like those that a verifier was seen to make: other data, names of files and arguments.

Place in the flow: `witnesses` compares gold with a wrong program for them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_hermes_env.play.inputs.data import NUMBER, Making, Table, in_turn

Start = Mapping[str, Any]
_OF_ERRORS = re.compile(r"\berror|exit (?:code|status)|does not exist|doesn't exist|\bmissing\b|not found", re.IGNORECASE)
_CODE = (".py", ".sh", ".js", ".cjs", ".mjs", ".awk", ".sed", ".sql", ".toml", ".ini", ".cfg")


def starts_like(making: Making, starts: Sequence[Start]) -> Iterator[tuple[Start, str]]:
    """Yield the starts of a program, and others like them, each with what is other in words; of each start in turn."""
    yield from ((start, "") for start in starts)
    for made in in_turn([_like(making, start) for start in starts]):
        if made[0] not in starts:
            yield made


def _like(making: Making, start: Start) -> Iterator[tuple[Start, str]]:
    texts: list[tuple[str, str]] = [("", start["stdin"])] if start["stdin"] else []
    texts += [(path, text) for path, text in start["files"].items() if not path.endswith(_CODE)]
    ways = [_texts(making, start, path, text) for path, text in texts if "\0" not in text]
    yield from in_turn([*ways, _names(making, start), _words(making, start)])


def _texts(making: Making, start: Start, path: str, text: str) -> Iterator[tuple[Start, str]]:
    for made in making.texts_like(text):
        if path:
            yield {**start, "files": {**start["files"], path: made}}, f"{posixpath.basename(path)} with {made}"
        else:
            yield {**start, "stdin": made}, made


def _names(making: Making, start: Start) -> Iterator[tuple[Start, str]]:
    """Yield starts with other names of files: blanks, dots, capital letters, a name that is taken, files below, empty ones."""
    own = [path for path in start["files"] if not path.endswith(_CODE)]
    is_named = any(posixpath.basename(path) in word for path in own for word in [*start["words"][1:], making.code])
    for path in own if not is_named else ():
        place, name = posixpath.split(path)
        stem, dot = posixpath.splitext(name)
        taken = [
            f"{stem}{other}"
            for other in sorted({posixpath.splitext(one)[1] for one in own} | {*re.findall(r"\.\w{2,5}\b", making.code)})
        ]
        news = [f"{stem} x{dot}", f".{name}", f"{stem}.x{dot}", f"{stem}{dot.upper()}", stem, f"sub/{name}", f"{name}~"]
        for new in news:
            files = {other: text for other, text in start["files"].items() if other != path}
            yield (
                {**start, "files": {**files, posixpath.join(place, new): start["files"][path]}},
                f"a file {new!r} in place of {name!r}",
            )
        for new in [one for one in taken if one != name]:
            yield (
                {**start, "files": {**start["files"], posixpath.join(place, new): "other\n"}},
                f"a file {new!r} beside {name!r}",
            )
        yield {**start, "files": {**start["files"], path: ""}}, f"an empty file {name!r}"
    for place in start["directories"]:
        if place != start["cwd"] and not is_named and own:
            name = f"{posixpath.splitext(posixpath.basename(own[0]))[0]} dir{posixpath.splitext(own[0])[1]}"
            yield {**start, "directories": [*start["directories"], posixpath.join(place, name)]}, f"a directory {name!r}"


def _words(making: Making, start: Start) -> Iterator[tuple[Start, str]]:
    """Yield starts with other arguments: data is other data, and what is there may be missing where the prompt speaks of errors."""
    words = [*start["words"]]
    first = next(
        (place + 1 for place, word in enumerate(words) if word == start["inline"] or _is_same(word, start["path"])),
        len(words),
    )
    for place in range(first, len(words)):
        word = words[place]
        path = posixpath.join(start["cwd"], word)
        if any(path == one or one.startswith(f"{path.rstrip('/')}/") for one in [*start["files"], *start["directories"]]):
            news = [f"{word.rstrip('/')}-missing"] if _OF_ERRORS.search(making.prompt) else []
        elif word.startswith("-") and not NUMBER.fullmatch(word):
            continue
        else:
            news = [*making.texts_like(word)]
            others = [
                part for text in [start["stdin"], *start["files"].values()] for row in Table.of(text).rows or () for part in row
            ]
            news += making.chance.sample(others, min(len(others), 4)) if not NUMBER.fullmatch(word) and " " not in word else []
        for new in dict.fromkeys(one.rstrip("\n") for one in news):
            if "\n" in new or (NUMBER.fullmatch(word) and not NUMBER.fullmatch(new)):
                continue
            yield (
                {**start, "words": [*words[:place], new, *words[place + 1 :]]},
                " ".join([*words[first:place], new, *words[place + 1 :]]),
            )


def _is_same(word: str, path: str) -> bool:
    return bool(path) and posixpath.basename(word) == posixpath.basename(path)
