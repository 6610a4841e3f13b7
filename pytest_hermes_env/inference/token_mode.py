"""Token mode of the mock model: reads the conversation from the token ids of a prompt, and answers in token ids."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import UnexpectedRequest
from pytest_hermes_env.inference.generate import Generation, Request, seed_of, sglang_answer, vllm_answer
from pytest_hermes_env.inference.steps import DEFAULT_SAMPLING, EmptyChoices, Sampled, Turn
from pytest_hermes_env.inference.transcript import read_transcript, without_thoughts
from pytest_hermes_env.inference.wire import assistant_message

if TYPE_CHECKING:
    from pytest_hermes_env.inference.conversation import Conversation
    from pytest_hermes_env.inference.sampled_turn import TokenSampler
    from pytest_hermes_env.types import JsonObject, JsonValue

MAX_ANSWERS = 4096


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One prompt: its ids, its text, and the messages and tools in the text."""

    ids: tuple[int, ...]
    text: str
    messages: tuple[Mapping[str, object], ...]
    tools: Mapping[str, Mapping[str, object]]

    @property
    def identity(self) -> tuple[Mapping[str, object], ...]:
        """The messages that identify the conversation: without the parts of earlier answers that templates change."""
        return tuple(
            {**message, "content": without_thoughts(str(message["content"]))} if message["role"] == "assistant" else message
            for message in self.messages
        )


class TokenMode:
    """Reads prompts and generates answers with one sampler, and remembers its answers. Safe to use from several threads."""

    def __init__(self, sampler: TokenSampler) -> None:
        self.sampler = sampler
        self._answers: OrderedDict[str, Turn] = OrderedDict()
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Forget all answers."""
        with self._lock:
            self._answers.clear()

    def read(self, path: str, prompt: str | Sequence[int]) -> Prompt:
        """Return the conversation in a prompt.

        Raises: an id outside the vocabulary, except the one that ``sampled(wrong_id=True)`` appends → UnexpectedRequest.
        """
        sampler = self.sampler
        ids = tuple(sampler.encode(prompt) if isinstance(prompt, str) else prompt)
        highest = max(ids)
        if highest > sampler.last_id:
            unknown = next((token for token in ids if token > sampler.last_id and token != sampler.wrong_id), None)
            if unknown is not None:
                raise UnexpectedRequest(
                    f"the request to {path} contains the token id {unknown}, which the mock model's tokenizer does not have.\n"
                    f"  expected  ids up to {sampler.last_id} (template {sampler.template.name})\n"
                    "  fix       use one tokenizer on both sides: MockServer(tokenizer=path), and tokenizer_name=path for the client"
                )
        text = sampler.decode(ids)
        transcript = read_transcript(text, sampler.template)
        return Prompt(ids=ids, text=text, messages=transcript.messages, tools=transcript.tools)

    def restore(self, messages: Sequence[Mapping[str, object]], key: str) -> tuple[Mapping[str, object], ...]:
        """Return the messages with the model's own answers as in chat mode: content, reasoning and tool calls separated.

        Other answers (few-shot examples, truncated answers) stay text. The ids of the tool calls derive from ``key``.
        """
        restored: list[Mapping[str, object]] = []
        waiting: list[str] = []
        for place, message in enumerate(messages):
            if message["role"] == "assistant":
                with self._lock:
                    turn = self._answers.get(without_thoughts(str(message["content"])))
                if turn is not None:
                    message = assistant_message(turn, f"{key}:{place}")  # noqa: PLW2901 -- the same message in chat shape
                calls = message.get("tool_calls")
                waiting = [call["id"] for call in calls] if isinstance(calls, list) else []
            elif message["role"] == "tool" and waiting:
                message = {**message, "tool_call_id": waiting.pop(0)}  # noqa: PLW2901
            restored.append(message)
        return tuple(restored)

    def generate(self, turn: Turn, prompt: Prompt, conversation: Conversation, max_tokens: int | None) -> Generation:
        """Return the turn as tokens.

        Raises: the turn cannot be sampled as scripted → ScriptError.
        """
        calls = (message.get("tool_calls") for message in conversation.messages)
        earlier = sum(len(made) for made in calls if isinstance(made, list))
        sample = self.sampler.sample(turn, prompt=prompt.text, earlier_calls=earlier, max_tokens=max_tokens)
        if sample.finish == "stop":
            self._remember(without_thoughts(sample.text), turn)
        return Generation(
            prompt=prompt.ids,
            prompt_text=prompt.text,
            sample=sample,
            seed=seed_of(conversation.id),
            key=f"{conversation.id}:{conversation.turn}",
            logprobs=(turn.only(Sampled) or DEFAULT_SAMPLING).logprobs,
            is_empty=turn.only(EmptyChoices) is not None,
        )

    def score(self, prompt: Prompt, conversation_id: str, max_tokens: int | None) -> Generation:
        """Return the empty answer to a request that only asks for the logprobs of its prompt."""
        return Generation(
            prompt=prompt.ids,
            prompt_text=prompt.text,
            sample=self.sampler.ending(max_tokens=max_tokens),
            seed=seed_of(conversation_id),
            key=f"{conversation_id}:score",
            logprobs="all",
        )

    def answer(self, request: Request, generation: Generation) -> JsonObject | list[JsonValue]:
        """Return the response body in the request's shape."""
        write = vllm_answer if request.shape == "vllm" else sglang_answer
        return write(request, generation, size=self.sampler.last_id + 1)

    def _remember(self, text: str, turn: Turn) -> None:
        with self._lock:
            self._answers[text] = turn
            self._answers.move_to_end(text)
            while len(self._answers) > MAX_ANSWERS:
                self._answers.popitem(last=False)
