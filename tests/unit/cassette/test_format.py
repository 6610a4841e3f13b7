from pytest_hermes_env.cassette.format import read_tape, write_tape
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

    write_tape(tmp_path / "new" / "one.json", tape)

    assert read_tape(tmp_path / "new" / "one.json") == tape
