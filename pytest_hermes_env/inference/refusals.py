"""The requests that OpenAI's API refuses, each with the field that is wrong, and the answers that a request excludes.

Place in the flow: `MockModel` checks each request before it looks for a turn. A real server would never answer such a request, so
neither does the mock. The types are those of the installed ``openai`` package; what its types cannot say is checked here. What a
request allows its answer to be (the offered tools, ``tool_choice``, ``parallel_tool_calls``, ``response_format``), a server enforces
while it samples, so a scripted turn that breaks it is a mistake of the script.
"""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import ScriptError, UnexpectedRequest, shorten
from pytest_hermes_env.inference.conversation import text_of
from pytest_hermes_env.inference.steps import Call, Say, Turn
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
MOST_STOPS, MOST_BIAS = 4, 100
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


def chat_refusal(body: Mapping[str, object], *, engine: str = "any") -> Refusal | None:
    """Return why OpenAI refuses a chat request, or None. Some limits are OpenAI's own: a named ``engine`` has none of them."""
    checked = {"model": "", **_without_nulls(body)}
    if isinstance(messages := checked.get("messages"), list):
        checked["messages"] = [_of_openai(one) if isinstance(one, dict) else one for one in messages]
    found = _misfit("chat", checked) or next(_mistakes(body), None) or next(_of_openai_alone(body, engine), None)
    return None if found is None else openai_refusal(*found)


def completion_refusal(body: Mapping[str, object], *, engine: str = "any") -> Refusal | None:
    """Return why OpenAI refuses a text completion, or None. The prompts are not checked here."""
    found = _misfit("completion", {"model": "", **_without_nulls(body), "prompt": ""}) or next(_out_of_limits(body), None)
    found = found or next(_of_openai_alone(body, engine), None)
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
    if body.get("top_logprobs") is not None and body.get("logprobs") is not True:
        yield "top_logprobs", "requires logprobs: true"
    yield from _bad_choice(body)
    yield from _bad_format(body.get("response_format"), messages)


def _out_of_limits(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, (least, most) in LIMITS.items():
        value = body.get(name)
        if value is not None and not least <= value <= most:  # also NaN
            yield name, f"must be from {least:g}" + ("" if most == float("inf") else f" to {most:g}") + f", got {value}"


def _of_openai_alone(body: Mapping[str, Any], engine: str) -> Iterator[tuple[str, str]]:
    """Yield what OpenAI refuses and an engine accepts, and options of a stream without one, which vLLM refuses, too."""
    if body.get("stream_options") is not None and body.get("stream") is not True and engine != "sglang":
        yield "stream_options", "is only allowed with stream: true"
    if engine != "any":
        return
    if body.get("tools") == []:
        yield "tools", "must not be empty; leave it out"
    if isinstance(stop := body.get("stop"), list) and len(stop) > MOST_STOPS:
        yield "stop", f"must have at most {MOST_STOPS} texts, got {len(stop)}"
    for token, bias in (body.get("logit_bias") or {}).items():
        if not -MOST_BIAS <= bias <= MOST_BIAS:
            yield f"logit_bias.{token}", f"must be from -{MOST_BIAS} to {MOST_BIAS}, got {bias}"
    if None not in (body.get("max_tokens"), body.get("max_completion_tokens")):
        yield "max_tokens", "cannot be set beside max_completion_tokens"


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


def offered_tools(request: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Return the tools of a chat request: name → JSON schema of the arguments, {} for a tool without one."""
    found: dict[str, Mapping[str, object]] = {}
    tools = request.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            found[function["name"]] = parameters if isinstance(parameters, dict) else {}
    return found


def check_calls(turn: Turn, tools: Mapping[str, Mapping[str, object]], *, origin: str) -> None:
    """Check that the turn calls offered tools with arguments of their schemas. ``origin`` names the turn in the error.

    Calls made by `unoffered` are not checked, and calls made by `call_raw` only for their tool.

    Raises: a tool or argument that the request does not offer → ScriptError, which lists the offered ones, nearest first.
    """
    for step in turn.every(Call):
        if not step.is_offered:
            continue
        if step.tool not in tools:
            fix = "offer the tool in the request; if this is a judge question, give the script an answer to it: judge=..."
            if tools:
                fix = "call an offered tool, or use unoffered(call(...)) if the model should make this mistake"
            raise ScriptError(
                f"{origin} calls the tool {step.tool!r}, which this request does not offer.{_near(step.tool, tools)}\n"
                f"  offered   {_listing(nearest_first(step.tool, tools), 'no tools')}\n"
                f"  fix       {fix}"
            )
        known = _known_arguments(tools[step.tool])
        unknown = [name for name in step.names or () if known is not None and name not in known]
        if unknown and known is not None:
            raise ScriptError(
                f"{origin} calls the tool {step.tool!r} with the argument {unknown[0]!r}, which its schema does not have.{_near(unknown[0], known)}\n"
                f"  known     {_listing(nearest_first(unknown[0], known), 'no arguments')}\n"
                "  fix       use a known argument, or unoffered(call(...)) if the model should make this mistake"
            )


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, [*known], n=1, cutoff=0.75)
    return f" Did you mean {near[0]!r}?" if near else ""


def names_of_choice(choice: Any) -> set[str] | None:
    """Return the tools that a valid ``tool_choice`` names, or None if it names none."""
    if not isinstance(choice, dict):
        return None
    if choice["type"] == "allowed_tools":
        return {tool["function"]["name"] for tool in choice["allowed_tools"]["tools"]}
    return {choice[choice["type"]]["name"]}


def schema_of(response_format: Mapping[str, Any]) -> Any:
    """Return the JSON schema that a ``response_format`` requires."""
    if response_format["type"] == "json_object":
        return {"type": "object"}
    return response_format["json_schema"].get("schema") or {}


def constrained(turn: Turn, body: Mapping[str, Any], *, origin: str) -> Turn:
    """Return the turn that a server can answer to a valid chat request: one call, if ``parallel_tool_calls`` is false, as by vLLM.

    Raises: the turn says what ``tool_choice`` or ``response_format`` excludes → ScriptError.
    """
    if turn.replaces_answer:
        return turn
    calls, choice = turn.every(Call), body.get("tool_choice")
    named = names_of_choice(choice)
    mode = choice["allowed_tools"]["mode"] if isinstance(choice, dict) and choice["type"] == "allowed_tools" else choice
    strange = next((step.tool for step in calls if named is not None and step.tool not in named), None)
    if (calls and mode == "none") or strange is not None or (not calls and mode not in (None, "none", "auto")):
        raise ScriptError(
            f"{origin} calls {strange or ', '.join(step.tool for step in calls) or 'no tool'}, "
            "which no server answers to this request.\n"
            f"  expected  {'no call' if mode == 'none' else 'a call of ' + ' or '.join(sorted(named)) if named else 'a call'}, "
            f"because of tool_choice={choice!r}\n"
            "  fix       correct the turn, or the tool_choice of the request"
        )
    if not calls:
        _check_format(turn, body.get("response_format"), origin)
    if body.get("parallel_tool_calls") is False:
        return replace(turn, steps=tuple(step for step in turn.steps if not isinstance(step, Call) or step is calls[0]))
    return turn


def _check_format(turn: Turn, wanted: Any, origin: str) -> None:
    if wanted is None or wanted["type"] == "text":
        return
    from jsonschema import Draft202012Validator, ValidationError  # noqa: PLC0415 -- takes 400 ms

    said = turn.only(Say)
    text = "" if said is None else said.text
    try:
        Draft202012Validator(schema_of(wanted)).validate(json.loads(text))
    except (ValueError, RecursionError, ValidationError) as exc:
        why = exc.message if isinstance(exc, ValidationError) else f"it is not JSON ({exc})"
        raise ScriptError(
            f"{origin} says what no server answers to this request: {shorten(why)}.\n"
            f"  expected  JSON that the response_format of type {wanted['type']!r} allows\n"
            f"  seen      {shorten(repr(text))}\n"
            "  fix       let the turn say such JSON, or remove response_format from the request"
        ) from exc


def nearest_first(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words, most similar to ``word`` first; equally similar ones in their given order."""
    return sorted(known, key=lambda name: -difflib.SequenceMatcher(None, word, name).ratio())


def _known_arguments(schema: Mapping[str, object]) -> list[str] | None:
    """Return the argument names of the schema, or None if it allows any."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("additionalProperties", False) is not False:
        return None
    return list(properties)


def _listing(names: list[str], nothing: str) -> str:
    return shorten(", ".join(names)) if names else nothing
