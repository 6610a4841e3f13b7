"""Reads a tape from the JSON text of a cassette, and reports what is wrong with it."""

from __future__ import annotations

import dataclasses
import json
import reprlib
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, get_args

from pytest_hermes_env.cassette.document import ECHOED_IDS, ECHOED_TEXT, FORMAT
from pytest_hermes_env.cassette.escape import LISTS, UNPACKERS
from pytest_hermes_env.cassette.repeats import answered_ids, prompt_ids
from pytest_hermes_env.cassette.tape import (
    BodyKind,
    Call,
    Header,
    ModelCall,
    ModelReply,
    ModelRequest,
    RecordedRollout,
    RecordedToolCall,
    Tape,
)
from pytest_hermes_env.types import JsonObject, JsonValue

_FIELDS = dict.fromkeys(("hermes_cassette", "calls", "header", "rollouts", "tape")).keys()
_REFERENCES: Mapping[str, Mapping[str, type]] = {
    "~as": {"~as": int, "up_to": int, "then": list},
    "~ids_of": {"~ids_of": int, "choice": int, "up_to": int, "then": list},
    "~asked": {"~asked": str},
    "~echo_of": {"~echo_of": int, "up_to": int, "then": str},
}
_OPTIONAL = {"choice", "up_to"}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "str": (str,),
    "float": (int, float),
    "bool": (bool,),
    "float | None": (int, float, type(None)),
    "JsonObject": (dict,),
    "Mapping[str, str]": (dict,),
}
ITEM, COPIED = 25, 1
"""What an item of a list counts, and a character of a text that is put together, in characters."""
MIN_ROOM, ROOM_PER_CHARACTER = 256_000_000, 400
"""Characters to which the notation may expand: at least, and for each character of the file."""
_Part = TypeVar("_Part")


class NewerFormat(Exception):
    """The cassette has a newer format. The argument is the number of the format."""


class Misshapen(Exception):
    """The text is JSON, but not a cassette. ``call``: the number of the wrong call, from 1; 0 if unknown."""

    def __init__(self, what: str, call: int = 0) -> None:
        super().__init__(what)
        self.call = call


class _Reference(UserDict[str, Any]):
    """An object of the notation that refers to an earlier call. Unlike recorded objects, it is not a `dict`."""

    def __init__(self, found: dict[str, Any], expand: Callable[[int], None]) -> None:
        super().__init__(found)
        self.expand = expand


def tape_of(text: str) -> Tape:
    """Return the tape in a text. Raises: Misshapen, NewerFormat, json.JSONDecodeError, RecursionError."""
    try:
        document = json.loads(text, object_pairs_hook=_Unpacker(len(text)).unpacked)
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise Misshapen(str(error)) from error
    if not isinstance(document, dict) or "hermes_cassette" not in document:
        raise Misshapen('"hermes_cassette", the number of the format, is missing')
    version = document["hermes_cassette"]
    if isinstance(version, int) and version > FORMAT:
        raise NewerFormat(version)
    if version != FORMAT:
        raise Misshapen(f"its format is {reprlib.repr(version)}; this version reads {FORMAT}")
    _require(document.keys() == _FIELDS, f"its fields are {', '.join(document)}, not {', '.join(_FIELDS)}")
    count, calls, rollouts = document["calls"], document["tape"], document["rollouts"]
    _require(isinstance(calls, list), '"tape" is not a list')
    _require(isinstance(rollouts, list), '"rollouts" is not a list')
    _require(count == len(calls), f'it has "calls": {reprlib.repr(count)}, but contains {len(calls)} calls')
    header = _instance(Header, document["header"], "the header", {})
    recorded = tuple(_instance(RecordedRollout, rollout, "a rollout", {}) for rollout in rollouts)
    return Tape(header=header, calls=tuple(_calls(calls)), rollouts=recorded)


class _Unpacker:
    """Reverses the notation of a cassette, object by object, in the order of the text.

    It counts what the notation expands to: a few KB of nested sharing, or of repeated calls, could otherwise fill any memory.
    """

    def __init__(self, length: int) -> None:
        self._defined: dict[str, JsonValue] = {}
        self._sizes: dict[int, int] = {}  # of defined values, by identity
        self._room = max(MIN_ROOM, ROOM_PER_CHARACTER * length)

    def _expand(self, size: int) -> None:
        self._room -= size
        _require(self._room >= 0, "its shared and repeated parts expand to many times the size of the file")

    def _size(self, value: JsonValue) -> int:
        """Return the characters of a value; what it shares counts each time, but is looked at once."""
        if (known := self._sizes.get(id(value))) is not None:
            return known
        if isinstance(value, str):
            return len(value)
        parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
        return ITEM + sum(map(self._size, parts))

    def unpacked(self, pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) != len(pairs):
            keys = [key for key, _ in pairs]
            raise Misshapen(f"an object has the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
        if not pairs or pairs[0][0][:1] != "~":
            return found
        mark, value = pairs[0]
        if mark in UNPACKERS and len(pairs) == 1:
            is_valid = isinstance(value, list) or not mark.startswith(LISTS)
            _require(is_valid, f"{mark!r} has an invalid value: expected a list, got {reprlib.repr(value)}")
            self._expand(COPIED * self._size(value))
            try:
                return UNPACKERS[mark](value)
            except (TypeError, ValueError) as error:
                raise Misshapen(f"{mark!r} has an invalid value: {error}") from error
        if mark == "~define" and found.keys() == {"~define", "is"} and isinstance(value, str):
            self._defined[value] = found["is"]
            self._sizes[id(found["is"])] = self._size(found["is"])
            return found["is"]
        if mark == "~shared" and len(pairs) == 1 and isinstance(value, str):
            _require(value in self._defined, f'"~shared": "{value}" is not defined by an earlier call')
            self._expand(self._size(self._defined[value]))
            return self._defined[value]
        types = _REFERENCES.get(mark, {})
        if types.keys() - _OPTIONAL <= found.keys() <= types.keys() and all(
            isinstance(found[key], types[key]) for key in found
        ):
            return _Reference(found, self._expand)
        raise Misshapen(f"{mark!r} is unknown, or has the wrong fields: {', '.join(found)}")


def _calls(calls: list[JsonValue]) -> Iterator[Call]:
    known: dict[int, ModelCall] = {}
    for number, call in enumerate(calls, start=1):
        try:
            _require(isinstance(call, dict), "it is not an object")
            _require(
                isinstance(call, dict) and call.get("call") == number,
                f'call {number} has "call": {reprlib.repr(_get(call, "call"))}',
            )
            made = _call(call, number, known)  # type: ignore[arg-type]
        except Misshapen as error:
            error.call = number
            raise
        if isinstance(made, ModelCall):
            known[number] = made
        yield made


def _call(call: JsonObject, number: int, known: Mapping[int, ModelCall]) -> Call:
    fields = {key: value for key, value in call.items() if key != "call"}
    if "request" not in fields:
        return _instance(RecordedToolCall, fields, "a tool call", {"number": number})
    request, reply = fields.pop("request"), fields.pop("reply", None)
    asked = _instance(ModelRequest, *_body_of(request, "its request"))
    answer = _instance(ModelReply, *_body_of(reply, "its reply"))
    if isinstance(asked.body, dict):
        _resolve_request(asked.body, known)
    if isinstance(answer.body, dict):
        _resolve_reply(answer.body, asked.body, known)
    parts = {"number": number, "request": asked, "reply": answer}
    return _instance(ModelCall, fields, "a model call", parts)


def _body_of(part: JsonValue, what: str) -> tuple[JsonObject, str, JsonObject]:
    if not isinstance(part, dict):
        raise Misshapen(f"{what} is missing or not an object")
    kinds = [kind for kind in get_args(BodyKind) if kind in part]
    _require(len(kinds) <= 1, f"{what} has several bodies: {', '.join(kinds)}")
    body: JsonObject = {"body": part[kinds[0]], "body_kind": kinds[0]} if kinds else {}
    return {key: value for key, value in part.items() if key not in kinds}, what, body


def _resolve_request(body: JsonObject, known: Mapping[int, ModelCall]) -> None:
    """Replace the references in a request's body with the messages and ids of earlier calls."""
    messages: Any = body.get("messages")
    if _is_reference(messages, "~as"):
        earlier = known.get(messages["~as"])
        body["messages"] = _extended(earlier and _get(earlier.request.body, "messages"), messages, "~as")
    place = prompt_ids(body)
    ids: Any = place[0][place[1]] if place else None
    if place and _is_reference(ids, "~ids_of"):
        place[0][place[1]] = _extended(_source(ids, known), ids, "~ids_of")


def _resolve_reply(body: JsonObject, asked: JsonValue, known: Mapping[int, ModelCall]) -> None:
    """Replace the references to the prompt in a reply's body."""
    if _is_reference(body.get(ECHOED_IDS), "~asked"):
        place = prompt_ids(asked)
        if place is None:
            raise Misshapen('"~asked" refers to a request without ids')
        body[ECHOED_IDS] = place[0][place[1]]
    echo: Any = body.get(ECHOED_TEXT)
    if _is_reference(echo, "~echo_of"):
        earlier = known.get(echo["~echo_of"])
        body[ECHOED_TEXT] = _extended(earlier and _get(earlier.reply.body, ECHOED_TEXT), echo, "~echo_of")


def _is_reference(value: object, mark: str) -> bool:
    return isinstance(value, _Reference) and mark in value


def _source(ids: _Reference, known: Mapping[int, ModelCall]) -> JsonValue:
    """Return the prompt ids of the earlier call, with those of an answer if the reference has a choice; None if there are none."""
    earlier, choice = known.get(ids["~ids_of"]), ids.get("choice")
    place = prompt_ids(earlier.request.body) if earlier else None
    said = place[0][place[1]] if place else None
    if choice is None or earlier is None or not isinstance(said, list):
        return said
    answers = answered_ids(earlier.reply.body)
    return [*said, *answers[choice]] if 0 <= choice < len(answers) else None


def _extended(earlier: Any, reference: _Reference, mark: str) -> Any:
    """Return the part of an earlier list or text that a reference names, and what follows it."""
    what, then = f'"{mark}": {reference[mark]}', reference["then"]
    _require(type(earlier) is type(then), f"{what} does not refer to an earlier call with such a value")
    up_to = reference.get("up_to", len(earlier))
    _require(0 <= up_to <= len(earlier), f'{what} has an invalid "up_to": {reprlib.repr(up_to)}')
    reference.expand(up_to * (ITEM if isinstance(then, list) else COPIED))
    return earlier[:up_to] + then


def _instance(made: type[_Part], said: JsonValue, what: str, more: Mapping[str, Any]) -> _Part:
    """Return a dataclass made from the fields in a file."""
    if not isinstance(said, dict):
        raise Misshapen(f"{what} is not an object")
    fields = {field.name: field for field in dataclasses.fields(made)}  # type: ignore[arg-type]
    for name, value in said.items():
        if name not in fields or name in more:
            raise Misshapen(f"{what} has an unknown key: {name!r}")
        allowed = _TYPES.get(str(fields[name].type))
        if allowed and (not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed)):
            raise Misshapen(f"{name!r} of {what} must be {fields[name].type}: {reprlib.repr(value)}")
        if isinstance(value, dict) and fields[name].type == "Mapping[str, str]":
            _require(all(isinstance(item, str) for item in value.values()), f"{name!r} of {what} must contain only strings")
    try:
        return made(**said, **more)
    except TypeError as error:
        missing = [name for name, field in fields.items() if name not in said and name not in more and _is_needed(field)]
        raise Misshapen(f"{what} lacks {', '.join(missing)}") from error


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _get(value: JsonValue, key: str) -> JsonValue:
    return value.get(key) if isinstance(value, dict) else None


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Misshapen(what)
