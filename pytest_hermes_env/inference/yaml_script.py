"""Loads scripts from a YAML file, for ``hermes-env mock``. docs/reference/mock-model.md describes the format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_hermes_env.errors import ScriptError
from pytest_hermes_env.inference.offered_tools import nearest_first
from pytest_hermes_env.inference.sampling import Sampled, sampled
from pytest_hermes_env.inference.script import Script, When
from pytest_hermes_env.inference.steps import (
    Step,
    Turn,
    call,
    call_raw,
    empty_choices,
    fail,
    garbage,
    hang,
    say,
    think,
    turn,
    unoffered,
)
from pytest_hermes_env.inference.yaml_node import Node, parse_yaml

if TYPE_CHECKING:
    from os import PathLike

T = TypeVar("T")
SCRIPT_FIELDS = ("name", "when", "when_matches", "turns", "judge")
FILE_FIELDS = (*SCRIPT_FIELDS, "scripts")
STEP_FIELDS = {
    "say": ("say",),
    "think": ("think",),
    "call": ("call", "with", "raw", "unoffered"),
    "fail": ("fail", "message", "times"),
    "hang": ("hang",),
    "garbage": ("garbage",),
    "empty_choices": ("empty_choices",),
    "sampled": ("sampled",),
}
TEXT_STEPS: Mapping[str, Callable[[str], Step]] = {"say": say, "think": think, "garbage": garbage}
SAMPLED_FIELDS = tuple(Sampled.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class ScriptFile:
    """The scripts of one file, and their common answer to judge questions."""

    scripts: tuple[Script, ...]
    judge: Turn | None = None


def load_script(path: str | PathLike[str]) -> ScriptFile:
    """Return the scripts of a YAML file.

    Raises: any deviation from the format → ScriptError with file and line.
    """
    root = parse_yaml(Path(path))
    fields = root.fields("a script file", FILE_FIELDS)
    if "scripts" not in fields:
        return ScriptFile(scripts=(_script(root),))
    for name in fields:
        if name not in {"scripts", "judge"}:
            raise fields[name].error(f"the field {name!r} belongs inside an entry of 'scripts'.")
    entries = fields["scripts"].items("'scripts'")
    if not entries:
        raise fields["scripts"].error("'scripts' needs at least one entry.")
    judge = turn_of(fields["judge"]) if "judge" in fields else None
    return ScriptFile(scripts=tuple(_script(entry) for entry in entries), judge=judge)


def _script(node: Node) -> Script:
    fields = node.fields("a script", SCRIPT_FIELDS)
    if "turns" not in fields and "judge" not in fields:
        raise node.error("a script needs the field 'turns' or 'judge'.", "fix       turns: [{say: done}]")
    turns = [turn_of(item) for item in fields["turns"].items("'turns'")] if "turns" in fields else None
    return _built(
        fields.get("turns", node),
        lambda: Script(
            turns,
            when=_when(fields),
            judge=turn_of(fields["judge"]) if "judge" in fields else None,
            name=fields["name"].text("'name'") if "name" in fields else None,
        ),
    )


def _when(fields: Mapping[str, Node]) -> When:
    if "when" in fields and "when_matches" in fields:
        raise fields["when_matches"].error("a script has either 'when' (a substring) or 'when_matches' (a pattern), not both.")
    if "when" in fields:
        return fields["when"].text("'when'")
    if "when_matches" not in fields:
        return None
    pattern = fields["when_matches"].text("'when_matches'")
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise fields["when_matches"].error(f"'when_matches' is not a valid regular expression: {exc}.") from exc


def turn_of(node: Node) -> Turn:
    """Return the turn that a node describes. Raises: any deviation from the format → ScriptError."""
    if isinstance(node.value, tuple):
        return _built(node, lambda: turn(*[_step(item) for item in node.items("a turn")]))
    return _built(node, lambda: turn(_step(node)))


def _step(node: Node) -> Step:
    if isinstance(node.value, str):
        return say(node.value)
    if not isinstance(node.value, Mapping):
        raise node.error(f"a step must be a mapping such as {{say: done}}; got {node.describe()}.")
    kinds = [name for name in node.value if name in STEP_FIELDS]
    if len(kinds) > 1:
        raise node.error(
            f"a step has exactly one kind; got {' and '.join(map(repr, kinds))}.",
            "fix       make a list of steps: [{think: ...}, {say: ...}]",
        )
    if not kinds:
        name = next(iter(node.value), "")
        at = node.value.get(name, node)
        raise at.error(f"{name!r} is not a step.", f"known     {', '.join(nearest_first(name, STEP_FIELDS))}")
    fields = node.fields(f"a {kinds[0]!r} step", STEP_FIELDS[kinds[0]])
    return _built(fields[kinds[0]], lambda: _make_step(kinds[0], fields))


def _make_step(kind: str, fields: Mapping[str, Node]) -> Step:
    value = fields[kind]
    if kind == "call":
        return _call(fields)
    if kind == "fail":
        times = fields["times"].plain() if "times" in fields else None
        message = fields["message"].text("'message'") if "message" in fields else "scripted failure"
        return fail(value.plain(), message, times=times)  # type: ignore[arg-type]  # `fail` checks both numbers
    if kind == "hang":
        return hang(value.plain())  # type: ignore[arg-type]  # `hang` checks the number
    if kind == "empty_choices":
        if value.value not in (None, True):
            raise value.error(f"'empty_choices' takes no value; got {value.describe()}.")
        return empty_choices()
    if kind == "sampled":
        options = value.fields("'sampled'", SAMPLED_FIELDS)
        return sampled(**{name: option.plain() for name, option in options.items()})  # type: ignore[arg-type]  # `sampled` checks
    return TEXT_STEPS[kind](value.text(f"{kind!r}"))


def _call(fields: Mapping[str, Node]) -> Step:
    tool = fields["call"].text("'call'")
    if "raw" in fields and "with" in fields:
        raise fields["raw"].error("a 'call' step has either 'with' (arguments) or 'raw' (their text), not both.")
    if "raw" in fields:
        made = call_raw(tool, fields["raw"].text("'raw'"))
    else:
        arguments = fields["with"].plain() if "with" in fields else {}
        if not isinstance(arguments, dict):
            raise fields["with"].error(f"'with' must be a mapping of arguments; got {fields['with'].describe()}.")
        made = call(tool, **arguments)
    mark = fields.get("unoffered")
    if mark is not None and not isinstance(mark.value, bool):
        raise mark.error(f"'unoffered' must be true or false; got {mark.describe()}.")
    return unoffered(made) if mark is not None and mark.value else made


def _built(node: Node, build: Callable[[], T]) -> T:
    """Return the result of ``build``; adds the node's line to an error without one."""
    try:
        return build()
    except ScriptError as exc:
        if str(exc).startswith(f"{node.path}:"):
            raise
        raise node.error(str(exc)) from exc
