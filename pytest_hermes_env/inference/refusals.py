"""The chat and completion requests that OpenAI refuses, with the status and the body of its answers.

Place in the flow: `MockModel` checks each request before it looks for a turn. A real server would never answer such a request, so
neither does the mock.
Source: OpenAI's API reference and error messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import UnexpectedRequest
from pytest_hermes_env.inference.wire import error_body

if TYPE_CHECKING:
    from pytest_hermes_env.types import JsonObject

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


def _bad_types(body: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield what has another type than OpenAI's and vLLM's; null stands for the default.

    Only the first refusal is read, here and below: what follows a yield relies on the check before it.
    """
    for name, kind in CHAT_TYPES.items():
        if (value := body.get(name)) is not None and not _is(value, kind):
            yield _wrong_type(name, NAMES[kind], value)
    stop = body.get("stop")
    if not (stop is None or isinstance(stop, str) or (isinstance(stop, list) and all(isinstance(one, str) for one in stop))):
        yield _wrong_type("stop", "string or array of strings", stop)
    for number, tool in enumerate(body.get("tools") or ()):
        where = f"tools[{number}]"
        yield from _bad_fields(where, tool, {"type": object})
        if (kind_of_tool := tool["type"]) not in ("function", "custom"):
            yield _unknown_value(f"{where}.type", kind_of_tool, ("function", "custom"))
        yield from _bad_fields(where, tool, {kind_of_tool: dict})
        yield from _bad_fields(f"{where}.{kind_of_tool}", tool[kind_of_tool], {"name": str})


def _bad_fields(where: str, value: Any, fields: Mapping[str, type]) -> Iterator[Refusal]:
    """Yield why a value is not an object with these fields."""
    if not isinstance(value, dict):
        yield _wrong_type(where, "object", value)
    for name, kind in fields.items():
        if value.get(name) is None:
            yield _missing(f"{where}.{name}")
        elif not isinstance(value[name], kind):
            yield _wrong_type(f"{where}.{name}", NAMES[kind], value[name])


def _bad_content(where: str, content: Any) -> Iterator[Refusal]:
    """Yield what is wrong with a content that is not null: it is text, or a list of parts."""
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield _wrong_type(where, "string or array of objects", content)
    for number, part in enumerate(content):
        at = f"{where}[{number}]"
        yield from _bad_fields(at, part, {"type": object})
        if (kind := part["type"]) not in PARTS:
            yield _unknown_value(f"{at}.type", kind, tuple(PARTS))
        yield from _bad_fields(at, part, {kind: PARTS[kind]})
        if kind in ADDRESSED and not isinstance(part[kind].get("url"), str):
            yield _missing(f"{at}.{kind}.url")


def _is(value: object, kind: type) -> bool:
    """Return whether a value has a type of JSON: an integer is a number, a boolean is not."""
    return isinstance(value, (int, float) if kind is float else kind) and (kind is bool or not isinstance(value, bool))


def _bad_numbers(body: Mapping[str, Any]) -> Iterator[Refusal]:
    for name, (low, high, kind) in OPENAI_LIMITS.items():
        value, word = body.get(name), NAMES[kind]
        if value is None:
            continue
        fix = f"send {name!r} as {'a number' if kind is float else 'an integer'} from {low:g}" + (
            "" if high is None else f" to {high:g}"
        )
        if not _is(value, kind):
            yield _wrong_type(name, word, value, fix)
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


def _bad_message(place: int, message: Mapping[str, Any]) -> Iterator[Refusal]:
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
    if not calls:
        yield openai_refusal(
            f"Invalid '{where}.tool_calls': empty array. "
            "Expected an array with minimum length 1, but got an empty array instead.",
            param=f"{where}.tool_calls",
            code="empty_array",
            fix="leave 'tool_calls' out of messages without calls",
        )
    for number, call in enumerate(calls):
        at = f"{where}.tool_calls[{number}]"
        yield from _bad_fields(at, call, {"id": object, "type": object, "function": dict})
        yield from _bad_fields(f"{at}.function", call["function"], {"name": str, "arguments": str})


def _missing(param: str) -> Refusal:
    message = f"Missing required parameter: '{param}'."
    return openai_refusal(message, param=param, code="missing_required_parameter", fix=f"send {param}")


def _unknown_value(param: str, value: object, known: Sequence[str]) -> Refusal:
    listed = f"{', '.join(repr(one) for one in known[:-1])}, and {known[-1]!r}"
    message = f"Invalid value: {value!r}. Supported values are: {listed}."
    return openai_refusal(message, param=param, code="invalid_value", fix=f"send one of these as {param}")


def _wrong_type(param: str, expected: str, value: object, fix: str = "") -> Refusal:
    got = _a(NAMES.get(type(value), "null"))
    message = f"Invalid type for '{param}': expected {_a(expected)}, but got {got} instead."
    return openai_refusal(message, param=param, code="invalid_type", fix=fix or f"send {param} as {_a(expected)}")


def _a(word: str) -> str:
    return word if word == "null" else f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
