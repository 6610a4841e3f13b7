from pytest_hermes_env.cassette.format import read_tape, text_of
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, RecordedToolCall, Tape

HEADER = Header(recorded_at="2026-01-02T03:04:05+00:00", recorded_from="the mock server, in place of a provider")


def test_a_tape_comes_back_as_it_was(tmp_path):
    """What is written is what is read, with model calls and tool calls in their order."""
    tape = Tape(
        header=HEADER,
        calls=(
            ModelCall(
                number=1,
                request=ModelRequest(method="POST", path="/chat/completions", body={"messages": []}, body_kind="json"),
                reply=ModelReply(headers={"content-type": "application/json"}, body={"choices": []}, body_kind="json"),
            ),
            RecordedToolCall(number=2, name="terminal", arguments={"command": "ls"}, result="ä\n", rollout=1, turn=1),
        ),
    )

    (tmp_path / "one.json").write_text(text_of(tape), encoding="utf-8")

    assert read_tape(tmp_path / "one.json") == tape


def test_each_message_has_a_line_and_is_written_once():
    """A request that goes on with a conversation refers to it; texts of several lines are lists of lines."""
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    more = [{"role": "user", "content": "first line of several, to be read\nsecond line"}]
    requests = [
        ModelRequest(method="POST", path="/chat/completions", body={"messages": messages}, body_kind="json")
        for messages in (said, said + more)
    ]
    calls = tuple(ModelCall(number=number, request=each, reply=ModelReply()) for number, each in enumerate(requests, start=1))

    text = text_of(Tape(header=HEADER, calls=calls))

    lines = [line.strip() for line in text.split("\n")]
    assert [line for line in lines if "role" in line or "~" in line] == [
        '{"role": "user", "content": "a"},',
        '{"role": "assistant", "content": "b"}',
        '"json": {"messages": {"~as": 1, "then": [{"role": "user", "content": {"~lines": '
        '["first line of several, to be read", "second line"]}}]}}',
    ]
