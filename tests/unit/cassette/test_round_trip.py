import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hermes_env.cassette.format import text_of
from pytest_hermes_env.cassette.reading import tape_of
from pytest_hermes_env.cassette.tape import (
    Header,
    ModelCall,
    ModelReply,
    ModelRequest,
    RecordedRollout,
    RecordedToolCall,
    Tape,
    as_bytes,
    as_reply_body,
)

ODD = [
    "",
    "\x00",
    "\ud83d",
    "\U0001f600 \u2028\u202e\x7f\x85\ufeff\U000e0041",
    "<<<<<<< HEAD\n=======\n>>>>>>> other\n",
    "line\n" * 60,
    "line\r\n" * 10,
    '{"output": "one\\ntwo", "exit_code": 0, "error": null, "and": "so on and on"}',
    json.dumps({"output": "ä\n" * 40, "n": [1, 1.0, -0.0, 1e300]}),
    json.dumps({"output": "ä\n" * 40, "~lines": [1]}, ensure_ascii=False),
    json.dumps({"a": "\U0001f600" * 30}, separators=(",", ":")),
    json.dumps([[["deep"] * 20] * 3] * 2, indent=2),
    '{"n": NaN, "and this makes it a text that is longer than sixty characters": 1}',
    '{"a": 1, "a": 2, "and this makes it a text that is longer than sixty characters": 1}',
    "[" * 2000 + "]" * 2000,
    'data: {"choices":[{"delta":{"content":"a long enough piece of an answer, to be sure"}}]}\n\n',
    'data: {"choices": [{"delta": {"content": "a long enough piece of an answer, to be sure"}}]}\n\n',
    "data: [DONE]\n\n",
    "a text that calls share " * 12,
]
PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two halves of a character, which no JSON and no decoder gives."""
TEXTS = st.sampled_from(ODD) | st.text(st.characters(codec=None), max_size=20).filter(lambda text: not PAIR.search(text))
KEYS = st.sampled_from(["role", "content", "~lines", "~as", "~", "messages", "is", ""]) | st.text(max_size=5)
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.sampled_from([0, 0.0, -0.0, 1, 1.0, True, 10**400, math.inf])
IDS = st.lists(st.integers(0, 150_000), max_size=5) | st.integers(0, 200).map(lambda count: list(range(count)))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | IDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
MESSAGES = st.lists(
    st.sampled_from([{"role": "user", "content": text} for text in ODD] + [{"role": 1}, {"role": 1.0}]), max_size=6
)
PROMPTS = (
    st.builds(lambda ids: {"prompt": {"prompt_token_ids": ids}, "n": 1}, IDS | VALUES)
    | st.builds(lambda ids: {"input_ids": ids}, IDS)
    | st.builds(lambda ids: {"prompt": ids}, IDS | VALUES)
)
CHATS = st.builds(
    lambda messages, tools, more: {"messages": messages, "tools": tools, **more},
    MESSAGES | VALUES,
    st.sampled_from([None, [{"type": "function", "function": {"name": "terminal", "description": "runs " * 60}}]]),
    st.dictionaries(KEYS, VALUES, max_size=2),
)
ANSWERS = (
    st.builds(lambda ids: {"logprobs": [[[{str(one): -0.5}] for one in ids]]}, IDS)
    | st.builds(lambda ids: {"meta_info": {"output_token_logprobs": [[-0.5, one, None] for one in ids]}}, IDS)
    | st.lists(TEXTS, max_size=4)
    | VALUES
)
KINDS = st.sampled_from(["none", "json", "text", "events", "bytes"])
MODEL_CALLS = st.builds(
    lambda path, request, reply, kinds, status, headers, failure, seconds, rollout: ModelCall(
        number=0,
        request=ModelRequest(method="POST", path=path, body=request, body_kind=kinds[0]),
        reply=ModelReply(status=status, headers=headers, body=reply, body_kind=kinds[1], failure=failure, seconds=seconds),
        rollout=rollout,
    ),
    TEXTS,
    CHATS | PROMPTS | VALUES,
    ANSWERS,
    st.tuples(KINDS, KINDS),
    st.integers(100, 599),
    st.dictionaries(TEXTS, TEXTS, max_size=2),
    TEXTS,
    st.floats(0, 100),
    st.integers(0, 5),
)
TOOL_CALLS = st.builds(
    RecordedToolCall,
    number=st.just(0),
    name=TEXTS,
    arguments=st.dictionaries(KEYS, VALUES, max_size=3),
    result=VALUES,
    error=TEXTS,
    rollout=st.integers(0, 5),
    turn=st.integers(0, 5),
)
HEADERS = st.builds(
    Header,
    recorded_at=TEXTS,
    recorded_from=TEXTS,
    provider=TEXTS,
    model=TEXTS,
    environment=TEXTS,
    source_hash=TEXTS,
    test=TEXTS,
    versions=st.dictionaries(TEXTS, TEXTS, max_size=3),
)


ROLLOUTS = st.lists(
    st.builds(
        RecordedRollout,
        number=st.integers(0, 9),
        opening=TEXTS,
        reward=st.none() | st.floats(allow_nan=False),
        reward_error=TEXTS,
    ),
    max_size=2,
)


def _tape(header, calls, rollouts=()):
    import dataclasses

    return Tape(
        header=header,
        calls=tuple(dataclasses.replace(call, number=number) for number, call in enumerate(calls, start=1)),
        rollouts=tuple(rollouts),
    )


TAPES = st.builds(_tape, HEADERS, st.lists(MODEL_CALLS | TOOL_CALLS, max_size=6), ROLLOUTS)


def _exact(value):
    """Say a value so that 1, 1.0 and True differ, and the order of keys is seen."""
    if isinstance(value, dict):
        return "dict", [(key, _exact(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [_exact(item) for item in value]
    return type(value).__name__, hex(value) if type(value) is int else str(value)


def _bodies(tape):
    return [
        (_exact(call.request.body), _exact(call.reply.body))
        if isinstance(call, ModelCall)
        else (_exact(call.arguments), _exact(call.result))
        for call in tape.calls
    ]


@settings(deadline=None, max_examples=150)
@given(TAPES)
def test_every_tape_comes_back_exactly(tape):
    """Whatever was recorded is read again: odd texts, the order of keys, 1 as 1 and 1.0 as 1.0."""
    text = text_of(tape)
    again = tape_of(text)

    assert again == tape
    assert _bodies(again) == _bodies(tape)


@settings(deadline=None, max_examples=50)
@given(TAPES)
def test_every_cassette_is_text_that_tools_take(tape):
    """A cassette is JSON as the standard has it, UTF-8, without characters that hide, and no line looks like a conflict."""

    def refuse(constant):
        raise AssertionError(constant)

    text = text_of(tape)

    assert json.loads(text.encode().decode(), parse_constant=refuse)["calls"] == len(tape.calls)
    assert text.splitlines() == text.removesuffix("\n").split("\n")
    assert not {"\u202e", "\ufeff", "\x7f", "\U000e0041"} & set(text)
    assert not [line for line in text.split("\n") if line.startswith(("<<<<<<<", "=======", ">>>>>>>"))]


def test_a_deep_body_comes_back():
    """As deep as a client reads one."""
    nested = json.loads("[" * 100 + '"\\ud83d"' + "]" * 100)
    tape = _tape(Header(recorded_at="", recorded_from=""), [RecordedToolCall(number=0, name="x", arguments={"nested": nested})])

    is_same = tape_of(text_of(tape)) == tape

    assert is_same


def test_a_text_of_many_brackets_stays_a_text() -> None:
    """A text that is JSON of more levels than Python can walk through is kept as it is; some versions can read it all the same."""
    text = "[" * 3000 + "]" * 3000
    call = RecordedToolCall(number=1, name="terminal", arguments={"command": "x"}, result=text)
    tape = Tape(header=Header(recorded_at="2026-01-01T00:00:00Z", recorded_from="a test"), calls=(call,))

    written = text_of(tape)

    assert tape_of(written) == tape


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"data: 1\n\ndata: 2\n\n", "events"), (b'data: 1\n\ndata: {"b', "text"), (b"data: 1\n\ndata: \xff", "bytes")],
)
def test_a_stream_that_was_cut_in_an_event_is_replayed_as_it_came(data: bytes, kind: str) -> None:
    """A client drops the half of an event, and would read it if it had an end."""
    body, found, headers = as_reply_body(data, {"content-type": "text/event-stream"})

    assert (found, as_bytes(ModelReply(body=body, body_kind=found, headers=headers))) == (kind, data)
