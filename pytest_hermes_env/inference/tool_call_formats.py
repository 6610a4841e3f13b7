"""The text formats in which model families write tool calls: one function per format.

Place in the flow: token mode converts a scripted turn to the text that a model of the family would have sampled. The environment
under test parses these formats; nothing is shared with its parsers, so a mistake on one side shows. Arguments are written as in
the script, including malformed ones (`call_raw`).
Source: the formats that the families' own chat templates document.
"""

# ruff: noqa: RUF001 -- DeepSeek writes its tokens with these characters
from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.inference.steps import Call

__all__ = ["CALL_FORMATS", "CallFormat", "call_format"]

CallFormat: TypeAlias = Callable[[Sequence[Call], int], str]
"""``(calls of one turn, number of calls in earlier turns) -> text``."""


def call_format(name: str) -> CallFormat:
    """Return the function that writes the format of this name. The parser of the format has the same name.

    Raises: an unknown name → UsageError, which lists the known ones.
    """
    if name not in CALL_FORMATS:
        raise UsageError(
            f"the mock model has no tool-call format {shorten(repr(name))}.\n  known     {', '.join(CALL_FORMATS)}"
        )
    return CALL_FORMATS[name]


def _hermes(calls: Sequence[Call], _: int) -> str:
    return _tagged(calls, "tool_call")


def _longcat(calls: Sequence[Call], _: int) -> str:
    return _tagged(calls, "longcat_tool_call")


def _tagged(calls: Sequence[Call], tag: str) -> str:
    return "\n".join(f"<{tag}>\n{_object(step, 'arguments')}\n</{tag}>" for step in calls)


def _mistral(calls: Sequence[Call], earlier: int) -> str:
    # An id has nine letters and digits and is unique within a conversation.
    entries = (
        f'{{"name": {_name(step)}, "arguments": {step.arguments_text}, "id": "call{earlier + place:05d}"}}'
        for place, step in enumerate(calls)
    )
    return f"[TOOL_CALLS][{', '.join(entries)}]"


def _llama_json(calls: Sequence[Call], _: int) -> str:
    return "; ".join(_object(step, "parameters") for step in calls)


def _deepseek_v3(calls: Sequence[Call], _: int) -> str:
    return _deepseek(f"function<｜tool▁sep｜>{step.tool}\n```json\n{step.arguments_text}\n```" for step in calls)


def _deepseek_v3_1(calls: Sequence[Call], _: int) -> str:
    return _deepseek((f"{step.tool}<｜tool▁sep｜>{step.arguments_text}" for step in calls), between="")


def _deepseek(entries: Iterable[str], between: str = "\n") -> str:
    marked = (f"<｜tool▁call▁begin｜>{entry}<｜tool▁call▁end｜>" for entry in entries)
    return f"<｜tool▁calls▁begin｜>{between.join(marked)}<｜tool▁calls▁end｜>"


def _kimi_k2(calls: Sequence[Call], earlier: int) -> str:
    entries = (
        f"<|tool_call_begin|>functions.{step.tool}:{earlier + place}"
        f"<|tool_call_argument_begin|>{step.arguments_text}<|tool_call_end|>"
        for place, step in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{''.join(entries)}<|tool_calls_section_end|>"


def _glm45(calls: Sequence[Call], _: int) -> str:
    return _keys_and_values(calls, "\n")


def _glm47(calls: Sequence[Call], _: int) -> str:
    return _keys_and_values(calls, "")


def _keys_and_values(calls: Sequence[Call], gap: str) -> str:
    texts = []
    for step in calls:
        arguments = _arguments(step)
        if arguments is None:
            body = f"{gap}{step.arguments_text}"
        else:
            pairs = ((key, _bare(value)) for key, value in arguments.items())
            body = "".join(f"{gap}<arg_key>{key}</arg_key>{gap}<arg_value>{value}</arg_value>" for key, value in pairs)
        texts.append(f"<tool_call>{step.tool}{body}{gap}</tool_call>")
    return "\n".join(texts)


def _qwen3_coder(calls: Sequence[Call], _: int) -> str:
    texts = []
    for step in calls:
        arguments = _arguments(step)
        if arguments is None:
            body = f"{step.arguments_text}\n"
        else:
            body = "".join(f"<parameter={key}>\n{_bare(value)}\n</parameter>\n" for key, value in arguments.items())
        texts.append(f"<tool_call>\n<function={step.tool}>\n{body}</function>\n</tool_call>")
    return "\n".join(texts)


def _object(step: Call, arguments: str) -> str:
    return f'{{"name": {_name(step)}, "{arguments}": {step.arguments_text}}}'


def _name(step: Call) -> str:
    return json.dumps(step.tool, ensure_ascii=False)


def _arguments(step: Call) -> dict[str, object] | None:
    """Return the arguments, or None if their text is not a JSON object and can only be written as it is."""
    try:
        value = json.loads(step.arguments_text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _bare(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


CALL_FORMATS: Mapping[str, CallFormat] = MappingProxyType(
    {
        "hermes": _hermes,
        "qwen": _hermes,
        "longcat": _longcat,
        "mistral": _mistral,
        "llama3_json": _llama_json,
        "llama4_json": _llama_json,
        "deepseek_v3": _deepseek_v3,
        "deepseek_v3_1": _deepseek_v3_1,
        "deepseek_v31": _deepseek_v3_1,
        "kimi_k2": _kimi_k2,
        "glm45": _glm45,
        "glm47": _glm47,
        "qwen3_coder": _qwen3_coder,
    }
)
"""The formats by the names of their parsers."""
