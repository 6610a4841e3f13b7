"""Reads the body of a chat or completion request. `refusals` has checked its fields, except the prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_hermes_env.errors import UnexpectedRequest, shorten

SECRET_FIELDS = frozenset({"api_key", "apikey", "api-key", "authorization", "x-api-key"})
HEALTH_MESSAGES = [{"role": "user", "content": "hi"}]


def parse_body(path: str, data: bytes) -> dict[str, object]:
    """Return the JSON object of the body.

    Raises: not JSON, or not an object → UnexpectedRequest.
    """
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise _bad(path, f"the body is not JSON ({exc})", data.decode("utf-8", "replace")) from exc
    if not isinstance(body, dict):
        raise _bad(path, "the body must be a JSON object", repr(body))
    return body


def prompts(path: str, body: Mapping[str, object], decode: Callable[[Sequence[int]], str] | None) -> tuple[str, ...]:
    """Return the prompts of a completion request as text; token ids are decoded, and without a tokenizer they are a JSON list.

    Raises: missing or of another type → UnexpectedRequest.
    """
    prompt = body.get("prompt")
    several = prompt if isinstance(prompt, list) and not all(isinstance(part, int) for part in prompt) else [prompt]
    if not all(_is_prompt(one) for one in several):
        raise _bad(path, "'prompt' must be a string, token ids, or a list of them", repr(prompt))
    return tuple(one if isinstance(one, str) else _text_of(one, decode) for one in several)


def _text_of(ids: Any, decode: Callable[[Sequence[int]], str] | None) -> str:
    return json.dumps(ids) if decode is None else decode(ids)


def wants_usage(body: Mapping[str, object]) -> bool:
    """Return whether a streamed answer must end with a usage chunk."""
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def is_health_check(body: Mapping[str, object]) -> bool:
    """Return whether this is the probe that Atropos sends once per second, outside of any rollout.

    Source: atroposlib 0.4.0, ``OpenAIServer.check_server_status_task``.
    """
    probes = body.get("messages") == HEALTH_MESSAGES or body.get("prompt") == "hi"
    return probes and body.get("max_tokens") == 1 and not body.get("tools")


def redact(body: Mapping[str, object]) -> dict[str, object]:
    """Return the body with the values of API-key fields replaced."""
    return {name: "[redacted]" if name.lower() in SECRET_FIELDS else value for name, value in body.items()}


def _is_prompt(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, Sequence) and bool(value) and all(isinstance(token, int) for token in value)
    )


def _bad(path: str, what: str, seen: str) -> UnexpectedRequest:
    return UnexpectedRequest(
        f"the request to {path} cannot be read: {what}.\n"
        f"  seen      {shorten(seen)}\n"
        "  fix       send a request in the format of OpenAI's API: hermes-env docs mock-model"
    )
