"""Reads a YAML document into nodes with line numbers, for error messages. Independent of the script format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes_env_shared.bounded_yaml import BeyondBounds, check_bounds
from pytest_hermes_env.errors import ScriptError, shorten
from pytest_hermes_env.inference.offered_tools import nearest_first

if TYPE_CHECKING:
    from pathlib import Path

    import yaml


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
        raise ScriptError(f"{path}:{line}: invalid YAML: {shorten(exc.problem or exc)}.") from exc
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
