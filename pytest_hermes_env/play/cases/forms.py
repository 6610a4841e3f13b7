"""A text as the fields of its kind: JSON, tags, a table, an answer behind a marker, lines with names, or one text.

Place in the flow: `content` changes the fields, and leaves the form.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.play.cases.one_value import Change, fewer, wrong_value

MOST_FIELDS = 10
TURNED = "with its rows in another order"
"""Keys and columns that are left out one by one."""
_TAG = re.compile(r"<(?!think)(\w[\w-]*)>\s*(.*?)\s*</\1>", re.DOTALL)
_FORMS = (
    re.compile(r"\\boxed\{\s*()([^{}]*?)\s*\}"),
    re.compile(r"```()\w*\n(.*?)\n?```", re.DOTALL),
    re.compile(r"####\s*()(\S.*?)\s*$", re.MULTILINE),
    re.compile(r"(?im)^\W*((?:the )?(?:final )?(?:answer|result|solution|output|verdict)(?: is)?)\s*[:=]?\s*(\S.*?)[\s.]*$"),
)
_FIELD = re.compile(
    r"""(?m)^[ \t]*[-*]?[ \t]*"?([A-Za-z_][\w./;-]{0,40})"?(?:[ \t]*[:=][ \t]*|[ \t]+(?=["'{]|[^\n]*;[ \t]*$))["'{]?((?<=\{)[^\n]*?(?=\}[,;]?[ \t]*$)|[^\s"'{][^\n]*?)["'}]?[,;]?[ \t]*$"""
)
"""A name and its value, in quotes or braces or bare, of one line."""
_FIGURES = re.compile(r"(?m)^[^\s#][^\n]*\d[^\n]*$")
MOST_OTHER_LINES = 4
"""Of so many lines one has to have a field, in a text that is read by them."""
_LINE = re.compile(r"(?m)^[ \t]*[-*]?[ \t]*([A-Za-z][\w /.-]{0,40}?)[ \t]*[:=][ \t]*(\S.*?)[ \t]*$")


@dataclass(frozen=True, kw_only=True)
class Form:
    """A text as fields. ``put`` returns it with another value for one of them; None leaves the field out."""

    kind: str
    fields: Mapping[str, str]
    put: Callable[[str, str | None], str]
    parts: tuple[Change, ...] = ()
    """Texts with parts left out or added."""
    names: tuple[str, ...] = ()
    """Keys of an object, and columns of a table."""
    lines: tuple[str, ...] = ()
    all_of: Callable[[Mapping[str, str]], str] = field(default=lambda _: "")


def form_of(text: str) -> Form:
    """Return a text as the fields of its kind."""
    return (
        _as_json(text)
        or _as_tags(text)
        or _as_table(text)
        or _as_answer(text)
        or _as_lines(text)
        or _as_records(text)
        or _spans(text, "text", [("", 0, len(text))])
    )


def _spans(text: str, kind: str, spans: Sequence[tuple[str, int, int]]) -> Form:
    named = {name: (start, end) for name, start, end in spans}

    def put_all(values: Mapping[str, str | None]) -> str:
        made, last = [], 0
        for name, (start, end) in sorted(named.items(), key=lambda one: one[1]):
            made += [text[last:start], values.get(name, text[start:end]) or ""] if name in values else [text[last:end]]
            last = end
        return "".join([*made, text[last:]])

    lines = [line for line in text.splitlines() if line.strip()]
    parts = (
        tuple(Change(name=name, text=fewer) for name, fewer in fewer(lines))
        if kind in {"text", "lines"} and len(lines) > 1
        else ()
    )
    return Form(
        kind=kind,
        fields={name: text[start:end].strip() for name, (start, end) in named.items()},
        put=lambda name, value: put_all({name: value}),
        parts=parts,
        lines=tuple(line.strip() for line in lines),
        all_of=put_all,
    )


def _as_tags(text: str) -> Form | None:
    found = {match[1]: match for match in _TAG.finditer(text)}
    return _spans(text, "tags", [(name, match.start(2), match.end(2)) for name, match in found.items()]) if found else None


def _as_answer(text: str) -> Form | None:
    for pattern in _FORMS:
        if found := list(pattern.finditer(text)):
            return _spans(text, "answer", [("", found[-1].start(2), found[-1].end(2))])
    return None


def _as_lines(text: str) -> Form | None:
    found = {match[1]: match for match in _LINE.finditer(text)}
    rows = [line for line in text.splitlines() if line.strip()]
    if not found or len(found) < len(rows) - 1:
        return None
    return _spans(text, "lines", [(name, match.start(2), match.end(2)) for name, match in found.items()])


def _as_records(text: str) -> Form | None:
    """Return the values of lines with names that come again (entries of a bibliography, events, cards, translations), or lines of figures (subtitles)."""
    found, rows = [*_FIELD.finditer(text)], [line for line in text.splitlines() if line.strip()]
    seen: Counter[str] = Counter()
    spans = []
    for match in found:
        seen[match[1]] += 1
        spans.append((f"{match[1]}[{seen[match[1]] - 1}]", match.start(2), match.end(2)))
    if any(count > 1 for count in seen.values()) and len(found) * MOST_OTHER_LINES > len(rows):
        return _spans(text, "records", spans)
    figures = [match for match in _FIGURES.finditer(text) if sum(map(str.isalpha, match[0])) * 2 < len(match[0])]
    named = [(f"line {text.count(chr(10), 0, match.start()) + 1}", *match.span()) for match in figures]
    return _spans(text, "records", named) if len(named) > 1 and len(named) * MOST_OTHER_LINES >= len(rows) else None


def _as_json(text: str) -> Form | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list) or not value:
        return None
    leaves = dict(_leaves(value, ""))

    def dumped(made: Any) -> str:
        return json.dumps(made, ensure_ascii=False, indent=2 if "\n" in text.strip() else None)

    def put_all(values: Mapping[str, str | None]) -> str:
        made = copy.deepcopy(value)
        for name, new in values.items():
            holder = made
            *way, last = leaves[name][0]
            for step in way:
                holder = holder[step]
            if new is None:
                holder[last] = None
            else:
                holder[last] = _typed(new, holder[last])
        return dumped(made)

    return Form(
        kind="json",
        fields={name: one if isinstance(one, str) else json.dumps(one) for name, (_, one) in leaves.items()},
        put=lambda name, new: put_all({name: new}),
        parts=tuple(Change(name=name, at=at, text=dumped(made)) for name, at, made in _pruned(value)),
        names=tuple(map(str, value)) if isinstance(value, dict) else (),
        all_of=put_all,
    )


def _leaves(value: Any, name: str, way: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[tuple[Any, ...], Any]]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}" if name else str(key), (*way, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _leaves(part, f"{name}[{number}]", (*way, number))
    elif way:
        yield name, (way, value)


def _typed(text: str, before: Any) -> Any:
    """Return a text as the type of the value that it replaces, where it can be one."""
    if isinstance(before, str):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if not isinstance(value, dict | list) else text


def _pruned(value: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield JSON of which lists lack their last element or have one too many, and objects all but one key."""
    lists = [way for way, part in _containers(value) if isinstance(part, list) and part]
    for way in lists[:3]:
        at = ".".join(map(str, way))
        at = f"in {at}" if at else ""
        for name, edit in (
            ("without the last element", lambda part: part[:-1]),
            ("the first element only", lambda part: part[:1]),
            ("an element too many", lambda part: [*part, _wrong_json(part[-1])]),
            ("an element twice", lambda part: [*part, part[0]]),
            ("the first element as often as it has elements", lambda part: part[:1] * len(part)),
        ):
            if (made := _edited(value, way, edit)) != value:  # of one element, the first is all
                yield name, at, made
    if isinstance(value, dict) and len(value) > 1:
        for key in list(value)[:MOST_FIELDS]:
            yield "without the key", key, {name: part for name, part in value.items() if name != key}
            yield "nothing but the key", key, {key: value[key]}


def _containers(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list):
        yield way, value
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _containers(part, (*way, key))


def _edited(value: Any, way: tuple[Any, ...], edit: Callable[[Any], Any]) -> Any:
    if not way:
        return edit(value)
    made = copy.copy(value)
    made[way[0]] = _edited(value[way[0]], way[1:], edit)
    return made


def _wrong_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _wrong_json(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_wrong_json(part) for part in value]
    return _typed(wrong_value(value if isinstance(value, str) else json.dumps(value)), value)


def _as_table(text: str) -> Form | None:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    delimiter = next((one for one in (",", "\t", "|", ";") if lines and lines[0].count(one)), "")
    if delimiter == "," and any(", " in line for line in lines):
        return None  # sentences
    if len(lines) < 2 or not delimiter or len({line.count(delimiter) for line in lines}) != 1:  # noqa: PLR2004 - a head and a row
        return None
    rows = list(csv.reader(lines, delimiter=delimiter))
    if len({len(row) for row in rows}) != 1:
        return None
    cells = {
        f"{rows[0][column].strip()}, row {row}": (row, column) for row in range(1, len(rows)) for column in range(len(rows[0]))
    }

    def written(made: Sequence[Sequence[str]]) -> str:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(made)
        return out.getvalue()

    def put_all(values: Mapping[str, str | None]) -> str:
        made = [list(row) for row in rows]
        for name, value in values.items():
            made[cells[name][0]][cells[name][1]] = value or ""
        return written(made)

    extra = [wrong_value(cell) for cell in rows[-1]]
    parts = [
        Change(name="without the last row", text=written(rows[:-1])),
        Change(name="with a row too many", text=written([*rows, extra])),
        Change(name="with a row twice", text=written([*rows, rows[1]])),
        Change(name="its first row as often as it has rows", text=written([rows[0], *[rows[1]] * (len(rows) - 1)])),
        Change(name=TURNED, text=written([rows[0], *rows[:0:-1]]), is_sure=False),
        Change(name="the first half of the rows", text=written(rows[: 1 + len(rows[1:]) // 2])),
        Change(name="its head only", text=written(rows[:1])),
    ]
    for at, name in enumerate(rows[0][:MOST_FIELDS] if len(rows[0]) > 1 else ()):
        if not any(row[at].strip() for row in rows):  # before a line's first bar, and behind its last
            continue
        parts.append(Change(name="nothing but the column", at=name, text=written([[row[at]] for row in rows])))
        parts.append(Change(name="without the column", at=name, text=written([[*row[:at], *row[at + 1 :]] for row in rows])))
    return Form(
        kind="table",
        fields={name: rows[row][column] for name, (row, column) in cells.items()},
        put=lambda name, value: put_all({name: value}),
        parts=tuple(parts),
        names=tuple(rows[0]),
        all_of=put_all,
    )


def at_end(name: str) -> str:
    """Return the last key of a name, with its places in lists."""
    return name[name.rfind(".") + 1 :]


def is_in(value: str, prompt: str) -> bool:
    """Whether a prompt holds a value as words of its own."""
    return re.search(rf"(?<!\w){re.escape(value.strip())}(?!\w)", prompt) is not None if value.strip() else False
