"""The values of a record as JSON, and back: what crosses from the process that plays to the one that judges.

Plain JSON stays as it is. Records are objects with their class's name under ``$``, fields with their default left out; tuples, sets,
bytes, numbers that JSON lacks and mappings with other keys are marked likewise. What has no form of its own becomes `Opaque`.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import math
from types import ModuleType
from typing import Any, SupportsFloat

from pytest_hermes_env.errors import shorten

LONGEST_TEXT = 2_000
"""Characters that are kept of the text of an object without a form of its own."""


@dataclasses.dataclass(frozen=True)
class Opaque:
    """Stands for an object of the environment: the name of its type, and its ``repr``, which is also this one's."""

    type: str
    text: str

    def __repr__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True, repr=False)
class OpaqueNumber(Opaque):
    """An object that can be converted to a float, such as a scalar of numpy."""

    number: float = math.nan

    def __float__(self) -> float:
        return self.number


def type_name(value: object) -> str:
    """Return the name of a value's type, that of the object which an `Opaque` stands for."""
    return value.type if isinstance(value, Opaque) else type(value).__name__


class Codec:
    """Encodes the dataclasses and enumerations that some modules define, and decodes them by name."""

    def __init__(self, *modules: ModuleType) -> None:
        found: list[Any] = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
        records: list[Any] = [cls for cls in found if dataclasses.is_dataclass(cls)]
        self._records: dict[str, Any] = {cls.__name__: cls for cls in (Opaque, OpaqueNumber, *records)}
        self._enums = {cls.__name__: cls for cls in found if issubclass(cls, enum.Enum)}

    def encode(self, value: Any) -> Any:
        """Return ``value`` as plain JSON."""
        kind: Any = type(value)
        named = str(kind.__name__)
        if value is None or kind in {str, int, bool}:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        if kind is list:
            return [self.encode(item) for item in value]
        if kind is dict:
            if all(type(key) is str for key in value) and "$" not in value:
                return {key: self.encode(item) for key, item in value.items()}
            return {"$": "dict", "items": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if kind in {tuple, set, frozenset}:
            return {"$": named, "items": [self.encode(item) for item in value]}
        if kind is bytes:
            return {"$": "bytes", "base64": base64.b64encode(value).decode()}
        if named in self._enums:
            return {"$": named, "name": value.name}
        if self._records.get(named) is kind:
            return {"$": named} | {
                name: [self.encode(item) for item in held] if is_tuple else self.encode(held)
                for name, default, is_tuple in _fields(kind)
                if (held := getattr(value, name)) is not default and not (type(held) is type(default) and held == default)
            }
        return self.encode(_opaque(value))

    def decode(self, value: Any) -> Any:
        """Return what `encode` was given, from plain JSON. Raises: an unknown record → KeyError; a wrong shape → TypeError."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("$")
        if kind is None:
            return {key: self.decode(item) for key, item in value.items()}
        if kind == "float":
            return float(value["value"])
        if kind == "dict":
            return {self.decode(key): self.decode(item) for key, item in value["items"]}
        if kind in _COLLECTIONS:
            return _COLLECTIONS[kind](self.decode(item) for item in value["items"])
        if kind == "bytes":
            return base64.b64decode(value["base64"])
        if kind in self._enums:
            return self._enums[kind][value["name"]]
        cls: Any = self._records[kind]
        tuples = {name for name, _, is_tuple in _fields(cls) if is_tuple}
        given = {name: self.decode(item) for name, item in value.items() if name != "$"}
        return cls(**{name: tuple(item) if name in tuples else item for name, item in given.items()})


_COLLECTIONS: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}


@functools.cache
def _fields(cls: type[Any]) -> tuple[tuple[str, Any, bool], ...]:
    """Return name, default, and whether the type is a tuple, of each field that the constructor takes."""
    made = []
    for item in dataclasses.fields(cls):
        if item.init:
            make: Any = item.default_factory
            default = item.default if make is dataclasses.MISSING else make()
            made.append((item.name, default, str(item.type).startswith("tuple[")))
    return tuple(made)


def _opaque(value: Any) -> Any:
    """Return what stands for a value without a form of its own: the plain one that it derives from, if any."""
    plain: Any
    for plain in (float, int, str, list, dict):
        if isinstance(value, plain) and not isinstance(value, enum.Enum):
            return plain(value)
    name = type(value).__name__
    try:
        text = shorten(repr(value), LONGEST_TEXT)
    except Exception as error:  # noqa: BLE001 - the environment's objects may raise anything
        text = f"<{name}, whose repr raised {type(error).__name__}>"
    if isinstance(value, SupportsFloat):
        try:
            return OpaqueNumber(type=name, text=text, number=float(value))
        except Exception:  # noqa: BLE001 - as above; then it is not a number
            return Opaque(type=name, text=text)
    return Opaque(type=name, text=text)
