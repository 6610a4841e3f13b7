"""What holds for every format and for any text."""

# ruff: noqa: RUF001 - DeepSeek's tokens hold a full-width bar

from __future__ import annotations

import json
import string
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from environments.tool_call_parsers import get_parser

FORMATS = (
    "deepseek_v3", "deepseek_v31", "glm45", "glm47", "hermes", "kimi_k2", "llama3_json", "llama4_json", "longcat",
    "mistral_array", "mistral_v11", "mistral_v13", "qwen3_coder",
)  # fmt: skip
PARSERS = (
    "deepseek_v3", "deepseek_v3_1", "glm45", "hermes", "kimi_k2", "llama3_json", "longcat", "mistral", "qwen3_coder",
)  # fmt: skip
NAMES = st.text(alphabet=string.ascii_letters + string.digits + "_.-", min_size=1, max_size=12)
TEXTS = st.text(max_size=20) | st.sampled_from(
    ["1.10", "007", "true", "null", "", " x ", "a\nb\n", "\n", '"', "\\", "{", "}", "]", "</tool_call>", "<tool_call>", "</think>",
     "<think>", "[TOOL_CALLS]", "<|tool_call_end|>", "</function>", '{"name": "ls", "parameters": {}}', "東京 🗼", "\u2028", "```"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": st.integers(-(10**20), 10**20),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "null": st.none(),
    "array": st.lists(JSON, max_size=3),
    "object": st.dictionaries(st.text(max_size=5), JSON, max_size=3),
}
PROSE = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="<[{>]}"), max_size=20)
PIECES = st.sampled_from(
    ["<tool_call>", "</tool_call>", "<longcat_tool_call>", "</longcat_tool_call>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[", "]",
     "{", "}", '"', ",", ":", ";", "<|python_tag|>", "<think>", "</think>", "[THINK]", "[/THINK]", "<longcat_think>",
     "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "function",
     "\n```json\n", "\n```", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
     "<|tool_call_end|>", "<|tool_call_argument_begin|>", "functions.ls:0", "<arg_key>", "</arg_key>", "<arg_value>",
     "</arg_value>", "<function=", "</function>", "<parameter=", "</parameter>", ">", "ls", " ", "\n", "1.10", "null",
     '{"name": "ls", "arguments": {}}', '{"name": "ls", "parameters": {"a": 1}}', "{}", "\ud800", "\\"]
)  # fmt: skip
FEWER = settings(max_examples=40, deadline=None)
"""For what runs once per format."""


@st.composite
def tools_and_calls(draw: st.DrawFn, form: Any, formats: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Tools with typed parameters, and calls of them that the format can write."""
    keys = NAMES if form.is_typed_by_schema else st.text(max_size=8)
    tools = draw(
        st.dictionaries(NAMES, st.dictionaries(keys, st.sampled_from(list(KINDS)), max_size=4), min_size=1, max_size=3)
    )
    calls = []
    for name in draw(st.lists(st.sampled_from(sorted(tools)), min_size=1, max_size=3)):
        arguments = {key: draw(KINDS[kind]) for key, kind in tools[name].items() if draw(st.booleans())}
        written = "".join(value if isinstance(value, str) else json.dumps(value) for value in arguments.values())
        assume(not any(mark in written for mark in form.forbidden))
        calls.append(formats.Call(name=name, arguments=arguments))
    schemas = [formats.schema(name) for name in tools]
    for schema, parameters in zip(schemas, tools.values(), strict=True):
        schema["function"]["parameters"]["properties"] = {key: {"type": kind} for key, kind in parameters.items()}
    return schemas, calls


def as_pairs(calls: Iterable[Any] | None) -> list[tuple[str, Any]]:
    """The calls a parser found, as (name, value of the arguments)."""
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls or []]


def written(calls: Iterable[Any]) -> list[tuple[str, Any]]:
    """The calls that were rendered, in the same shape."""
    return [(call.name, call.arguments) for call in calls]


def check(text: str, content: str | None, calls: list[Any] | None) -> None:
    """What every answer of a parser keeps."""
    if calls is None:
        assert content == text
        return
    assert calls
    assert len({call.id for call in calls}) == len(calls)
    assert all(call.type == "function" and call.function.name for call in calls)
    assert all(json.loads(call.function.arguments) is not ... for call in calls)
    assert content is None or (content and content == content.strip())


@pytest.mark.parametrize("name", FORMATS)
@FEWER
@given(data=st.data())
def test_rendered_calls_parse_back(formats, name, data):
    """Any calls, written as the family writes them, are read as they were: names, order, values and their types."""
    form = formats.FORMATS[name]
    tools, calls = data.draw(tools_and_calls(form, formats))

    content, found = get_parser(form.ours[0]).parse(form.render(calls), tools)

    assert content is None
    assert as_pairs(found) == written(calls)
    assert [repr(pair) for pair in as_pairs(found)] == [repr(pair) for pair in written(calls)] or "." in repr(calls)


@pytest.mark.parametrize("name", FORMATS)
@FEWER
@given(data=st.data(), before=PROSE, after=PROSE)
def test_prose_beside_calls_is_content(formats, name, data, before, after):
    """Text around the calls is kept, and changes nothing about them."""
    form = formats.FORMATS[name]
    tools, calls = data.draw(tools_and_calls(form, formats))
    assume(not name.startswith("llama") or (before + after).strip(",; \t\r\n"))

    content, found = get_parser(form.ours[0]).parse(before + form.render(calls) + after, tools)

    assert as_pairs(found) == written(calls)
    kept, expected = ("".join(text.replace(";", "").split()) for text in (content or "", before + after))
    assert kept == expected


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_cut_off_at_every_byte(formats, name, data):
    """Of a text that ends anywhere, the calls before the cut are found, and never a part of one."""
    form = formats.FORMATS[name]
    tools, calls = data.draw(tools_and_calls(form, formats))
    begin, texts, _ = form.parts(calls)
    whole = form.render(calls).encode()
    ends = [len((begin + form.separator.join(texts[: count + 1])).encode()) for count in range(len(texts))]
    parser = get_parser(form.ours[0])

    for size in range(len(whole) + 1):
        text = whole[:size].decode(errors="replace")
        content, found = parser.parse(text, tools)

        check(text, content, found)
        complete = sum(end <= size for end in ends)
        assert as_pairs(found) == written(calls)[: max(complete, len(found or []))]


@pytest.mark.parametrize("name", PARSERS)
@FEWER
@given(text=st.text())
def test_any_text_is_read(name, text):
    """Nothing raises; text without a call is unchanged."""
    content, calls = get_parser(name).parse(text)

    assert (content, calls) == (text, None)


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(PIECES, max_size=25))
def test_any_heap_of_markers_is_read(formats, name, pieces):
    """Markers in any order raise nothing, and what is called is well-formed."""
    text = "".join(pieces)

    check(text, *get_parser(name).parse(text))
    check(text, *get_parser(name).parse(text, formats.TOOLS))


@pytest.mark.parametrize("name", FORMATS)
@FEWER
@given(data=st.data(), noise=st.text(max_size=3) | PIECES)
def test_any_damage_is_read(formats, name, data, noise):
    """Calls with a part removed and something put in its place raise nothing."""
    form = formats.FORMATS[name]
    tools, calls = data.draw(tools_and_calls(form, formats))
    text = form.render(calls)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    damaged = text[:start] + noise + text[end:]

    check(damaged, *get_parser(form.ours[0]).parse(damaged, tools))


@pytest.mark.parametrize("name", FORMATS)
@FEWER
@given(data=st.data())
def test_damaged_call_leaves_its_neighbours(formats, name, data):
    """A call whose name or first key is destroyed is none; those before and after it are read."""
    form = formats.FORMATS[name]
    call = formats.Call(name="neighbour", arguments={"a": data.draw(st.sampled_from(["1", "x", "é"]))})
    begin, texts, end = form.parts([call, formats.Call(name="dam\x00aged", arguments={"a": "1"}), call])
    tools = [formats.schema("neighbour", a={"type": "string"})]
    texts[1] = texts[1].replace("\\u0000", '"{<').replace("\x00", '"{<')

    content, found = get_parser(form.ours[0]).parse(begin + form.separator.join(texts) + end, tools)

    assert as_pairs(found) == written([call, call])
    assert "aged" in (content or "")
