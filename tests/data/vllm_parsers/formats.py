"""The published formats, as renderers: calls to the text that a model of each family writes.

Standard library only: `regenerate.py` runs it beside vLLM, the tests run it beside our parsers. The layouts are those of the families'
chat templates.
"""

# ruff: noqa: RUF001 - DeepSeek's tokens hold a full-width bar

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Call:
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Format:
    """One layout. ``parts`` gives the section's beginning, one text per call, and the section's end."""

    name: str
    ours: tuple[str, ...]  # names of our parsers that read it
    vllm: str  # name of vLLM's
    parts: Callable[[Sequence[Call]], tuple[str, list[str], str]]
    separator: str = ""
    vocabulary: tuple[str, ...] = ()  # special tokens that vLLM's parser looks for
    think: tuple[str, str] = ("<think>", "</think>")
    is_typed_by_schema: bool = False  # values are plain text
    forbidden: tuple[str, ...] = field(default=())  # what a text value cannot hold: the format has no escapes

    def render(self, calls: Sequence[Call], between: str | None = None) -> str:
        begin, texts, end = self.parts(calls)
        return begin + (self.separator if between is None else between).join(texts) + end


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else dump(value)


def hermes(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    texts = [f"<tool_call>\n{dump({'name': call.name, 'arguments': call.arguments})}\n</tool_call>" for call in calls]
    return "", texts, ""


def longcat(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    texts = [
        f'<longcat_tool_call>{{"name": {dump(c.name)}, "arguments": {dump(c.arguments)}}}</longcat_tool_call>' for c in calls
    ]
    return "", texts, ""


def mistral_array(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    return "[TOOL_CALLS] [", [dump({"name": call.name, "arguments": call.arguments}) for call in calls], "]"


def mistral_v11(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    return "", [f"[TOOL_CALLS]{call.name}{dump(call.arguments)}" for call in calls], ""


def mistral_v13(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    return "", [f"[TOOL_CALLS]{call.name}[ARGS]{dump(call.arguments)}" for call in calls], ""


def llama3(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    return "", [dump({"name": call.name, "parameters": call.arguments}) for call in calls], ""


def llama4(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    return "<|python_tag|>", [dump({"name": call.name, "arguments": call.arguments}) for call in calls], ""


def deepseek_v3(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    texts = [
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{c.name}\n```json\n{dump(c.arguments)}\n```<｜tool▁call▁end｜>"
        for c in calls
    ]
    return "<｜tool▁calls▁begin｜>", texts, "<｜tool▁calls▁end｜>"


def deepseek_v31(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    texts = [f"<｜tool▁call▁begin｜>{c.name}<｜tool▁sep｜>{dump(c.arguments)}<｜tool▁call▁end｜>" for c in calls]
    return "<｜tool▁calls▁begin｜>", texts, "<｜tool▁calls▁end｜>"


def kimi_k2(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    texts = [
        f"<|tool_call_begin|>functions.{c.name}:{index}<|tool_call_argument_begin|>{dump(c.arguments)}<|tool_call_end|>"
        for index, c in enumerate(calls)
    ]
    return "<|tool_calls_section_begin|>", texts, "<|tool_calls_section_end|>"


def glm45(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    texts = []
    for call in calls:
        pairs = [
            f"<arg_key>{key}</arg_key>\n<arg_value>{as_text(value)}</arg_value>\n" for key, value in call.arguments.items()
        ]
        texts.append(f"<tool_call>{call.name}\n{''.join(pairs)}</tool_call>")
    return "", texts, ""


def glm47(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    texts = []
    for call in calls:
        pairs = [f"<arg_key>{key}</arg_key><arg_value>{as_text(value)}</arg_value>" for key, value in call.arguments.items()]
        texts.append(f"<tool_call>{call.name}{''.join(pairs)}</tool_call>")
    return "", texts, ""


def qwen3_coder(calls: Sequence[Call]) -> tuple[str, list[str], str]:
    texts = []
    for call in calls:
        values = [f"<parameter={key}>\n{as_text(value)}\n</parameter>\n" for key, value in call.arguments.items()]
        texts.append(f"<tool_call>\n<function={call.name}>\n{''.join(values)}</function>\n</tool_call>")
    return "", texts, ""


_DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>")
_KIMI = (
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
)
_TOOL_TAGS = ("<tool_call>", "</tool_call>")
_THINK = ("<think>", "</think>")
_GLM = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")

FORMATS = (
    Format(name="hermes", ours=("hermes", "qwen"), vllm="hermes", parts=hermes, separator="\n", vocabulary=_TOOL_TAGS),
    Format(
        name="longcat",
        ours=("longcat",),
        vllm="longcat",
        parts=longcat,
        separator="\n",
        vocabulary=("<longcat_tool_call>", "</longcat_tool_call>"),
        think=("<longcat_think>", "</longcat_think>"),
    ),
    Format(
        name="mistral_array",
        ours=("mistral",),
        vllm="mistral",
        parts=mistral_array,
        separator=", ",
        vocabulary=("[TOOL_CALLS]",),
    ),
    Format(
        name="mistral_v11",
        ours=("mistral",),
        vllm="mistral",
        parts=mistral_v11,
        vocabulary=("[TOOL_CALLS]", "[ARGS]"),
    ),
    Format(
        name="mistral_v13",
        ours=("mistral",),
        vllm="mistral",
        parts=mistral_v13,
        vocabulary=("[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"),
        think=("[THINK]", "[/THINK]"),
    ),
    Format(
        name="llama3_json",
        ours=("llama3_json", "llama4_json"),
        vllm="llama3_json",
        parts=llama3,
        separator="; ",
        vocabulary=("<|python_tag|>",),
    ),
    Format(
        name="llama4_json",
        ours=("llama4_json", "llama3_json"),
        vllm="llama4_json",
        parts=llama4,
        separator="\n",
        vocabulary=("<|python_tag|>",),
    ),
    Format(
        name="deepseek_v3", ours=("deepseek_v3",), vllm="deepseek_v3", parts=deepseek_v3, separator="\n", vocabulary=_DEEPSEEK
    ),
    Format(
        name="deepseek_v31",
        ours=("deepseek_v31", "deepseek_v3_1"),
        vllm="deepseek_v31",
        parts=deepseek_v31,
        vocabulary=_DEEPSEEK,
    ),
    Format(name="kimi_k2", ours=("kimi_k2",), vllm="kimi_k2", parts=kimi_k2, vocabulary=(*_KIMI, *_THINK)),
    Format(
        name="glm45",
        ours=("glm45", "glm47"),
        vllm="glm45",
        parts=glm45,
        separator="\n",
        vocabulary=(*_TOOL_TAGS, *_THINK),
        is_typed_by_schema=True,
        forbidden=_GLM,
    ),
    Format(
        name="glm47",
        ours=("glm47", "glm45"),
        vllm="glm47",
        parts=glm47,
        vocabulary=(*_TOOL_TAGS, *_THINK),
        is_typed_by_schema=True,
        forbidden=_GLM,
    ),
    Format(
        name="qwen3_coder",
        ours=("qwen3_coder",),
        vllm="qwen3_coder",
        parts=qwen3_coder,
        separator="\n",
        vocabulary=(*_TOOL_TAGS, *_THINK),
        is_typed_by_schema=True,
        forbidden=("<parameter=", "</parameter>"),
    ),
)


def schema(name: str, **parameters: Any) -> dict[str, Any]:
    """The schema of a tool, in OpenAI's format."""
    return {
        "type": "function",
        "function": {"name": name, "description": "", "parameters": {"type": "object", "properties": parameters}},
    }


TEXT, WHOLE, NUMBER, TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}

TOOLS = [
    schema("terminal", command=TEXT, timeout=WHOLE, background=TRUTH),
    schema("write_file", path=TEXT, content=TEXT),
    schema("read_file", path=TEXT, offset=WHOLE, limit={"anyOf": [WHOLE, {"type": "null"}]}),
    schema(
        "release",
        version=TEXT,
        ratio=NUMBER,
        tags={"type": "array", "items": TEXT},
        options={"type": "object", "properties": {"draft": TRUTH, "label": TEXT}},
        stage={"enum": ["alpha", "beta", 1]},
        note={"type": ["string", "null"]},
    ),
    schema("get_time"),
    schema("mcp.files-v2_list", root=TEXT, depth=WHOLE),
]
