"""The format of Kimi K2: a section of calls with the model's own ids."""

from __future__ import annotations

import pytest

from environments.tool_call_parsers import get_parser

BEGIN, END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"


def call(call_id: str, arguments: str = "{}") -> str:
    return f"<|tool_call_begin|>{call_id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


def read(text, tools=None):
    content, calls = get_parser("kimi_k2").parse(text, tools)
    return content, [(found.id, found.function.name, found.function.arguments) for found in calls or []]


LS, PS = call("functions.ls:0", '{"at": "/"}'), call("functions.ps:1")
FOUND, OTHER = ("functions.ls:0", "ls", '{"at": "/"}'), ("functions.ps:1", "ps", "{}")


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (f"{BEGIN}{LS}{END}", None, [FOUND]),
        (f"Look. {BEGIN}{LS} and {PS}{END} Done.", "Look.  and  Done.", [FOUND, OTHER]),
        (f"{BEGIN}{LS}{END}{BEGIN}{PS}{END}", None, [FOUND, OTHER]),
        ("<|tool_call_section_begin|>" + LS + "<|tool_call_section_end|>", None, [FOUND]),
        (f"{BEGIN}\n" + call(" functions.ps:1 ", " {} ") + f"\n{END}", None, [OTHER]),
        (BEGIN + call("functions.ps:1", "") + END, None, [OTHER]),
        (f"{BEGIN}{LS.removesuffix('<|tool_call_end|>')}{PS}{END}", None, [FOUND, OTHER]),
        (f"{BEGIN}{LS.removesuffix('<|tool_call_end|>')}{END}", None, [FOUND]),
        (f"{BEGIN}{LS.removesuffix('<|tool_call_end|>')}", None, [FOUND]),
        (f"{BEGIN}{LS.removesuffix('call_end|>')}", None, [FOUND]),
        (BEGIN + call("functions.mcp.files:12") + END, None, [("functions.mcp.files:12", "mcp.files", "{}")]),
        (BEGIN + call("ps:3") + END, None, [("ps:3", "ps", "{}")]),
        (BEGIN + call("functions.ps:1", "[1]") + END, None, [("functions.ps:1", "ps", "[1]")]),
    ],
)
def test_calls_are_read(text, content, calls):
    """The id is kept, the name is taken from it; the end token may be missing when the arguments are whole."""
    assert read(text) == (content, calls)


@pytest.mark.parametrize(
    "broken",
    [
        call("functions.ls"), call("functions.ls:x"), call("two words:0"), call(""), call("functions.:0"),
        call("functions.ls:9999999999999"), call("functions.ls:0", '{"at": '), call("functions.ls:0", "{'at': 1}"),
        call("functions.ls:0", "{}}"), "<|tool_call_begin|>functions.ls:0<|tool_call_end|>",
    ],
)  # fmt: skip
def test_malformed_call_stays_text_and_its_neighbours_are_read(broken):
    """A call without an id, or with arguments that are no JSON, is none."""
    assert read(f"{BEGIN}{broken}{END}") == (f"{BEGIN}{broken}{END}", [])
    assert read(f"{BEGIN}{LS}{broken}{PS}{END}") == (broken, [FOUND, OTHER])


@pytest.mark.parametrize("text", [LS, f"{BEGIN}<|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>", f"{BEGIN}{END}"])
def test_call_needs_its_section_and_arguments(text):
    """A call outside a section, or cut off before its arguments, is text."""
    assert read(text) == (text, [])


def test_id_that_was_used_is_counted_on():
    """Ids are unique: a repeated one gets the next free index, the first keeps its own."""
    text = BEGIN + call("functions.ls:0") * 3 + call("functions.ls:1") + call("functions.ps:0") + END

    ids = [found[0] for found in read(text)[1]]

    assert ids == ["functions.ls:0", "functions.ls:1", "functions.ls:2", "functions.ls:3", "functions.ps:0"]


def test_id_in_a_thought_is_not_used_up():
    """A call that was only thought of leaves its id to the real one."""
    text = f"Perhaps {BEGIN}{LS}{END}?</think>{BEGIN}{LS}{END}"

    assert read(text)[1] == [FOUND]


def test_arguments_are_corrected_by_the_schema(formats):
    """As in vLLM, values are read as the tool's types; without a change the text is the model's own."""
    tools = [formats.schema("ls", at={"type": "string"}, depth={"type": "integer"})]

    assert read(BEGIN + call("functions.ls:0", '{"at":5,"depth":"7"}') + END, tools)[1] == [
        ("functions.ls:0", "ls", '{"at": "5", "depth": 7}')
    ]
    assert read(BEGIN + call("functions.ls:0", '{"at":"1.10","depth":7.0}') + END, tools)[1] == [
        ("functions.ls:0", "ls", '{"at":"1.10","depth":7.0}')
    ]
