"""Doubles and sandboxes for the tests of the environment layer."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest


class FakeServer:
    """A server without HTTP: gives its answers one after the other and keeps what it was asked."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []

    async def chat_completion(self, **request: Any) -> Any:
        self.requests.append({**request, "messages": [dict(message) for message in request["messages"]]})
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def completion(content: str | None = None, *calls: Any, **fields: Any) -> SimpleNamespace:
    """A chat completion with plain attributes."""
    message = SimpleNamespace(role="assistant", content=content, tool_calls=list(calls) or None, **fields)
    return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])


def tool_call(name: str, arguments: Any = None, call_id: str = "call_1") -> SimpleNamespace:
    """A tool call as an object; arguments that are not text are written as JSON, None is not an argument."""
    text = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
    return SimpleNamespace(id=call_id, type="function", function=SimpleNamespace(name=name, arguments=text))


def schema(name: str) -> dict[str, Any]:
    """The schema of a tool without parameters."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def fake() -> SimpleNamespace:
    """The doubles: ``fake.server(*answers)``, ``fake.completion(...)``, ``fake.call(...)``, ``fake.schema(name)``."""
    return SimpleNamespace(
        server=lambda *answers: FakeServer(list(answers)), completion=completion, call=tool_call, schema=schema
    )


@pytest.fixture
def sandbox() -> Iterator[Any]:
    """A ToolContext on a real local sandbox, cleaned up afterwards."""
    from environments.tool_context import ToolContext

    ctx = ToolContext(str(uuid.uuid4()))
    yield ctx
    ctx.cleanup()


@pytest.fixture
def tool_answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], list[tuple[str, dict[str, Any]]]]:
    """``tool_answers(function)`` lets ``function(name, arguments)`` answer every ToolContext call; returns the calls made."""

    def install(function: Callable[[str, dict[str, Any]], Any]) -> list[tuple[str, dict[str, Any]]]:
        made: list[tuple[str, dict[str, Any]]] = []

        def handle(name: str, arguments: dict[str, Any], **_keywords: Any) -> Any:
            made.append((name, arguments))
            return function(name, arguments)

        monkeypatch.setattr("environments.tool_context.handle_function_call", handle)
        return made

    return install


@pytest.fixture
def cleaned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Task ids whose sandboxes were released, in order; a release runs to its end, and off the event loop."""
    from environments.tool_context import ToolContext

    ids: list[str] = []
    original = ToolContext.cleanup

    def cleanup(self: ToolContext) -> None:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        original(self)
        ids.append(self.task_id)

    monkeypatch.setattr(ToolContext, "cleanup", cleanup)
    return ids


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The hub is out of reach, and nothing is cached where the user caches."""
    import datasets
    from huggingface_hub import constants

    cache = str(tmp_path_factory.mktemp("datasets"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    datasets.disable_progress_bars()
