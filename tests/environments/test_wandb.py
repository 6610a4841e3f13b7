"""What an environment logs, and how it shows conversations."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from environments.agent_loop import AgentResult, ToolError
from environments.loop.messages import render
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from tests.environments.captured_metrics import capturing_wandb


def with_env(make_env: Any, act: Any, **fields: Any) -> Any:
    async def scenario() -> Any:
        env = make_env(TerminalTestEnv, server="http://127.0.0.1:9/v1", **fields)
        await env.setup()
        return await act(env)

    return asyncio.run(scenario())


def error(number: int) -> ToolError:
    return ToolError(turn=number, tool_name="look", arguments="{}", error=f"e{number}", tool_result="{}")


def test_tool_errors_are_counted_described_and_drained(make_env):
    """One line per error; the second call starts anew. What is given in is logged as well, by Atropos' own method."""

    async def act(env: Any) -> Any:
        env._remember_tool_errors(AgentResult(messages=[], tool_errors=[error(1), error(2)]))
        with capturing_wandb(env) as logged:
            await env.wandb_log({"mine": 1})
            await env.wandb_log(None)
        return logged

    first, second = with_env(make_env, act)

    assert first == {
        "mine": 1,
        "train/tool_errors_count": 2,
        "train/tool_error_details": "[turn 1] look({}): e1\n[turn 2] look({}): e2",
        "train/reward_errors": 0,
    }
    assert second == {"train/tool_errors_count": 0, "train/reward_errors": 0}


def test_old_environments_may_buffer_dicts(make_env):
    """Environments that fill the buffer themselves used to put dicts into it."""

    async def act(env: Any) -> Any:
        env._tool_error_buffer.append({"turn": 1, "tool": "look"})
        with capturing_wandb(env) as logged:
            await env.wandb_log()
        return logged[0]["train/tool_error_details"]

    assert with_env(make_env, act) == "{'turn': 1, 'tool': 'look'}"


def test_conversation_shows_roles_reasoning_calls_and_results():
    """Reasoning is cut at 300 characters, arguments at 200, results at 500."""
    text = render(
        [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": "do it"}]},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "r" * 301,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "a" * 201}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "t" * 501},
            {"role": "assistant", "content": "done", "reasoning_content": "r" * 300},
        ]
    )

    assert text.splitlines() == [
        "[SYSTEM] be good",
        "[USER] do it",
        f"[REASONING] {'r' * 300}...",
        f"[TOOL CALL] look({'a' * 200}...)",
        f"[TOOL RESULT] {'t' * 500}...",
        f"[REASONING] {'r' * 300}",
        "[ASSISTANT] done",
    ]


@pytest.mark.parametrize(("kept", "rows"), [(1, 1), (5, 2), (-1, 2), (0, 0)])
def test_rollouts_are_kept_as_configured(make_env, kept, rows):
    """As many rollouts per group as asked for, never more than there are; conversations where there are any."""
    messages = [[{"role": "user", "content": "hi"}], None]

    async def act(env: Any) -> Any:
        tokens = [env.tokenizer.encode("a"), env.tokenizer.encode("decoded")]
        await env.add_rollouts_for_wandb({"tokens": tokens, "scores": [1.0, 0.0], "messages": messages})
        return env.rollouts_for_wandb

    expected = [("[USER] hi", 1.0), ("decoded", 0.0)]
    assert with_env(make_env, act, num_rollouts_per_group_for_logging=kept) == [expected[:rows]]
