"""The chat templates of token mode, and how the models of each template end turns, reason and call tools.

The templates are this project's own and short. They match the families' templates in everything that affects tokens.
Standard library only: the mock model reads this table before it loads a tokenizer.
"""

# ruff: noqa: RUF001 -- DeepSeek writes its tokens with these characters
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from pytest_hermes_env.errors import UsageError, shorten

DEFAULT_TEMPLATE = "chatml"
TEMPLATE_DIRECTORY = Path(__file__).parent / "chat_templates"
Results: TypeAlias = Literal["plain", "tagged", "JSON", "after its id", "named"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Template:
    """One chat template and the conventions of its models.

    ``family``: the models' tool-call format, a name of `pytest_hermes_env.inference.tool_call_formats.CALL_FORMATS`; ``relatives``:
    formats of other models with this template.
    ``end``, ``end_of_calls``: the end-of-turn token of an answer, and of an answer with tool calls, if that is another; ``eos``: likewise.
    ``special``: tokens that ``skip_special_tokens`` removes; ``marks``: tokens that it keeps.
    ``begin``: the first token that the template writes, and that the tokenizer adds to every text that it encodes.
    """

    name: str
    family: str
    relatives: tuple[str, ...] = ()
    end: str
    end_of_calls: str = ""
    eos: str = ""
    pad: str
    special: tuple[str, ...]
    marks: tuple[str, ...] = ()
    begin: str | None = None
    source: str | None
    """The file in chat_templates; None for a tokenizer without a chat template."""

    tools: Literal["in the system message", "in the first user message", "before the last user message", "not at all"] = (
        "in the system message"
    )

    thought: str = "<think>\n{}\n</think>\n\n"
    """How a model of the family writes reasoning; below: what it writes without reasoning, before the answer, and before calls."""
    no_thought: str = ""
    before_answer: str = ""
    before_calls: str = ""

    openings: Mapping[str, str] = field(default_factory=dict)
    """Text at the beginning of a message → its role; ``tools`` for a part that only declares tools."""
    closings: tuple[str, ...] = ()
    results: Results = "plain"
    """How a tool result is written: as it is, in ``<tool_response>``, as a JSON string, or after the id of its call or its name."""
    tools_heading: str | None = None
    """The text that begins the tool declarations in a message."""
    preamble: str = r"\A(?!)"
    """A pattern of what the template itself writes at the beginning of a system message."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values that the source uses. ``opening``: the tag with which it opens the thought of the next answer."""

    def __post_init__(self) -> None:
        for name in ("end_of_calls", "eos"):
            object.__setattr__(self, name, getattr(self, name) or self.end)


def template_named(name: str) -> Template:
    """Return the template of that name, including faulty ones.

    Raises: an unknown name → UsageError, which lists the known ones.
    """
    every = {**TEMPLATES, **FAULTY_TEMPLATES}
    if name not in every:
        raise UsageError(
            f"there is no chat template {shorten(repr(name))}.\n"
            f"  known     {', '.join(TEMPLATES)}; faulty on purpose: {', '.join(FAULTY_TEMPLATES)}"
        )
    return every[name]


def template_of_family(family: str) -> Template:
    """Return the template of the models that use this tool-call format; ChatML if there is none."""
    fitting = (one for one in TEMPLATES.values() if family == one.family or family in one.relatives)
    return next(fitting, TEMPLATES[DEFAULT_TEMPLATE])


def chat_template(template: Template) -> str | None:
    """Return the Jinja source, or None for a tokenizer without a chat template."""
    if template.source is None:
        return None
    values = [f"{{%- set {name} = {json.dumps(value)} -%}}" for name, value in template.variables.items()]
    files = [(TEMPLATE_DIRECTORY / name).read_text(encoding="utf-8") for name in ("_macros.jinja", template.source)]
    return "".join([*values, *files])


HERMES_MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")

_CHATML = Template(
    name="chatml",
    family="hermes",
    end="<|im_end|>",
    pad="<|endoftext|>",
    special=("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    marks=HERMES_MARKS,
    source="chatml.jinja",
    thought="<think>\n{}\n</think>\n",
    before_calls="\n",
    openings={f"<|im_start|>{role}\n": role for role in ("system", "user", "assistant", "tool")},
    closings=("<|im_end|>\n", "<|im_end|>"),
    results="tagged",
    tools_heading="# Tools",
)

_DEEPSEEK = Template(
    name="deepseek",
    family="deepseek_v3",
    relatives=("deepseek_v3_1", "deepseek_v31"),
    end="<｜end▁of▁sentence｜>",
    pad="<｜▁pad▁｜>",
    begin="<｜begin▁of▁sentence｜>",
    special=("<｜▁pad▁｜>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    marks=(
        "<think>",
        "</think>",
        "<｜User｜>",
        "<｜Assistant｜>",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁outputs▁begin｜>",
        "<｜tool▁outputs▁end｜>",
        "<｜tool▁output▁begin｜>",
        "<｜tool▁output▁end｜>",
        "<｜tool▁sep｜>",
    ),
    source="deepseek.jinja",
    openings={
        "<｜begin▁of▁sentence｜>": "system",
        "<｜User｜>": "user",
        "<｜Assistant｜>": "assistant",
        "<｜tool▁output▁begin｜>": "tool",
        "<｜tool▁outputs▁end｜>": "assistant",
    },
    closings=("<｜tool▁outputs▁begin｜>", "<｜end▁of▁sentence｜>", "<｜tool▁output▁end｜>\n", "<｜tool▁output▁end｜>"),
    tools_heading="## Tools",
)

_GLM = Template(
    name="glm",
    family="glm45",
    end="<|user|>",  # its models end a turn with the first token of the next one
    end_of_calls="<|observation|>",
    eos="<|endoftext|>",
    pad="<|endoftext|>",
    special=("<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
    marks=(*HERMES_MARKS, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    source="glm.jinja",
    thought="\n<think>{}</think>",
    no_thought="\n<think></think>",
    before_answer="\n",
    before_calls="\n",
    openings={"<|system|>\n": "system", "<|user|>\n": "user", "<|assistant|>": "assistant", "<|observation|>": "tool"},
    results="tagged",
    tools_heading="# Tools",
    variables={"gap": "\n", "no_thought": "\n<think></think>"},
)

_EVERY = (
    _CHATML,
    replace(
        _CHATML,
        name="qwen3",
        relatives=("qwen",),
        source="qwen3.jinja",
        thought="<think>\n{}\n</think>\n\n",
    ),
    replace(
        _CHATML,
        name="qwen3_5",
        family="qwen3_coder",
        source="qwen3_5.jinja",
        thought="<think>\n{}\n</think>\n\n",
        before_calls="\n\n",
    ),
    Template(
        name="mistral",
        family="mistral",
        end="</s>",
        pad="<pad>",
        begin="<s>",
        special=(
            "<pad>",
            "<s>",
            "</s>",
            "[INST]",
            "[/INST]",
            "[SYSTEM_PROMPT]",
            "[/SYSTEM_PROMPT]",
            "[AVAILABLE_TOOLS]",
            "[/AVAILABLE_TOOLS]",
            "[TOOL_CALLS]",
            "[TOOL_RESULTS]",
            "[TOOL_CONTENT]",
            "[/TOOL_RESULTS]",
        ),
        marks=("[THINK]", "[/THINK]"),
        source="mistral.jinja",
        thought="[THINK]{}[/THINK]",
        tools="before the last user message",
        openings={
            "[SYSTEM_PROMPT]": "system",
            "[AVAILABLE_TOOLS]": "tools",
            "[INST]": "user",
            "[/INST]": "assistant",
            "[TOOL_RESULTS]": "tool",
            "[/TOOL_RESULTS]": "assistant",
        },
        closings=("[/SYSTEM_PROMPT]", "[/AVAILABLE_TOOLS]", "</s>"),
        results="after its id",
    ),
    Template(
        name="llama3",
        family="llama3_json",
        relatives=("llama4_json",),
        end="<|eot_id|>",
        pad="<|finetune_right_pad_id|>",
        begin="<|begin_of_text|>",
        special=(
            "<|finetune_right_pad_id|>",
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eot_id|>",
            "<|eom_id|>",
            "<|python_tag|>",
        ),
        source="llama3.jinja",
        tools="in the first user message",
        before_calls="<|python_tag|>",
        openings={
            f"<|start_header_id|>{header}<|end_header_id|>\n\n": role
            for header, role in {"system": "system", "user": "user", "assistant": "assistant", "ipython": "tool"}.items()
        },
        closings=("<|eot_id|>", "<|eom_id|>"),
        results="JSON",
        preamble=r"\A(?:Environment: ipython\n)?Cutting Knowledge Date: .*\nToday Date: .*\n\n",
        tools_heading="Given the following functions",
    ),
    _DEEPSEEK,
    replace(_DEEPSEEK, name="deepseek_r1", relatives=(), variables={"opening": "<think>\n"}),
    _GLM,
    replace(
        _GLM,
        name="glm47",
        family="glm47",
        relatives=(),
        thought="<think>{}</think>",
        no_thought="</think>",
        before_answer="",
        before_calls="",
        openings={"<|system|>": "system", "<|user|>": "user", "<|assistant|>": "assistant", "<|observation|>": "tool"},
        variables={"gap": "", "no_thought": "</think>", "opening": "<think>"},
    ),
    Template(
        name="kimi",
        family="kimi_k2",
        end="<|im_end|>",
        pad="[PAD]",
        special=(
            "[PAD]",
            "[EOS]",
            "<|im_system|>",
            "<|im_user|>",
            "<|im_assistant|>",
            "<|im_middle|>",
            "<|im_end|>",
        ),
        marks=(
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
        ),
        source="kimi.jinja",
        openings={
            "<|im_system|>tool_declare<|im_middle|>": "tools",
            "<|im_system|>system<|im_middle|>": "system",
            "<|im_user|>user<|im_middle|>": "user",
            "<|im_assistant|>assistant<|im_middle|>": "assistant",
            "<|im_system|>": "tool",
        },
        closings=("<|im_end|>",),
        results="named",
    ),
)

TEMPLATES: Mapping[str, Template] = MappingProxyType({one.name: one for one in _EVERY})
"""The templates by name. ``TEMPLATES["qwen3"].end`` is the end-of-turn token of Qwen3."""

FAULTY_TEMPLATES: Mapping[str, Template] = MappingProxyType(
    {
        "no_template": replace(_CHATML, name="no_template", source=None, tools="not at all"),
        "no_tools": replace(_CHATML, name="no_tools", source="no_tools.jinja", tools="not at all"),
    }
)
"""Faulty templates: a tokenizer without a template, and one that raises on tools and tool messages."""
