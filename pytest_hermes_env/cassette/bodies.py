"""Converts the bodies of requests and replies between bytes and the values of a tape."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

import httpx

from pytest_hermes_env.cassette.tape import REPLY_HEADERS, BodyKind, ModelReply, ModelRequest
from pytest_hermes_env.types import JsonValue

END_OF_EVENT = "\n\n"


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
    if headers.get("content-type", "").startswith("text/event-stream"):
        text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
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
