"""Finds the conversation and the turn that a request belongs to, from its messages alone, and keeps a log of requests.

The first request of a conversation is its *root*. A later request continues the conversation if it begins with the messages of
the root. The turn is the number of assistant messages after the root. So assistant messages inside the prompt (few-shot
examples) do not shift turns, concurrent rollouts of a group never take each other's turns, and a repeated rollout of an item
starts with the first turn.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_hermes_env.inference.steps import Turn

DIGEST_BYTES = 16
JOURNAL_LIMIT = 1000
"""How many exchanges a log keeps by default."""
MAX_CONVERSATIONS = 8192
"""How many conversations are remembered, the latest used; it bounds the memory of a server in a long run."""


Kind: TypeAlias = Literal["chat", "judge", "completion", "generate", "score", "models", "health", "unexpected"]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """One request, as script functions receive it.

    ``turn`` counts from 0; ``id`` is the same for all rollouts of one item.
    """

    id: str
    turn: int
    messages: tuple[Mapping[str, object], ...]
    root_length: int
    tools: Mapping[str, Mapping[str, object]]
    """The offered tools: name → JSON schema of the arguments (empty if the request has none)."""
    model: str
    sampling: Mapping[str, object]
    """All other fields of the request: temperature, max_tokens, n, ..."""

    @property
    def first_user(self) -> str:
        """The text of the first user message, or '' if there is none."""
        return next((text_of(message) for message in self.messages if message.get("role") == "user"), "")

    @property
    def last_message(self) -> Mapping[str, object]:
        """The last message of the request."""
        return self.messages[-1]

    @property
    def tool_results(self) -> tuple[str, ...]:
        """The texts of the tool messages since the last assistant message, in order."""
        found: list[str] = []
        for message in reversed(self.messages):
            if message.get("role") == "assistant":
                break
            if message.get("role") == "tool":
                found.append(text_of(message))
        return tuple(reversed(found))


@dataclass(frozen=True, kw_only=True)
class Position:
    """The conversation and turn of a request. ``turn`` counts from 0; ``prompt_bytes`` is the size of all messages as JSON."""

    root: str
    root_length: int
    turn: int
    prompt_bytes: int

    def conversation(self, messages: tuple[Mapping[str, object], ...], **fields: Any) -> Conversation:
        """Return the conversation at this position. ``fields``: its other fields."""
        return Conversation(id=self.root, turn=self.turn, root_length=self.root_length, messages=messages, **fields)


class ConversationIndex:
    """Remembers the roots of the conversations used last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._roots: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()

    def locate(self, messages: Sequence[Mapping[str, object]], *, remember: bool = True) -> Position:
        """Return the position of the request with these messages, and remember it if it begins a conversation.

        ``remember=False`` is for requests that are not a turn of a conversation, such as requests for logprobs.

        Each message is hashed once. Of several matching roots, the longest wins, so the turn of a request does not depend on
        the conversations that began in the meantime.
        """
        chain, prompt_bytes = _hash_chain(messages)
        with self._lock:
            length = next((size for size in range(len(chain), 0, -1) if chain[size - 1] in self._roots), 0)
            if length == 0:
                length = len(chain)
                if remember:
                    self._roots[chain[-1]] = None
                    if len(self._roots) > MAX_CONVERSATIONS:
                        self._roots.popitem(last=False)
            else:
                self._roots.move_to_end(chain[length - 1])
        turn = sum(1 for message in messages[length:] if message.get("role") == "assistant")
        return Position(root=chain[length - 1].hex(), root_length=length, turn=turn, prompt_bytes=prompt_bytes)


def text_of(message: Mapping[str, object]) -> str:
    """Return the text of a message whose content is a string, None, or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _hash_chain(messages: Sequence[Mapping[str, object]]) -> tuple[list[bytes], int]:
    digest = blake2b(digest_size=DIGEST_BYTES)
    chain: list[bytes] = []
    total = 0
    for message in messages:
        text = json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        data = text.encode("utf-8", "surrogatepass")
        total += len(data)
        digest.update(data)
        chain.append(digest.copy().digest())
    return chain, total


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One request and its answer, without headers, and so without API keys.

    ``conversation`` and ``turn`` (from 0) are None for requests that belong to no conversation. ``response`` is the body: a dict
    (a list where SGLang answers with one), the raw text of `garbage`, or None while the answer is pending and if the client
    disconnected before it. A streamed answer is stored as the completion that its chunks add up to. ``answer`` is the scripted turn.
    ``problem`` is set if no script covers the request. ``started_s`` and ``ended_s`` are seconds of `time.monotonic`.
    """

    path: str
    kind: Kind
    started_s: float
    request: Mapping[str, object] | None = None
    conversation: Conversation | None = None
    script: str | None = None
    answer: Turn | None = None
    status: int | None = None
    response: Mapping[str, object] | Sequence[object] | str | None = None
    problem: str | None = None
    ended_s: float | None = None

    @property
    def said(self) -> str:
        """A description of the scripted turn; empty without one."""
        return "" if self.answer is None else str(self.answer)

    @property
    def turn(self) -> int | None:
        """The turn of the conversation that this request asked for, counted from 0."""
        return None if self.conversation is None else self.conversation.turn


class RequestLog:
    """Keeps the latest ``limit`` exchanges, all of them if it is None, and counts all. Safe to use from several threads.

    An entry holds an exchange as its request arrives, and is filled again once it is answered.
    """

    def __init__(self, limit: int | None = JOURNAL_LIMIT) -> None:
        self._kept: deque[list[Exchange]] = deque(maxlen=limit)
        self._lock = threading.Lock()
        self.count = 0

    def add(self, exchange: Exchange) -> list[Exchange]:
        """Append an exchange and return its entry."""
        entry = [exchange]
        with self._lock:
            self._kept.append(entry)
            self.count += 1
        return entry

    def kept(self) -> tuple[Exchange, ...]:
        """Return the kept exchanges, in the order in which their requests arrived."""
        with self._lock:
            return tuple(entry[0] for entry in self._kept)

    def emptied(self) -> RequestLog:
        """Return a new log with the same limit."""
        return RequestLog(self._kept.maxlen)
