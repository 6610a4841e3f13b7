"""Cases in a YAML file next to the environment: ``<module>.contract.yaml`` first, then ``contract.yaml``.

The format is described in docs/how-to/cases.md.
Turns are those of scripts (`pytest_hermes_env.inference.yaml_script`). ``${item.path}`` in a text is a part of the item.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_hermes_env.errors import BadCases, ScriptError, shorten
from pytest_hermes_env.inference.steps import Turn
from pytest_hermes_env.inference.yaml_script import Node, parse_yaml, turn_of
from pytest_hermes_env.play.cases.declaration import SANDBOXES, as_order, checked_changes, checked_gap, checked_name
from pytest_hermes_env.play.cases.values import WELL_KNOWN, Case, Cases, ItemCases, Transcript

AROUND = ("judge", "sandbox", "files", "commands", "tools")
ANSWERS = ("equivalent", "worse")
FILE_FIELDS = ("class", "order", "gap", *ANSWERS, "settings", *AROUND, "items")
ITEM_FIELDS = ("index", "item", "where", *WELL_KNOWN, "others", *AROUND)
CASE_FIELDS = ("turns", *AROUND)
COMMAND_FIELDS = ("on", "on_matches", "output", "exit_code", "writes")
TO_FILL_IN = ("", "TODO")
EVERY = "*"
_PART = re.compile(r"\$\{(item(?:\.[^}]*)?)\}")
"""``${HOME}`` and its like are the shell's; one of the item may stand in one of the shell's."""


@dataclass(frozen=True, kw_only=True)
class CaseFile:
    """A file of cases. ``class_name`` is the one class that it is for; empty: any of its module or folder."""

    cases: Cases
    class_name: str = ""


def cases_beside(env_class: type) -> Cases | None:
    """Return the cases in the file next to the class's own; None without one. Raises: BadCases."""
    own = _own_file(env_class)
    return cases_for(own, env_class.__name__) if own is not None else None


def cases_for(own: Path, class_name: str) -> Cases | None:
    """Return the cases of a class of the file ``own``, from the file that is the most its own.

    Raises: the file cannot be read as cases, or it is for a class that ``own`` does not have and no other file has cases → BadCases.
    """
    strange = ""
    for stem in (f"{own.stem}.{class_name}.contract", f"{own.stem}.contract", "contract"):
        path = own.with_name(f"{stem}.yaml")
        if not path.is_file():
            continue
        file = read_cases(path)
        if file.class_name in {"", class_name}:
            return file.cases
        if stem != "contract" and not re.search(
            rf"\b{re.escape(file.class_name)}\b", own.read_text(encoding="utf-8", errors="replace")
        ):
            strange = (
                f"{path} is for the class {file.class_name}, which {own.name} does not have.\n  fix       class: {class_name}"
            )
    if strange:
        raise BadCases(strange)
    return None


def _own_file(env_class: type) -> Path | None:
    try:
        path = inspect.getsourcefile(env_class)
    except TypeError:
        return None
    return Path(path) if path else None


def read_cases(path: Path) -> CaseFile:
    """Return the cases of a file. Raises: anything that is not in the format → BadCases with file and line."""
    try:
        return _file(parse_yaml(path))
    except ScriptError as error:
        raise BadCases(str(error)) from error


def _file(root: Node) -> CaseFile:
    fields = root.fields("a file of cases", FILE_FIELDS)
    if "items" not in fields:
        raise root.error("a file of cases needs the field 'items'.", "fix       items: [{index: 0, gold: [{say: done}]}]")
    entries = fields["items"].items("'items'")
    if not entries:
        raise fields["items"].error("'items' needs at least one entry.")
    items = tuple(_item(number, entry, _around(fields)) for number, entry in enumerate(entries))
    names = {case.name for entry in items for case in entry.cases}
    order = _said(fields["order"], lambda: as_order(fields["order"].plain(), names)) if "order" in fields else {}  # type: ignore[arg-type]
    gap = {"gap": _said(fields["gap"], lambda: checked_gap(fields["gap"].plain()))} if "gap" in fields else {}
    answers = {
        name: _said(fields[name], functools.partial(checked_changes, fields[name].plain()))
        for name in ANSWERS
        if name in fields
    }
    settings = fields["settings"].plain() if "settings" in fields else {}
    if not isinstance(settings, dict):
        raise fields["settings"].error(
            f"'settings' is a mapping of fields of the configuration; got {fields['settings'].describe()}."
        )
    return CaseFile(
        cases=Cases(items=items, path=str(root.path), **gap, **order, **answers, settings=settings),
        class_name=fields["class"].text("'class'") if "class" in fields else "",
    )


def _said(node: Node, check: Callable[[], Any]) -> Any:
    """Return what ``check`` gives; its error gets the node's line."""
    try:
        return check()
    except BadCases as error:
        raise node.error(str(error)) from error


def _around(fields: Mapping[str, Node]) -> dict[str, Node]:
    return {name: fields[name] for name in AROUND if name in fields}


def _item(number: int, node: Node, outer: dict[str, Node]) -> ItemCases:
    fields = node.fields("an entry of 'items'", ITEM_FIELDS)
    chosen = [name for name in ("index", "item", "where") if name in fields]
    if len(chosen) != 1:
        seen = " and ".join(map(repr, chosen)) or "none of them"
        raise node.error(f"an entry of 'items' has one of 'index', 'item' and 'where', which select its items; got {seen}.")
    around = [outer, _around(fields)]
    named = {name: fields[name] for name in WELL_KNOWN if name in fields}
    if "others" in fields:
        others = fields["others"]
        if not isinstance(others.value, Mapping):
            raise others.error(f"'others' must be a mapping of names to cases; got {others.describe()}.")
        for name, value in others.value.items():
            _said(value, functools.partial(checked_name, name))
            if name in ITEM_FIELDS:
                raise value.error(f"{name!r} must be next to 'others', not inside it.")
            named[name] = value
    if not named:
        raise node.error("an entry of 'items' has no case.", f"known     {', '.join((*WELL_KNOWN, 'others'))}")
    which = fields[chosen[0]]
    kind, value, label = _choice(chosen[0], which, number)
    return ItemCases(
        kind=kind,
        which=value,
        label=label,
        cases=tuple(_case(name, value, around) for name, value in named.items()),
        path=str(node.path),
        line=node.line,
        around=lambda item, turns: replace(_surroundings(around, item), turns=turns),
    )


def _choice(kind: str, node: Node, number: int) -> tuple[Any, Any, str]:
    if kind == "item":
        return "item", node.plain(), f"item {number}"
    if kind == "index":
        if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 0:
            raise node.error(f"'index' is the number of a training item, from 0; got {node.describe()}.")
        return "index", node.value, f"training item {node.value}"
    if node.value == EVERY:
        return "where", lambda _: True, "where '*'"
    if not isinstance(node.value, Mapping) or not node.value:
        raise node.error(
            f"'where' is '*' for every item, or what an item must have; got {node.describe()}.",
            "fix       where: {level: easy}",
        )
    wanted = {name: part.plain() for name, part in node.value.items()}
    return "where", lambda item: _has(item, wanted), f"where {shorten(repr(wanted), 60)}"


def _has(item: Any, wanted: Mapping[str, Any]) -> bool:
    missing = object()
    return all(_member(item, name, missing) == value for name, value in wanted.items())


def _member(thing: Any, name: str, default: Any) -> Any:
    if isinstance(thing, Mapping):
        return thing.get(name, default)
    if isinstance(thing, list | tuple) and name.isdecimal():
        return thing[int(name)] if int(name) < len(thing) else default
    return getattr(thing, name, default)


def _case(name: str, node: Node, outer: list[dict[str, Node]]) -> Case:
    unfilled = Case(name=name, of=None, path=str(node.path), line=node.line)
    turns, around = node, outer
    if isinstance(node.value, Mapping):
        fields = node.fields(f"the case {name!r}", CASE_FIELDS)
        if "turns" not in fields:
            raise node.error(f"the case {name!r} needs the field 'turns'.", f"fix       {name}: [{{say: done}}]")
        turns, around = fields["turns"], [*outer, _around(fields)]
    if turns.value is None or turns.value in TO_FILL_IN:
        return unfilled
    listed = turns.items(f"the turns of {name!r}")
    if not listed:
        raise turns.error(f"the case {name!r} has no turn.", f"fix       {name}: [{{say: done}}]")
    _ = [turn_of(one) for one in listed], _surroundings(around, None, is_checked=True)

    def of(item: Any) -> Transcript:
        try:
            said = tuple(turn_of(_filled(one, item)) for one in listed)
            return replace(_surroundings(around, item), turns=said)
        except ScriptError as error:
            raise BadCases(str(error)) from error

    return replace(unfilled, of=of)


def _surroundings(around: list[dict[str, Node]], item: Any, *, is_checked: bool = False) -> Transcript:
    """Return what the levels of the file say around a case: the innermost wins. ``is_checked``: parts of the item stay as text."""
    judge: tuple[Turn, ...] = ()
    sandbox = ""
    files: dict[str, str] = {}
    commands: list[tuple[Any, Any]] = []
    tools: dict[str, Any] = {}
    for level in around:
        filled = level if is_checked else {name: _filled(node, item) for name, node in level.items()}
        if "judge" in filled:
            judge = _judge(filled["judge"])
        if "sandbox" in filled:
            sandbox = filled["sandbox"].text("'sandbox'")
            if sandbox not in SANDBOXES:
                raise filled["sandbox"].error(f"'sandbox' is one of {' and '.join(SANDBOXES)}; got {sandbox!r}.")
        if "files" in filled:
            files |= _files(filled["files"], "'files'")
        if "commands" in filled:
            commands += [_command(one) for one in filled["commands"].items("'commands'")]
        if "tools" in filled:
            node = filled["tools"]
            if not isinstance(node.value, Mapping):
                raise node.error(f"'tools' must be a mapping of tools to answers; got {node.describe()}.")
            tools |= {name: part.plain() for name, part in node.value.items()}
    return Transcript(turns=(), judge=judge, sandbox=sandbox, files=files, commands=tuple(commands), tools=tuple(tools.items()))


def _judge(node: Node) -> tuple[Turn, ...]:
    return tuple(turn_of(one) for one in node.value) if isinstance(node.value, tuple) else (turn_of(node),)


def _files(node: Node, what: str) -> dict[str, str]:
    if not isinstance(node.value, Mapping):
        raise node.error(f"{what} must be a mapping of paths to texts; got {node.describe()}.")
    return {path: content.text(f"the file {path!r}") for path, content in node.value.items()}


def _command(node: Node) -> tuple[Any, Any]:
    from pytest_hermes_env.sandbox.answers import Answer  # noqa: PLC0415 - only where commands are scripted

    fields = node.fields("an entry of 'commands'", COMMAND_FIELDS)
    if ("on" in fields) == ("on_matches" in fields):
        raise node.error("an entry of 'commands' has 'on' (the exact command) or 'on_matches' (a pattern).")
    code = fields["exit_code"].plain() if "exit_code" in fields else 0
    if isinstance(code, bool) or not isinstance(code, int):
        raise fields["exit_code"].error(f"'exit_code' must be a number; got {fields['exit_code'].describe()}.")
    answer = Answer(
        output=fields["output"].text("'output'") if "output" in fields else "",
        exit_code=code,
        writes=_files(fields["writes"], "'writes'") if "writes" in fields else {},
    )
    if "on" in fields:
        return fields["on"].text("'on'"), answer
    try:
        return re.compile(fields["on_matches"].text("'on_matches'")), answer
    except re.error as error:
        raise fields["on_matches"].error(f"'on_matches' is not a regular expression: {error}.") from error


# Parts of the item


def _filled(node: Node, item: Any) -> Node:
    """Return a node in whose texts ``${item}`` and ``${item.part}`` are those of the item. Raises: no such part → ScriptError."""
    value = node.value
    if isinstance(value, Mapping):
        return replace(node, value={name: _filled(part, item) for name, part in value.items()})
    if isinstance(value, tuple):
        return replace(node, value=tuple(_filled(part, item) for part in value))
    if not isinstance(value, str) or "${" not in value:
        return node
    whole = _PART.fullmatch(value)
    if whole is not None:
        return _node(_looked_up(node, whole[1], item), node)
    return replace(node, value=_PART.sub(lambda found: str(_looked_up(node, found[1], item)), value))


def _looked_up(node: Node, text: str, item: Any) -> Any:
    missing = object()
    value = item
    for name in text.split(".")[1:]:
        value = _member(value, name, missing)
        if value is missing:
            has = ", ".join(map(str, item)) if isinstance(item, Mapping) else shorten(repr(item))
            raise node.error(f"the item has no {text.removeprefix('item.')!r}.", f"item      {has}")
    return value


def _node(value: Any, at: Node) -> Node:
    if isinstance(value, Mapping):
        return replace(at, value={str(name): _node(part, at) for name, part in value.items()})
    if isinstance(value, list | tuple):
        return replace(at, value=tuple(_node(part, at) for part in value))
    return replace(at, value=value if value is None or isinstance(value, str | int | float | bool) else str(value))
