"""The requests that OpenAI's API refuses, each with the field that is wrong.

Place in the flow: `MockModel` checks each request before it looks for a turn. A real server would never answer such a request, so
neither does the mock. The types are those of the installed ``openai`` package; what its types cannot say is checked here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import UnexpectedRequest, shorten
from pytest_hermes_env.inference.conversation import text_of
from pytest_hermes_env.inference.offered_tools import names_of_choice, offered_tools, schema_of
from pytest_hermes_env.inference.wire import error_body

if TYPE_CHECKING:
    from pytest_hermes_env.types import JsonObject

BAD_REQUEST, SERVER_ERROR = 400, 500
LIMITS: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "max_tokens": (1, float("inf")),
    "max_completion_tokens": (1, float("inf")),
    "top_logprobs": (0, 20),
    "n": (1, 128),
}
"""The least and the largest value of a field."""
TAGS = frozenset({"role", "type"})
"""Fields that say which of several types an object has."""
PARTS_OF_VLLM = frozenset({"audio_url", "video_url"})
"""Parts of a content that vLLM has beyond OpenAI's."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why ``server`` refuses a request: ``field`` is the wrong one, such as ``messages[1].role``. ``body`` is its whole answer."""

    server: str
    status: int
    body: JsonObject | str
    field: str
    why: str

    def error(self, path: str) -> UnexpectedRequest:
        """Return the error of the mock model for this request."""
        return UnexpectedRequest(
            f"the request to {path} is one that {self.server} refuses with status {self.status}.\n"
            f"  field     {self.field}\n"
            f"  seen      {self.why}\n"
            "  fix       correct the request; hermes-env docs mock-model lists what is refused"
        )


def chat_refusal(body: Mapping[str, object]) -> Refusal | None:
    """Return why OpenAI refuses a chat request, or None."""
    checked = {"model": "", **_without_nulls(body)}
    if isinstance(messages := checked.get("messages"), list):
        checked["messages"] = [_of_openai(one) if isinstance(one, dict) else one for one in messages]
    found = _misfit("chat", checked) or next(_mistakes(body), None)
    return None if found is None else openai_refusal(*found)


def completion_refusal(body: Mapping[str, object]) -> Refusal | None:
    """Return why OpenAI refuses a text completion, or None. The prompts are not checked here."""
    found = _misfit("completion", {"model": "", **_without_nulls(body), "prompt": ""}) or next(_out_of_limits(body), None)
    return None if found is None else openai_refusal(*found)


def openai_refusal(field: str, why: str) -> Refusal:
    """Return the refusal of a field, in the format of OpenAI's errors."""
    body = error_body(f"{field}: {why}", kind="invalid_request_error", param=field)
    return Refusal(server="OpenAI", status=BAD_REQUEST, body=body, field=field, why=why)


def _without_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are set: null stands for the default."""
    return {name: value for name, value in values.items() if value is not None}


def _of_openai(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without nulls, except its content, and without the parts that only vLLM has."""
    checked = _without_nulls(message) | ({"content": message["content"]} if "content" in message else {})
    if isinstance(checked.get("content"), list):
        checked["content"] = [
            {"type": "text", "text": ""} if isinstance(part, dict) and part.get("type") in PARTS_OF_VLLM else part
            for part in checked["content"]
        ]
    return checked


def _misfit(kind: str, body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the field that does not fit the types of the openai package, and why."""
    from pydantic_core import ValidationError  # noqa: PLC0415 -- takes 20 ms

    is_stream = body.get("stream") is True  # a type of its own, which has the same fields
    try:
        _validate(kind)({**body, "stream": False} if is_stream else body)
    except ValidationError as error:
        return _field_of(error.errors(include_url=False), body)
    return None


def load_types() -> None:
    """Load the types of the openai package now, not with the first request."""
    _validate("chat")


@functools.cache
def _validate(kind: str) -> Callable[[Any], object]:
    from openai.types import completion_create_params  # noqa: PLC0415 -- takes half a second, unless a client is loaded
    from openai.types.chat import completion_create_params as chat  # noqa: PLC0415
    from pydantic import TypeAdapter  # noqa: PLC0415
    from pydantic_core import SchemaValidator  # noqa: PLC0415

    module: Any = completion_create_params if kind == "completion" else chat
    schema: Any = TypeAdapter(module.CompletionCreateParamsNonStreaming).core_schema
    return functools.partial(SchemaValidator(_with_lists(schema)).validate_python, strict=True)


def _with_lists(schema: Any) -> Any:
    """Return a schema whose iterables are lists: pydantic does not look into the items of an iterable."""
    if isinstance(schema, dict):
        made = {name: _with_lists(part) for name, part in schema.items()}
        return {**made, "type": "list"} if made.get("type") == "generator" else made
    return type(schema)(map(_with_lists, schema)) if isinstance(schema, list | tuple) else schema


def _field_of(errors: Sequence[Any], body: Mapping[str, Any]) -> tuple[str, str]:
    """Return field and reason of the error that concerns the type that the request means.

    Of a union, pydantic reports the errors of every type; those whose role or type differs are not meant.
    """
    others = [error["loc"][:-1] for error in errors if _is_tag(error)]
    meant = [
        error
        for error in errors
        if not any(
            error["loc"][: len(other)] == other for other in others if not (_is_tag(error) and other == error["loc"][:-1])
        )
    ]
    chosen = max(meant or errors, key=lambda error: (len(_path(error, body)), not _is_tag(error)))
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in _path(chosen, body)).lstrip(".")
    seen = "" if chosen["type"] == "missing" else f", got {shorten(repr(chosen['input']))}"
    return field, f"{chosen['msg'][0].lower()}{chosen['msg'][1:]}{seen}"


def _is_tag(error: Mapping[str, Any]) -> bool:
    return bool(error["type"] == "literal_error" and error["loc"][-1] in TAGS)


def _path(error: Mapping[str, Any], body: Any) -> list[str | int]:
    """Return the place of an error in the body, without pydantic's names of types."""
    path: list[str | int] = []
    *parts, last = error["loc"]
    for part in (*parts, last):
        if (isinstance(body, dict) and part in body) or (isinstance(body, list) and isinstance(part, int)):
            body = body[part]
            path.append(part)
    return [*path, last] if error["type"] == "missing" else path


def _mistakes(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong in a request whose types are right: the field, and why."""
    messages = body["messages"]
    if not messages:
        yield "messages", "must have at least one message"
    yield from _bad_messages(messages)
    yield from _out_of_limits(body)
    yield from _bad_choice(body)
    yield from _bad_format(body.get("response_format"), messages)


def _out_of_limits(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, (least, most) in LIMITS.items():
        value = body.get(name)
        if value is not None and not least <= value <= most:  # also NaN
            yield name, f"must be from {least:g}" + ("" if most == float("inf") else f" to {most:g}") + f", got {value}"


def _bad_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield contents that are missing, calls without results, and results without calls."""
    known: list[object] = []
    waiting: list[object] = []
    for place, message in enumerate([*messages, {"role": "end of the request"}]):
        where = f"messages[{place}]"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                why = (
                    "has a result already"
                    if message["tool_call_id"] in known
                    else "is not a call of the assistant message before"
                )
                yield f"{where}.tool_call_id", f"{message['tool_call_id']!r} {why}"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"{where}.role", f"the calls {', '.join(map(str, waiting))} have no result yet: a tool message must follow"
        calls = message.get("tool_calls")
        if calls == []:
            yield f"{where}.tool_calls", "must not be empty; leave it out"
        if message["role"] == "assistant" and not calls and message.get("content") is None:
            yield f"{where}.content", "must be text in a message without calls, got null"
        known = [one["id"] for one in calls or ()]
        waiting = list(known)


def _bad_choice(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    offered = offered_tools(body)
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not offered:
            yield name, "is only allowed in a request with tools"
    unknown = sorted((names_of_choice(body.get("tool_choice")) or set()) - offered.keys())
    if unknown:
        yield "tool_choice", f"names {unknown[0]!r}, which is not in 'tools'"


def _bad_format(wanted: Any, messages: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, str]]:
    if wanted is None or wanted["type"] == "text":
        return
    if wanted["type"] == "json_object":
        if not any("json" in text_of(one).lower() for one in messages):
            yield "messages", "must contain the word 'json' for a response_format of the type 'json_object'"
        return
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 -- takes 400 ms

    try:
        Draft202012Validator.check_schema(schema_of(wanted))
    except SchemaError as error:
        yield "response_format", f"has an invalid schema: {error.message}"
