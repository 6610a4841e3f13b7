"""What a mock model does with token ids: reads the conversation out of a prompt, and speaks its turns in tokens."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import UnexpectedRequest
from pytest_hermes_env.inference.generate import Generation, Request, sglang_answer, vllm_answer
from pytest_hermes_env.inference.logprobs import seed_of
from pytest_hermes_env.inference.sampling import PLAIN, Sampled
from pytest_hermes_env.inference.steps import EmptyChoices, Turn
from pytest_hermes_env.inference.transcript import read_transcript, without_thoughts
from pytest_hermes_env.inference.wire import assistant_message

if TYPE_CHECKING:
    from pytest_hermes_env.inference.conversation import Conversation
    from pytest_hermes_env.inference.sampled_turn import Voice
    from pytest_hermes_env.types import JsonObject, JsonValue

__all__ = ["Prompt", "TokenMode"]

ANSWERS_KEPT = 4096


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One prompt: its ids, its text, and what the text says."""

    ids: tuple[int, ...]
    text: str
    messages: tuple[Mapping[str, object], ...]
    tools: Mapping[str, Mapping[str, object]]

    @property
    def identity(self) -> tuple[Mapping[str, object], ...]:
        """The messages by which the conversation is known: without what templates change in earlier answers."""
        return tuple(
            {**message, "content": without_thoughts(str(message["content"]))} if message["role"] == "assistant" else message
            for message in self.messages
        )


class TokenMode:
    """Reads and speaks tokens with one voice, and remembers what it said. Safe to use from several threads."""

    def __init__(self, voice: Voice) -> None:
        self.voice = voice
        self._said: OrderedDict[str, Turn] = OrderedDict()
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Forget what was said."""
        with self._lock:
            self._said.clear()

    def read(self, path: str, prompt: str | Sequence[int]) -> Prompt:
        """Return what a prompt says.

        Raises: an id that the tokenizer does not have, other than the wrong one that scripts can give → UnexpectedRequest.
        """
        voice = self.voice
        ids = tuple(voice.encode(prompt) if isinstance(prompt, str) else prompt)
        highest = max(ids)
        if highest > voice.last_id:
            stranger = next((token for token in ids if token > voice.last_id and token != voice.wrong_id), None)
            if stranger is not None:
                raise UnexpectedRequest(
                    f"the request to {path} holds the token id {stranger}, which the mock model's tokenizer does not have.\n"
                    f"  expected  ids up to {voice.last_id} (template {voice.template.name})\n"
                    "  fix       give both sides one tokenizer: MockServer(tokenizer=path), and tokenizer_name=path for the client"
                )
        text = voice.decode(ids)
        transcript = read_transcript(text, voice.template)
        return Prompt(ids=ids, text=text, messages=transcript.messages, tools=transcript.tools)

    def recall(self, messages: Sequence[Mapping[str, object]], key: str) -> tuple[Mapping[str, object], ...]:
        """Return the messages with what this model said before as chat mode has it: content, reasoning and tool calls apart.

        Answers that it did not give (few-shot examples, answers that were cut) stay text. ``key`` makes the ids of the calls.
        """
        recalled: list[Mapping[str, object]] = []
        waiting: list[str] = []
        for place, message in enumerate(messages):
            if message["role"] == "assistant":
                with self._lock:
                    turn = self._said.get(without_thoughts(str(message["content"])))
                if turn is not None:
                    message = assistant_message(turn, f"{key}:{place}")  # noqa: PLW2901 -- the same message, in another shape
                calls = message.get("tool_calls")
                waiting = [call["id"] for call in calls] if isinstance(calls, list) else []
            elif message["role"] == "tool" and waiting:
                message = {**message, "tool_call_id": waiting.pop(0)}  # noqa: PLW2901
            recalled.append(message)
        return tuple(recalled)

    def speak(self, turn: Turn, prompt: Prompt, conversation: Conversation, max_tokens: int | None) -> Generation:
        """Return the turn in tokens.

        Raises: the turn cannot be sampled as it asks → ScriptError.
        """
        calls = (message.get("tool_calls") for message in conversation.messages)
        earlier = sum(len(made) for made in calls if isinstance(made, list))
        sample = self.voice.sample(turn, earlier_calls=earlier, max_tokens=max_tokens)
        if sample.finish == "stop":
            self._remember(without_thoughts(sample.text), turn)
        return Generation(
            prompt=prompt.ids,
            prompt_text=prompt.text,
            sample=sample,
            seed=seed_of(conversation.id),
            key=f"{conversation.id}:{conversation.turn}",
            logprobs=(turn.only(Sampled) or PLAIN).logprobs,
            is_empty=turn.only(EmptyChoices) is not None,
        )

    def score(self, prompt: Prompt, conversation_id: str, max_tokens: int | None) -> Generation:
        """Return the answer to a request that only wants the logprobs of its prompt: nothing but the end of a turn."""
        return Generation(
            prompt=prompt.ids,
            prompt_text=prompt.text,
            sample=self.voice.ending(max_tokens=max_tokens),
            seed=seed_of(conversation_id),
            key=f"{conversation_id}:score",
            logprobs="all",
        )

    def answer(self, request: Request, generations: Sequence[Generation]) -> JsonObject | list[JsonValue]:
        """Return the body of the answer in the request's shape."""
        size = self.voice.last_id + 1
        if request.shape == "vllm":
            return vllm_answer(request, generations[0], size=size)
        texts: dict[int, str] = {}
        if request.with_text:
            for generation in generations:
                texts |= {token: self.voice.decode([token]) for token in {*generation.prompt, *generation.sample.ids}}
        return sglang_answer(request, generations, texts, size=size)

    def _remember(self, text: str, turn: Turn) -> None:
        with self._lock:
            self._said[text] = turn
            self._said.move_to_end(text)
            while len(self._said) > ANSWERS_KEPT:
                self._said.popitem(last=False)
