"""Reads what a request to OpenAI's endpoints says: its body, its prompts, and whether it is the probe of Atropos."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import UnexpectedRequest, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HEALTH_MESSAGES = [{"role": "user", "content": "hi"}]


def parsed(path: str, data: bytes) -> dict[str, object]:
    """Return the JSON object of the body.

    Raises: not JSON, or not an object → UnexpectedRequest.
    """
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise bad(path, f"the body is not JSON ({exc})", data.decode("utf-8", "replace")) from exc
    if not isinstance(body, dict):
        raise bad(path, "the body must be a JSON object", repr(body))
    return body


def prompts(path: str, body: Mapping[str, object], decode: Callable[[Any], str] | None) -> tuple[str, ...]:
    """Return the prompts of a completion request as text; token ids are decoded, and without a tokenizer they are a JSON list.

    Raises: missing or of another type → UnexpectedRequest.
    """
    prompt = body.get("prompt")
    several = prompt if isinstance(prompt, list) and not all(isinstance(part, int) for part in prompt) else [prompt]
    if not all(_is_prompt(one) for one in several):
        raise bad(path, "'prompt' must be a string, token ids, or a list of them", repr(prompt))
    write: Callable[[Any], str] = json.dumps if decode is None else decode
    return tuple(one if isinstance(one, str) else write(one) for one in several)


def is_health_check(body: Mapping[str, object]) -> bool:
    """Return whether this is the probe that Atropos sends once per second, outside of any rollout.

    Source: atroposlib 0.4.0, ``OpenAIServer.check_server_status_task``.
    """
    probes = body.get("messages") == HEALTH_MESSAGES or body.get("prompt") == "hi"
    return probes and body.get("max_tokens") == 1 and not body.get("tools")


def _is_prompt(value: object) -> bool:
    is_tokens = isinstance(value, list) and bool(value) and all(isinstance(token, int) for token in value)
    return isinstance(value, str) or is_tokens


def bad(path: str, what: str, seen: str) -> UnexpectedRequest:
    """Return the error for a request that cannot be read."""
    return UnexpectedRequest(
        f"the request to {path} cannot be read: {what}.\n"
        f"  seen      {shorten(seen)}\n"
        "  fix       send a request in the format of OpenAI's API: hermes-env docs mock-model"
    )
