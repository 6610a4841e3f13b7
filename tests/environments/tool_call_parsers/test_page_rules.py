"""The rules of docs/reference/tool-call-parsers.md for doubled markers, arguments that are no object, and empty arguments."""

from __future__ import annotations

import pytest

from environments.tool_call_parsers import get_parser

DEEPSEEK = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a<｜tool▁sep｜>%s<｜tool▁call▁end｜><｜tool▁calls▁end｜>"  # noqa: RUF001
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>%s<|tool_call_end|>"
    "<|tool_calls_section_end|>"
)


@pytest.mark.parametrize(
    ("name", "text", "content"),
    [
        ("hermes", '<tool_call><tool_call>{"name": "a", "arguments": {}}</tool_call>', "<tool_call>"),
        ("longcat", '<longcat_tool_call><longcat_tool_call>{"name": "a"}</longcat_tool_call>', "<longcat_tool_call>"),
        ("glm45", "<tool_call><tool_call>a</tool_call>", "<tool_call>"),
        ("qwen3_coder", "<tool_call><tool_call><function=a></function></tool_call>", "<tool_call>"),
        ("mistral", '[TOOL_CALLS][TOOL_CALLS][{"name": "a", "arguments": {}}]', None),
        ("llama3_json", '<|python_tag|><|python_tag|>{"name": "a", "parameters": {}}', None),
    ],
)
def test_doubled_marker_starts_one_call(name, text, content):
    """The call at the second marker is read."""
    seen, calls = get_parser(name).parse(text)

    assert (seen, [(call.function.name, call.function.arguments) for call in calls]) == (content, [("a", "{}")])


@pytest.mark.parametrize(
    ("name", "text", "arguments"),
    [
        ("hermes", '<tool_call>{"name": "a", "arguments": [1]}</tool_call>', "[1]"),
        ("hermes", '<tool_call>{"name": "a", "arguments": "x"}</tool_call>', '"x"'),
        ("hermes", '<tool_call>{"name": "a", "arguments": null}</tool_call>', "null"),
        ("hermes", '<tool_call>{"name": "a", "arguments": "{\\"b\\": 1}"}</tool_call>', '{"b": 1}'),
        ("mistral", '[TOOL_CALLS][{"name": "a", "arguments": [1]}]', "[1]"),
        ("llama3_json", '{"name": "a", "parameters": [1]}', "[1]"),
        ("deepseek_v31", DEEPSEEK % "[1]", "[1]"),
        ("kimi_k2", KIMI % "[1]", "[1]"),
        ("deepseek_v31", DEEPSEEK % "", "{}"),
        ("kimi_k2", KIMI % "", "{}"),
        ("glm45", "<tool_call>a</tool_call>", "{}"),
        ("hermes", '<tool_call>{"name": "a"}</tool_call>', "{}"),
    ],
)
def test_arguments_that_are_no_object_or_empty(name, text, arguments):
    """JSON that is not an object is passed on for the loop to refuse; no arguments are an empty object."""
    _, calls = get_parser(name).parse(text)

    assert [call.function.arguments for call in calls] == [arguments]


@pytest.mark.parametrize("text", ["[TOOL_CALLS]a", "[TOOL_CALLS]a[ARGS]", "[TOOL_CALLS]a[1]"])
def test_mistral_name_without_an_object_is_no_call(text):
    """It stays in the content, with its marker."""
    assert get_parser("mistral").parse(text) == (text, None)
