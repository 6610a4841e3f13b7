"""The formats of Mistral: an array of calls, or name and arguments, after a marker."""

from __future__ import annotations

import pytest

from environments.tool_call_parsers import get_parser

LS, PS = '{"name": "ls", "arguments": {"at": "/"}}', '{"name": "ps", "arguments": {}}'
CALL, OTHER = ("ls", '{"at": "/"}'), ("ps", "{}")


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (f"[TOOL_CALLS] [{LS}]", None, [CALL]),
        (f"[TOOL_CALLS][{LS},{PS}]", None, [CALL, OTHER]),
        (f"Look. [TOOL_CALLS] [{LS}, {PS}] Done.", "Look.  Done.", [CALL, OTHER]),
        (f"[TOOL_CALLS] {LS}", None, [CALL]),
        (f"[TOOL_CALLS][TOOL_CALLS] [{LS}]", None, [CALL]),
        (f"[TOOL_CALLS] [{LS}", None, [CALL]),
        (f"[TOOL_CALLS] [{LS}] [TOOL_CALLS] [{PS}]", None, [CALL, OTHER]),
        ('[TOOL_CALLS] [{"name": "ps", "arguments": {}, "id": "abcdefghi"}]', None, [OTHER]),
        ('[TOOL_CALLS] [{"name": "ps"}]', None, [OTHER]),
        ('[TOOL_CALLS]ls{"at": "/"}', None, [CALL]),
        ('[TOOL_CALLS]ls[ARGS]{"at": "/"}', None, [CALL]),
        ('[TOOL_CALLS] ls [ARGS] {"at": "/"}', None, [CALL]),
        ('[TOOL_CALLS]ls[CALL_ID]123456789[ARGS]{"at": "/"}', None, [CALL]),
        ('Look.[TOOL_CALLS]ls{"at": "/"}[TOOL_CALLS]ps{} Done.', "Look. Done.", [CALL, OTHER]),
        ('[TOOL_CALLS]ls{"at":  "/"}', None, [("ls", '{"at":  "/"}')]),
        ('[TOOL_CALLS]ls{"at": "[TOOL_CALLS]ps{}"}', None, [("ls", '{"at": "[TOOL_CALLS]ps{}"}')]),
    ],
)  # fmt: skip
def test_calls_are_read(read, text, content, calls):
    """Both formats are distinguished by the text alone."""
    assert read("mistral", text) == (content, calls)


@pytest.mark.parametrize(
    "text",
    [
        "[TOOL_CALLS]",
        "[TOOL_CALLS] [",
        "[TOOL_CALLS] []",
        "[TOOL_CALLS] [1, 2]",
        "[TOOL_CALLS] not valid json",
        "[TOOL_CALLS]ls",
        '[TOOL_CALLS]ls{"at": ',
        '[TOOL_CALLS]ls{"at": "/",}',
        "[TOOL_CALLS]ls[1]",
        '[TOOL_CALLS] I will call {"at": 1}',
        '[TOOL_CALLS]{"at": 1}',
        '[TOOL_CALLS] [{"nme": "ls", "arguments": {}}]',
        '[TOOL_CALLS] [{"name": "ls", "argumens": {}}]',
        "no mark [{}]",
        LS,
    ],
)  # fmt: skip
def test_what_is_no_call_stays_text(read, text):
    """A marker without a whole call is text, and so is a call without the marker."""
    assert read("mistral", text) == (text, [])


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (f"[TOOL_CALLS] [{LS}, bad, {PS}]", "[TOOL_CALLS] [, bad, ]", [CALL, OTHER]),
        (f"[TOOL_CALLS] [{{bad}}, {LS}, {PS}]", "[TOOL_CALLS] [{bad}, , ]", [CALL, OTHER]),
        (f'[TOOL_CALLS] [{LS}, {{"name": "x", "argum', '[TOOL_CALLS] [, {"name": "x", "argum', [CALL]),
        (f'[TOOL_CALLS] [{{"x": [{LS}], bad}}, {PS}]', f'[TOOL_CALLS] [{{"x": [{LS}], bad}}, ]', [OTHER]),
        (f'[TOOL_CALLS] [{{"x": [{LS}]}}, {PS}]', f'[TOOL_CALLS] [{{"x": [{LS}]}}, ]', [OTHER]),
        (f'[TOOL_CALLS] [{LS} {{"name": "Ada"}}, {{"name": "Bob"}}]', '[TOOL_CALLS] [ {"name": "Ada"}, {"name": "Bob"}]', [CALL]),
        (f"[TOOL_CALLS] [bad [TOOL_CALLS] [{PS}]", "[TOOL_CALLS] [bad", [OTHER]),
        ("[TOOL_CALLS]ls{bad}[TOOL_CALLS]ps{}", "[TOOL_CALLS]ls{bad}", [OTHER]),
    ],
)  # fmt: skip
def test_malformed_call_does_not_lose_its_neighbours(read, text, content, calls):
    """The whole calls of a broken array are read; what is nested in a broken one is not."""
    assert read("mistral", text) == (content, calls)


def test_ids_are_nine_letters_and_digits():
    """The family's chat templates refuse any other id."""
    _, calls = get_parser("mistral").parse(f"[TOOL_CALLS] [{', '.join([LS] * 200)}]" + '[TOOL_CALLS]ls{"at": "/"}' * 200)

    assert len({call.id for call in calls}) == 400
    assert all(len(call.id) == 9 and call.id.isalnum() and call.id.isascii() for call in calls)


def test_arguments_are_corrected_by_the_schema(read, formats):
    """After a name, vLLM reads values as the tool's types, and so do we; in an array they are taken as they are."""
    tools = [formats.schema("ls", depth={"type": "integer"}, at={"type": "string"}, all={"type": "boolean"})]
    arguments = '{"depth": "2", "at": 5, "all": null, "more": "3"}'

    assert read("mistral", f"[TOOL_CALLS]ls{arguments}", tools) == (
        None, [("ls", '{"depth": 2, "at": "5", "all": null, "more": "3"}')]
    )  # fmt: skip
    assert read("mistral", f"[TOOL_CALLS]ls{arguments}") == (None, [("ls", arguments)])
    assert read("mistral", f'[TOOL_CALLS] [{{"name": "ls", "arguments": {arguments}}}]', tools) == (None, [("ls", arguments)])
