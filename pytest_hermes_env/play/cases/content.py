"""Changes of a text's content in its own form: what a person would call wrong, from a small change to nothing left.

Place in the flow: `neighbours` plays gold with each change. A text is read as what it is (JSON, a table, code, fields in tags, a short answer,
lines), and each kind has changes of its own. A field counts where it differs from the same field of other items' gold: the rest is form.
"""

from __future__ import annotations

import configparser
import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from pytest_hermes_env.play.cases.code_changes import is_code, is_program, of_code, only_shown, stubbed
from pytest_hermes_env.play.cases.cron import more_times
from pytest_hermes_env.play.cases.edits import Undone, damaged, undone
from pytest_hermes_env.play.cases.exchanges import MOST_PROBED, exchanged
from pytest_hermes_env.play.cases.forms import MOST_FIELDS, TURNED, Form, at_end, form_of, is_in
from pytest_hermes_env.play.cases.one_value import (
    LONG,
    OPPOSITES,
    OTHER,
    PLAUSIBLE,
    SWITCHED_OFF,
    Change,
    is_number,
    is_zero,
    of_value,
    spread,
    wrong_value,
    zero_like,
)

_OTHER_CODE = re.compile(
    r"(?m)\A#!|^\s*(?:function\s+\w+\s*\(|\w+\s*\(\)\s*\{|#include\b|(?:const|let|var)\s+\w+\s*=|(?:static|int|void|char|double)\s+\*?\w+\s*\(|sub\s+\w+\s*\{|my\s+[$@%])"
)
"""Code of other languages than Python."""
_CRON = re.compile(r"\bcron(?:tab|job)?s?\b", re.IGNORECASE)
_QUERY = re.compile(r"(?is)(?:select|with)\b[^;]*\bfrom\b[^;]*\Z")
_QUOTED = re.compile(r"'([^'\n%]{2,40})'")
_COALESCE = re.compile(r"(?i)\b(?:coalesce|ifnull)\(((?:[^(),]|\([^()]*\))+),\s*('[^']*'|[\d.]+)\s*\)")
"""What stands for NULL in a query."""
_OF_NONE = r"\b(?:none|no|nothing|missing|without|absent|empty|null|never)\b[^.;\n]*(?<![\w.]){}(?!\w)"
"""Where a prompt says what stands for a value that is not there."""
_NOTHINGS = frozenset(["", "[]", "{}", "null", "None", "false", "False", "0"])
_REASONS = re.compile(r"(?i)reason|think|thought|plan|work|scratch|analy|explan|note|step|rationale")
_FINAL = re.compile(r"(?i)answer|solution|result|final|output|response|verdict")
"""Tags in which an answer is prepared, and given."""
_NAMES = frozenset({"id", "_id", "uid", "uuid", "idx", "index", "item_id", "slug", "task_id"})
"""Keys under which an item names itself."""
MANY_STEPS = 16
REASONS = "I look at what is asked and at what is given, write down what follows from it, and compare that with what I had before. It fits, so I go on."
"""What nobody could take for an answer."""
_OF_ALL_TESTS = re.compile(
    r"\bassert\b|\bpass(?:es)? (?:all |each )?(?:of )?(?:these|the following|this)\b|\bfollowing (?:tests|cases|checks|asserts)\b",
    re.IGNORECASE,
)
"""Where a prompt shows the tests themselves."""
_OF_THE_REST = re.compile(
    r"\b(?:leave|keep|preserve|retain)s?\b[^.\n]*\b(?:other|rest|else|everything|remaining|unchanged|untouched|as (?:it|they) (?:is|are|was|were))\b"
    r"|\bnothing else\b|\b(?:un(?:changed|touched)|stays? the same)\b|\b(?:don't|do not|must not|without) (?:\w+ ){0,2}(?:touch|chang|alter|remov|delet)\w*",
    re.IGNORECASE,
)
"""Where a prompt says that what it does not speak of stays."""
MOST_UNDONE = 4
"""Changes of one kind that are undone, each by itself."""
ONE_OF_THREE = "one of three answers"
OF_A_PLAN = 6
"""Numbers of a plan, which is none where all are zero, whatever else it may be."""
MOST_OTHERS = 12
"""Values of other items among the candidates."""


def _read_ini(text: str) -> dict[str, Any]:
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


_READERS: dict[str, Callable[[str], Any]] = {
    ".toml": tomllib.loads,
    ".yaml": yaml.safe_load,
    ".yml": yaml.safe_load,
    ".ini": _read_ini,
    ".cfg": _read_ini,
}
"""Files whose sections and keys have no order, by their ends."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known around a text: the same text of ``others``, the ``prompt``, the labels of the item, by their keys, and what was there ``before``.

    ``is_one_of_many``: the reward does not look at the item's own solution, so that others may be as good.
    """

    others: tuple[str, ...] = ()
    before: str = ""
    prompt: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    is_one_of_many: bool = False


def changes(text: str, known: Known) -> Iterator[Change]:
    """Yield the changes of a text, each other text once, the smallest first."""
    seen = {_plain(text)}
    for change in _changes(text, known):
        if _plain(change.text) not in seen:
            seen.add(_plain(change.text))
            yield change


def kinds(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield what tells the content of a text from that of another: its form, and each of its fields, with whether that is a number."""
    form = Form(kind="code", fields={"": text}, put=lambda _, value: value or "") if is_code(text) else form_of(text)
    yield from ((form.kind, name, is_number(value)) for name, value in form.fields.items())


def parts_of(text: str) -> list[str]:
    """Return the sections of a text, each with its heading; its paragraphs where it has none."""
    parts = re.split(r"(?m)^(?=#{1,6}[ \t])", text) if re.search(r"(?m)^#{1,6}[ \t]", text) else re.split(r"\n\s*\n", text)
    return [f"{part.strip()}\n" for part in parts if part.strip()]


def with_reasons(text: str, *, is_last_line: bool = False) -> str:
    """Return `with_a_sentence`, after reasons of many lines."""
    sentence = with_a_sentence(text, is_last_line=is_last_line)
    return "\n\n".join(f"Step {n}: {REASONS}" for n in range(1, MANY_STEPS)) + f"\n\n{sentence}" if sentence else ""


def with_a_sentence(text: str, *, is_last_line: bool = False) -> str:
    """Return a text whose answer stands behind a marker, or in the last line, after a sentence; empty for one that may have to be the whole text."""
    form = form_of(text)
    is_line = is_last_line and "\n" not in text.strip()
    is_marked = form.kind == "answer" and not text.startswith("```")
    return f"I have looked at it once more.\n\n{text}" if is_marked or is_line else ""


MAKEFILES = ("akefile", ".mk")
"""How names of files for make end."""


def rewritten(name: str, text: str, *, is_new: bool = False) -> str:
    """Return a file of data as another program writes it: the same data; empty for one of another kind. A new one may have any order.

    A Makefile gets recipes that make does not print.
    """
    if name.endswith(MAKEFILES):
        return re.sub(r"(?m)(?<!\\\n)^\t(?=[^@\s#-])", "\t@", text)
    form = form_of(text)
    if is_new and (read := _READERS.get(posixpath.splitext(name)[1])):
        head, *sections = re.split(r"(?m)^(?=\[)", text if text.endswith("\n") else f"{text}\n")
        try:
            value = read(text)
            made = (
                yaml.safe_dump(value)
                if read is yaml.safe_load
                else "".join([head, *(f"{one.rstrip()}\n\n" for one in sections[::-1])])
            )
            return made if isinstance(value, dict) and len(value) > 1 and made != text and read(made) == value else ""
        except (ValueError, configparser.Error, yaml.YAMLError):
            return ""
    if name.endswith(".json") and form.kind == "json":
        return json.dumps(json.loads(text), sort_keys=True, indent=None if "\n" in text.strip() else 4)
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if name.endswith(".csv") and form.kind == "table" else ""


def in_another_order(text: str) -> str:
    """Return a list, a table, or short lines from the last to the first, and a query whose rows come so; empty for a text whose order is part of it."""
    if (query := text.strip().rstrip(";")) and _QUERY.match(query):
        return f"SELECT * FROM (\n{query}\n) ORDER BY 1 DESC;\n"  # noqa: S608 - it is run in a sandbox
    form, lines = form_of(text), [line for line in text.splitlines() if line.strip()]
    if form.kind == "json":
        value = json.loads(text)
        return json.dumps(value[::-1], ensure_ascii=False) if isinstance(value, list) and value[::-1] != value else ""
    if form.kind == "table":
        return next((part.text for part in form.parts if part.name == TURNED), "")
    is_list = form.kind in {"text", "lines"} and len(lines) > 1 and not any(re.search(r"[.:;,{]\s*$", line) for line in lines)
    return "\n".join([*lines[::-1], ""]) if is_list and lines[::-1] != lines else ""


def wrong(text: str, known: Known) -> str:
    """Return the text with each of its values wrong, in its own form."""
    if is_code(text):
        return stubbed(text, "None") or OTHER
    form = form_of(text)
    fields = _telling(form, known) or form.fields
    return form.all_of({name: wrong_value(value) for name, value in fields.items()})


def _changes(text: str, known: Known) -> Iterator[Change]:
    if is_code(text):
        yield from of_code(text)
        yield from _printing(text, known)
        if shown := only_shown(text, known.prompt):
            is_told = _OF_ALL_TESTS.search(known.prompt) is not None  # they are all, and the author knows it
            yield Change(name="right only for values that the prompt shows", text=shown, is_sure=not is_told)
    else:
        is_other = _OTHER_CODE.search(text) is not None
        yield from () if is_other else _undone(text, known)
        # where all code is left, what stands beside it may do no harm
        yield from (one for one in _of_fields(text, known) if not (is_other and text.strip() in one.text))
    if _QUERY.match(text.strip().rstrip(";")):
        for found in [*_QUOTED.finditer(text)][:MOST_UNDONE]:
            other = f"{text[: found.start(1)]}{OTHER.split()[0]}{text[found.end(1) :]}"
            yield Change(name="another value in quotes", at=found[1], text=other, is_sure=is_in(found[1], known.prompt))
        for found in [*_COALESCE.finditer(text)][:MOST_UNDONE]:
            is_told = re.search(_OF_NONE.format(re.escape(found[2].strip("'"))), known.prompt, re.IGNORECASE) is not None
            yield Change(
                name=f"NULL instead of {found[2]}",
                text=f"{text[: found.start()]}{found[1]}{text[found.end() :]}",
                is_sure=is_told,
            )
    for name, more in more_times(text, known.before) if _CRON.search(known.prompt) else ():
        yield Change(name=name, text=more)
    kind = form_of(text).kind
    if broken := text.strip()[:-1] if kind == "json" else _unreadable(text) if kind == "table" else "":
        yield Change(name="it cannot be read", text=broken)
    if kind == "json":
        yield Change(name="a list of it", text=f"[{text.strip()}]", is_sure=False)
        yield Change(name="a number in its place", text="1")
        is_more = any(value.strip() not in _NOTHINGS for value in form_of(text).fields.values())
        yield Change(name="without all that is in it", text="[]" if text.strip().startswith("[") else "{}", is_sure=is_more)
    for other in known.others[:1]:
        yield Change(name="that of another item", text=other)
    yield Change(name="nothing in it", text="")


def _unreadable(table: str) -> str:
    """Return a table with a line end inside of a value, which no reader of tables takes; nothing where each value has one letter."""
    head, _, rest = table.partition("\n")
    broken = re.sub(r"(?<=\w)(?=\w)", "\r", rest, count=1)
    return f"{head}\n{broken}" if broken != rest else ""


def _undone(text: str, known: Known) -> Iterator[Change]:
    """Yield a file with a change of gold's undone: worse for sure where the prompt or a label names what was changed."""
    labels = {value for _, value in known.labels}
    kinds: dict[str, list[Undone]] = {}
    for one in undone(text, known.before) if known.before else ():
        if any(word.isalnum() for word in "".join(one.about)):
            kinds.setdefault(one.name, []).append(one)
    for found in kinds.values():
        for one in spread(found, MOST_UNDONE):
            is_asked = any(is_in(word, known.prompt) or word in labels for word in one.about)
            yield Change(name=one.name, at=f"in {one.at}", text=one.text, is_sure=is_asked)
    for one in damaged(text, known.before) if known.before else ():
        yield Change(name=one.name, at=f"in {one.at}", text=one.text, is_sure=_OF_THE_REST.search(known.prompt) is not None)


def _printing(text: str, known: Known) -> Iterator[Change]:
    """Yield programs that print nothing, and one of several results that the item holds under the same key."""
    if not is_program(text):
        return
    yield Change(name="it prints nothing", text="pass\n")
    under: dict[str, list[str]] = {}
    for key, value in known.labels:
        under.setdefault(key, []).append(value)
    alone = {values[0].strip() for values in under.values() if len(values) == 1}  # one may be all that the program has to print
    for values in [values for values in under.values() if len({*map(str.strip, values)}) > 1][-MOST_PROBED:]:
        for place, value in [pair for pair in (("first", values[0]), ("last", values[-1])) if pair[1].strip() not in alone]:
            yield Change(name=f"it only prints the {place} of several results", text=f"print({value!r})\n")


def _of_fields(text: str, known: Known) -> Iterator[Change]:
    form = form_of(text)
    others = [form_of(other).fields for other in known.others]
    telling = _telling(form, known)
    probed = [*sorted(telling, key=lambda name: not _is_label(name, telling[name], known))][:MOST_PROBED]
    yield from (replace(part, is_sure=part.is_sure and _is_work(part, form, known, telling)) for part in form.parts)
    for name in _various(form, telling):
        value = telling[name]
        is_prose = len(value.split()) > LONG  # a reason, which nobody may grade
        is_asked = not is_prose and (name.startswith("[") or not is_in(value, known.prompt)) and not _names_item(value, known)
        sure = len(telling) == 1 or is_asked or _is_label(name, value, known)
        candidates = list(dict.fromkeys(one[name] for one in others if name in one and _plain(one[name]) != _plain(value)))
        at = f"in {name}" if name else ""
        is_beside = form.kind == "tags" and _prepares(name, form)
        sure = sure and not is_beside
        if not (is_beside or (is_prose and len(form.fields) > 1)):
            nested = replace(known, others=tuple(one[name] for one in others if name in one))
            yield from (replace(one, is_sure=sure and one.is_sure) for one in _inside(name, value, form, nested))
        is_exact = is_in(value, known.prompt)
        is_off = form.kind == "lines" and value.casefold() in SWITCHED_OFF
        for change in of_value(value, candidates[:MOST_OTHERS], is_exact=is_exact, is_latex="\\boxed" in text):
            may_be_right = known.is_one_of_many and change.name in PLAUSIBLE
            may_be_right |= is_off and change.text.casefold() not in {*OPPOSITES, "1"}
            yield replace(change, at=at, text=form.put(name, change.text), is_sure=sure and change.is_sure and not may_be_right)
        if len(form.fields) > 1:
            yield Change(name="nothing", at=at, text=form.put(name, None), is_sure=sure and not is_off)
        if name in probed and not is_beside and form.kind in {"tags", "answer", "text"}:
            first, last = (form.put(name, other) for other in [*candidates, wrong_value(value), OTHER][:2])
            yield Change(name=ONE_OF_THREE, at=at, text=f"{first}\n{text}\n{last}")
    yield from exchanged(form, telling, known.prompt, is_one_of_many=known.is_one_of_many)
    if len(telling) > 1:
        for name in probed:
            rest = {other: wrong_value(value) for other, value in telling.items() if other != name}
            yield Change(name="every value wrong but one", at=f"in {name}", text=form.all_of(rest))
    numbers = {name: value for name, value in telling.items() if is_number(value) and not is_in(value, known.prompt)}
    if len({value for value in numbers.values() if not is_zero(value)}) > 1:
        is_plan = len(numbers) >= OF_A_PLAN and len({*numbers.values()}) > 3  # noqa: PLR2004 - no choice of a few
        text = form.all_of({name: zero_like(value) for name, value in numbers.items()})
        yield Change(name="every number zero", text=text, is_sure=is_plan or not known.is_one_of_many)
    if telling:
        yield Change(name="every value wrong", text=form.all_of({name: wrong_value(value) for name, value in telling.items()}))


def _prepares(name: str, form: Form) -> bool:
    """Whether tags stand beside an answer that they prepare."""
    return _REASONS.search(name) is not None and any(_FINAL.search(other) for other in form.fields if other != name)


def _inside(name: str, value: str, form: Form, known: Known) -> Iterator[Change]:
    """Yield the changes of data that stands in tags, or behind a marker, in its own form."""
    inner = form_of(value).kind if form.kind in {"tags", "answer"} else ""
    if inner == "json" or (inner in {"table", "lines", "records"} and "\n" in value):
        for change in _of_fields(value, known):
            at = " ".join(filter(None, (change.at, f"in {name}" if name else "")))
            yield replace(change, at=at, text=form.put(name, change.text))


def _various(form: Form, telling: Mapping[str, str]) -> list[str]:
    """Return names of fields to change: of records one of each name first, that with the most signs other than letters, which are read wrongly most often."""
    names = [*telling]
    if form.kind == "records":
        names.sort(key=lambda name: len(re.findall(r"[^\w\s]", telling[name])), reverse=True)
        of_each = {name.partition("[")[0]: name for name in reversed(names)}
        names = [*of_each.values(), *spread([name for name in names if name not in of_each.values()], MOST_FIELDS)]
        return names[:MOST_FIELDS]
    return spread(names, MOST_FIELDS)


def _is_work(part: Change, form: Form, known: Known, telling: Mapping[str, str]) -> bool:
    """Whether what a part leaves out or adds is asked for: a key or a column that the prompt names or a label has, lines that not every item has.

    Of a list, that something in it tells this item from others.
    """
    if part.at and form.kind in {"json", "table"} and not part.at.startswith("in "):
        if part.name.startswith("without") and form.fields.get(part.at, OTHER).strip() in _NOTHINGS:
            return False  # what is not there says the same
        names = {part.at} if part.name.startswith("without") else {one for one in form.names if one != part.at}
        labels = {key for key, _ in known.labels}
        return any(name in labels or is_in(name, known.prompt) for name in names)
    if form.kind in {"json", "table"}:
        place = part.at.removeprefix("in ")
        return any(re.sub(r"\[(\d+)\]", r".\1", name).startswith(place) for name in telling)
    left_out = {*form.lines} - {line.strip() for line in part.text.splitlines()}
    each: list[set[str]] = [{line.strip() for line in other.splitlines()} for other in known.others]
    return bool(each) and bool(left_out - each[0].intersection(*each))


def _telling(form: Form, known: Known) -> dict[str, str]:
    """Return the fields that differ from those of other items, without which all that the prompt does not hold, without those any."""
    others = [form_of(other).fields for other in known.others]
    if others:
        return {name: value for name, value in form.fields.items() if not all(_has(one, name, value) for one in others)}
    return {name: value for name, value in form.fields.items() if not is_in(value, known.prompt)} or dict(form.fields)


def _has(fields: Mapping[str, str], name: str, value: str) -> bool:
    """Whether fields have a value under that name; a name that only this item has, by a key above it, is known by its last key."""
    last = at_end(name)
    if name in fields or "[" in name.removesuffix(last):
        return fields.get(name) == value
    return any(at_end(other) == last and one == value for other, one in fields.items())


def _is_label(name: str, value: str, known: Known) -> bool:
    return (re.split(r"[.\[\]]", name.strip("]"))[-1], value) in known.labels


def _names_item(value: str, known: Known) -> bool:
    """Whether a value has the item's own name in it, which nobody was told: any other would do."""
    names = [text for key, text in known.labels if key.lower() in _NAMES and text.strip()]
    return any(is_in(name, value) for name in names)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
