"""Token mode of the mock model: reads the conversation from the token ids of a prompt, and answers in token ids.

Requests for tokens contain only token ids. They are decoded, and the template's own marks show where each message begins, so a
script sees the same conversation as in chat mode.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, TypeAlias

from pytest_hermes_env.errors import UnexpectedRequest
from pytest_hermes_env.inference.generate import Generation, Request, seed_of, sglang_answer, vllm_answer
from pytest_hermes_env.inference.refusals import offered_tools
from pytest_hermes_env.inference.steps import DEFAULT_SAMPLING, EmptyChoices, Sampled, Say, Turn
from pytest_hermes_env.inference.token_engines import COLDEST, VLLM_VERSION, Engine, numbers_of
from pytest_hermes_env.inference.vllm_answers import completions_answer, tokens_answer
from pytest_hermes_env.inference.wire import assistant_message

if TYPE_CHECKING:
    from pytest_hermes_env.inference.conversation import Conversation
    from pytest_hermes_env.inference.sampled_turn import TokenSampler
    from pytest_hermes_env.inference.templates import Template
    from pytest_hermes_env.types import JsonObject, JsonValue

MAX_ANSWERS = 4096
THINK_TAG = re.compile(r"</?(?:longcat_)?think>|\[/?THINK\]")

Message: TypeAlias = dict[str, object]
Tools: TypeAlias = "Mapping[str, Mapping[str, object]]"


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One prompt: its ids, its text, and the messages and tools in the text."""

    ids: tuple[int, ...]
    text: str
    messages: tuple[Mapping[str, object], ...]
    tools: Tools

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

        Raises: an id outside the vocabulary, except the id that ``sampled(wrong_id=True)`` appends → UnexpectedRequest.
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
        messages, tools = read_transcript(text, sampler.template)
        return Prompt(ids=ids, text=text, messages=messages, tools=tools)

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
            text = without_thoughts(sample.text)
            with self._lock:
                self._answers[text] = turn
                self._answers.move_to_end(text)
                while len(self._answers) > MAX_ANSWERS:
                    self._answers.popitem(last=False)
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

    def answer(
        self,
        request: Request,
        generation: Generation,
        *,
        is_processed: bool = False,
        model: str = "",
        engine: Engine = "any",
        version: str = VLLM_VERSION,
    ) -> JsonObject | list[JsonValue]:
        """Return the response body in the request's shape. ``is_processed``: the logprobs are those at the request's temperature."""
        if engine == "atropos":  # which returns no logprobs of a prompt
            request = replace(request, prompt_top=None)
        size, generation = self.sampler.last_id + 1, _at_temperature(generation, request.sampling, is_processed)
        if request.shape == "completions":
            return completions_answer(request, generation, size=size, model=model)
        if request.shape == "tokens":
            return tokens_answer(request, generation, size=size, version=numbers_of(version))
        write = vllm_answer if request.shape == "vllm" else sglang_answer
        return write(request, generation, size=size)

    def chat(self, body: Mapping[str, object], turn: Turn, conversation: Conversation, *, is_processed: bool) -> Generation:
        """Return the reply to a chat request as tokens."""
        text = self.sampler.render(body)
        prompt = Prompt(ids=tuple(self.sampler.encode(text, is_rendered=True)), text=text, messages=(), tools={})
        limits = [limit for name in ("max_tokens", "max_completion_tokens") if isinstance(limit := body.get(name), int)]
        return _at_temperature(self.generate(turn, prompt, conversation, min(limits, default=None)), body, is_processed)

    def check(self, prompt: Prompt, max_tokens: int | None) -> Generation:
        """Return the answer to a question about logprobs, which no script answers."""
        sample = self.sampler.sample(Turn(steps=(Say(text="hi"),)), max_tokens=max_tokens)
        key = "logprobs"
        return Generation(prompt=prompt.ids, prompt_text=prompt.text, sample=sample, seed=seed_of(key), key=key, logprobs="all")


def _at_temperature(generation: Generation, sampling: Mapping[str, object], is_processed: bool) -> Generation:
    temperature = sampling.get("temperature")
    is_divided = is_processed and isinstance(temperature, int | float) and temperature >= COLDEST
    return replace(generation, temperature=float(str(temperature))) if is_divided else generation


def read_transcript(text: str, template: Template) -> tuple[tuple[Message, ...], Tools]:
    """Return the messages with role and text, and the tools by name, of the text of a rendered prompt: the template's marks begin each.

    An assistant's text is the sampled text, including its tool calls. Text without any mark of the template is one user message.
    """
    openings = list(_openings(template).finditer(text))
    if not openings:
        return ({"role": "user", "content": text},), {}
    ends = [*(opening.start() for opening in openings[1:]), len(text)]
    messages: list[Message] = []
    declared: list[str] = []
    for opening, end in zip(openings, ends, strict=True):
        role = template.openings[opening.group()]
        body, is_closed = _without_closing(text[opening.end() : end], template)
        is_last = end == len(text)
        if role == "tools":
            declared.append(body)
        elif role == "system":
            body, declaration = _split_system(re.sub(template.preamble, "", body, count=1), template.tools_heading)
            declared.append(declaration)
            if body:
                messages.append({"role": "system", "content": body})
        elif role == "tool" or (template.results == "tagged" and body.startswith("<tool_response>")):
            messages.extend({"role": "tool", "content": result} for result in _results(body, template))
        elif role == "user" and template.tools == "in the first user message" and body.startswith(str(template.tools_heading)):
            question = _end_of_tools(body)
            declared.append(body[:question])
            messages.append({"role": role, "content": body[question:].removeprefix("\n\n")})
        elif role == "user" or is_closed or without_thoughts(body) or (body and not is_last):
            # Skips an answer that has not begun: the mark alone, or with a think block that the template opens.
            messages.append({"role": role, "content": body})
    return tuple(messages), _tools("\n".join(declared))


def without_thoughts(text: str) -> str:
    """Return the text of an answer after its think block, without surrounding whitespace.

    Templates differ in whether they keep these, so only without them are two renderings of one answer equal.
    """
    return THINK_TAG.split(text)[-1].strip()


@cache
def _openings(template: Template) -> re.Pattern[str]:
    longest_first = sorted(template.openings, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))


def _without_closing(body: str, template: Template) -> tuple[str, bool]:
    """Return the body without its closing marks, and whether it had one."""
    is_closed = False
    while closing := next((mark for mark in template.closings if body.endswith(mark)), None):
        body = body.removesuffix(closing)
        is_closed = True
    return body, is_closed


def _split_system(system: str, heading: str | None) -> tuple[str, str]:
    if heading is None or heading not in system:
        return system, ""
    text, _, declaration = system.partition(heading)
    return text.rstrip("\n"), declaration


def _results(body: str, template: Template) -> list[str]:
    """Return the tool results in a part of the prompt; several if the template joins them."""
    if template.results == "tagged":
        gap = template.variables.get("gap", "\n")
        return re.findall(f"<tool_response>{gap}(.*?){gap}</tool_response>", body, re.DOTALL) or [body]
    if template.results == "named":
        result = body.partition("<|im_middle|>")[2]
        return [result.partition("\n")[2] if result.startswith("## Return of ") else result]
    if template.results == "after its id":
        before, mark, result = body.partition("[TOOL_CONTENT]")
        return [result if mark else before]
    if template.results == "JSON":
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return [body]
        return [value if isinstance(value, str) else body]
    return [body]


@lru_cache(maxsize=64)
def _tools(declaration: str) -> Tools:
    return offered_tools({"tools": [tool for tool, _, _ in _declared(declaration)]})


def _end_of_tools(text: str) -> int:
    """Return the end of the tool schemas at the beginning of a message: only whitespace is between them."""
    end = 0
    for _, start, after in _declared(text):
        if end and text[end:start].strip():
            break
        end = after
    return end


def _declared(text: str) -> Iterator[tuple[Mapping[str, object], int, int]]:
    """Yield each tool schema in the text, bare or wrapped in ``{"type": "function", ...}``, with its start and its end."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, after = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, after = None, at + 1
        if isinstance(value, dict) and "function" in value:
            yield value, at, after
        elif isinstance(value, dict) and "name" in value and "parameters" in value:
            yield {"type": "function", "function": value}, at, after
        at = text.find("{", after)
