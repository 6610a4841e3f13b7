"""Converts a tape to the JSON document of a cassette: a header, and the calls in order, without repetitions.

Long texts and large request fields are written once: the first occurrence is ``{"~define": "1.2", "is": ...}``, each later one
``{"~shared": "1.2"}``. The name is the number of the defining call and a count within that call.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile

from pytest_hermes_env.cassette.escape import MARK, packed
from pytest_hermes_env.cassette.repeats import (
    NO_CHOICE,
    Reference,
    Repeats,
    answered_ids,
    common_prefix,
    is_ids,
    prompt_ids,
    text_of_value,
)
from pytest_hermes_env.cassette.tape import Call, ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape
from pytest_hermes_env.types import JsonObject, JsonValue

FORMAT = 1
MIN_SHARED_IDS = 32
MIN_SHARED_LENGTH = 200
_REFERENCES = ("~as", "~ids_of", "~asked", "~echo_of")
ECHOED_IDS, ECHOED_TEXT = "prompt_token_ids", "prompt"
"""The fields in which a reply of vLLM's ``/generate`` repeats the prompt."""


def document_of(tape: Tape) -> JsonObject:
    """Return the document of a tape. Raises: calls that are not numbered from 1 → ValueError."""
    numbers = [call.number for call in tape.calls]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"calls must be numbered from 1, in order: {numbers[:20]}")
    messages, ids = Repeats(least=1), Repeats(least=MIN_SHARED_IDS)
    echoes: dict[int, str] = {}
    return {
        "hermes_cassette": FORMAT,
        "calls": len(tape.calls),
        "header": _changed_fields(tape.header),
        "rollouts": [_changed_fields(rollout) for rollout in tape.rollouts],
        "tape": deduplicated([_call(call, messages, ids, echoes) for call in tape.calls]),
    }


def _call(call: Call, messages: Repeats, ids: Repeats, echoes: dict[int, str]) -> JsonObject:
    start: JsonObject = {"call": call.number, **_changed_fields(call, "number", "request", "reply")}
    if isinstance(call, RecordedToolCall):
        return start
    body, same = _request_body(call, messages, ids)
    request = _changed_fields(call.request, "body", "body_kind") | _body(call.request, body)
    reply = _changed_fields(call.reply, "body", "body_kind") | _body(call.reply, _reply_body(call, same, echoes))
    return start | {"request": request, "reply": reply}


def _changed_fields(instance: object, *excluded: str) -> JsonObject:
    """Return the fields of a dataclass that differ from their defaults, as JSON."""
    changed: JsonObject = {}
    for field in dataclasses.fields(instance):  # type: ignore[arg-type]
        value = getattr(instance, field.name)
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if field.name not in excluded and not (value == default and type(value) is type(default)):
            changed[field.name] = packed(dict(value) if hasattr(value, "items") else value)
    return changed


def _body(part: ModelRequest | ModelReply, body: JsonValue) -> JsonObject:
    return {} if part.body_kind == "none" and part.body is None else {part.body_kind: body}


def _request_body(call: ModelCall, seen_messages: Repeats, seen_ids: Repeats) -> tuple[JsonValue, Reference | None]:
    """Return the packed body of a request, with references to what it repeats of earlier calls, and the reference of its ids."""
    of_ids: Reference | None = None
    whole = call.request.body
    body = packed(whole)
    if not isinstance(whole, dict) or not isinstance(body, dict) or body.keys() != whole.keys():
        return body, None  # not an object, or one in the ~pairs notation
    messages = whole.get("messages")
    if isinstance(messages, list):
        texts = list(takewhile(lambda text: text is not None, map(text_of_value, messages)))
        same = seen_messages.add(call.number, call.rollout, texts, is_complete=len(texts) == len(messages))
        if same is not None:
            rest: JsonValue = [packed(message) for message in messages[same.up_to :]]
            body["messages"] = {"~as": same.call, **_up_to(same), "then": rest}
    place = prompt_ids(whole)
    if place is not None and is_ids(ids := place[0][place[1]]):
        same = of_ids = seen_ids.add(call.number, call.rollout, ids, answers=answered_ids(call.reply.body))  # type: ignore[arg-type]
        holder = body if place[0] is whole else body["prompt"]
        if same and isinstance(holder, dict) and place[1] in holder:
            choice: JsonObject = {} if same.choice == NO_CHOICE else {"choice": same.choice}
            holder[place[1]] = {"~ids_of": same.call, **choice, **_up_to(same), "then": ids[same.up_to :]}  # type: ignore[index]
    return body, of_ids


def _reply_body(call: ModelCall, same: Reference | None, echoes: dict[int, str]) -> JsonValue:
    """Return the packed body of a reply, with references for the prompt that vLLM repeats: its ids and its text."""
    whole = call.reply.body
    body = packed(whole)
    if not isinstance(whole, dict) or not isinstance(body, dict) or body.keys() != whole.keys():
        return body
    place = prompt_ids(call.request.body)
    ids = whole.get(ECHOED_IDS)
    if place is not None and is_ids(ids) and ids and place[0][place[1]] == ids:
        body[ECHOED_IDS] = {"~asked": place[1]}
    prompt = whole.get(ECHOED_TEXT)
    if place is not None and isinstance(prompt, str):
        echoes[call.number] = prompt
        earlier = echoes.get(same.call, "") if same is not None else ""
        if (common := common_prefix(earlier, prompt)) >= MIN_SHARED_LENGTH:
            body[ECHOED_TEXT] = {"~echo_of": same.call, "up_to": common, "then": packed(prompt[common:])}  # type: ignore[union-attr]
    return body


def _up_to(reference: Reference) -> JsonObject:
    return {} if reference.is_whole else {"up_to": reference.up_to}


# ---------------------------------------------------------------------- sharing


def deduplicated(calls: Iterable[JsonObject]) -> JsonValue:
    """Return packed calls with every repeated long text and large body field only at its first occurrence."""
    calls = list(calls)
    sharing = _Sharing()
    for call in calls:
        sharing.call(call)
    sharing.is_counting = False
    return [sharing.call(call) for call in calls]


class _Sharing:
    """Walks packed calls twice: counts every value that may be shared, outermost first, then writes each repeated one once."""

    def __init__(self) -> None:
        self.is_counting = True
        self._counts: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._call: JsonValue = 0
        self._defined = 0

    def call(self, call: JsonObject) -> JsonObject:
        self._call, self._defined = call["call"], 0
        return {key: self.request(value) if key == "request" else self.value(value) for key, value in call.items()}

    def request(self, request: JsonValue) -> JsonValue:
        if not isinstance(request, dict):
            return self.value(request)
        return {key: self.body(value) for key, value in request.items()}

    def body(self, body: JsonValue) -> JsonValue:
        if not isinstance(body, dict) or _mark(body):
            return self.value(body)
        return {key: self.value(value) if key == "messages" else self.field(value) for key, value in body.items()}

    def field(self, value: JsonValue) -> JsonValue:
        if isinstance(value, dict | list) and value and not _is_numeric(value) and _mark(value) not in _REFERENCES:
            return self.whole(value)
        return self.value(value)

    def whole(self, value: JsonValue) -> JsonValue:
        text = text_of_value(value)
        if text is not None and len(text) >= MIN_SHARED_LENGTH:
            return self.shareable(value, text)
        return self.children(value)

    def value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.shareable(value, value) if len(value) >= MIN_SHARED_LENGTH else value
        mark = _mark(value)
        return self.whole(value) if mark and mark not in _REFERENCES else self.children(value)

    def children(self, value: JsonValue) -> JsonValue:
        mark = _mark(value)
        if isinstance(value, list):
            return value if _is_numeric(value) else [self.value(item) for item in value]
        if isinstance(value, dict) and (not mark or mark in _REFERENCES):
            return {key: self.value(item) for key, item in value.items()}
        return value

    def shareable(self, value: JsonValue, text: str) -> JsonValue:
        self._counts[text] += self.is_counting
        if self._counts[text] <= 1:
            return self.children(value)
        if self.is_counting:
            return value
        if text in self._names:
            return {"~shared": self._names[text]}
        self._defined += 1
        name = self._names[text] = f"{self._call}.{self._defined}"
        return {"~define": name, "is": value}


def _mark(value: JsonValue) -> str:
    """Return the mark of a packed value; "" for a plain value."""
    key = next(iter(value), "") if isinstance(value, dict) else ""
    return key if key.startswith(MARK) else ""


def _is_numeric(value: JsonValue) -> bool:
    """Return whether a value begins like a list of numbers; such lists are never shared and may be very long."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], int | float)
