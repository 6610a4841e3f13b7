"""What a cassette holds, as values: where it comes from, and every model call and tool call in the order in which they began.

Place in the flow: the recorder makes a `Tape`, `format` writes and reads it, the player serves it. Nothing here knows of HTTP
libraries or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pytest_hermes_env.types import JsonObject, JsonValue

__all__ = ["BodyKind", "Header", "ModelCall", "ModelReply", "ModelRequest", "RecordedRollout", "RecordedToolCall", "Tape"]

BodyKind: TypeAlias = Literal["none", "json", "text", "events", "bytes"]
"""How a body is kept: as JSON, as text, as the events of a stream (a list of texts), or as base64 text of bytes."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """Where a recording comes from.

    ``recorded_at`` is ISO 8601 in UTC. ``recorded_from`` says in words what answered: a provider, or a mock server that stood in
    for one. ``environment`` is ``module:Class``, ``source_hash`` the SHA-256 of that class's file when it was recorded. ``test`` is
    the id of the test, ``versions`` those of the packages that a result depends on.
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


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """What came back: an answer, or, where ``failure`` names one, an error of the connection ("ReadTimeout", "ConnectError").

    ``headers`` holds only those of the allow-list, in lower case. ``seconds`` is how long the answer took.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: JsonValue = None
    body_kind: BodyKind = "none"
    failure: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One request with its reply. ``rollout`` counts rollouts from 1 in the order in which they began; 0 is outside of any."""

    number: int
    request: ModelRequest
    reply: ModelReply
    rollout: int = 0


@dataclass(frozen=True, kw_only=True)
class RecordedToolCall:
    """One call that passed the tool seam. ``turn`` is 0 for calls of the verifier. ``error`` is what it raised, "Type: message"."""

    number: int
    name: str
    arguments: JsonObject
    result: JsonValue = None
    error: str = ""
    rollout: int = 0
    turn: int = 0


@dataclass(frozen=True, kw_only=True)
class RecordedRollout:
    """One rollout: ``opening`` is a digest of what it began with (its item, or its first messages), to know it again by.

    ``reward`` is what compute_reward returned, None when it was not called or raised; ``reward_error`` what it raised,
    "Type: message".
    """

    number: int
    opening: str = ""
    reward: float | None = None
    reward_error: str = ""


@dataclass(frozen=True, kw_only=True)
class Tape:
    """A recording: ``calls`` in the order of their numbers, which count model calls and tool calls together, from 1.

    The calls of one rollout stand together, in the order in which they happened; those of rollout 0 come first. ``rollouts``
    are those of the calls, from 1.
    """

    header: Header
    calls: tuple[ModelCall | RecordedToolCall, ...] = ()
    rollouts: tuple[RecordedRollout, ...] = ()
