"""Splits a model's thought from its answer, for the model families known to vLLM 0.33 and SGLang 0.5.23.

Place in the flow: `model_reply` uses it on sampled text, and `HermesAgentLoop` on the content of a chat server that runs without
a reasoning parser.
"""

from __future__ import annotations

import re

THINK_TAGS = {
    "<think>": "</think>",
    "[THINK]": "[/THINK]",  # Mistral
    "<longcat_think>": "</longcat_think>",
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "<thought>": "</thought>",  # EXAONE
    "<thinking>": "</thinking>",
    "<mm:think>": "</mm:think>",  # MiniMax M3
    "<ifm|think>": "</ifm|think>",  # K2 Horizon, by its reasoning effort
    "<ifm|think_fast>": "</ifm|think_fast>",
    "<ifm|think_faster>": "</ifm|think_faster>",
    "◁think▷": "◁/think▷",  # Kimi-VL
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",  # Kimi K3
    "<|inner_prefix|>": "<|inner_suffix|>",  # Apertus
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command A
    "<|channel>thought": "<channel|>",  # Gemma 4
    "<|plamo:begin_think:plamo|>": "<|plamo:end_think:plamo|>",
    "<|content_thinking|>": "<|end_message|>",  # Inkling
}
"""Opening tag -> closing tag. Hunyuan's ``<think:...>`` is read in addition."""

_OPENING = re.compile("|".join([*map(re.escape, THINK_TAGS), r"<think:[^<>\s]+>"]))
_PROMPT_END = 100
"""Characters of a prompt that contain the longest opening tag."""


def opened_thought(prompt: str) -> str | None:
    """Return the opening tag with which a prompt ends, because the chat template opened the reply's thought; else None."""
    end = prompt[-_PROMPT_END:].rstrip()
    return next((found.group() for found in _OPENING.finditer(end) if found.end() == len(end)), None)


def split_thought(text: str, opened: str | None = None) -> tuple[str, str]:
    """Return the thought at the start of a reply, "" if there is none, and the text after it.

    ``opened`` is the tag with which the prompt opened the thought. A thought without its closing tag extends to the end.
    """
    start = text.lstrip()
    found = _OPENING.match(start)
    if found is None and opened is None:
        return "", text
    opening, thinking = (found.group(), start[found.end() :]) if found else (str(opened), text)
    closing = THINK_TAGS.get(opening) or opening.replace("<", "</", 1)
    thought, _, rest = thinking.partition(closing)
    return thought, rest.lstrip()
