"""How Python code declares cases: ``cases([item_cases(index=0, gold=[call(...), say("done")], ...)], gap=0.2)``.

Place in the flow: a test file gives them to ``@env_contract(MyEnv, cases=...)``. Every part may be a function of the item.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pytest_hermes_env.errors import BadCases, HermesEnvError, shorten
from pytest_hermes_env.inference.refusals import nearest_first
from pytest_hermes_env.inference.steps import Turn, as_turn
from pytest_hermes_env.play.cases.values import AUTOMATIC, WELL_KNOWN, Case, Cases, ItemCases, Transcript

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PARTS = ("judge", "sandbox", "files", "commands", "tools")
SANDBOXES = ("fake", "local")


class _Draft:
    """A case before it knows its item's surroundings."""

    def __init__(self, turns: Any, parts: Mapping[str, Any], path: str, line: int) -> None:
        self.turns, self.parts, self.path, self.line = turns, dict(parts), path, line


def case(
    turns: Any,
    *,
    judge: Any = None,
    files: Any = None,
    commands: Any = None,
    tools: Any = None,
    sandbox: str | None = None,
) -> Any:
    """Return one transcript with what is special about it, for `item_cases`.

    ``turns`` is what the model says, as for `Script`, or a function of the item. ``judge`` is what a judge answers, or a list of
    answers; ``files`` path -> text, ``commands`` command -> answer (as for `FakeSandbox.on`), ``tools`` name -> answer.
    ``sandbox`` is "fake" or "local" where the case can be played in that one only.
    """
    path, line = _caller()
    return _Draft(
        turns,
        {"judge": judge, "files": files, "commands": commands, "tools": tools, "sandbox": _known_sandbox(sandbox)},
        path,
        line,
    )


def item_cases(
    *,
    index: int | None = None,
    where: Callable[[Any], bool] | str | None = None,
    judge: Any = None,
    files: Any = None,
    commands: Any = None,
    tools: Any = None,
    sandbox: str | None = None,
    others: Mapping[str, Any] | None = None,
    **transcripts: Any,
) -> ItemCases:
    """Return the cases of one item: ``item=`` itself, the ``index`` of a training item, or ``where``, a predicate or "*".

    Each further argument is a case: ``gold``, ``near_miss``, ``nothing``, ``hack`` or a name of your own, which may also stand in ``others``; a list
    of turns, what `case` returns, a function of the item that gives either, or None where it is still to be written. ``judge``, ``files``,
    ``commands``, ``tools`` and ``sandbox`` hold for each of them.

    Raises: BadCases.
    """
    __tracebackhide__ = True
    path, line = _caller()
    has_item = "item" in transcripts
    item = transcripts.pop("item", None)
    if sum([has_item, index is not None, where is not None]) != 1:
        raise BadCases("item_cases takes one of item=, index= and where=: they select the items of these cases")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int) or index < 0):
        raise BadCases(f"item_cases takes the index of a training item, from 0; got {shorten(repr(index))}")
    if where is not None and where != "*" and not callable(where):
        raise BadCases(f'item_cases takes where="*" or a function of the item; got {shorten(repr(where))}')
    if not isinstance(others, Mapping | None):
        raise BadCases(f"others is a mapping of names to cases; got {shorten(repr(others))}")
    outer = {"judge": judge, "files": files, "commands": commands, "tools": tools, "sandbox": _known_sandbox(sandbox)}
    made = []
    for name, value in {**transcripts, **(others or {})}.items():
        checked_name(name)
        made.append(_case(name, value, outer, path, line))
    if not made:
        raise BadCases(f"item_cases has no case: give at least gold=[...]. Known: {', '.join(WELL_KNOWN)}, and your own names")
    chosen: tuple[Literal["item", "index", "where"], Any, str]
    if where is not None:
        chosen = ("where", (lambda _: True) if where == "*" else where, f"where={_shown(where)}")
    elif index is not None:
        chosen = ("index", index, f"training item {index}")
    else:
        chosen = ("item", item, "")
    return ItemCases(
        kind=chosen[0],
        which=chosen[1],
        label=chosen[2],
        cases=tuple(made),
        path=path,
        line=line,
        around=lambda given, turns: _transcript(turns, {}, outer, given),
    )


def cases(
    items: Iterable[ItemCases],
    *,
    order: Sequence[Any] | None = None,
    gap: float = 0.1,
    sandbox: str | None = None,
    equivalent: Sequence[str] = (),
    worse: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    **around: Any,
) -> Cases:
    """Return all cases of an environment. ``judge``, ``files``, ``commands``, ``tools`` and ``sandbox`` hold for each of them.

    ``order`` are names of cases from the highest reward down; names in a list of their own are not compared with each other. Each
    is above all later ones by at least ``gap``. Without an order, gold is above all others by ``gap``, and near_miss is not below
    nothing. ``equivalent`` and ``worse`` answer the questions of a contract run: names of changes to gold that are as good, or not.
    ``settings`` replace fields of the configuration while the contract is played.

    Raises: BadCases.
    """
    __tracebackhide__ = True
    path, _ = _caller()
    entries = tuple(items)
    for entry in entries:
        if not isinstance(entry, ItemCases):
            raise BadCases(f"cases takes a list of item_cases(...); got {shorten(repr(entry))}")
    if not entries:
        raise BadCases("cases takes at least one item_cases(...)")
    if unknown := around.keys() - set(_PARTS):
        raise BadCases(f"cases takes no {', '.join(sorted(unknown))}: known are order, gap, {', '.join(_PARTS)}")
    wide = {**dict.fromkeys(_PARTS), **around, "sandbox": _known_sandbox(sandbox)}
    entries = tuple(_within(entry, wide) for entry in entries) if any(wide.values()) else entries
    names = {case.name for entry in entries for case in entry.cases}
    numbered = tuple(entry if entry.label else replace(entry, label=f"item {number}") for number, entry in enumerate(entries))
    return Cases(
        items=numbered,
        gap=checked_gap(gap),
        path=path,
        equivalent=checked_changes(equivalent),
        worse=checked_changes(worse),
        settings=dict(settings or {}),
        **as_order(order, names),
    )


def as_cases(value: Any) -> Cases:
    """Return what a user gave as `Cases`: those, or a list of `ItemCases`. Raises: BadCases."""
    __tracebackhide__ = True
    if isinstance(value, Cases):
        return value
    if isinstance(value, ItemCases):
        return cases([value])
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return cases(value)
    raise BadCases(f"cases are what cases([...]) returns, or a list of item_cases(...); got {shorten(repr(value))}")


def as_order(order: Sequence[Any] | None, declared: Iterable[str]) -> dict[str, Any]:
    """Return the fields of `Cases` that say the order. Raises: BadCases."""
    if order is None:
        return {}
    if isinstance(order, str) or not isinstance(order, Sequence):
        raise BadCases(f"the order is a list of names of cases, from the highest reward down; got {shorten(repr(order))}")
    parts = tuple((part,) if isinstance(part, str) else tuple(part) for part in order)
    known = list(dict.fromkeys([*declared, *WELL_KNOWN, *AUTOMATIC]))
    seen: set[str] = set()
    for name in (name for part in parts for name in part):
        if name not in known:
            raise BadCases(
                f"the order names {name!r}, which is not a case.\n  known     {', '.join(nearest_first(str(name), known))}"
            )
        if name in seen:
            raise BadCases(f"the order names {name!r} a second time.")
        seen.add(name)
    if len(parts) < 2:  # noqa: PLR2004 - one part compares nothing
        raise BadCases("the order needs at least two parts: a single one compares nothing. Example: [gold, near_miss, nothing]")
    return {"order": parts, "is_strict": True}


def checked_gap(gap: Any) -> float:
    """Return the gap. Raises: BadCases when it is not a number from 0 up."""
    if isinstance(gap, bool) or not isinstance(gap, int | float) or not math.isfinite(gap) or gap < 0:
        raise BadCases(f"the gap between rewards must be a number of at least 0, such as 0.2; got {shorten(repr(gap))}")
    return float(gap)


def checked_changes(names: Any) -> tuple[str, ...]:
    """Return the names of changes to gold. Raises: BadCases when they are not a list of texts."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) and name for name in names):
        raise BadCases(f"changes are a list of the names that the questions of a run show; got {shorten(repr(names))}")
    return tuple(names)


def checked_name(name: str) -> str:
    """Return the name of a case. Raises: BadCases when it is not a valid one."""
    if not _NAME.fullmatch(name):
        raise BadCases(f"{name!r} cannot name a case: use lower-case letters, digits and _, such as wrong_place")
    return name


def _case(name: str, value: Any, outer: Mapping[str, Any], path: str, line: int) -> Case:
    __tracebackhide__ = True
    if isinstance(value, _Draft):
        turns, inner, line = value.turns, value.parts, value.line
    else:
        turns, inner = value, dict.fromkeys(_PARTS)
    if turns is None:
        return Case(name=name, of=None, path=path, line=line)
    if not callable(turns):
        try:
            _turns(turns)
        except HermesEnvError as error:
            raise BadCases(f"the case {name!r} is not a transcript: {error}") from error
    return Case(name=name, of=lambda item: _transcript(turns, inner, outer, item), path=path, line=line)


def _within(entry: ItemCases, wide: Mapping[str, Any]) -> ItemCases:
    """Return cases in which ``wide`` holds wherever they say nothing else."""

    def beneath(transcript: Transcript, item: Any) -> Transcript:
        outer = _transcript([], {}, wide, item)
        return replace(
            transcript,
            judge=transcript.judge or outer.judge,
            sandbox=transcript.sandbox or outer.sandbox,
            files={**outer.files, **transcript.files},
            commands=tuple({**dict(outer.commands), **dict(transcript.commands)}.items()),
            tools=tuple({**dict(outer.tools), **dict(transcript.tools)}.items()),
        )

    def of(case: Case) -> Callable[[Any], Transcript] | None:
        made = case.of
        return made and (lambda item: beneath(made(item), item))

    around = entry.around
    return replace(
        entry,
        cases=tuple(replace(case, of=of(case)) for case in entry.cases),
        around=around and (lambda item, turns: beneath(around(item, turns), item)),
    )


def _transcript(turns: Any, inner: Mapping[str, Any], outer: Mapping[str, Any], item: Any) -> Transcript:
    turns = turns(item) if callable(turns) else turns
    if isinstance(turns, _Draft):
        turns, inner = turns.turns, {**inner, **{name: value for name, value in turns.parts.items() if value is not None}}

    def part(name: str) -> tuple[Any, Any]:
        return tuple(value(item) if callable(value) else value for value in (outer.get(name), inner.get(name)))  # type: ignore[return-value]

    judge = next((value for value in reversed(part("judge")) if value is not None), ())
    files, commands, tools = ({**(wide or {}), **(own or {})} for wide, own in (part(name) for name in _PARTS[2:]))
    return Transcript(
        turns=_turns(turns),
        judge=tuple(as_turn(answer) for answer in (judge if isinstance(judge, list | tuple) else [judge])),
        sandbox=next((value for value in reversed(part("sandbox")) if value), ""),
        files=files,
        commands=tuple(commands.items()),
        tools=tuple(tools.items()),
    )


def _known_sandbox(name: str | None) -> str | None:
    if name is not None and name not in SANDBOXES:
        raise BadCases(f"sandbox is one of {' and '.join(SANDBOXES)}; got {shorten(repr(name))}")
    return name


def _turns(value: Any) -> tuple[Turn, ...]:
    given = value if isinstance(value, list | tuple) else [value]
    return tuple(as_turn(one) for one in given)


def _shown(where: Any) -> str:
    return repr(where) if isinstance(where, str) else getattr(where, "__qualname__", "a function")


def _caller() -> tuple[str, int]:
    """Return file and line of the code outside of this module that is declaring."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
