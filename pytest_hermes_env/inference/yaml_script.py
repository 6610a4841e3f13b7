"""Loads scripts from a YAML file, for ``hermes-env mock``. docs/reference/mock-model.md describes the format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hermes_env_shared.bounded_yaml import BeyondBounds, check_bounds
from pytest_hermes_env.errors import ScriptError, shorten
from pytest_hermes_env.inference import steps
from pytest_hermes_env.inference.refusals import nearest_first
from pytest_hermes_env.inference.script import Script, When
from pytest_hermes_env.inference.steps import Sampled, Step, Turn
from pytest_hermes_env.missing_files import no_file

if TYPE_CHECKING:
    from os import PathLike

    import yaml

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
TEXT_STEPS: Mapping[str, Callable[[str], Step]] = {"say": steps.say, "think": steps.think, "garbage": steps.garbage}
SAMPLED_FIELDS = tuple(Sampled.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class Node:
    """A value of the document. ``line`` counts from 1; a mapping holds Nodes by name, a list holds Nodes."""

    value: str | int | float | bool | Mapping[str, Node] | tuple[Node, ...] | None
    path: Path
    line: int

    def error(self, what: str, *more: str) -> ScriptError:
        """Return an error at this line: ``what`` is wrong, then ``more`` lines."""
        return ScriptError("\n  ".join([f"{self.path}:{self.line}: {what}", *more]))

    def fields(self, what: str, known: Sequence[str]) -> Mapping[str, Node]:
        """Return the fields of a mapping, which may only have the known ones.

        Raises: not a mapping, or an unknown field → ScriptError.
        """
        if not isinstance(self.value, Mapping):
            raise self.error(f"{what} must be a mapping; got {self.describe()}.", f"known     {', '.join(known)}")
        for name, field in self.value.items():
            if name not in known:
                listing = ", ".join(nearest_first(name, known))
                raise field.error(f"{what} has no field {name!r}.", f"known     {listing}")
        return self.value

    def items(self, what: str) -> tuple[Node, ...]:
        """Return the items of a list.

        Raises: not a list → ScriptError.
        """
        if not isinstance(self.value, tuple):
            raise self.error(f"{what} must be a list; got {self.describe()}.")
        return self.value

    def text(self, what: str) -> str:
        """Return the value, which must be a string.

        Raises: not a string → ScriptError.
        """
        if not isinstance(self.value, str):
            raise self.error(f"{what} must be a string; got {self.describe()}.", "fix       put the value in quotes")
        return self.value

    def plain(self) -> object:
        """Return the value as plain Python data, without line numbers."""
        if isinstance(self.value, Mapping):
            return {name: node.plain() for name, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value

    def describe(self) -> str:
        """Return the type and the value, for an error message."""
        kind = {"NoneType": "nothing", "tuple": "a list", "dict": "a mapping"}.get(type(self.value).__name__)
        if self.value is None:
            return "nothing"
        return f"{kind or type(self.value).__name__} {shorten(repr(self.plain()))}"


def parse_yaml(path: Path) -> Node:
    """Return the root node of the file.

    Raises: unreadable, not YAML, or a duplicate field → ScriptError.
    """
    import yaml  # noqa: PLC0415 -- takes 10 ms

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        if isinstance(exc, FileNotFoundError):
            raise ScriptError(no_file(str(path))) from exc
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise ScriptError(f"the script {path} cannot be read: {reason}.") from exc
    try:
        check_bounds(text)
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                return Node(value=None, path=path, line=1)
            return _node(loader, root, path)
        finally:
            loader.dispose()
    except BeyondBounds as exc:
        raise ScriptError(f"{path}:{exc.line}: {exc}: no script or file of cases needs that.") from exc
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        line = mark.line + 1 if mark is not None else 1
        written = next(iter(text.splitlines()[line - 1 : line]), "").strip()
        hint = 'fix       put the text behind the first colon into quotes: "..."'
        about = [f"line      {written}", hint] if written.count(": ") > 1 else []
        raise ScriptError("\n  ".join([f"{path}:{line}: invalid YAML: {shorten(exc.problem or exc)}.", *about])) from exc
    except yaml.YAMLError as exc:
        raise ScriptError(f"{path}: invalid YAML: {shorten(exc)}.") from exc


def _node(loader: yaml.SafeLoader, node: yaml.Node, path: Path) -> Node:
    import yaml  # noqa: PLC0415

    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        fields: dict[str, Node] = {}
        for key, value in node.value:
            name, at = str(key.value), key.start_mark.line + 1
            if name in fields:
                raise ScriptError(f"{path}:{at}: duplicate field {name!r}.")
            # The line of a field is that of its name; the value may begin lines later.
            fields[name] = Node(value=_node(loader, value, path).value, path=path, line=at)
        return Node(value=fields, path=path, line=line)
    if isinstance(node, yaml.SequenceNode):
        return Node(value=tuple(_node(loader, item, path) for item in node.value), path=path, line=line)
    try:
        value = loader.construct_object(node, deep=True)
    except (ValueError, LookupError, TypeError, AttributeError) as exc:  # PyYAML's own, for `2026-13-45` or `!!int x`
        raise ScriptError(
            f"{path}:{line}: {shorten(node.value)} does not fit its type {shorten(node.tag)}: {shorten(exc)}."
        ) from exc
    if value is not None and not isinstance(value, str | int | float | bool):
        # Dates and the like: a script has no use for them, so the author means a string.
        value = str(node.value)
    return Node(value=value, path=path, line=line)


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
    if isinstance(root.value, Mapping) and "items" in root.value:
        raise root.error(
            "this is a file of cases, not a script.", "fix       a script has turns: [{say: done}]; hermes-env docs mock-model"
        )
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
        return _built(node, lambda: steps.turn(*[_step(item) for item in node.items("a turn")]))
    return _built(node, lambda: steps.turn(_step(node)))


def _step(node: Node) -> Step:
    if isinstance(node.value, str):
        return steps.say(node.value)
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
        return steps.fail(value.plain(), message, times=times)  # type: ignore[arg-type]  # `fail` checks both numbers
    if kind == "hang":
        return steps.hang(value.plain())  # type: ignore[arg-type]  # `hang` checks the number
    if kind == "empty_choices":
        if value.value not in (None, True):
            raise value.error(f"'empty_choices' takes no value; got {value.describe()}.")
        return steps.empty_choices()
    if kind == "sampled":
        options = value.fields("'sampled'", SAMPLED_FIELDS)
        return steps.sampled(**{name: option.plain() for name, option in options.items()})  # type: ignore[arg-type]  # `sampled` checks
    return TEXT_STEPS[kind](value.text(f"{kind!r}"))


def _call(fields: Mapping[str, Node]) -> Step:
    tool = fields["call"].text("'call'")
    if "raw" in fields and "with" in fields:
        raise fields["raw"].error("a 'call' step has either 'with' (arguments) or 'raw' (their text), not both.")
    if "raw" in fields:
        made = steps.call_raw(tool, fields["raw"].text("'raw'"))
    else:
        arguments = fields["with"].plain() if "with" in fields else {}
        if not isinstance(arguments, dict):
            raise fields["with"].error(f"'with' must be a mapping of arguments; got {fields['with'].describe()}.")
        made = steps.call(tool, **arguments)
    mark = fields.get("unoffered")
    if mark is not None and not isinstance(mark.value, bool):
        raise mark.error(f"'unoffered' must be true or false; got {mark.describe()}.")
    return steps.unoffered(made) if mark is not None and mark.value else made


def _built(node: Node, build: Callable[[], T]) -> T:
    """Return the result of ``build``; adds the node's line to an error without one."""
    try:
        return build()
    except ScriptError as exc:
        if str(exc).startswith(f"{node.path}:"):
            raise
        raise node.error(str(exc)) from exc
