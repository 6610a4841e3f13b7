"""Compares the mock model with a provider: both answer the same request, and the shapes of the answers are compared.

The mock repeats the provider's message, so that only shapes differ: fields, types of values, forms of ids, finish reasons, the events
of a stream, the bodies of errors. A difference is not a fault by itself; a test on the mock does not cover it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from pytest_hermes_env.errors import shorten

if TYPE_CHECKING:
    from pytest_hermes_env.inference.steps import Step, Turn

ERRORS = 400
EVENTS = "text/event-stream"
DONE = "[DONE]"
ABSENT = "absent"
BY_VALUE = frozenset({"object", "role", "type", "finish_reason"})
"""Fields whose values are part of the shape."""
OPEN = frozenset({"completion_tokens_details", "prompt_tokens_details", "cost_details"})
"""Fields whose parts are not compared: they differ between the models of one provider."""
SHOWN_PARTS = frozenset({"role", "content", "tool_calls", "choices", "usage"})
"""Parts of a stream's first delta and last chunk that clients rely on."""
ID = re.compile(r"(?P<prefix>[A-Za-z]+[-_.:])?(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The compared parts of one HTTP answer."""

    status: int
    media_type: str
    content: bytes

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream of events."""
        return self.media_type.startswith(EVENTS)


def differences(mock: Answer, live: Answer) -> list[str]:
    """Return a line for each difference: its place, the mock's value, the provider's value."""
    rows = []
    if mock.status != live.status:
        rows.append(f"HTTP status: {mock.status} on the mock, {live.status} live")
    kinds = [answer.media_type.partition(";")[0].strip() for answer in (mock, live)]
    if kinds[0] != kinds[1]:
        rows.append(f"content type: {kinds[0]} on the mock, {kinds[1]} live")
    ours, theirs = shape_of(mock), shape_of(live)
    where = "error: " if live.status >= ERRORS else "stream: " if live.is_stream else ""
    for path in sorted(ours.keys() | theirs.keys()):
        if _is_below_absent(path, ours, theirs):
            continue
        seen = [", ".join(sorted(shape.get(path, {ABSENT}))) for shape in (ours, theirs)]
        if seen[0] != seen[1]:
            rows.append(f"{where}{path}: {seen[0]} on the mock, {seen[1]} live")
    return rows


def _is_below_absent(path: str, ours: Mapping[str, set[str]], theirs: Mapping[str, set[str]]) -> bool:
    """Tell whether one side lacks a parent of the path: then that parent is the difference."""
    above = [path[: place.start()] for place in re.finditer(r"\.|\[\]", path) if place.start()]
    return any((parent in ours) != (parent in theirs) for parent in above)


def shape_of(answer: Answer) -> dict[str, set[str]]:
    """Return the types of the values at each path; for a stream those of all chunks, and its begin and end."""
    if not answer.is_stream:
        shape: dict[str, set[str]] = {}
        _walk(_json(answer.content), "", shape)
        return shape
    rows = events_of(answer.content)
    is_done = bool(rows) and rows[-1] == DONE.encode()
    chunks = _chunks(answer)
    shape = {"end": {DONE if is_done else "without " + DONE}}
    for chunk in chunks:
        _walk(chunk, "chunk", shape)
    if chunks and isinstance(chunks[0], dict) and isinstance(chunks[-1], dict):
        shape["begin"] = {f"a chunk with {_names(list(_deltas_of(chunks[0])))}"}
        shape["end"].add(f"a last chunk with {_names([chunks[-1]])}")
    return shape


def _names(parts: list[dict[str, Any]]) -> str:
    names = sorted({name for part in parts for name in part if name in SHOWN_PARTS})
    return " and ".join(names) or "nothing"


def _deltas_of(chunk: Any) -> Iterator[dict[str, Any]]:
    for choice in (chunk.get("choices") or []) if isinstance(chunk, dict) else []:
        if isinstance(choice, dict) and isinstance(choice.get("delta"), dict):
            yield choice["delta"]


def _walk(value: Any, path: str, shape: dict[str, set[str]]) -> None:
    name = path.rpartition(".")[2]
    shape.setdefault(path or "body", set()).add(_kind(value, name))
    if isinstance(value, dict) and name not in OPEN:
        for key, part in value.items():
            _walk(part, f"{path}.{key}" if path else str(key), shape)
    elif isinstance(value, list):
        for part in value:
            _walk(part, f"{path}[]", shape)


def _kind(value: Any, name: str) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case dict():
            return "an object"
        case list():
            return "a list" if value else "an empty list"
        case str() if name in BY_VALUE:
            return repr(value)
        case str() if name == "id":
            return _form_of_id(value)
        case str() if name == "arguments":
            return "JSON text" if isinstance(_json(value.encode()), dict) else "a part of JSON text"
        case str():
            return "text" if value else "empty text"
    return type(value).__name__


def _form_of_id(text: str) -> str:
    """Return the form of an id: ``call_ + 24 characters``."""
    found = ID.fullmatch(text)
    prefix, rest = (found["prefix"] or "", found["rest"]) if found is not None else ("", text)
    return f"{prefix + ' + ' if prefix else ''}{len(rest)} characters" if rest else "empty text"


async def mock_answer(url: str, body: Mapping[str, Any], live: Answer) -> Answer:
    """Return the mock model's answer to the request, with the provider's message."""
    from pytest_hermes_env.inference.server import MockServer  # noqa: PLC0415

    said = _turn_of(live)
    server = MockServer(lambda _: said, judge=lambda _: said, model=str(body.get("model", "mock-model")), allow_leftovers=True)
    content = json.dumps(body).encode()
    response = await server.transport.handle_async_request(httpx.Request("POST", url, content=content))
    return Answer(status=response.status_code, media_type=response.headers.get("content-type", ""), content=response.content)


def _turn_of(live: Answer) -> Turn:
    from pytest_hermes_env.inference.steps import call_raw, fail, say, think, turn, unoffered  # noqa: PLC0415

    if live.status >= ERRORS:
        return turn(fail(live.status, "the provider's error"))
    steps: list[Step] = []
    for message in _messages(live):
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        if isinstance(reasoning, str):
            steps.append(think(reasoning))
        if isinstance(message.get("content"), str) and message["content"]:
            steps.append(say(message["content"]))
        for row in message.get("tool_calls") or []:
            function = row.get("function") or {}
            arguments = function.get("arguments") or "{}"
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            steps.append(unoffered(call_raw(str(function.get("name") or "tool"), text)))
        break
    return turn(*steps) if steps else turn(say(""))


def _messages(live: Answer) -> Iterator[dict[str, Any]]:
    """Yield the messages of the choices; that of a stream is assembled from its chunks."""
    if not live.is_stream:
        body = _json(live.content)
        for choice in (body.get("choices") or []) if isinstance(body, dict) else []:
            if isinstance(choice, dict) and isinstance(choice.get("message"), dict):
                yield choice["message"]
        return
    deltas = [delta for chunk in _chunks(live) for delta in _deltas_of(chunk)]
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        for part in delta.get("tool_calls") or []:
            function = part.get("function") or {}
            known = calls.setdefault(part.get("index") or 0, {"function": {"name": "", "arguments": ""}})["function"]
            known["name"] += function.get("name") or ""
            known["arguments"] += function.get("arguments") or ""
    yield {
        "content": "".join(delta.get("content") or "" for delta in deltas),
        "reasoning_content": "".join(delta.get("reasoning_content") or delta.get("reasoning") or "" for delta in deltas)
        or None,
        "tool_calls": list(calls.values()),
    }


def _chunks(live: Answer) -> list[Any]:
    return [_json(event) for event in events_of(live.content) if event != DONE.encode()]


def events_of(content: bytes) -> list[bytes]:
    """Return the data of the events of a stream."""
    return [line.removeprefix(b"data:").strip() for line in content.splitlines() if line.startswith(b"data:")]


def probes(model: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield named small requests for the shapes that differ most. Together they cost a few hundred tokens."""
    tool = {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Looks up a word.",
            "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
        },
    }
    hello = {"model": model, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 32}
    asks = {**hello, "messages": [{"role": "user", "content": "Look up the word `hello` with the tool."}], "tools": [tool]}
    yield "an answer", hello
    yield "a tool call", asks
    yield "a stream", {**hello, "stream": True}
    yield "a stream with a tool call", {**asks, "stream": True}
    yield "an answer cut short", {**hello, "max_tokens": 1}
    yield "an unknown model", {**hello, "model": "no-such-model"}
    yield "an invalid request", {**hello, "messages": "no list"}


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return shorten(content.decode("utf-8", "replace"))
