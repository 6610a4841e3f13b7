"""The formats of DeepSeek V3, R1 and V3.1: special tokens around each call."""

# ruff: noqa: RUF001 - DeepSeek's tokens hold a full-width bar

from __future__ import annotations

import pytest

BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, OTHER = ("ls", '{"at": "/"}'), ("ps", "{}")


def v3(name: str, arguments: str) -> str:
    return f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```<｜tool▁call▁end｜>"


def v31(name: str, arguments: str) -> str:
    return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>"


FORMATS = pytest.mark.parametrize(("name", "call"), [("deepseek_v3", v3), ("deepseek_v3_1", v31), ("deepseek_v31", v31)])


@FORMATS
def test_calls_are_read(read, name, call):
    """One call or many, with prose around and between, on one line or on many."""
    ls, ps = call(*CALL), call(*OTHER)
    pretty = '{\n  "at": "/",\n  "why": "a ```json block"\n}'

    assert read(name, f"{BEGIN}{ls}{END}") == (None, [CALL])
    assert read(name, f"{BEGIN}{ls}\n{ps}{END}") == (None, [CALL, OTHER])
    assert read(name, f"Look. {BEGIN}{ls} and {ps}{END} Done.") == ("Look.  and  Done.", [CALL, OTHER])
    assert read(name, f"{BEGIN}{ls}{END}{BEGIN}{ps}{END}") == (None, [CALL, OTHER])
    assert read(name, f"{BEGIN}{call('ls', pretty)}{END}") == (None, [("ls", pretty)])
    assert read(name, f"{BEGIN}{call(' ls ', '{}')}{END}") == (None, [("ls", "{}")])
    assert read(name, f"{BEGIN}{call('ps', '')}{END}") == (None, [OTHER])
    assert read(name, f"{BEGIN}{ls}") == (None, [CALL])


@FORMATS
@pytest.mark.parametrize("arguments", ["not json", '{"at": ', "{'at': 1}", '{"at": 1}}', '{"at": NaN}', '{"at": "\\q"}'])
def test_malformed_call_stays_text_and_its_neighbours_are_read(read, name, call, arguments):
    """Arguments that are no JSON make no call."""
    ls, broken = call(*CALL), call("ls", arguments)

    assert read(name, f"{BEGIN}{broken}{END}") == (f"{BEGIN}{broken}{END}", [])
    assert read(name, f"{BEGIN}{ls}{broken}{ls}{END}") == (broken, [CALL, CALL])


@FORMATS
def test_call_needs_its_section_and_its_end(read, name, call):
    """The family always writes both, and vLLM wants both."""
    ls = call(*CALL)
    cut = f"{BEGIN}{ls[:-1]}"

    assert read(name, ls) == (ls, [])
    assert read(name, cut) == (cut, [])
    assert read(name, f"{cut}{BEGIN}{ls}{END}") == (ls[:-1], [CALL])


@pytest.mark.parametrize("gap", ["\n", " ", "\r\n\n"])
def test_whitespace_may_stand_before_the_end_token(read, gap):
    """As in hermes-agent's former parser."""
    text = f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n```json\n{{}}\n```{gap}<｜tool▁call▁end｜>"

    assert read("deepseek_v3", text) == (None, [("ls", "{}")])


@pytest.mark.parametrize(
    "call",
    [
        "<｜tool▁call▁begin｜>other<｜tool▁sep｜>ls\n```json\n{}\n```<｜tool▁call▁end｜>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n```\n{}\n```<｜tool▁call▁end｜>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n```json\n{}```<｜tool▁call▁end｜>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>two words\n```json\n{}\n```<｜tool▁call▁end｜>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>\n```json\n{}\n```<｜tool▁call▁end｜>",
    ],
)
def test_other_headers_and_fences_are_no_calls(read, call):
    """The kind, the name and the fence of V3 are as published."""
    assert read("deepseek_v3", f"{BEGIN}{call}{END}") == (f"{BEGIN}{call}{END}", [])
