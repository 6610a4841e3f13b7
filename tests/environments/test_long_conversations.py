"""Long conversations are tokenised outside the event loop's thread, in bounded parts."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

from environments.loop.end import RolloutEnd
from environments.rollout.agent_rollout import _item_of
from environments.tokens.sampled_turns import LONG_TEXT
from environments.trainer.scoring import chat_item


class WatchedTokenizer:
    """Encodes each character, after a start token; records the thread and the length of each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[threading.Thread, int]] = []

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        self.calls.append((threading.current_thread(), len(text)))
        return [1] * add_special_tokens + [ord(character) for character in text]


def conversation(length: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "?"}, {"role": "assistant", "content": "x" * length}]


def item_of(tokenizer: Any, messages: list[dict[str, Any]]) -> Any:
    env: Any = SimpleNamespace(tokenizer=tokenizer, server=None, config=SimpleNamespace(split_rollouts="sample"))
    rollout: Any = SimpleNamespace(result=SimpleNamespace(messages=messages), end=RolloutEnd.FINISHED)
    return asyncio.run(_item_of(env, rollout, 1.0, None))


def test_long_conversation_is_encoded_in_parts_outside_the_loop():
    """A message of 1 MB without spaces: no part is long, none is encoded in the loop's thread, and no token is lost."""
    tokenizer, messages = WatchedTokenizer(), conversation(1_000_000)

    item = item_of(tokenizer, messages)

    threads = {thread for thread, _ in tokenizer.calls}
    assert threading.current_thread() not in threads
    assert max(length for _, length in tokenizer.calls) <= LONG_TEXT
    assert (len(item["tokens"]), len(item["masks"]), item["tokens"].count(1)) == (1 + 2 + 1_000_000, 1 + 2 + 1_000_000, 1)


def test_short_conversation_is_encoded_at_once():
    """It needs no thread, and its item is the same."""
    tokenizer, messages = WatchedTokenizer(), conversation(10)

    item = item_of(tokenizer, messages)

    assert [thread for thread, _ in tokenizer.calls] == [threading.current_thread()]
    assert item == chat_item(WatchedTokenizer(), messages, 1.0)
