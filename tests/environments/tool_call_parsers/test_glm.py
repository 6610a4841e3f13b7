"""The format of GLM 4.5 to 4.7: keys and values in tags."""

from __future__ import annotations

import pytest

LS = "<tool_call>ls\n<arg_key>at</arg_key>\n<arg_value>/</arg_value>\n</tool_call>"
PS = "<tool_call>ps</tool_call>"
CALL, OTHER = ("ls", '{"at": "/"}'), ("ps", "{}")


@pytest.mark.parametrize("name", ["glm45", "glm47"])
@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (LS, None, [CALL]),
        (LS.replace("\n", ""), None, [CALL]),
        (f"I look.\n{LS} and\n{PS} Done.", "I look.\n and\n Done.", [CALL, OTHER]),
        (LS.removesuffix("</tool_call>") + PS, None, [CALL, OTHER]),
        (LS.removesuffix("tool_call>"), None, [CALL]),
        ("<tool_call>\n ps \n</tool_call>", None, [OTHER]),
        (
            LS.replace("/</", "</tool_call> <tool_call>x <think></"),
            None,
            [("ls", '{"at": "</tool_call> <tool_call>x <think>"}')],
        ),
        (LS.replace(">/<", ">\n x\n <"), None, [("ls", '{"at": "\\n x\\n "}')]),
        (LS.replace(">at<", "> at <"), None, [CALL]),
    ],
)
def test_calls_are_read(read, name, text, content, calls):
    """White space next to tags does not count, that of values does; tags of no argument are data inside a value."""
    assert read(name, text) == (content, calls)


@pytest.mark.parametrize(
    "broken",
    [
        "<tool_call></tool_call>",
        '<tool_call>{"name": "ls", "arguments": {}}</tool_call>',
        "<tool_call>two words</tool_call>",
        "<tool_call>ls <arg_key>at</arg_key></tool_call>",
        "<tool_call>ls <arg_key>at<arg_value>/</arg_value></tool_call>",
        "<tool_call>ls <arg_key>at</arg_key><arg_value>/</tool_call>",
        "<tool_call>ls <arg_key>at</arg_key><arg_value>/</arg_value> x</tool_call>",
        "<tool_call>ls <arg_value>/</arg_value></tool_call>",
        "<tool_call>ls",
    ],
)
def test_malformed_call_stays_text_and_its_neighbours_are_read(read, broken):
    """A call with a tag left out is none, and does not reach into the next one."""
    assert read("glm45", broken) == (broken, [])
    assert read("glm45", f"{LS}{broken}{LS}") == (broken, [CALL, CALL])


@pytest.mark.parametrize("size", range(1, len(LS) - len("tool_call>")))
def test_call_that_was_cut_off_is_none(read, size):
    """What is missing could be an argument, until the closing tag has begun."""
    assert read("glm45", LS[:size]) == (LS[:size], [])


def test_values_are_typed_by_the_schema(read, formats):
    """A version stays text, a number becomes one; without a schema all values stay text, and without tools their text types them."""
    values = {"version": "1.10", "ratio": "1.10", "tags": '["1"]', "draft": "true", "more": "1.10"}
    pairs = "".join(f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in values.items())
    text = f"<tool_call>release{pairs}</tool_call>"
    tools = [
        formats.schema(
            "release",
            version={"type": "string"},
            ratio={"type": "number"},
            tags={"type": "array"},
            draft={"type": "boolean"},
        )
    ]

    assert read("glm45", text, tools)[1] == [
        ("release", '{"version": "1.10", "ratio": 1.1, "tags": ["1"], "draft": true, "more": "1.10"}')
    ]
    assert read("glm45", text, [])[1] == [
        ("release", '{"version": "1.10", "ratio": "1.10", "tags": "[\\"1\\"]", "draft": "true", "more": "1.10"}')
    ]
    assert read("glm45", text)[1] == [("release", '{"version": 1.1, "ratio": 1.1, "tags": ["1"], "draft": true, "more": 1.1}')]
