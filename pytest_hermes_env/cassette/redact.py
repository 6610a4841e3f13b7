"""Removes secrets from recordings: each becomes ``[redacted:<kind>:<n>]``.

Recorder and player redact in the same way, so a request with an API key in its prompt still matches its recording.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from pytest_hermes_env.cassette.tape import REPLY_HEADERS, BodyKind, ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape
from pytest_hermes_env.redaction.redactor import Replacements, TextRedactor, redacted_pieces
from pytest_hermes_env.redaction.secret_search import PLACEHOLDER
from pytest_hermes_env.types import JsonValue

# fmt: off
FIELDS = frozenset(
    [
        # OpenAI
        "best_of", "echo", "frequency_penalty", "function_call", "functions", "input", "logit_bias", "logprobs",
        "max_completion_tokens", "max_tokens", "messages", "modalities", "model", "n", "parallel_tool_calls", "prediction",
        "presence_penalty", "prompt", "reasoning_effort", "response_format", "seed", "service_tier", "stop", "store",
        "stream", "stream_options", "suffix", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "verbosity",
        # OpenRouter
        "include_reasoning", "models", "plugins", "provider", "reasoning", "route", "top_a", "transforms", "usage",
        # SGLang
        "image_data", "input_ids", "json_schema", "log_probs", "logprob_start_len", "lora_path", "max_new_tokens", "regex",
        "return_hidden_states", "return_logprob", "return_text_in_logprobs", "sampling_params", "separate_reasoning",
        "stop_regex", "text", "think", "token_ids_logprob", "top_logprobs_num",
        # vLLM, and servers with its options
        "add_generation_prompt", "add_special_tokens", "cache_salt", "chat_template", "chat_template_kwargs",
        "continue_final_message", "detokenize", "documents", "extra_body", "grammar", "guided_choice",
        "guided_decoding_backend", "guided_grammar", "guided_json", "guided_regex", "ignore_eos",
        "include_stop_str_in_output", "length_penalty", "min_p", "min_tokens", "mm_processor_kwargs", "priority",
        "prompt_logprobs", "repetition_penalty", "return_token_ids", "return_tokens_as_token_ids", "skip_special_tokens",
        "spaces_between_special_tokens", "stop_token_ids", "structured_outputs", "top_k", "truncate_prompt_tokens",
        "truncation", "use_beam_search",
    ]
)
# fmt: on
"""The known fields of requests to chat completions, completions and /generate; the strings in other fields are redacted."""
_KNOWN_PATHS = ("/chat/completions", "/completions", "/generate")


class Redactor(TextRedactor):
    """A `TextRedactor` for recordings. ``fields`` of requests are kept in addition to `FIELDS`."""

    def __init__(
        self,
        *,
        known: Mapping[str, str] | None = None,
        patterns: Mapping[str, str | re.Pattern[str]] | None = None,
        function: Callable[[str], str] | None = None,
        fields: Collection[str] = (),
    ) -> None:
        super().__init__(known=known, patterns=patterns, function=function)
        self._fields = FIELDS | set(fields)

    def tape(self, tape: Tape) -> Tape:
        """Return a recording without secrets; what is one in one place is one in all."""
        made = self._tape(tape)
        return Redactor._tape(self.knowing(self.learned), tape) if self._is_left_in(made) else made

    def _is_left_in(self, made: object) -> bool:
        """Whether a secret that was found somewhere stands somewhere else."""
        learned = self.learned
        text = repr(made) if learned else ""
        return any(value in text for value in learned.values())

    def _tape(self, tape: Tape) -> Tape:
        header = {field.name: self.value(getattr(tape.header, field.name)) for field in dataclasses.fields(tape.header)}
        calls = tuple(self._model_call(call) if isinstance(call, ModelCall) else self.tool_call(call) for call in tape.calls)
        rollouts = tuple(
            dataclasses.replace(rollout, reward_error=self.text(rollout.reward_error)) for rollout in tape.rollouts
        )
        return dataclasses.replace(
            tape,
            header=dataclasses.replace(tape.header, **header),  # type: ignore[arg-type]
            calls=calls,
            rollouts=rollouts,
        )

    def _model_call(self, call: ModelCall) -> ModelCall:
        return dataclasses.replace(call, request=self._request(call.request), reply=self.reply(call.reply))

    def tool_call(self, call: RecordedToolCall) -> RecordedToolCall:
        """Return a tool call without secrets."""
        return dataclasses.replace(
            call,
            name=self.text(call.name),
            arguments=self.value(call.arguments),  # type: ignore[arg-type]
            result=self.value(call.result),
            error=self.text(call.error),
        )

    def request(self, request: ModelRequest) -> ModelRequest:
        """Return a request without secrets, and without the strings in unknown fields; what was found in others is known."""
        made = self._request(request)
        return Redactor._request(self.knowing(self.learned), request) if self._is_left_in(made) else made

    def _request(self, request: ModelRequest) -> ModelRequest:
        body = request.body
        path = request.path.partition("?")[0]
        if isinstance(body, dict) and path.endswith(_KNOWN_PATHS):
            body = {key: value if key in self._fields else self._unknown(value) for key, value in body.items()}
        return dataclasses.replace(request, path=self.text(request.path), body=self._body(body, request.body_kind))

    def reply(self, reply: ModelReply) -> ModelReply:
        """Return a reply without secrets, with only the known headers."""
        headers = {name.lower(): self.text(value) for name, value in reply.headers.items() if name.lower() in REPLY_HEADERS}
        return dataclasses.replace(
            reply, headers=headers, body=self._body(reply.body, reply.body_kind), failure=self.text(reply.failure)
        )

    def _body(self, body: JsonValue, kind: BodyKind) -> JsonValue:
        if kind == "events" and isinstance(body, list) and all(isinstance(event, str) for event in body):
            return list(redacted_events(body, self._replacements, self.value))  # type: ignore[arg-type]
        if kind == "bytes" and isinstance(body, str):
            return self._bytes(body)
        return self.value(body)

    def _bytes(self, coded: str) -> str:
        """Redact base64-encoded bytes; if a secret in them is encoded again, only a placeholder is kept."""
        try:
            decoded = base64.b64decode(coded, validate=True).decode("utf-8", "surrogateescape")
        except (binascii.Error, ValueError):  # not base64 after all
            return self.text(coded)
        if self.text(coded) == coded and self.text(decoded) == decoded:
            return coded
        redacted = base64.b64encode(self.text(decoded).encode("utf-8", "surrogateescape")).decode()
        return redacted if self.text(redacted) == redacted else base64.b64encode(self.text(coded).encode()).decode()

    def _unknown(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return value if PLACEHOLDER.fullmatch(value) else self._placeholder("field", value)
        if isinstance(value, list):
            return [self._unknown(item) for item in value]
        if isinstance(value, dict):
            return {key: self._unknown(item) for key, item in value.items()}
        return value


# ---------------------------------------------------------------------- streams


def redacted_events(events: Sequence[str], replacements: Replacements, clean: Callable[[JsonValue], JsonValue]) -> list[str]:
    """Return the events of a stream, without secrets in one event or in texts that span several."""
    read = [_data(event) for event in events]
    values = [value for _, value in read]
    groups: dict[tuple[object, ...], list[tuple[JsonValue, str | int]]] = {}
    for value in values:
        for path, container, key in _leaves(value, ()):
            groups.setdefault(path, []).append((container, key))
    for places in groups.values():
        texts = [container[key] for container, key in places]  # type: ignore[index]
        for (container, key), old, new in zip(places, texts, redacted_pieces(texts, replacements), strict=True):  # type: ignore[arg-type]
            if old != new:
                container[key] = new  # type: ignore[index]
                if isinstance(container, dict) and key == "token" and "bytes" in container:
                    container["bytes"] = list(new.encode("utf-8", "surrogatepass"))
    written = [
        event if value is None else _event(start, value, clean, event)
        for event, (start, value) in zip(events, read, strict=True)
    ]
    return redacted_pieces(written, replacements)


def _data(event: str) -> tuple[str, JsonValue]:
    """Return the text before the JSON of an event, and its value; None if it has no JSON."""
    start = event.find("{")
    if start < 0:
        return "", None
    try:
        return event[:start], json.loads(event[start:])
    except (ValueError, RecursionError):
        return "", None


def _event(start: str, value: JsonValue, clean: Callable[[JsonValue], JsonValue], event: str) -> str:
    changed = clean(value)
    end = event[len(event.rstrip()) :]
    if changed == json.loads(event[len(start) :]):
        return event
    is_compact = '":"' in event or '":[' in event or '":{' in event
    return start + json.dumps(changed, ensure_ascii=event.isascii(), separators=(",", ":") if is_compact else None) + end


def _leaves(value: JsonValue, path: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], JsonValue, str | int]]:
    """Yield the strings in a value: a path that is equal in all events of one text, the container, and the key."""
    items: list[tuple[str | int, JsonValue]] = []
    if isinstance(value, dict):
        path = (*path, value.get("index")) if isinstance(value.get("index"), int) else path
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, item in items:
        deeper = (*path, key if isinstance(key, str) else "*")
        if isinstance(item, str):
            yield deeper, value, key
        else:
            yield from _leaves(item, deeper)
