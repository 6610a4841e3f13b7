"""The text formats in which model families write tool calls, as one table.

Place in the flow: token mode converts a scripted turn to the text that a model of the family would have sampled. The environment
under test parses these formats; nothing is shared with its parsers, so a mistake on one side shows. Arguments are written as in
the script, including malformed ones (`call_raw`).
Source: the formats that the families' own chat templates document.
"""

# ruff: noqa: RUF001 -- DeepSeek writes its tokens with these characters
from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.inference.steps import Call


@dataclass(frozen=True, kw_only=True)
class CallFormat:
    """How a family writes the calls of one turn. ``entry`` writes one call, given its number in the conversation, from 0."""

    entry: Callable[[Call, int], str]
    opening: str = ""
    between: str = "\n"
    closing: str = ""
    thought: str | None = None
    """How the family writes a thought, if not as the others with its template."""

    def __call__(self, calls: Sequence[Call], earlier: int) -> str:
        """Return the text of the calls. ``earlier``: the number of calls in earlier turns."""
        entries = (self.entry(step, number) for number, step in enumerate(calls, start=earlier))
        return f"{self.opening}{self.between.join(entries)}{self.closing}"


def call_format(name: str) -> CallFormat:
    """Return the format of this name. The parser of the format has the same name.

    Raises: an unknown name → UsageError, which lists the known ones.
    """
    if name not in CALL_FORMATS:
        raise UsageError(
            f"the mock model has no tool-call format {shorten(repr(name))}.\n  known     {', '.join(CALL_FORMATS)}"
        )
    return CALL_FORMATS[name]


def _object(step: Call, *, arguments: str = "arguments", more: str = "") -> str:
    return f'{{"name": {json.dumps(step.tool, ensure_ascii=False)}, "{arguments}": {step.arguments_text}{more}}}'


def _keys_and_values(step: Call, _: int, *, gap: str) -> str:
    arguments = _arguments(step)
    if arguments is None:
        body = f"{gap}{step.arguments_text}"
    else:
        pairs = ((key, _bare(value)) for key, value in arguments.items())
        body = "".join(f"{gap}<arg_key>{key}</arg_key>{gap}<arg_value>{value}</arg_value>" for key, value in pairs)
    return f"<tool_call>{step.tool}{body}{gap}</tool_call>"


def _parameters(step: Call, _: int) -> str:
    arguments = _arguments(step)
    if arguments is None:
        body = f"{step.arguments_text}\n"
    else:
        body = "".join(f"<parameter={key}>\n{_bare(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={step.tool}>\n{body}</function>\n</tool_call>"


def _arguments(step: Call) -> dict[str, object] | None:
    """Return the arguments, or None if their text is not a JSON object and can only be written as it is."""
    try:
        value = json.loads(step.arguments_text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _bare(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_HERMES = CallFormat(entry=lambda step, _: f"<tool_call>\n{_object(step)}\n</tool_call>")
_LLAMA = CallFormat(entry=lambda step, _: _object(step, arguments="parameters"), between="; ")
_DEEPSEEK_V3 = CallFormat(
    entry=lambda step, _: (
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{step.tool}\n```json\n{step.arguments_text}\n```<｜tool▁call▁end｜>"
    ),
    opening="<｜tool▁calls▁begin｜>",
    closing="<｜tool▁calls▁end｜>",
)
_DEEPSEEK_V3_1 = replace(
    _DEEPSEEK_V3,
    entry=lambda step, _: f"<｜tool▁call▁begin｜>{step.tool}<｜tool▁sep｜>{step.arguments_text}<｜tool▁call▁end｜>",
    between="",
)

CALL_FORMATS: Mapping[str, CallFormat] = MappingProxyType(
    {
        "hermes": _HERMES,
        "qwen": _HERMES,
        "longcat": CallFormat(
            entry=lambda step, _: f"<longcat_tool_call>\n{_object(step)}\n</longcat_tool_call>",
            thought="<longcat_think>\n{}\n</longcat_think>\n",
        ),
        "mistral": CallFormat(
            # An id has nine letters and digits and is unique within a conversation.
            entry=lambda step, number: _object(step, more=f', "id": "call{number:05d}"'),
            opening="[TOOL_CALLS][",
            between=", ",
            closing="]",
        ),
        "llama3_json": _LLAMA,
        "llama4_json": _LLAMA,
        "deepseek_v3": _DEEPSEEK_V3,
        "deepseek_v3_1": _DEEPSEEK_V3_1,
        "deepseek_v31": _DEEPSEEK_V3_1,
        "kimi_k2": CallFormat(
            entry=lambda step, number: (
                f"<|tool_call_begin|>functions.{step.tool}:{number}"
                f"<|tool_call_argument_begin|>{step.arguments_text}<|tool_call_end|>"
            ),
            opening="<|tool_calls_section_begin|>",
            between="",
            closing="<|tool_calls_section_end|>",
        ),
        "glm45": CallFormat(entry=partial(_keys_and_values, gap="\n")),
        "glm47": CallFormat(entry=partial(_keys_and_values, gap="")),
        "qwen3_coder": CallFormat(entry=_parameters),
    }
)
"""The formats by the names of their parsers."""
