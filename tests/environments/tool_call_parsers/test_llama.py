"""The format of Llama 3 and 4: bare JSON."""

from __future__ import annotations

import pytest

LS, PS = '{"name": "ls", "parameters": {"at": "/"}}', '{"name": "ps", "arguments": {}}'
CALL, OTHER = ("ls", '{"at": "/"}'), ("ps", "{}")


@pytest.fixture
def tools(formats):
    return [formats.schema("ls"), formats.schema("ps")]


@pytest.mark.parametrize("name", ["llama3_json", "llama4_json"])
@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (LS, None, [CALL]),
        (f"<|python_tag|>{LS}", None, [CALL]),
        (f"{LS}; {PS}", None, [CALL, OTHER]),
        (f"{LS}\n{PS};", None, [CALL, OTHER]),
        (f"[{LS}, {PS}]", None, [CALL, OTHER]),
        (f"I look.\n{LS} ; {PS} Done.", "I look.\n  Done.", [CALL, OTHER]),
        (f'{{"type": "function", {LS[1:]}', None, [CALL]),
        ('{"name": "ls", "parameters": "{\\"at\\": \\"/\\"}"}', None, [CALL]),
        ('{"name": "ls", "arguments": {}, "parameters": {"at": 1}}', None, [("ls", "{}")]),
        (f"{{{LS}", "{", [CALL]),
        (f"{{bad}} {LS} {{'x': 1}} {PS}", "{bad}  {'x': 1}", [CALL, OTHER]),
        ('{"name": "ls", "parameters": {"at": "/"}\n' + PS, '{"name": "ls", "parameters": {"at": "/"}', [OTHER]),
        ('{"name": "ls", "parameters": {"at": "cut' + PS, '{"name": "ls", "parameters": {"at": "cut', [OTHER]),
    ],
)  # fmt: skip
def test_calls_are_read(read, tools, name, text, content, calls):
    """Objects with a name and arguments are calls, alone, in a row, in a list or next to prose and broken ones."""
    assert read(name, text, tools) == (content, calls)


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": 42}',
        '{"name": "Ada", "age": 36}',
        '{"name": "ls"}',
        '{"name": 5, "parameters": {}}',
        '{"name": ["ls"], "parameters": {}}',
        '{"function": ' + LS + "}",
        '{"function": ' + LS + ", bad}",
        '{"name": "ls", "parameters": {"at": ',
        "{", "}{", "{}", "[{}]", "{{ls}}",
        '{"name": "ls\\ud800", "parameters": {}}',
    ],
)  # fmt: skip
def test_what_is_no_call_stays_text(read, tools, text):
    """Other JSON is an answer, and what is nested in it is not a call."""
    assert read("llama3_json", text, tools) == (text, [])
    assert read("llama3_json", text) == (text, [])


def test_name_must_be_offered(read, tools):
    """Where the tools are known, an object that names none of them is an answer, unless it follows the tag."""
    text = '{"name": "Ada", "parameters": {"age": 36}}'
    call = ("Ada", '{"age": 36}')

    assert read("llama3_json", text, tools) == (text, [])
    assert read("llama3_json", text, []) == (text, [])
    assert read("llama3_json", text, None) == (None, [call])
    assert read("llama3_json", f"{text} {LS}", tools) == (text, [CALL])
    assert read("llama3_json", f"<|python_tag|>{text}", tools) == (None, [call])
    assert read("llama3_json", f"{text}<|python_tag|>", tools) == (f"{text}<|python_tag|>", [])
