"""Strategies for values that are valid under a JSON schema, for the subset of JSON schema that tools use.

Optional and additional properties are omitted where possible, to keep examples readable. The ``jsonschema`` package filters out
values that violate unsupported keywords (``not``, ``dependencies``, the bounds of merged schemas).
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from hypothesis import strategies as st

Schema: TypeAlias = "Mapping[str, Any] | bool"

EXTRA_LENGTH = 12
"""How many characters more than the minimum a text may have."""
EXTRA_ITEMS = 3
MAX_OPTIONAL = 3

_KEYWORDS_OF_TYPES = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}

UNUSUAL = "ÄéßŁıſ½²“”—漢字א🙂\u0301\u200b\u2028\x00"
"""Letters that grow in upper case, digits that are not decimal, wide and combining characters, a line separator, NUL."""

ALPHABET = string.printable + UNUSUAL


def texts(min_size: int = 0, max_size: int = 20) -> st.SearchStrategy[str]:
    """Return a strategy for texts of ``min_size`` to ``max_size`` characters that reveal mistakes; the simplest consist of ``0``.

    Hypothesis' default, all of Unicode, takes a second or more to start and writes files next to the tests.
    """
    return st.text(ALPHABET, min_size=min_size, max_size=max_size)


ANYTHING: st.SearchStrategy[Any] = st.one_of(texts(max_size=EXTRA_LENGTH), st.integers(), st.booleans(), st.none())


def validator_of(schema: Schema) -> Any:
    """Return a ``jsonschema`` validator. Raises: not a JSON schema → jsonschema.SchemaError."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - takes 100 ms
    from jsonschema.validators import validator_for  # noqa: PLC0415

    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema)
    return kind(schema)


def json_values(schema: Schema) -> st.SearchStrategy[Any]:
    """Return a strategy for values that are valid under ``schema``."""
    return _Converter(schema).values(schema).filter(validator_of(schema).is_valid)


class _Converter:
    """Converts one schema to a strategy; caches the strategies of references, which may be recursive."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._referred: dict[str, st.SearchStrategy[Any]] = {}

    def values(self, schema: Schema) -> st.SearchStrategy[Any]:
        """Return values of ``schema``; some may violate unsupported keywords, which are filtered later."""
        if not isinstance(schema, Mapping):
            return ANYTHING if schema else st.nothing()
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(list(schema["enum"]))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                rest = {key: value for key, value in schema.items() if key != word}
                return st.one_of([self.values(_merged(rest, option)) for option in schema[word]])
        if "allOf" in schema:
            joined: Schema = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                joined = _merged(joined, part)
            return self.values(joined)
        return st.one_of([self._of_type(kind, schema) for kind in _types(schema)])

    def _reference(self, pointer: str) -> st.SearchStrategy[Any]:
        """Return values of the schema at a pointer into the root, such as ``#/$defs/point``."""
        if pointer not in self._referred:
            found: Any = self._root
            for part in pointer.removeprefix("#").split("/")[1:]:
                found = found[part.replace("~1", "/").replace("~0", "~")]
            self._referred[pointer] = st.deferred(lambda: self.values(found))
        return self._referred[pointer]

    def _of_type(self, kind: str, schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
        made: dict[str, Callable[[Mapping[str, Any]], st.SearchStrategy[Any]]] = {
            "object": self._objects,
            "array": self._arrays,
            "string": _strings,
            "integer": _integers,
            "number": _numbers,
            "boolean": lambda _schema: st.booleans(),
            "null": lambda _schema: st.none(),
        }
        return made[kind](schema) if kind in made else ANYTHING

    def _objects(self, schema: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        properties = schema.get("properties") or {}
        required = list(schema.get("required") or ())
        optional = {name: inner for name, inner in properties.items() if name not in required and inner is not False}
        made = st.fixed_dictionaries({name: self.values(properties.get(name, True)) for name in required})
        if optional:  # omitting all is a single choice
            drawn = {name: self.values(inner) for name, inner in optional.items()}
            chosen = st.lists(st.sampled_from(sorted(drawn)), max_size=MAX_OPTIONAL, unique=True)
            more = chosen.flatmap(lambda names: st.fixed_dictionaries({name: drawn[name] for name in names}))
            made = st.builds(lambda held, extra: {**held, **extra}, made, more)
        missing = schema.get("minProperties", 0) - len(required)
        others = schema.get("additionalProperties", True)
        if missing > 0 and others is not False:
            others = st.dictionaries(texts(min_size=1, max_size=EXTRA_LENGTH), self.values(others), min_size=missing)
            return st.builds(lambda extra, own: {**extra, **own}, others, made)
        return made

    def _arrays(self, schema: Mapping[str, Any]) -> st.SearchStrategy[list[Any]]:
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", least + EXTRA_ITEMS)
        heads = [self.values(inner) for inner in schema.get("prefixItems") or ()][:most]
        unique_by = json.dumps if schema.get("uniqueItems") else None
        if schema.get("items") is False:
            return st.tuples(*heads).map(list)
        tail = st.lists(
            self.values(schema.get("items", True)),
            min_size=max(0, least - len(heads)),
            max_size=most - len(heads),
            unique_by=unique_by,
        )
        return st.builds(lambda head, rest: [*head, *rest], st.tuples(*heads), tail) if heads else tail


def _types(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema names, or that its keywords imply, or all."""
    named = schema.get("type")
    if isinstance(named, str):
        return [named]
    if named:
        return list(named)
    return [kind for kind, words in _KEYWORDS_OF_TYPES.items() if any(word in schema for word in words)] or ["anything"]


def _merged(left: Mapping[str, Any] | bool, right: Mapping[str, Any] | bool) -> Schema:
    """Return a simple merge of two schemas; the filter removes the rest."""
    if not isinstance(left, Mapping) or not isinstance(right, Mapping):
        if left is False or right is False:
            return False
        return right if left is True else left
    joined = {**left, **right}
    if "properties" in left and "properties" in right:
        joined["properties"] = {**left["properties"], **right["properties"]}
    if "required" in left and "required" in right:
        joined["required"] = list(dict.fromkeys([*left["required"], *right["required"]]))
    return joined


def _strings(schema: Mapping[str, Any]) -> st.SearchStrategy[str]:
    least = schema.get("minLength", 0)
    if "pattern" in schema:
        return st.from_regex(schema["pattern"])
    return texts(min_size=least, max_size=schema.get("maxLength", least + EXTRA_LENGTH))


def _bounds(schema: Mapping[str, Any]) -> tuple[float, float]:
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
    return low, high


def _integers(schema: Mapping[str, Any]) -> st.SearchStrategy[int]:
    step = schema.get("multipleOf", 1)
    return _multiples(schema, int(step) if float(step).is_integer() else 1)


def _numbers(schema: Mapping[str, Any]) -> st.SearchStrategy[float]:
    if "multipleOf" in schema:
        return _multiples(schema, schema["multipleOf"])
    low, high = _bounds(schema)
    floats = st.floats(
        None if low == -math.inf else low, None if high == math.inf else high, allow_nan=False, allow_infinity=False
    )
    has_whole = math.isinf(low) or math.isinf(high) or math.ceil(low) <= math.floor(high)
    return st.one_of(_multiples(schema, 1), floats) if has_whole else floats


def _multiples(schema: Mapping[str, Any], step: Any) -> st.SearchStrategy[Any]:
    low, high = _bounds(schema)
    counted = st.integers(
        min_value=None if low == -math.inf else math.ceil(low / step),
        max_value=None if high == math.inf else math.floor(high / step),
    )
    return counted.map(lambda count: count * step)
