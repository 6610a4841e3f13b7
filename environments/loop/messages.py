"""Reads the messages of a model server, whatever their shape, and writes those of a conversation's history.

Place in the flow: `HermesAgentLoop` reads each reply with it; servers answer with objects or with dicts. Every text that enters a
conversation is made encodable as UTF-8 here: a lone surrogate in a model's reply would otherwise fail far from where it came in.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from environments.loop.end import current_record
from environments.loop.thoughts import split_thought

logger = logging.getLogger(__name__)

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def encodable(text: str, where: str) -> str:
    """Return ``text`` with every lone surrogate replaced by U+FFFD; two halves of a character are joined.

    A change is logged and counted in the current rollout's record. ``where`` names the text in the log.
    """
    if not _SURROGATE.search(text):
        return text
    current_record().changed_texts += 1
    logger.warning("%s is not encodable as UTF-8; its lone surrogates are replaced by U+FFFD: %.200r", where, text)
    return _joined(text)


def encodable_arguments(text: str, where: str) -> str:
    r"""Return the arguments of a tool call as `encodable` does. JSON may also hide a lone surrogate in an escape (``\\ud83d``)."""
    text = encodable(text, where)
    if not _ESCAPED_SURROGATE.search(text):
        return text
    try:
        value = json.loads(text)
        written = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return json.dumps(encodable_value(value, where), ensure_ascii=False) if _SURROGATE.search(written) else text


def encodable_value(value: Any, where: str) -> Any:
    """Return a JSON value with every text in it made encodable."""
    if isinstance(value, str):
        return encodable(value, where)
    if isinstance(value, list):
        return [encodable_value(element, where) for element in value]
    if isinstance(value, dict):
        return {encodable_value(key, where): encodable_value(element, where) for key, element in value.items()}
    return value


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# ---------------------------------------------------------------------- reading and writing messages

_ARGUMENTS = "The arguments of a tool call"


def reasoning_of(message: Any) -> str | None:
    """Return the reasoning text of a response message, or None.

    The order of precedence is ``reasoning_content``, ``reasoning``, the first entry of ``reasoning_details`` with text. An empty
    string, and anything that is not text, counts as absent.
    """
    candidates = [attribute_of(message, "reasoning_content"), attribute_of(message, "reasoning")]
    candidates += [attribute_of(detail, "text") for detail in as_list(attribute_of(message, "reasoning_details"))]
    return next((text for text in candidates if isinstance(text, str) and text), None)


def read_text(message: Any) -> tuple[str | None, str]:
    """Return reasoning and content; a thought that the server left at the start of the text is reasoning."""
    reasoning = reasoning_of(message)
    content = message_text(attribute_of(message, "content"))
    if reasoning is None:
        thought, content = split_thought(content)
        reasoning = thought.strip() or None
    reasoning = None if reasoning is None else encodable(reasoning, "The model's reasoning")
    return reasoning, encodable(content, "The model's reply")


def attribute_of(message: Any, name: str) -> Any:
    """Return a field of a message, or of a part of it; None if it has none."""
    return message.get(name) if isinstance(message, dict) else getattr(message, name, None)


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, and an empty list for anything else: None, or a mock that has every attribute."""
    return list(value) if isinstance(value, list | tuple) else []


class BadArguments(Exception):
    """The arguments of a tool call are not a JSON object; the message describes them."""


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A tool call as sent by the model; ``raw`` holds its arguments unchanged, as text or as an object."""

    id: str
    name: str
    raw: Any

    @property
    def text(self) -> str:
        """The arguments as text, for the history."""
        if isinstance(self.raw, str):
            return self.raw
        return json.dumps(self.raw, ensure_ascii=False, default=str)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments as an object; an empty text means no arguments. Raises: BadArguments."""
        value = self.raw
        if isinstance(value, str):
            try:
                value = json.loads(value) if value.strip() else {}
            except ValueError as error:
                raise BadArguments(str(error)) from error
            except RecursionError as error:
                raise BadArguments("nested too deeply") from error
        if not isinstance(value, dict):
            raise BadArguments(f"expected a JSON object, got {_json_type(value)}")
        return value

    def as_dict(self) -> dict[str, Any]:
        """Return the call in the format of the history."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.text}}


def _json_type(value: object) -> str:
    names = {type(None): "null", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)


def read_call(call: Any) -> ModelCall:
    """Return a tool call of a message; one without an id gets one."""
    function = attribute_of(call, "function")
    raw = attribute_of(function, "arguments")
    return ModelCall(
        id=encodable_value(attribute_of(call, "id"), "The id of a tool call") or f"call_{uuid.uuid4().hex[:24]}",
        name=encodable_value(attribute_of(function, "name"), "The name of a tool call") or "",
        raw=encodable_arguments(raw, _ARGUMENTS) if isinstance(raw, str) else encodable_value(raw, _ARGUMENTS),
    )


def assistant_message(content: str, calls: list[ModelCall], reasoning: str | None) -> dict[str, Any]:
    """Return a reply as the message of the history."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [call.as_dict() for call in calls]
    if reasoning:
        message["reasoning_content"] = reasoning
    return message


def encodable_message(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the prompt, whose text the environment wrote."""
    content = encodable_value(message.get("content"), "A message of the prompt")
    return message if content == message.get("content") else {**message, "content": content}


def message_text(content: Any) -> str:
    """Return the text of a message's content: a string unchanged, content parts joined, None as an empty text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return ""


_ERROR_ALONE = frozenset({"error", "success"})
"""The keys of what hermes' handlers return when they refuse a call, or catch an exception of theirs. Source: hermes-agent 0.19,
``tools.registry.tool_error``."""


def error_of(text: str) -> str:
    """Return the error of a failed call, '' if it did not fail.

    hermes gives the result of a failed call a negative exit code, or an error and nothing else. A command with another exit code,
    or a file that was not found, which is reported with other values, is an answer.
    """
    try:
        result = json.loads(text)
    except ValueError:
        return ""
    if not isinstance(result, dict) or not result.get("error") or result.get("success") is True:
        return ""
    exit_code = result.get("exit_code")
    has_failed = isinstance(exit_code, int) and exit_code < 0
    return str(result["error"]) if has_failed or result.keys() <= _ERROR_ALONE else ""


def multimodal_text(answer: Any) -> str:
    """Return a structured tool result as text; a tool message of chat completions cannot contain images."""
    if isinstance(answer, dict) and isinstance(answer.get("content"), list):
        texts = [part["text"] for part in answer["content"] if isinstance(part, dict) and part.get("type") == "text"]
        omitted = len(answer["content"]) - len(texts)
        return "\n".join([*texts, *(["[image omitted]"] * omitted)])
    return json.dumps(answer, ensure_ascii=False, default=str)


# ---------------------------------------------------------------------- a conversation to read

REASONING_LIMIT, ARGUMENTS_LIMIT, RESULT_LIMIT = 300, 200, 500
"""Maximum characters of a turn's reasoning, a call's arguments, a tool's result."""


def render(messages: Sequence[dict[str, Any]]) -> str:
    """Return a conversation with its roles, reasoning, tool calls and tool results; long parts are cut."""
    return "\n".join(line for message in messages for line in _lines(message))


def _lines(message: dict[str, Any]) -> list[str]:
    role = message.get("role", "unknown")
    content = message_text(message.get("content"))
    if role == "tool":
        return [f"[TOOL RESULT] {_cut(content, RESULT_LIMIT)}"]
    lines = []
    if message.get("reasoning_content"):
        lines.append(f"[REASONING] {_cut(message['reasoning_content'], REASONING_LIMIT)}")
    if content or not message.get("tool_calls"):
        lines.append(f"[{role.upper()}] {content}")
    for call in message.get("tool_calls") or ():
        function = call["function"]
        lines.append(f"[TOOL CALL] {function['name']}({_cut(function['arguments'], ARGUMENTS_LIMIT)})")
    return lines


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
