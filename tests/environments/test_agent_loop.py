"""One rollout's conversation: what is asked, what is kept, when it ends."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from environments.agent_loop import AgentResult, HermesAgentLoop, _extract_reasoning_from_message


def ask(text: str = "do it") -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def run(server: Any, messages: list[dict[str, Any]] | None = None, **settings: Any) -> AgentResult:
    settings = {"tool_schemas": [], "valid_tool_names": set(), **settings}
    return asyncio.run(HermesAgentLoop(server, **settings).run(ask() if messages is None else messages))


def test_answer_without_a_tool_call_ends_the_rollout_naturally(fake):
    """An answer without tool calls is appended and ends the rollout."""
    result = run(fake.server(fake.completion("done")))

    assert result == AgentResult(
        messages=[*ask(), {"role": "assistant", "content": "done"}],
        turns_used=1,
        finished_naturally=True,
        reasoning_per_turn=[None],
    )


def test_messages_are_extended_in_place(fake):
    """The list that is passed in is the result's list."""
    messages = ask()

    result = run(fake.server(fake.completion("done")), messages)

    assert result.messages is messages
    assert len(messages) == 2


def test_full_request_holds_all_that_is_set(fake):
    """Tools, max_tokens, temperature and extra_body go to the server as they are."""
    server = fake.server(fake.completion("done"))
    schemas = [fake.schema("look")]

    run(server, tool_schemas=schemas, valid_tool_names={"look"}, temperature=0.0, max_tokens=7, extra_body={"a": 1})

    assert server.requests == [
        {"messages": ask(), "n": 1, "temperature": 0.0, "tools": schemas, "max_tokens": 7, "extra_body": {"a": 1}}
    ]


def test_task_id_is_a_uuid_unless_given(fake):
    """Two loops without a task id never share a sandbox."""
    first, second = (HermesAgentLoop(fake.server(), [], set()) for _ in range(2))

    assert first.task_id != second.task_id
    assert HermesAgentLoop(fake.server(), [], set(), task_id="mine").task_id == "mine"


def test_server_exception_stops_and_counts_the_failed_turn(fake, caplog):
    """A server that raises ends the rollout; the failed turn counts, the history keeps what was said before."""
    server = fake.server(fake.completion(None, fake.call("nope")), RuntimeError("503"))

    result = run(server)

    assert (result.turns_used, result.finished_naturally, len(result.messages)) == (2, False, 3)
    assert "failed on turn 2" in caplog.text


@pytest.mark.parametrize(
    "answer",
    [None, SimpleNamespace(choices=[]), SimpleNamespace(choices=None), "<html>busy</html>", SimpleNamespace()],
    ids=["none", "empty", "null", "garbage", "without"],
)
def test_answer_without_choices_stops(fake, answer):
    """No choices, for whatever reason, end the rollout like an error; the failed turn counts."""
    result = run(fake.server(answer))

    assert result == AgentResult(messages=ask(), turns_used=1, finished_naturally=False)


@pytest.mark.parametrize("content", [5, True, {"text": "done"}], ids=repr)
def test_content_that_is_no_text_stops(fake, content, caplog):
    """It was never sampled: a rollout that had ended with it would train an empty answer."""
    result = run(fake.server(fake.completion(content)))

    assert result == AgentResult(messages=ask(), turns_used=1, finished_naturally=False)
    assert f"content of the type {type(content).__name__} instead of a text" in caplog.text


def test_turn_limit_ends_the_rollout_unnaturally(fake):
    """At the limit, turns_used is max_turns, finished_naturally is False, and the last calls were answered."""
    server = fake.server(*(fake.completion(None, fake.call("nope")) for _ in range(3)))

    result = run(server, max_turns=2)

    assert (result.turns_used, result.finished_naturally) == (2, False)
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"reasoning_content": "a", "reasoning": "b"}, "a"),
        ({"reasoning_content": "", "reasoning": "b"}, "b"),
        ({"reasoning_content": None, "reasoning": "b", "reasoning_details": [{"text": "c"}]}, "b"),
        ({"reasoning": "", "reasoning_details": [{"text": ""}, {"summary": "x"}, {"text": "c"}, {"text": "d"}]}, "c"),
        ({"reasoning_details": [SimpleNamespace(text="object")]}, "object"),
        ({"reasoning_details": [SimpleNamespace(other=1), SimpleNamespace(text="")]}, None),
        ({"reasoning_details": None}, None),
        ({"reasoning_content": 7, "reasoning": ["x"], "reasoning_details": "text"}, None),
    ],
)
def test_reasoning_is_found_where_providers_put_it(fields, expected):
    """reasoning_content wins over reasoning, which wins over the first detail with text; empty text counts as absent."""
    assert _extract_reasoning_from_message(SimpleNamespace(**fields)) == expected
    assert _extract_reasoning_from_message(fields) == expected


def test_reasoning_is_kept_per_turn_and_in_the_history(fake):
    """One entry per turn, None for a turn without; the history keeps it as reasoning_content."""
    server = fake.server(
        fake.completion(None, fake.call("nope"), reasoning="first look"), fake.completion("done", reasoning_content="")
    )

    result = run(server)

    assert result.reasoning_per_turn == ["first look", None]
    assert [message.get("reasoning_content") for message in result.messages] == [None, "first look", None, None]


def test_managed_state_is_what_the_server_gives(fake):
    """A server with get_state is a ManagedServer: its state is the result's."""
    server = fake.server(fake.completion("done"))
    server.get_state = lambda: {"nodes": [1]}

    assert run(server).managed_state == {"nodes": [1]}


def test_content_parts_become_text(fake):
    """Content in parts, as some providers answer, is kept as text."""
    result = run(fake.server(fake.completion([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])))

    assert result.messages[-1] == {"role": "assistant", "content": "a\nb"}


def test_result_has_exactly_its_documented_fields():
    """AgentResult has no final_response, tool_calls, tools_used, output or response."""
    assert list(AgentResult.__dataclass_fields__) == [
        "messages",
        "managed_state",
        "turns_used",
        "finished_naturally",
        "reasoning_per_turn",
        "tool_errors",
        "end",
    ]


def test_cancellation_goes_through(fake):
    """A cancelled model call is a cancellation, not a failed turn."""

    class Waiting:
        async def chat_completion(self, **_request: Any) -> Any:
            await asyncio.Event().wait()

    async def scenario() -> bool:
        task = asyncio.create_task(HermesAgentLoop(Waiting(), [], set()).run(ask()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(scenario())
