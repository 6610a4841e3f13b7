"""What a damaged cassette says: where, what is wrong, and how to go on."""

import json

import pytest

from pytest_hermes_env.cassette.format import read_tape, text_of
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape
from pytest_hermes_env.errors import BadCassette

TEST = "tests/test_my_env.py::test_one"
HEADER = Header(recorded_at="2026", recorded_from="a mock server", test=TEST)
AGAIN = f"or record it again: pytest --hermes-record=rewrite {TEST}"
MESSAGES = [{"role": "user", "content": "a question " * 20}, {"role": "assistant", "content": "an answer"}]
TEXT = text_of(
    Tape(
        header=HEADER,
        calls=(
            ModelCall(
                number=1,
                request=ModelRequest(method="POST", path="/x", body={"messages": MESSAGES[:1]}, body_kind="json"),
                reply=ModelReply(),
            ),
            RecordedToolCall(number=2, name="terminal", arguments={"command": "ls"}),
            ModelCall(
                number=3,
                request=ModelRequest(method="POST", path="/x", body={"messages": MESSAGES}, body_kind="json"),
                reply=ModelReply(),
            ),
        ),
    )
)


def _error(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadCassette) as caught:
        read_tape(path)
    return str(caught.value).replace(str(path), "x.json")


def _damaged(line, what, seen=""):
    shown = f"  seen      {seen}\n" if seen else ""
    return f"x.json, line {line}: this cassette is damaged: {what}.\n{shown}  fix       git checkout -- x.json, {AGAIN}"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            '"terminal"',
            '"terminal',
            _damaged(
                23,
                "it is not JSON: Expecting ',' delimiter",
                '{"call": 2, "name": "terminal, "arguments": {"command": "ls"}},',
            ),
        ),
        ('"calls": 3', '"calls": 4', _damaged(1, 'it has "calls": 4, but contains 3 calls')),
        ('{"call": 2', '{"call": 5', _damaged(1, 'call 2 has "call": 5')),
        ('"name": "terminal"', '"title": "terminal"', _damaged(23, "a tool call has an unknown key: 'title'")),
        ('"name": "terminal", ', "", _damaged(23, "a tool call lacks name")),
        ('"name": "terminal"', '"name": 5', _damaged(23, "'name' of a tool call must be str: 5")),
        ('"method": "POST",', "", _damaged(8, "its request lacks method")),
        ('"~as": 1', '"~as": 2', _damaged(25, '"~as": 2 does not refer to an earlier call with such a value')),
        ('"~as": 1', '"~as": 1, "up_to": 7', _damaged(25, '"~as": 1 has an invalid "up_to": 7')),
        ('"~as": 1', '"~is": 1', _damaged(1, "'~is' is unknown, or has the wrong fields: ~is, then")),
        ('"calls": 3', '"calls": 3, "calls": 3', _damaged(1, "an object has the key 'calls' twice")),
        ('"hermes_cassette": 1', '"hermes_cassette": 0', _damaged(1, "its format is 0; this version reads 1")),
        (
            '"header"',
            '"head"',
            _damaged(
                1,
                "its fields are hermes_cassette, calls, head, rollouts, tape, not hermes_cassette, calls, header, rollouts, tape",
            ),
        ),
    ],
)
def test_damage_is_told_with_its_place(tmp_path, before, after, expected):
    """File, line, what is wrong, what was seen, and the command that records the same test again."""
    assert before in TEXT

    assert _error(tmp_path, TEXT.replace(before, after, 1)) == expected


def test_a_newer_format_asks_for_a_newer_version(tmp_path):
    """A cassette from the future is not guessed at."""
    newer = TEXT.replace('"hermes_cassette": 1', '"hermes_cassette": 2')

    assert _error(tmp_path, newer) == (
        "x.json: this cassette has format 2, and this version of pytest-hermes-env reads up to 1.\n"
        f"  fix       pip install --upgrade pytest-hermes-env, {AGAIN}"
    )


def test_a_merge_conflict_is_called_one(tmp_path):
    """The line of the first marker, and how to take a side."""
    lines = TEXT.split("\n")
    conflict = "\n".join([*lines[:3], "<<<<<<< HEAD", lines[3], "=======", lines[3], ">>>>>>> other", *lines[4:]])

    assert _error(tmp_path, conflict) == (
        "x.json, line 4: this cassette has a merge conflict.\n"
        "  seen      <<<<<<< HEAD\n"
        "  fix       take one side: git checkout --ours x.json, or git checkout --theirs x.json;\n"
        f"            {AGAIN}"
    )


def test_a_cut_file_is_an_error_wherever_it_was_cut(tmp_path):
    """No beginning of a cassette is taken for a whole one."""
    whole = len(TEXT.rstrip())

    messages = {_error(tmp_path, TEXT[:length]).split("\n")[0].partition("damaged: ")[2] for length in range(0, whole, 7)}

    assert messages <= {
        "it ends too early: part of the file is missing.",
        "it is not JSON: Expecting value.",
        "it is not JSON: Expecting ',' delimiter.",
        "it is not JSON: Expecting property name enclosed in double quotes.",
        "it is not JSON: Unterminated string starting at.",
    }


def test_what_is_no_cassette_says_so(tmp_path):
    """Bytes that are no text, other JSON, and no file at all."""
    with pytest.raises(BadCassette) as missing:
        read_tape(tmp_path / "none.json")

    assert _error(tmp_path, json.dumps([1])).split("\n")[0] == (
        'x.json, line 1: this cassette is damaged: "hermes_cassette", the number of the format, is missing.'
    )
    assert _error(tmp_path, b"{\n\xff\xfe}").split("\n")[:2] == [
        "x.json, line 2: this cassette is damaged: it is not UTF-8.",
        "  seen      ff fe 7d",
    ]
    assert _error(tmp_path, "[" * 100_000).split("\n")[0] == (
        "x.json, line 1: this cassette is damaged: it is nested too deeply for Python's json module."
    )
    assert str(missing.value) == (
        f"{tmp_path}/none.json: this cassette cannot be read: No such file or directory.\n"
        "  fix       record it: pytest --hermes-record=rewrite TEST"
    )
