"""Recordings without secrets: what a cassette may hold, with ``[redacted:<kind>:<n>]`` wherever a secret stood.

A recorder redacts what it keeps, and a player what it is asked, in the same way, so that a request with a key in its prompt still
finds its answer. `normalised` is for that comparison: it knows no kinds and no numbers, which depend on the key at hand.
"""

from __future__ import annotations

import base64
import binascii
import copy
import dataclasses
import json
import re
from collections.abc import Callable, Collection, Mapping

from pytest_hermes_env.cassette.chunked_text import cleaned_events, cleaned_pieces, cleaned_tokens
from pytest_hermes_env.cassette.escape import dumped_like
from pytest_hermes_env.cassette.key_shapes import Shape, is_secret_name
from pytest_hermes_env.cassette.secret_search import PLACEHOLDER, Search
from pytest_hermes_env.cassette.tape import BodyKind, ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape
from pytest_hermes_env.types import JsonObject, JsonValue

__all__ = ["FIELDS", "HEADERS", "Redactor"]

HEADERS = frozenset({"content-encoding", "content-type", "retry-after", "retry-after-ms", "x-should-retry"})
"""The headers of a reply that a cassette keeps: what a client acts on."""

FIELDS = frozenset(
    [
        "add_generation_prompt",
        "add_special_tokens",
        "best_of",
        "cache_salt",
        "chat_template",
        "chat_template_kwargs",
        "continue_final_message",
        "detokenize",
        "documents",
        "echo",
        "extra_body",
        "frequency_penalty",
        "functions",
        "function_call",
        "grammar",
        "guided_choice",
        "guided_decoding_backend",
        "guided_grammar",
        "guided_json",
        "guided_regex",
        "ignore_eos",
        "image_data",
        "include_reasoning",
        "include_stop_str_in_output",
        "input",
        "input_ids",
        "json_schema",
        "length_penalty",
        "log_probs",
        "logit_bias",
        "logprob_start_len",
        "logprobs",
        "lora_path",
        "max_completion_tokens",
        "max_new_tokens",
        "max_tokens",
        "messages",
        "min_p",
        "min_tokens",
        "mm_processor_kwargs",
        "modalities",
        "model",
        "models",
        "n",
        "parallel_tool_calls",
        "plugins",
        "prediction",
        "presence_penalty",
        "priority",
        "prompt",
        "prompt_logprobs",
        "provider",
        "reasoning",
        "reasoning_effort",
        "regex",
        "repetition_penalty",
        "response_format",
        "return_hidden_states",
        "return_logprob",
        "return_text_in_logprobs",
        "return_token_ids",
        "return_tokens_as_token_ids",
        "route",
        "sampling_params",
        "seed",
        "separate_reasoning",
        "service_tier",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "stop",
        "stop_token_ids",
        "stop_regex",
        "store",
        "stream",
        "stream_options",
        "structured_outputs",
        "suffix",
        "temperature",
        "text",
        "think",
        "token_ids_logprob",
        "tool_choice",
        "tools",
        "top_a",
        "top_k",
        "top_logprobs",
        "top_logprobs_num",
        "top_p",
        "transforms",
        "truncate_prompt_tokens",
        "truncation",
        "usage",
        "use_beam_search",
        "verbosity",
    ]
)
"""The fields that requests to chat completions, completions and /generate have; of others, texts are not kept."""
_KNOWN_PATHS = ("/chat/completions", "/completions", "/generate")
_CACHED_TEXTS = 4096
_NEUTRAL = "[redacted]"


class Redactor:
    """Takes secrets out of recordings, with the same placeholder for the same secret.

    ``known`` are values that are secret whatever they look like, by the name that their placeholder shall have: see `secrets_of`.
    ``patterns`` are regular expressions by kind; group 1, if there is one, is what is secret. ``function`` is given every text,
    and gives back what may be kept of it. ``fields`` and ``headers`` are kept in addition to `FIELDS` and `HEADERS`.
    """

    def __init__(
        self,
        *,
        known: Mapping[str, str] | None = None,
        patterns: Mapping[str, str | re.Pattern[str]] | None = None,
        function: Callable[[str], str] | None = None,
        fields: Collection[str] = (),
        headers: Collection[str] = (),
    ) -> None:
        shapes = [Shape(kind=kind, hints=(), pattern=re.compile(pattern)) for kind, pattern in (patterns or {}).items()]
        self._shapes = shapes
        self._function = function
        self._fields = FIELDS | set(fields)
        self._headers = HEADERS | {header.lower() for header in headers}
        self.begin(known or {})

    def knowing(self, more: Mapping[str, str]) -> Redactor:
        """Return a redactor that takes out ``more`` values too, by name, and counts anew."""
        other = copy.copy(self)
        other.begin({**more, **self.known})
        return other

    def begin(self, known: Mapping[str, str]) -> None:
        """Count placeholders from 1, and look for these values, by name, and for all shapes."""
        self.known = dict(known)
        self._search = Search(self.known, self._shapes)
        self._numbers: dict[tuple[str, str], int] = {}
        self._counts: dict[str, int] = {}
        self._texts: dict[str, str] = {}

    def tape(self, tape: Tape) -> Tape:
        """Return a recording without secrets."""
        header = {field.name: self._said(getattr(tape.header, field.name)) for field in dataclasses.fields(tape.header)}
        calls = tuple(self.model_call(call) if isinstance(call, ModelCall) else self.tool_call(call) for call in tape.calls)
        rollouts = tuple(
            dataclasses.replace(rollout, reward_error=self.text(rollout.reward_error)) for rollout in tape.rollouts
        )
        return dataclasses.replace(
            tape,
            header=dataclasses.replace(tape.header, **header),  # type: ignore[arg-type]
            calls=calls,
            rollouts=rollouts,
        )

    def model_call(self, call: ModelCall) -> ModelCall:
        """Return a model call without secrets."""
        return dataclasses.replace(call, request=self.request(call.request), reply=self.reply(call.reply))

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
        """Return a request without secrets, and without the texts of fields that no such request is known to have."""
        body = request.body
        path = request.path.partition("?")[0]
        if isinstance(body, dict) and path.endswith(_KNOWN_PATHS):
            body = {key: value if key in self._fields else self._unknown(value) for key, value in body.items()}
        return dataclasses.replace(request, path=self.text(request.path), body=self._body(body, request.body_kind))

    def reply(self, reply: ModelReply) -> ModelReply:
        """Return an answer without secrets, with the headers that a client acts on."""
        headers = {name.lower(): self.text(value) for name, value in reply.headers.items() if name.lower() in self._headers}
        return dataclasses.replace(
            reply, headers=headers, body=self._body(reply.body, reply.body_kind), failure=self.text(reply.failure)
        )

    def value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value with placeholders for the secrets in its texts and keys, and under names such as "password"."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._list(value)
        if isinstance(value, dict):
            return {self.text(key): self._field(key, item) for key, item in value.items()}
        return value

    def text(self, text: str) -> str:
        """Return a text with placeholders for its secrets."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) >= _CACHED_TEXTS:
                self._texts.clear()
            known = self._texts[text] = self._cleaned(text)
        return known

    def normalised(self, value: JsonValue) -> JsonValue:
        """Return a JSON value, recorded or live, with ``[redacted]`` for each secret: equal if they differ in secrets only."""
        return _neutral(self.value(value))

    def _cleaned(self, text: str) -> str:
        if text[:1] in ("{", "[") and "\\" in text:
            text = self._json_text(text)
        text = cleaned_pieces([text], self._replacements)[0]
        return text if self._function is None else self._function(text)

    def _json_text(self, text: str) -> str:
        """Return a text that is JSON without what is secret in its texts: there a secret may be spelt with escapes."""
        try:
            value = json.loads(text)
            cleaned = self.value(value)
        except (ValueError, RecursionError):  # not JSON: it is read as any text
            return text
        return text if cleaned == value else dumped_like(text, value, cleaned)

    def _replacements(self, text: str) -> list[tuple[int, int, str]]:
        return [(span.start, span.end, self._placeholder(span.kind, span.value)) for span in self._search.spans(text)]

    def _placeholder(self, kind: str, secret: str) -> str:
        number = self._numbers.get((kind, secret))
        if number is None:
            number = self._numbers[kind, secret] = self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"[redacted:{kind}:{number}]"

    def _body(self, body: JsonValue, kind: BodyKind) -> JsonValue:
        if kind == "events" and isinstance(body, list) and all(isinstance(event, str) for event in body):
            return list(cleaned_events(body, self._replacements, self.value))  # type: ignore[arg-type]
        if kind == "bytes" and isinstance(body, str):
            return self._bytes(body)
        return self.value(body)

    def _bytes(self, coded: str) -> str:
        """Return bytes in base64 without secrets; where one is in them in another code, a placeholder is all that is kept."""
        try:
            said = base64.b64decode(coded, validate=True).decode("utf-8", "surrogateescape")
        except (binascii.Error, ValueError):  # it says of itself what it is not
            return self.text(coded)
        if self.text(coded) == coded and self.text(said) == said:
            return coded
        cleaned = base64.b64encode(self.text(said).encode("utf-8", "surrogateescape")).decode()
        return cleaned if self.text(cleaned) == cleaned else base64.b64encode(self.text(coded).encode()).decode()

    def _list(self, items: list[JsonValue]) -> JsonValue:
        if items and isinstance(items[0], int | float) and set(map(type, items)) <= {int, float}:
            return items  # ids and log probabilities, many thousands of them
        if items and all(isinstance(item, str) for item in items):
            lines = cleaned_pieces(items, self._replacements, "\n")  # type: ignore[arg-type]  # a private key, line by line
            return [self.text(line) for line in lines]
        return [self.value(item) for item in cleaned_tokens(items, self._replacements)]

    def _field(self, key: str, value: JsonValue) -> JsonValue:
        if isinstance(value, str) and is_secret_name(key) and value and not PLACEHOLDER.search(value):
            return self._placeholder(key.lower().replace(":", "-").replace("[", "(").replace("]", ")"), value)
        return self.value(value)

    def _unknown(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return value if PLACEHOLDER.fullmatch(value) else self._placeholder("field", value)
        if isinstance(value, list):
            return [self._unknown(item) for item in value]
        if isinstance(value, dict):
            return {key: self._unknown(item) for key, item in value.items()}
        return value

    def _said(self, value: str | Mapping[str, str]) -> str | JsonObject:
        return self.text(value) if isinstance(value, str) else {self.text(key): self.text(item) for key, item in value.items()}


def _neutral(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return PLACEHOLDER.sub(_NEUTRAL, value) if "[redacted:" in value else value
    if isinstance(value, list):
        return value if value and isinstance(value[0], int | float) else [_neutral(item) for item in value]
    if isinstance(value, dict):
        return {str(_neutral(key)): _neutral(item) for key, item in value.items()}
    return value
