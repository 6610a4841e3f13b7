"""A recording as a JSON document: a header, and the calls in their order, each thing written once."""

from __future__ import annotations

import dataclasses

from pytest_hermes_env.cassette.deduplication import SHARED_FROM, each_once
from pytest_hermes_env.cassette.escape import packed
from pytest_hermes_env.cassette.repeats import (
    NO_CHOICE,
    IdSources,
    MessageTree,
    Reference,
    answered_ids,
    is_ids,
    prompt_ids,
)
from pytest_hermes_env.cassette.tape import ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape
from pytest_hermes_env.types import JsonObject, JsonValue

__all__ = ["ECHOED_IDS", "ECHOED_TEXT", "FORMAT", "document_of"]

FORMAT = 1
ECHOED_IDS, ECHOED_TEXT = "prompt_token_ids", "prompt"
"""The fields of a reply of vLLM's ``/generate`` that say the prompt again."""


def document_of(tape: Tape) -> JsonObject:
    """Return the document for ``tape``. Raises ValueError unless its calls count from 1."""
    numbers = [call.number for call in tape.calls]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"calls must be numbered from 1, in order: {numbers[:20]}")
    tree, sources = MessageTree(), IdSources()
    echoes: dict[int, str] = {}
    return {
        "hermes_cassette": FORMAT,
        "calls": len(tape.calls),
        "header": _said(tape.header),
        "rollouts": [_said(rollout) for rollout in tape.rollouts],
        "tape": each_once([_call(call, tree, sources, echoes) for call in tape.calls]),
    }


def _call(call: ModelCall | RecordedToolCall, tree: MessageTree, sources: IdSources, echoes: dict[int, str]) -> JsonObject:
    start: JsonObject = {"call": call.number, **_said(call, "number", "request", "reply")}
    if isinstance(call, RecordedToolCall):
        return start
    body, same = _request_body(call, tree, sources)
    request = _said(call.request, "body", "body_kind") | _body(call.request, body)
    reply = _said(call.reply, "body", "body_kind") | _body(call.reply, _reply_body(call, same, echoes))
    return start | {"request": request, "reply": reply}


def _said(instance: object, *left_out: str) -> JsonObject:
    """Return the fields of a dataclass that differ from their defaults, as JSON."""
    said: JsonObject = {}
    for field in dataclasses.fields(instance):  # type: ignore[arg-type]
        value = getattr(instance, field.name)
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if field.name not in left_out and not (value == default and type(value) is type(default)):
            said[field.name] = packed(dict(value) if hasattr(value, "items") else value)
    return said


def _body(part: ModelRequest | ModelReply, body: JsonValue) -> JsonObject:
    return {} if part.body_kind == "none" and part.body is None else {part.body_kind: body}


def _request_body(call: ModelCall, tree: MessageTree, sources: IdSources) -> tuple[JsonValue, Reference | None]:
    """Return the body of a request, packed, with references to earlier calls for what it repeats of them; and that of its ids."""
    of_ids: Reference | None = None
    whole = call.request.body
    body = packed(whole)
    if not isinstance(whole, dict) or not isinstance(body, dict) or body.keys() != whole.keys():
        return body, None  # no object, or one with keys that need the notation of pairs
    messages = whole.get("messages")
    if isinstance(messages, list) and (same := tree.add(call.number, messages)):
        rest: JsonValue = [packed(message, 2) for message in messages[same.up_to :]]
        body["messages"] = {"~as": same.call, **_up_to(same), "then": rest}
    place = prompt_ids(whole)
    if place is not None and is_ids(ids := place[0][place[1]]):
        same = of_ids = sources.add(call.number, ids, answered_ids(call.reply.body))  # type: ignore[arg-type]
        holder = body if place[0] is whole else body["prompt"]
        if same and isinstance(holder, dict) and place[1] in holder:
            choice: JsonObject = {} if same.choice == NO_CHOICE else {"choice": same.choice}
            holder[place[1]] = {"~ids_of": same.call, **choice, **_up_to(same), "then": ids[same.up_to :]}  # type: ignore[index]
    return body, of_ids


def _reply_body(call: ModelCall, same: Reference | None, echoes: dict[int, str]) -> JsonValue:
    """Return the body of a reply, packed, with references for the prompt that vLLM says again: its ids, and its text."""
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
        if (common := _common(earlier, prompt)) >= SHARED_FROM:
            body[ECHOED_TEXT] = {"~echo_of": same.call, "up_to": common, "then": packed(prompt[common:])}  # type: ignore[union-attr]
    return body


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with together."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _up_to(reference: Reference) -> JsonObject:
    return {} if reference.is_whole else {"up_to": reference.up_to}
