"""wandb, warnings and TLS contexts during a contract run."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from typing import Any

import pytest
import wandb
from openai import NOT_GIVEN, omit
from openai.resources.chat.completions import completions
from openai.types.chat import ChatCompletionMessage
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

from pytest_hermes_env.play.journal import Journal, recording
from pytest_hermes_env.play.watchers.services import (
    recording_warnings,
    sending_plain_requests,
    sharing_tls_context,
    watching_wandb,
)


def test_metrics_go_into_the_scenario_that_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of them; outside of such a scenario wandb gets them."""
    real: list[object] = []
    monkeypatch.setattr(wandb, "log", lambda data, **_: real.append(data))
    logged: list[dict[str, object]] = []
    with watching_wandb():
        with recording(Journal(log=logged.append)):
            metrics = {"a": 1}
            wandb.log(metrics, step=3)
            metrics.clear()
        with recording(Journal()):
            wandb.log({"b": 2})

    assert (logged, real) == ([{"a": 1}], [{"b": 2}])


def test_warnings_are_recorded_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Each time they come up; those outside of a scenario are dropped."""
    with recording_warnings():
        with recording() as journal:
            for _ in range(2):
                warnings.warn("careful", UserWarning, stacklevel=1)
        warnings.warn("nobody hears", UserWarning, stacklevel=1)

    assert (journal.warnings, capsys.readouterr().err) == (["careful", "careful"], "")


def test_one_tls_context_serves_all_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """For equal arguments, also in later runs; a new one for others, and for whoever comes outside of a run."""
    made: list[object] = []
    monkeypatch.setattr(ssl, "create_default_context", lambda *args, **_: made.append(args) or len(made))
    with sharing_tls_context():
        inside = [ssl.create_default_context(), ssl.create_default_context(), ssl.create_default_context(cafile="x")]
    after = ssl.create_default_context()
    with sharing_tls_context():
        later = ssl.create_default_context()

    assert (inside, after, later) == ([1, 1, 2], 3, 1)


CALL = {"id": "call-1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
SCHEMA = {"type": "object", "properties": {"command": {"type": "string", "default": None}}, "required": ["command"]}
REQUEST: dict[str, Any] = {
    "model": "m",
    "temperature": 0.0,
    "n": 1,
    "stop": ["a", "b"],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "List files."}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "Which command?"},
        {"role": "tool", "tool_call_id": "call-1", "name": "terminal", "content": "notes.txt"},
    ],
    "tools": [{"type": "function", "function": {"name": "terminal", "description": "Run.", "parameters": SCHEMA}}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
}


@pytest.mark.parametrize(
    "request_",
    [
        REQUEST,
        REQUEST | {"max_tokens": NOT_GIVEN, "user": omit},
        REQUEST | {"messages": [ChatCompletionMessage(role="assistant", content="hello")]},
        REQUEST | {"messages": ({"role": "user", "content": "a tuple"},)},
    ],
    ids=["plain", "not given", "a pydantic message", "a tuple"],
)
def test_requests_are_what_openai_would_send(request_: dict[str, Any]) -> None:
    """Without the work, where the values are plain JSON; else with it."""

    async def body() -> Any:
        return await completions.async_maybe_transform(request_, CompletionCreateParamsNonStreaming)

    real = asyncio.run(body())
    with sending_plain_requests():
        sent = asyncio.run(body())

    assert sent == real
