"""Chat requests that are sent as they are: the openai client visits every value of messages and tools, which JSON does not need.

Place in the flow: `HermesAgentBaseEnv` uses `PlainOpenAIServer` for servers of type openai. A visit of the tools takes half of the CPU of
a rollout in memory.
Source: openai 2.24, ``_utils/_transform.py``, which renames fields and encodes files; ``extra_body`` goes around it.
"""

from __future__ import annotations

from typing import Any

from atroposlib.envs.server_handling.openai_server import OpenAIServer

_SCALARS = frozenset({str, int, float, bool, type(None)})


class PlainOpenAIServer(OpenAIServer):
    """An OpenAIServer whose requests cost less; what is sent is the same."""

    async def _chat_completion_wrapper(self, **request: Any) -> Any:
        plain = {name: request[name] for name in ("messages", "tools") if is_json(request.get(name)) and request.get(name)}
        if "messages" not in plain:  # which the client requires as an argument
            return await super()._chat_completion_wrapper(**request)
        rest = {name: value for name, value in request.items() if name not in plain}
        body = {**plain, **(request.get("extra_body") or {})}
        return await super()._chat_completion_wrapper(**{**rest, "messages": [], "extra_body": body})


def is_json(value: object) -> bool:
    """Return whether a value is written as JSON without a change."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        return all(type(name) is str and is_json(inner) for name, inner in value.items())  # type: ignore[attr-defined]
    return kind is list and all(map(is_json, value))  # type: ignore[call-overload]
