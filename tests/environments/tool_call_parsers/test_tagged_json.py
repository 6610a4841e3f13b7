"""The formats of Hermes, Qwen and LongCat: JSON between tags."""

from __future__ import annotations

import pytest

LS = '{"name": "ls", "arguments": {"at": "/"}}'
CALL = ("ls", '{"at": "/"}')
TAGS = {
    "hermes": ("<tool_call>", "</tool_call>"),
    "qwen": ("<tool_call>", "</tool_call>"),
    "longcat": ("<longcat_tool_call>", "</longcat_tool_call>"),
}


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (f"[{LS}]", None, [CALL]),
        (f"[\n  {LS}\n]", None, [CALL]),
        (f"I look.\n[{LS}]", "I look.", [CALL]),
        (f"[{LS}]\n[{LS}]", None, [CALL, CALL]),
        (f"One [{LS}] two [{LS}] three", "One  two  three", [CALL, CALL]),
        (f"[{LS}", None, [CALL]),
        (f"[{LS}\n[{LS}]", None, [CALL, CALL]),
        ('[{"name": "ls"}]', None, [("ls", "{}")]),
        ('[{"name": "ls", "arguments": "{\\"at\\": 1}"}]', None, [("ls", '{"at": 1}')]),
        ('[{"name": "ls", "arguments": "/"}]', None, [("ls", '"/"')]),
        ('[{"name": "ls", "arguments": null}]', None, [("ls", "null")]),
        ('[{"name": "ls", "arguments": {"v": "1.10", "n": 1.5, "s": "é\\n\\"\\ud83d\\ude42"}}]', None,
         [("ls", '{"v": "1.10", "n": 1.5, "s": "é\\n\\"🙂"}')]),
        ('[{"name": "ls", "arguments": {"at": "\\ud800"}}]', None, [("ls", '{"at": "\\ud800"}')]),
        ('[{"name": "ls", "arguments": {"at": "a ] b [ c"}}]', None, [("ls", '{"at": "a CLOSE b OPEN c"}')]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", TAGS)
def test_calls_are_read(read, name, text, content, calls):
    """Calls between tags are read wherever they stand; the closing tag may be missing, and tags in strings are data."""
    opening, closing = TAGS[name]
    tagged = text.replace("[", opening).replace("]", closing)

    found = read(name, tagged)

    expected = [(tool, arguments.replace("CLOSE", closing).replace("OPEN", opening)) for tool, arguments in calls]
    assert found == (content, expected)


@pytest.mark.parametrize(
    "broken",
    [
        "not json",
        "[1]",
        '"text"',
        '{"name": 1, "arguments": {}}',
        '{"name": "", "arguments": {}}',
        '{"arguments": {}}',
        '{"name": "ls", "argumens": {"at": "/"}}',
        '{"name": "ls", "arguments": {"at": NaN}}',
        '{"name": "ls", "arguments": {"at": 1e999}}',
        '{"name": "ls", "arguments": {"at": "a\nb"}}',
        '{"name": "ls", "arguments": {"at": "\\q"}}',
        '{"name": "ls", "arguments": {"at": ' + "1" * 5000 + "}}",
        '{"name": "ls", "arguments": {"at": ' + "[" * 5000 + "]" * 5000 + "}}",
        '{"name": "l\\ud800s", "arguments": {}}',
        '{"name": "ls", "arguments": {"at": "/"}}}',
        '{"name": "ls", "arguments": {"at": "/",}}',
        "{'name': 'ls', 'arguments': {}}",
        '{"name": "ls", "arguments": {"at": "/"}',
        f"{LS} {LS}",
    ],
)
def test_malformed_call_stays_text_and_its_neighbours_are_read(read, broken):
    """A block that is not a call stays in the content; the calls around it are found."""
    block = f"<tool_call>{broken}</tool_call>"
    good = f"<tool_call>{LS}</tool_call>"

    assert read("hermes", block) == (block, [])
    assert read("hermes", f"{good}{block}{good}") == (block, [CALL, CALL])


def test_ids_are_unique(formats):
    """Calls of one text and of another have different ids."""
    from environments.tool_call_parsers import get_parser

    parser = get_parser("hermes")
    _, calls = parser.parse(f"<tool_call>{LS}</tool_call>" * 50)
    _, others = parser.parse(f"<tool_call>{LS}</tool_call>" * 50)

    assert len({call.id for call in [*calls, *others]}) == 100
    assert all(call.type == "function" for call in calls)


def test_closing_tag_that_was_cut_off_is_no_content(read):
    """A text that ends within the closing tag ends with a call."""
    assert [read("hermes", f"<tool_call>{LS}</tool_call>"[: -size or None]) for size in range(12)] == [(None, [CALL])] * 12
