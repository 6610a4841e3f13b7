"""Two values of a text exchanged: of two keys, of two rows, of the ends of a range, of two places of a list.

Place in the flow: `content` yields them among the changes of a text's fields.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_hermes_env.play.cases.forms import Form, at_end, is_in
from pytest_hermes_env.play.cases.one_value import Change, is_number

_LAST_OF = re.compile(r"\d+$|(?<![A-Za-z])[A-Za-z]$")
"""What two keys of one kind differ in: a number, or a letter."""
_PLACED = re.compile(
    r"(?i)(?<![a-z])(?:coords?|coordinates?|points?|positions?|lat_?l(?:on|ng)|l(?:on|ng)_?lat|ranges?|intervals?|spans?|bounds|b?box|size|shape)(?:\[\d*\])*$"
)
"""Keys of lists whose places mean something."""
_ENDS = (
    ("low", "high"),
    ("lo", "hi"),
    ("lower", "upper"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("start", "end"),
    ("begin", "end"),
    ("start", "stop"),
    ("from", "to"),
    ("since", "until"),
)
_MEASURED = re.compile(r"-?\d[\d.,:T/ Z+-]*(?: ?[ap]m)?", re.IGNORECASE)
"""What a range calls its ends, of which one is never the other, and what they are."""
MOST_COMPARED, MOST_PROBED = 24, 2
"""Fields that are compared, and those that are exchanged, or right alone."""


def exchanged(form: Form, telling: Mapping[str, str], prompt: str, *, is_one_of_many: bool) -> Iterator[Change]:
    """Yield the fields of a text, of which those that are ``telling`` differ from other items', with two values exchanged."""
    for one, other in _pairs(form, telling):
        made = form.all_of({one: telling[other], other: telling[one]})
        is_pair = form.kind != "table" and _LAST_OF.sub("", one) == _LAST_OF.sub("", other)  # x1 and x2 may be either
        is_asked = all(not is_in(telling[name], prompt) for name in (one, other))
        is_computed = form.kind == "table" and is_number(telling[one]) and is_number(telling[other])
        is_told = is_computed or not is_one_of_many or _are_ends(one, other, form, telling)
        is_sure = is_asked and not is_pair and is_told
        is_open = is_one_of_many and not is_sure
        name = "two values exchanged, where others may be as good," if is_open else "two values exchanged"
        yield Change(name=name, at=f"in {one} and {other}", text=made, is_sure=is_sure)
    for one, other in _named_rows(form, prompt, telling):
        made = form.all_of({one: form.fields[other], other: form.fields[one]})
        yield Change(name="two values exchanged", at=f"in {one} and {other}", text=made, is_sure=not is_one_of_many)
    for one, other in _places(form, telling):
        made = form.all_of({one: telling[other], other: telling[one]})
        is_sure = _PLACED.search(one.rpartition("[")[0]) is not None and not is_one_of_many
        yield Change(name="two values exchanged", at=f"in {one} and {other}", text=made, is_sure=is_sure)


def _pairs(form: Form, telling: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names of two fields of one kind whose values differ: of two keys, or of two rows that differ elsewhere, too."""
    found: dict[str, tuple[str, str]] = {}
    range_: list[tuple[str, str]] = []
    for one, other in itertools.combinations([*telling][:MOST_COMPARED], 2):
        if telling[one] == telling[other] or is_number(telling[one]) != is_number(telling[other]):
            continue
        holders, ends = [_holder(name, form) for name in (one, other)], [_end(name, form) for name in (one, other)]
        if _are_ends(one, other, form, telling):
            range_ = range_ or [(one, other)]
        elif form.kind == "table" or "[" in one + other:
            if ends[0] != ends[1] or not ends[0] or holders[0] == holders[1] or not _differ(form, holders, ends[0]):
                continue
            found.setdefault(ends[0], (one, other))
        elif holders[0] == holders[1] and form.kind in {"json", "lines", "tags"}:
            found.setdefault(holders[0], (one, other))
    yield from [*range_, *[*found.values()][:MOST_PROBED]]


def _named_rows(form: Form, prompt: str, telling: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the fields that name two objects of a list of JSON, in words of the prompt, where the objects tell this item from others."""
    columns: dict[tuple[str, str], list[str]] = {}
    for name in form.fields if form.kind == "json" else ():
        if (holder := _holder(name, form)).endswith("]") and name not in telling:
            columns.setdefault((holder.rpartition("[")[0], _end(name, form)), []).append(name)
    for names in columns.values():
        values = [form.fields[name] for name in names]
        is_named = len({*values}) == len(values) > 1 and all(is_in(one, prompt) and not is_number(one) for one in values)
        if is_named and all(any(one.startswith(f"{_holder(name, form)}.") for one in telling) for name in names[:2]):
            yield names[0], names[1]


def _places(form: Form, telling: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names of two numbers of one list of JSON whose places mean something: lists like it have as many, in no order, or are called so."""
    alike: dict[str, dict[str, list[str]]] = {}
    for name, value in form.fields.items():
        if form.kind == "json" and name.endswith("]") and re.fullmatch(r"-?\d+(\.\d+)?", value):
            holder = name.rpartition("[")[0]
            alike.setdefault(re.sub(r"\[\d+\]", "[]", holder), {}).setdefault(holder, []).append(name)
    for name, lists in alike.items():
        numbers = [[float(form.fields[name]) for name in names] for names in lists.values()]
        is_ordered = any(all(one == sorted(one, reverse=down) for one in numbers) for down in (False, True))
        if len(numbers) > 1 and len({*map(len, numbers)}) == 1 and (not is_ordered or _PLACED.search(name)):
            pairs = (pair for names in lists.values() for pair in itertools.combinations(names, 2))
            pairs = (pair for pair in pairs if {*pair} <= {*telling} and telling[pair[0]] != telling[pair[1]])
            yield from itertools.islice(pairs, 1)


def _holder(name: str, form: Form) -> str:
    return name.rpartition(", ")[2] if form.kind == "table" else name.rpartition(".")[0] if form.kind == "json" else ""


def _end(name: str, form: Form) -> str:
    return name.rpartition(", ")[0] if form.kind == "table" else name.rpartition(".")[2] if "." in name else ""


def _are_ends(one: str, other: str, form: Form, telling: Mapping[str, str]) -> bool:
    """Tell whether two fields of one object, or of one row, are called as the ends of a range, and are numbers or times: of an edge either may be first."""
    if not all(_MEASURED.fullmatch(telling[name]) for name in (one, other)):
        return False
    names = {(_end(name, form) or at_end(name)).casefold() for name in (one, other)}
    return _holder(one, form) == _holder(other, form) and any(names == {*ends} for ends in _ENDS)


def _differ(form: Form, holders: Sequence[str], but: str) -> bool:
    """Tell whether two rows differ in anything but a field."""
    rows = [
        {_end(name, form): value for name, value in form.fields.items() if _holder(name, form) == holder} for holder in holders
    ]
    return any(rows[0].get(end) != rows[1].get(end) for end in {*rows[0], *rows[1]} - {but})
