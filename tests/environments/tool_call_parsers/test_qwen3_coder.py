"""The format of Qwen3-Coder: functions and parameters in tags."""

from __future__ import annotations

import pytest

LS = "<tool_call>\n<function=ls>\n<parameter=at>\n/\n</parameter>\n</function>\n</tool_call>"
PS = "<tool_call>\n<function=ps>\n</function>\n</tool_call>"
CALL, OTHER = ("ls", '{"at": "/"}'), ("ps", "{}")


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (LS, None, [CALL]),
        (LS.replace("\n", ""), None, [CALL]),
        (f"I look.\n{LS} and\n{PS} Done.", "I look.\n and\n Done.", [CALL, OTHER]),
        ("<function=ps></function>", None, [OTHER]),
        ("<tool_call><function=ps></function><function=ps></function></tool_call>", None, [OTHER, OTHER]),
        (LS.replace("</function>\n", ""), None, [CALL]),
        (LS.replace("</function>\n</tool_call>", PS), None, [CALL, OTHER]),
        (LS.removesuffix("function>\n</tool_call>"), None, [CALL]),
        (LS.removesuffix("_call>"), None, [CALL]),
        ("<function=ls><parameter=a>x<parameter=b>y</parameter></function>", None, [("ls", '{"a": "x", "b": "y"}')]),
        ("<function=ls><parameter=a>\n\n x\n\n</parameter></function>", None, [("ls", '{"a": "\\n x\\n"}')]),
        (LS.replace("/\n</p", "</function> </tool_call> <function=x>\n</p"), None,
         [("ls", '{"at": "</function> </tool_call> <function=x>"}')]),
    ],
)  # fmt: skip
def test_calls_are_read(read, text, content, calls):
    """The block's tags may be missing; one line break on each side of a value does not count."""
    assert read("qwen3_coder", text) == (content, calls)


@pytest.mark.parametrize(
    "broken",
    [
        "<tool_call></tool_call>",
        '<tool_call>{"name": "ls", "arguments": {}}</tool_call>',
        "<tool_call><function=></function></tool_call>",
        "<tool_call><function=two words></function></tool_call>",
        "<tool_call><function=ls</function></tool_call>",
        "<tool_call><function=ls><parameter=>1</parameter></function></tool_call>",
        "<tool_call><function=ls><parameter=at>1</function></tool_call>",
        "<tool_call><function=ls><parameter=at>1</parameter> x</function></tool_call>",
        "<tool_call><function=ls> <paramter=at>1</parameter></function></tool_call>",
        "<function=ls>",
    ],
)
def test_malformed_call_stays_text_and_its_neighbours_are_read(read, broken):
    """A call with a tag left out is none, and does not reach into the next one."""
    if broken != "<function=ls>":
        assert read("qwen3_coder", f"{LS}{broken}{LS}") == (broken, [CALL, CALL])
    assert read("qwen3_coder", broken) == (broken, [])


@pytest.mark.parametrize("size", range(1, LS.index("</function>") + 2))
def test_call_that_was_cut_off_is_none(read, size):
    """What is missing could be a parameter, until the closing tag has begun."""
    assert read("qwen3_coder", LS[:size]) == (LS[:size], [])


def test_values_are_typed_by_the_schema(read, formats):
    """A version stays text, a number becomes one; without a schema all values stay text, and without tools their text types them."""
    text = "<function=release><parameter=version>1.10</parameter><parameter=ratio>1.10</parameter></function>"
    tools = [formats.schema("release", version={"type": "string"}, ratio={"type": "number"})]

    assert read("qwen3_coder", text, tools)[1] == [("release", '{"version": "1.10", "ratio": 1.1}')]
    assert read("qwen3_coder", text, [])[1] == [("release", '{"version": "1.10", "ratio": "1.10"}')]
    assert read("qwen3_coder", text)[1] == [("release", '{"version": 1.1, "ratio": 1.1}')]
