"""The chat and completion requests that OpenAI refuses, with the status and the body of its answers.

Place in the flow: `MockModel` checks each request before it looks for a turn. A real server would never answer such a request, so
neither does the mock.
Source: OpenAI's API reference and error messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import UnexpectedRequest
from pytest_hermes_env.inference.wire import error_body

if TYPE_CHECKING:
    from pytest_hermes_env.types import JsonObject

__all__ = ["Refusal", "chat_refusal", "completion_refusal", "openai_refusal"]

BAD_REQUEST, SERVER_ERROR = 400, 500
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
OPENAI_LIMITS: Mapping[str, tuple[float, float | None, type]] = {
    "temperature": (0, 2, float),
    "top_p": (0, 1, float),
    "presence_penalty": (-2, 2, float),
    "frequency_penalty": (-2, 2, float),
    "max_tokens": (1, None, int),
    "max_completion_tokens": (1, None, int),
    "top_logprobs": (0, 20, int),
}
CHAT_TYPES: Mapping[str, type] = {
    "model": str,
    "stream": bool,
    "store": bool,
    "logprobs": bool,
    "seed": int,
    "n": int,
    "user": str,
    "stream_options": dict,
    "logit_bias": dict,
    "metadata": dict,
    "tools": list,
    "response_format": dict,
}
NAMES = {bool: "boolean", int: "integer", float: "decimal", str: "string", list: "array", dict: "object"}
PARTS: Mapping[str, type] = {
    "text": str,
    "refusal": str,
    "image_url": dict,
    "input_audio": dict,
    "file": dict,
    "audio_url": dict,
    "video_url": dict,
}
"""Parts of a content, each with a field of its own name; the last two are vLLM's."""
ADDRESSED = ("image_url", "audio_url", "video_url")


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The answer with which ``server`` refuses a request, and how to correct the request."""

    server: str
    status: int
    body: JsonObject | str
    message: str
    fix: str

    def error(self, path: str) -> UnexpectedRequest:
        """Return the error of the mock model for this request."""
        return UnexpectedRequest(
            f"the request to {path} is one that {self.server} refuses.\n"
            f"  answer    {self.status}: {self.message}\n"
            f"  fix       {self.fix}"
        )


def openai_refusal(message: str, *, param: str, fix: str, code: str | None = None) -> Refusal:
    """Return the refusal of OpenAI, in the format of its errors."""
    body = error_body(message, kind="invalid_request_error", param=param, code=code)
    return Refusal(server="OpenAI", status=BAD_REQUEST, body=body, message=message, fix=fix)


def completion_refusal(body: Mapping[str, object]) -> Refusal | None:
    """Return why OpenAI refuses a text completion, or None."""
    return next(_bad_numbers(body), None)


def chat_refusal(body: Mapping[str, object]) -> Refusal | None:
    """Return why OpenAI refuses a chat request, or None. Messages that are no objects are not checked here."""
    messages = body.get("messages")
    are_messages = isinstance(messages, list) and all(
        isinstance(one, dict) and isinstance(one.get("role"), str) for one in messages
    )
    found = _bad_messages(messages) if isinstance(messages, list) and are_messages else iter(())
    return next(itertools.chain(_bad_types(body), found, _bad_numbers(body)), None)


def _bad_types(body: Mapping[str, object]) -> Iterator[Refusal]:
    """Yield what has another type than OpenAI's and vLLM's; null stands for the default."""
    for name, kind in CHAT_TYPES.items():
        value = body.get(name)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            yield _wrong_type(name, NAMES[kind], value)
    stop = body.get("stop")
    if stop is not None and not isinstance(stop, str) and not _are(stop, str):
        yield _wrong_type("stop", "string or array of strings", stop)
    tools = body.get("tools")
    for number, tool in enumerate(tools if isinstance(tools, list) else ()):
        yield from _bad_tool(f"tools[{number}]", tool)


def _bad_tool(where: str, tool: object) -> Iterator[Refusal]:
    if not isinstance(tool, dict):
        yield _wrong_type(where, "object", tool)
        return
    kind = tool.get("type")
    if kind is None:
        yield _missing(f"{where}.type")
    elif kind in ("function", "custom"):
        described = tool.get(kind)
        if described is None:
            yield _missing(f"{where}.{kind}")
        elif not isinstance(described, dict):
            yield _wrong_type(f"{where}.{kind}", "object", described)
        elif described.get("name") is None:
            yield _missing(f"{where}.{kind}.name")
        elif not isinstance(described["name"], str):
            yield _wrong_type(f"{where}.{kind}.name", "string", described["name"])
    else:
        yield _unknown_value(f"{where}.type", kind, ("function", "custom"))


def _bad_content(where: str, content: object) -> Iterator[Refusal]:
    """Yield what is wrong with a content that is not null: it is text, or a list of parts."""
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield _wrong_type(where, "string or array of objects", content)
        return
    for number, part in enumerate(content):
        at = f"{where}[{number}]"
        if not isinstance(part, dict):
            yield _wrong_type(at, "object", part)
            continue
        kind = part.get("type")
        if kind is None:
            yield _missing(f"{at}.type")
        elif kind not in PARTS:
            yield _unknown_value(f"{at}.type", kind, tuple(PARTS))
        elif part.get(kind) is None:
            yield _missing(f"{at}.{kind}")
        elif not isinstance(part[kind], PARTS[kind]):
            yield _wrong_type(f"{at}.{kind}", NAMES[PARTS[kind]], part[kind])
        elif kind in ADDRESSED and not isinstance(part[kind].get("url"), str):
            yield _missing(f"{at}.{kind}.url")


def _are(values: object, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _bad_numbers(body: Mapping[str, object]) -> Iterator[Refusal]:
    for name, (low, high, kind) in OPENAI_LIMITS.items():
        value = body.get(name)
        if value is None:
            continue
        word = "decimal" if kind is float else "integer"
        fix = f"send {name!r} as {'a number' if kind is float else 'an integer'} from {low:g}" + (
            "" if high is None else f" to {high:g}"
        )
        if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else int):
            message = f"Invalid type for '{name}': expected {_a(word)}, but got {_a(_json_type(value))} instead."
            yield openai_refusal(message, param=name, code="invalid_type", fix=fix)
        elif not value >= low:  # also NaN
            message = f"Invalid '{name}': {word} below minimum value. Expected a value >= {low:g}, but got {value} instead."
            yield openai_refusal(message, param=name, code=f"{word}_below_min_value", fix=fix)
        elif high is not None and value > high:
            message = f"Invalid '{name}': {word} above maximum value. Expected a value <= {high:g}, but got {value} instead."
            yield openai_refusal(message, param=name, code=f"{word}_above_max_value", fix=fix)


def _bad_messages(messages: Sequence[Mapping[str, object]]) -> Iterator[Refusal]:
    """Yield what is wrong with the messages: their roles and contents, then calls without results and results without calls."""
    for place, message in enumerate(messages):
        yield from _bad_message(place, message)
    known: list[object] = []
    waiting: list[object] = []
    for place, message in enumerate(messages):
        if message["role"] != "tool":
            if waiting:
                yield _unanswered(waiting, f"messages.[{place}].role")
            calls = message.get("tool_calls")
            waiting = [one.get("id") for one in calls if isinstance(one, dict)] if isinstance(calls, list) else []
            known = list(waiting)
            continue
        call_id = message.get("tool_call_id")
        if call_id in waiting:
            waiting.remove(call_id)
        elif call_id in known:
            yield openai_refusal(
                f"Duplicate value for 'tool_call_id' of '{call_id}' in message[{place}]",
                param=f"messages.[{place}].tool_call_id",
                fix="send one result for each tool call",
            )
        elif known:
            yield openai_refusal(
                f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message.",
                param=f"messages.[{place}].tool_call_id",
                fix="give each tool message the id of a call in the assistant message before it",
            )
        else:
            yield openai_refusal(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
                param=f"messages.[{place}].role",
                fix="keep the assistant message with the calls right before their results",
            )
    if waiting:
        yield _unanswered(waiting, f"messages.[{len(messages)}].role")


def _unanswered(ids: Sequence[object], param: str) -> Refusal:
    return openai_refusal(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(map(str, ids))}",
        param=param,
        fix="append a tool message for every call before the next request, also for calls that failed",
    )


def _bad_message(place: int, message: Mapping[str, object]) -> Iterator[Refusal]:
    where, role, calls = f"messages[{place}]", message["role"], message.get("tool_calls")
    if role not in ROLES:
        yield _unknown_value(f"{where}.role", role, ROLES)
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield _missing(f"{where}.tool_call_id")
    if "content" not in message and not (role == "assistant" and calls):
        yield _missing(f"{where}.content")
    elif message.get("content") is None and role != "function" and not (role == "assistant" and calls):
        yield openai_refusal(
            "Invalid value for 'content': expected a string, got null.",
            param=f"messages.[{place}].content",
            fix="send an empty string, or leave the message out",
        )
    elif message.get("content") is not None:
        yield from _bad_content(f"{where}.content", message["content"])
    if calls is None:
        return
    if not isinstance(calls, list):
        yield _wrong_type(f"{where}.tool_calls", "array", calls)
        return
    if not calls:
        yield openai_refusal(
            f"Invalid '{where}.tool_calls': empty array. "
            "Expected an array with minimum length 1, but got an empty array instead.",
            param=f"{where}.tool_calls",
            code="empty_array",
            fix="leave 'tool_calls' out of messages without calls",
        )
    for number, call in enumerate(calls):
        yield from _bad_call(f"{where}.tool_calls[{number}]", call)


def _bad_call(where: str, call: object) -> Iterator[Refusal]:
    if not isinstance(call, dict):
        yield _wrong_type(where, "object", call)
        return
    for name in ("id", "type", "function"):
        if call.get(name) is None:
            yield _missing(f"{where}.{name}")
    function = call.get("function")
    if not isinstance(function, dict):
        yield _wrong_type(f"{where}.function", "object", function)
        return
    for name in ("name", "arguments"):
        if function.get(name) is None:
            yield _missing(f"{where}.function.{name}")
        elif not isinstance(function[name], str):
            yield _wrong_type(f"{where}.function.{name}", "string", function[name])


def _missing(param: str) -> Refusal:
    message = f"Missing required parameter: '{param}'."
    return openai_refusal(message, param=param, code="missing_required_parameter", fix=f"send {param}")


def _unknown_value(param: str, value: object, known: Sequence[str]) -> Refusal:
    listed = f"{', '.join(repr(one) for one in known[:-1])}, and {known[-1]!r}"
    message = f"Invalid value: {value!r}. Supported values are: {listed}."
    return openai_refusal(message, param=param, code="invalid_value", fix=f"send one of these as {param}")


def _wrong_type(param: str, expected: str, value: object) -> Refusal:
    message = f"Invalid type for '{param}': expected {_a(expected)}, but got {_a(_json_type(value))} instead."
    return openai_refusal(message, param=param, code="invalid_type", fix=f"send {param} as {_a(expected)}")


def _json_type(value: object) -> str:
    return NAMES.get(type(value), "null")


def _a(word: str) -> str:
    return word if word == "null" else f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
