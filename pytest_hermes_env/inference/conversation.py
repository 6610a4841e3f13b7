"""Finds the conversation and the turn that a request belongs to, from its messages alone.

The first request of a conversation is its *root*. A later request continues the conversation if it begins with the messages of
the root. The turn is the number of assistant messages after the root. So assistant messages inside the prompt (few-shot
examples) do not shift turns, concurrent rollouts of a group never take each other's turns, and a repeated rollout of an item
starts with the first turn.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DIGEST_BYTES = 16
MAX_CONVERSATIONS = 8192
"""How many conversations are remembered, the latest used; it bounds the memory of a server in a long run."""


@dataclass(frozen=True, kw_only=True)
class Position:
    """The conversation and turn of a request. ``turn`` counts from 0; ``prompt_bytes`` is the size of all messages as JSON."""

    root: str
    root_length: int
    turn: int
    prompt_bytes: int


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


def canonical_json(value: object) -> bytes:
    """Return the value as JSON bytes with sorted keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _hash_chain(messages: Sequence[Mapping[str, object]]) -> tuple[list[bytes], int]:
    digest = blake2b(digest_size=DIGEST_BYTES)
    chain: list[bytes] = []
    total = 0
    for message in messages:
        data = canonical_json(message)
        total += len(data)
        digest.update(data)
        chain.append(digest.copy().digest())
    return chain, total
