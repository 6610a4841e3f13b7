"""What a recording tells people who wait for it."""

from __future__ import annotations

from typing import Any

from pytest_hermes_env.cassette.interception import Exchange
from pytest_hermes_env.cassette.recorder import Recorder
from pytest_hermes_env.cassette.rollouts import LiveRollout
from pytest_hermes_env.cassette.session import CassetteSession
from pytest_hermes_env.cassette.tape import ModelCall, ModelReply, ModelRequest


def a_call(body: Any = None) -> ModelCall:
    return ModelCall(number=0, request=ModelRequest(method="POST", path="/chat/completions"), reply=ModelReply(body=body))


def rollout_at(turn: int) -> LiveRollout:
    rollout = LiveRollout("hello", None)
    rollout.turn, rollout.is_looping = turn, True
    return rollout


def test_calls_rollouts_tokens_and_cost_are_told():
    """Of the rollouts that are under way; what a server does not count is left out."""
    recorder, first, second = Recorder(), rollout_at(2), rollout_at(5)
    recorder.add(recorder.begin(None), a_call("busy"))
    alone = recorder.described()
    recorder.add(recorder.begin(first), a_call({"usage": {"prompt_tokens": 1200, "completion_tokens": 34, "cost": 0.002}}))
    recorder.add(recorder.begin(second), a_call({"usage": {"prompt_tokens": None, "completion_tokens": 6}}))
    both = recorder.described()
    first.is_looping = False

    assert alone == "1 model call"
    assert both == "3 model calls, 2 rollouts at turns 2 to 5, 1,240 tokens, $0.0020"
    assert recorder.described() == "3 model calls, 1 rollout at turn 5, 1,240 tokens, $0.0020"


def test_a_session_tells_each_recorded_call_and_its_end():
    """The empty text removes the line."""
    told: list[str] = []
    with CassetteSession(name="x.json", record_command="", recorder=Recorder(), tell=told.append) as session:
        exchange = Exchange("127.0.0.1")
        exchange.request = ModelRequest(method="POST", path="/chat/completions")
        session.ask(exchange)
        session.answered(exchange, ModelReply())

    assert told == ["recording: 1 model call", ""]
