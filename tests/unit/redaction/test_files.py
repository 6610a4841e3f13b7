"""No secret reaches the disk: random secrets in every place of a rollout, in every code."""

import base64
import dataclasses
import gzip
import itertools
import json
import random
import string
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from pytest_hermes_env.cassette.format import text_of
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, RecordedRollout, RecordedToolCall, Tape
from pytest_hermes_env.contract.run import run_end
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.play.evidence_file import keep_evidence
from pytest_hermes_env.redaction.file_check import FIX, leaks_in
from pytest_hermes_env.redaction.redactor import TextRedactor

LETTERS = string.ascii_letters + string.digits
MAKERS = {
    "openai": lambda pick: "sk-proj-" + pick(40),
    "openrouter": lambda pick: "sk-or-v1-" + pick(64, "0123456789abcdef"),
    "anthropic": lambda pick: "sk-ant-api03-" + pick(60),
    "hugging-face": lambda pick: "hf_" + pick(34),
    "github": lambda pick: "ghp_" + pick(36),
    "github-pat": lambda pick: "github_pat_" + pick(60),
    "aws": lambda pick: "AKIA" + pick(16, string.ascii_uppercase + string.digits),
    "slack": lambda pick: "xoxb-" + pick(12, string.digits) + "-" + pick(24),
    "google": lambda pick: "AIza" + pick(35),
    "gitlab": lambda pick: "glpat-" + pick(20),
    "jwt": lambda pick: ".".join([_b64('{"alg":"HS256"}'), _b64('{"sub":"' + pick(10) + '"}'), pick(43)]),
    "organisation": lambda pick: "org-" + pick(24),
    "known": lambda pick: pick(24, LETTERS + '-_/+!$ "\\ä'),
}
PLAIN_CODES = {
    "plain": lambda text: text,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, in the middle": lambda text: base64.b64encode(f"={text};c".encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(f"ab {text}".encode()).decode(),
    "gzip in base64": lambda text: base64.b64encode(gzip.compress(f"it is {text}.".encode(), mtime=0)).decode(),
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "in a URL": lambda text: "https://x.test/?q=" + quote(text, safe=""),
    "in JSON": lambda text: json.dumps({"output": f"it is {text}"}),
    "in JSON in JSON": lambda text: json.dumps({"output": json.dumps({"it": text})}),
}


def _b64(text):
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _chunks(text, cuts, field="content"):
    borders = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    pieces = [text[start:end] for start, end in itertools.pairwise(borders)]
    if field == "arguments":
        deltas = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    else:
        deltas = [{field: piece} for piece in pieces]
    events = [f"data: {json.dumps({'id': 'c', 'choices': [{'index': 0, 'delta': delta}]})}\n\n" for delta in deltas]
    return [*events, "data: [DONE]\n\n"]


def _tokens(text):
    return [
        {"token": letter, "logprob": -0.1, "bytes": list(letter.encode()), "top_logprobs": [{"token": letter, "logprob": -0.1}]}
        for letter in text
    ]


def _tape(said, secret, cuts):
    """Return a recording with ``said``, which holds a secret, in every place of a rollout."""
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": f"The key is {said}"},
            {"role": "user", "content": [{"type": "text", "text": said}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "x", "arguments": json.dumps({"k": said})}}
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": json.dumps({"output": f"export KEY={said}\n", "exit_code": 0})},
        ],
        "user": said,
        "metadata": {"a": [said]},
        "tools": [{"type": "function", "function": {"name": "x", "description": said}}],
    }
    chat = ModelRequest(method="POST", path=f"/chat/completions?x={quote(said)}", body=body, body_kind="json")
    replies = (
        ModelReply(
            headers={"Set-Cookie": said, "Authorization": said, "Content-Type": "application/json", "x-request-id": said},
            body={"choices": [{"message": {"content": f"I say {said}."}, "logprobs": {"content": _tokens(said)}}]},
            body_kind="json",
        ),
        ModelReply(body=_chunks(f"Well: {said} it is", cuts), body_kind="events"),
        ModelReply(body=_chunks(json.dumps({"command": said}), cuts, "arguments"), body_kind="events"),
        ModelReply(body=_chunks(said, cuts, "reasoning_content"), body_kind="events"),
        ModelReply(status=401, body={"error": {"message": f"Incorrect API key provided: {said}"}}, body_kind="json"),
        ModelReply(status=500, body=f"<html>{said}</html>", body_kind="text"),
        ModelReply(body=base64.b64encode(said.encode()).decode(), body_kind="bytes"),
        ModelReply(failure=f"ConnectError: {said}"),
        ModelReply(body={"meta_info": {"output_token_logprobs": [[-0.1, 5, letter] for letter in said]}}, body_kind="json"),
    )
    calls = [ModelCall(number=number, request=chat, reply=reply) for number, reply in enumerate(replies, start=1)]
    generate = ModelRequest(method="POST", path="/generate", body={"prompt": said, "rid": said}, body_kind="json")
    calls.append(ModelCall(number=10, request=generate, reply=ModelReply(body={"text": [said]}, body_kind="json")))
    calls.append(
        RecordedToolCall(
            number=11, name="terminal", arguments={"command": f"echo {said}", said: 1}, result={"lines": [said]}, error=said
        )
    )
    header = Header(recorded_at="2026", recorded_from=said, provider=said, test=f"t.py::test[{said}]", versions={"x": said})
    rollout = RecordedRollout(number=1, reward_error=f"ValueError: {said}")
    return Tape(header=header, calls=tuple(calls), rollouts=(rollout,))


SECRETS = st.builds(
    lambda maker, seed: (maker, MAKERS[maker](_picker(seed))), st.sampled_from(sorted(MAKERS)), st.integers(0, 10**9)
)


def _picker(seed):
    chance = random.Random(seed)

    def pick(count, letters=LETTERS):
        return "".join(chance.choice(letters) for _ in range(count - 2)) + "4" + chance.choice(string.digits)

    return pick


@settings(deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate), max_examples=30)
@given(SECRETS, st.sampled_from(sorted(PLAIN_CODES)), st.lists(st.integers(0, 500), max_size=8))
@example(("known", "e8fAcU1wmqäCL0/l4!2lG549"), "plain", [287, 2, 61])  # an event that is kept as it was sent, between others
def test_a_secret_is_found_in_every_place_of_a_file_and_in_none_once_it_is_redacted(secret, code, cuts):
    """A key of any maker, or one that is known, in whatever code, however it was split; each place is looked at by itself."""
    maker, value = secret
    known = {"MY_KEY": value} if maker == "known" else {}
    tape = _tape(PLAIN_CODES[code](value), value, cuts)
    tapes = [Tape(header=Header(recorded_at="", recorded_from=""), calls=(call,)) for call in _alone(tape)]

    missed = [number for number, one in enumerate(tapes, start=1) if not leaks_in(text_of(one), known)]
    text = text_of(Redactor(known=known).tape(tape))

    assert missed == []
    assert leaks_in(text, known) == []
    assert value.strip(' "\\')[:16] not in text


def _alone(tape):
    """Return each call by itself, those of chats without the request that they share."""
    plain = ModelRequest(method="GET", path="/x")
    changes = [{"request": plain} if isinstance(call, ModelCall) and call.number < 10 else {} for call in tape.calls]
    return [dataclasses.replace(call, number=1, **change) for call, change in zip(tape.calls, changes, strict=True)]


def test_what_the_redaction_missed_keeps_the_evidence_and_the_reports_from_being_written(tmp_path, monkeypatch):
    """One check of the whole text, before anything is written; the error does not show the secret."""
    key = "hf_" + "a1B2" * 8
    part, file = tmp_path / "part", tmp_path / "file"
    part.write_text(json.dumps({"evidence": 1, "target": "x"}) + "\n" + json.dumps({"scenario": key}) + "\n")
    monkeypatch.setattr(TextRedactor, "text", lambda _, text: text)
    session = SimpleNamespace(exitstatus=pytest.ExitCode.OK)

    with pytest.raises(UsageError) as caught:
        keep_evidence(str(file), [str(part)])

    headline = f"{file} was not written, because it would contain what looks like a secret."
    said = f"{headline}\n  seen      line %s: hugging-face-token in %s\n  fix       {FIX}"
    assert str(caught.value) == said % (2, "the file")
    assert run_end._written(str(file), json.dumps({"seen": key}), session) == "error: " + said % (1, "seen")
    assert (session.exitstatus, file.exists()) == (pytest.ExitCode.TESTS_FAILED, False)
