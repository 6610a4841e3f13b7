"""What changes in each run is no part of a recording: temporary directories and ids of calls have numbers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.cassette.format import read_tape, save_tape
from pytest_hermes_env.cassette.matching import Matching, normal_form
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.stable import is_the_same, numbered
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, Tape

ID = "call_3cf326cf8ecd820498e4b444"


def conversation(place: str, call_id: str, chat_id: str) -> dict[str, Any]:
    """Return what two runs of one rollout may differ in."""
    calls = [{"id": call_id, "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]
    return {
        "id": chat_id,
        "calls": calls,
        "messages": [{"role": "tool", "tool_call_id": call_id, "content": f"{place}/a.txt of {call_id}"}],
    }


def test_two_runs_have_one_text() -> None:
    """In the order in which names appear, in every place where they stand."""
    one = json.dumps(conversation("/tmp/hermes-37c8a8d0-yh2k0vbk", ID, "chatcmpl-b7346b38ae5858846eca1ccd"), indent=1)
    other = json.dumps(
        conversation("/tmp/tmpab12cd34", "toolu-0123456789ab".replace("toolu-", "call_"), "chatcmpl-00ff00ff00ff"), indent=1
    )

    assert (
        numbered(one)
        == numbered(other)
        == json.dumps(conversation("/tmp/hermes-00000001", "call_00000002", "chatcmpl-00000001"), indent=1)
    )
    assert numbered(numbered(one)) == numbered(one)


def test_what_means_something_stays() -> None:
    """A short id, a tool that is called like an id, and the path of a project."""
    text = json.dumps(
        {"id": "call_1", "tool_call_id": "call_1", "name": "call_customer_support_2", "path": "/tmp/project/a.txt"}
    )

    assert numbered(text) == text


def test_a_number_is_compared_like_a_name() -> None:
    """A replayed request has other names than its recording, and matches."""
    now = json.dumps(conversation("/tmp/hermes-37c8a8d0-yh2k0vbk", ID, "x"), separators=(",", ":"))

    assert normal_form(now, Matching()) == normal_form(numbered(now), Matching())


def tape(at: str, place: str, text: str = "hello") -> Tape:
    """Return a recording of that time."""
    request = ModelRequest(
        method="POST", path="/chat/completions", body={"messages": [{"role": "user", "content": place}]}, body_kind="json"
    )
    call = ModelCall(number=1, request=request, reply=ModelReply(body={"text": text}, body_kind="json"))
    return Tape(header=Header(recorded_at=at, recorded_from="a test"), calls=(call,))


@pytest.mark.parametrize(("text", "date"), [("hello", "2026-01-01T00:00:00+00:00"), ("other", "2026-02-02T00:00:00+00:00")])
def test_a_recording_that_says_the_same_is_left_alone(tmp_path: Path, text: str, date: str) -> None:
    """With its date; another answer is another recording."""
    path = tmp_path / "c.json"
    save_tape(path, tape("2026-01-01T00:00:00+00:00", "/tmp/tmpab12cd34/x"), Redactor(known={}))
    before = path.read_text()
    save_tape(path, tape("2026-02-02T00:00:00+00:00", "/tmp/tmpzz99yy88/x", text), Redactor(known={}))

    assert (read_tape(path).header.recorded_at, path.read_text() == before) == (date, text == "hello")
    assert is_the_same(before, before.replace("2026-01", "2027-03"))
    assert os.listdir(tmp_path) == ["c.json"]
