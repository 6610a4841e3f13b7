"""The names of the parsers, and what all of them promise."""

from __future__ import annotations

import importlib

import pytest

from environments import tool_call_parsers
from environments.tool_call_parsers import (
    PARSER_REGISTRY,
    ParseResult,
    ToolCallParser,
    get_parser,
    list_parsers,
    register_parser,
)

NAMES = [
    "deepseek_v3", "deepseek_v31", "deepseek_v3_1", "glm45", "glm47", "hermes", "kimi_k2", "llama3_json", "llama4_json",
    "longcat", "mistral", "qwen", "qwen3_coder",
]  # fmt: skip


def test_all_names_are_listed():
    """The registry has these parsers and no others."""
    assert list_parsers() == NAMES
    assert sorted(PARSER_REGISTRY) == NAMES


FORMER = {
    "deepseek_v3_1_parser": ("DeepSeekV31ToolCallParser", "deepseek_v3_1"),
    "deepseek_v3_parser": ("DeepSeekV3ToolCallParser", "deepseek_v3"),
    "glm45_parser": ("Glm45ToolCallParser", "glm45"),
    "glm47_parser": ("Glm47ToolCallParser", "glm47"),
    "hermes_parser": ("HermesToolCallParser", "hermes"),
    "kimi_k2_parser": ("KimiK2ToolCallParser", "kimi_k2"),
    "llama_parser": ("LlamaToolCallParser", "llama3_json"),
    "longcat_parser": ("LongcatToolCallParser", "longcat"),
    "mistral_parser": ("MistralToolCallParser", "mistral"),
    "qwen3_coder_parser": ("Qwen3CoderToolCallParser", "qwen3_coder"),
    "qwen_parser": ("QwenToolCallParser", "qwen"),
}
"""The modules of hermes-agent's former package, their classes, and the names that those had."""


@pytest.mark.parametrize("module", FORMER)
def test_former_modules_and_classes_can_be_imported(module):
    """From their modules, as well as from the package; they are the registered ones."""
    name, parser = FORMER[module]
    found = getattr(importlib.import_module(f"environments.tool_call_parsers.{module}"), name)

    assert found is getattr(tool_call_parsers, name) is PARSER_REGISTRY[parser]


def test_unknown_name_lists_the_known_ones():
    """A misspelt name is answered with all names."""
    with pytest.raises(KeyError) as caught:
        get_parser("hermes2")

    assert caught.value.args == (f"Tool call parser 'hermes2' not found. Available parsers: {NAMES}",)


def test_own_parser_can_be_registered(monkeypatch):
    """A user's parser is found under its name; the class comes back from the decorator."""
    monkeypatch.setattr(tool_call_parsers, "PARSER_REGISTRY", dict(PARSER_REGISTRY))

    @register_parser("mine")
    class Mine(ToolCallParser):
        def parse(self, text: str, tools: object = None) -> ParseResult:
            del tools
            return text.upper(), None

    assert get_parser("mine").parse("a") == ("A", None)
    assert type(get_parser("mine")) is Mine
    assert list_parsers() == sorted([*NAMES, "mine"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["", " \n", "The answer is 42.", "a < b & c > d", '{"answer": [42]}', "```json\n{}\n```"])
def test_text_without_a_call_comes_back_unchanged(name, text):
    """An answer is the very same text, white space and all."""
    assert get_parser(name).parse(text) == (text, None)
    assert get_parser(name).parse(text, []) == (text, None)
