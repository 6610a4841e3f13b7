"""The content of a cassette as values: its origin, and every model call and tool call in the order in which they began.

Place in the flow: the recorder makes a `Tape`, `format` writes and reads it, the player serves it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import httpx

from pytest_hermes_env.types import JsonObject, JsonValue

BodyKind: TypeAlias = Literal["none", "json", "text", "events", "bytes"]
"""How a body is stored: as JSON, as text, as the events of a stream (a list of strings), or as base64-encoded bytes."""

REPLY_HEADERS = ("content-encoding", "content-type", "retry-after", "retry-after-ms", "x-should-retry")
"""The headers of a reply that clients use; no others are recorded."""

END_OF_EVENT = "\n\n"


@dataclass(frozen=True, kw_only=True)
class Header:
    """The origin of a recording.

    ``recorded_at`` is ISO 8601 in UTC. ``recorded_from`` describes the server: a provider, or a mock server. ``environment`` is
    ``module:Class``, ``source_hash`` the SHA-256 of that class's file at the time. ``test`` is the id of the test, ``versions`` are
    those of the packages that a result depends on.
    """

    recorded_at: str
    recorded_from: str
    provider: str = ""
    model: str = ""
    environment: str = ""
    source_hash: str = ""
    test: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One request to an inference server, without host, port and key. ``path`` begins with a slash and has no ``/v1``."""

    method: str
    path: str
    body: JsonValue = None
    body_kind: BodyKind = "none"

    @classmethod
    def of_tool_call(cls, name: str, arguments: JsonObject, *, by_agent: bool) -> ModelRequest:
        """Return a tool call as a request, for comparison: its method is the caller, its path the tool.

        A verifier's time limit is none of it: the layer gives a command the time that is left.
        """
        asked = {key: value for key, value in arguments.items() if by_agent or key != "timeout"}
        return cls(method="agent" if by_agent else "verifier", path=name, body=asked, body_kind="json")


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """An answer, or, if ``failure`` is set, a connection error ("ReadTimeout", "ConnectError").

    ``headers`` contains only allow-listed ones, in lower case. ``seconds`` is how long a request took that failed.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: JsonValue = None
    body_kind: BodyKind = "none"
    failure: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One request with its reply. ``rollout`` numbers rollouts from 1 in the order in which they began; 0 is outside of any."""

    number: int
    request: ModelRequest
    reply: ModelReply
    rollout: int = 0


@dataclass(frozen=True, kw_only=True)
class RecordedToolCall:
    """One call through the tool seam. ``turn`` is 0 for calls of the verifier. ``error`` is the raised error, "Type: message"."""

    number: int
    name: str
    arguments: JsonObject
    result: JsonValue = None
    error: str = ""
    rollout: int = 0
    turn: int = 0

    @property
    def request(self) -> ModelRequest:
        """The call as a request, for comparison."""
        return ModelRequest.of_tool_call(self.name, self.arguments, by_agent=self.turn > 0)


Call: TypeAlias = ModelCall | RecordedToolCall


@dataclass(frozen=True, kw_only=True)
class RecordedRollout:
    """One rollout. ``opening``, the digest of its item or first messages, identifies it in a replay.

    ``reward`` is the result of compute_reward, None if it was not called or raised; ``reward_error`` is the raised error,
    "Type: message".
    """

    number: int
    opening: str = ""
    reward: float | None = None
    reward_error: str = ""


@dataclass(frozen=True, kw_only=True)
class Tape:
    """A recording: ``calls`` in the order of their numbers, which count model calls and tool calls together, from 1.

    The calls of one rollout are consecutive, in the order in which they happened; those of rollout 0 come first. ``rollouts`` are the
    rollouts of the calls, from 1.
    """

    header: Header
    calls: tuple[Call, ...] = ()
    rollouts: tuple[RecordedRollout, ...] = ()


# ---------------------------------------------------------------------- bodies, from and to bytes


def as_request(method: str, path: str, body: Any) -> ModelRequest:
    """Return the request of a tape. ``body``: bytes or text, or the value that the client would have sent as JSON."""
    if body is None or body == b"":
        return ModelRequest(method=method, path=path)
    if not isinstance(body, (bytes, bytearray, str)):
        return ModelRequest(method=method, path=path, body=body, body_kind="json")
    value, kind = _read(bytes(body) if not isinstance(body, str) else body.encode())
    return ModelRequest(method=method, path=path, body=value, body_kind=kind)


def as_reply_body(data: bytes, headers: Mapping[str, str]) -> tuple[JsonValue, BodyKind, dict[str, str]]:
    """Return the body, its kind and the recorded headers. A compressed body is decompressed, so it can be reviewed."""
    kept = {name: headers[name] for name in REPLY_HEADERS if name in headers and name != "content-encoding"}
    data, encoding = _decompressed(data, headers.get("content-encoding", "").strip().lower())
    if encoding:
        kept["content-encoding"] = encoding
        return base64.b64encode(data).decode("ascii"), "bytes", kept
    is_stream = headers.get("content-type", "").startswith("text/event-stream")
    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n") if is_stream else ""
    if is_stream and (not text or text.endswith(END_OF_EVENT)):  # one that was cut in an event is kept as it came
        events: list[JsonValue] = [event for event in text.split(END_OF_EVENT) if event]
        return events, "events", kept
    value, kind = _read(data)
    return value, kind, kept


def _decompressed(data: bytes, encoding: str) -> tuple[bytes, str]:
    """Return the decompressed body, and the encoding that it still has: "" or one that httpx does not support.

    aiohttp has already decompressed the body, httpx has not.
    """
    if encoding in {"", "identity"}:
        return data, ""
    try:
        decoded = httpx.Response(200, headers={"content-encoding": encoding}, content=data).content
    except httpx.DecodingError:
        return data, "" if _is_text(data) or encoding in {"gzip", "deflate"} else encoding
    return decoded, "" if decoded != data or _is_text(data) else encoding


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read(data: bytes) -> tuple[JsonValue, BodyKind]:
    if not data:
        return None, "none"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), "bytes"
    try:
        return json.loads(text), "json"
    except ValueError:
        return text, "text"


def as_bytes(reply: ModelReply) -> bytes:
    """Return the body of a reply as a server sends it."""
    body = reply.body
    if reply.body_kind == "json":
        return json.dumps(body, separators=(",", ":")).encode()
    if reply.body_kind == "events" and isinstance(body, list):
        return "".join(f"{event}{END_OF_EVENT}" for event in body).encode("utf-8", "surrogateescape")
    if reply.body_kind == "bytes":
        try:
            return base64.b64decode(str(body), validate=True)
        except binascii.Error:
            return b""
    return str(body).encode("utf-8", "surrogatepass") if reply.body_kind == "text" else b""
