"""agent_rollout: one run of the agent on one item, in a sandbox that is released on every way out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from environments.agent_loop import HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv
from environments.sandbox.isolation import sandbox_directory
from environments.tokens.exact_tokens import TokenModeError
from environments.tool_context import ContextClosedError
from pytest_hermes_env.inference import call, empty_choices, fail, garbage, hang, say, turn


class Env(HermesAgentBaseEnv):
    """The reward is the size of the file that the agent was to write."""

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any: ...

    def format_prompt(self, item: Any) -> str:
        if item == "no prompt":
            raise LookupError(item)
        return f"item {item}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return len(ctx.read_file("a.txt").get("content", "").strip())

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


def run(make_env: Any, act: Any, **settings: Any) -> Any:
    async def scenario() -> Any:
        return await act(make_env(Env, **{"enabled_toolsets": ["file"], **settings}))

    return asyncio.run(scenario())


def test_rollout_has_the_result_and_the_open_sandbox(make_env, cleaned):
    """Item, prompt, result, server and a ToolContext on the agent's own sandbox, which closes with the block."""

    async def act(env: Any) -> Any:
        async with env.agent_rollout("x") as rollout:
            reward = await env.compute_reward(rollout.item, rollout.result, rollout.ctx)
            inside = (sandbox_directory(rollout.task_id) is not None, list(cleaned))
        return env, rollout, reward, inside, sandbox_directory(rollout.task_id)

    env, rollout, reward, inside, after = run(make_env, act, script=[call("write_file", path="a.txt", content="12"), say("ok")])

    assert (rollout.item, rollout.prompt, rollout.result.turns_used, rollout.failure) == ("x", "item x", 2, None)
    assert (rollout.server is env.server, rollout.task_id) == (True, rollout.ctx.task_id)
    assert (reward, inside, after, cleaned) == (2.0, (True, []), None, [rollout.task_id])


class StaticEnv(Env):
    """Its reward uses no instance."""

    @staticmethod
    async def compute_reward(item: Any, result: Any, ctx: Any) -> float:  # type: ignore[override]
        return len(ctx.read_file("a.txt").get("content", "").strip())


class OfTheClassEnv(Env):
    """Its reward uses what the class has."""

    worth = 3.0

    @classmethod
    async def compute_reward(cls, item: Any, result: Any, ctx: Any) -> float:  # type: ignore[override]
        return cls.worth


@pytest.mark.parametrize(("env_class", "paid"), [(StaticEnv, 2.0), (OfTheClassEnv, 3.0)])
def test_a_reward_may_be_static_or_of_the_class(make_env, env_class, paid):
    """Of the class itself, of an instance, and of a subclass, in a rollout of training."""
    sub_class = type("Sub", (env_class,), {})
    assert [type(vars(env_class)["compute_reward"])] == [staticmethod if env_class is StaticEnv else classmethod]

    async def rewards() -> Any:
        env = make_env(sub_class, script=[call("write_file", path="a.txt", content="12"), say("ok")], enabled_toolsets=["file"])
        scored, _ = await env.collect_trajectory("x")
        async with env.agent_rollout("x") as rollout:
            return scored["scores"], await env.compute_reward(rollout.item, rollout.result, rollout.ctx)

    assert asyncio.run(rewards()) == (paid, paid)


def test_prompt_that_must_be_awaited_is_named(make_env, cleaned):
    """The model server would refuse a coroutine, in words about JSON."""

    class AsyncPrompt(Env):
        async def format_prompt(self, item: Any) -> str:  # type: ignore[override]
            return f"item {item}"

    async def scenario() -> None:
        env = make_env(AsyncPrompt, enabled_toolsets=["file"])
        with pytest.raises(TypeError, match="format_prompt must return the prompt, but it is async"):
            async with env.agent_rollout("x"):
                pass

    asyncio.run(scenario())
    assert len(cleaned) == 1


class Prepared(Env):
    """Each sandbox has a file."""

    async def prepare_sandbox(self, item: Any, ctx: Any) -> None:
        """Write it."""
        ctx.write_file("a.txt", item * 3)


class PlainlyPrepared(Prepared):
    """By a method without ``async``."""

    def prepare_sandbox(self, item: Any, ctx: Any) -> None:  # type: ignore[override]
        """Write it."""
        ctx.write_file("a.txt", item * 3)


@pytest.mark.parametrize("prepared", [Prepared, PlainlyPrepared])
def test_the_sandbox_is_prepared_before_the_agent_starts(make_env, cleaned, prepared):
    """In the sandbox of that run, each time; the files are there for the agent and the reward."""

    async def act() -> Any:
        env = make_env(prepared, enabled_toolsets=["file"], script=[call("read_file", path="a.txt"), say("ok")])
        rewards = []
        for item in ("x", "yy"):
            async with env.agent_rollout(item) as rollout:
                rewards.append(await env.compute_reward(item, rollout.result, rollout.ctx))
                assert f"1|{item * 3}" in rollout.result.messages[2]["content"]
        return rewards

    assert asyncio.run(act()) == [3.0, 6.0]
    assert len(set(cleaned)) == 2


def test_a_sandbox_that_cannot_be_prepared_fails_the_rollout(make_env, cleaned):
    """The model is not asked, nothing is scored, and the sandbox is released in each attempt."""

    class Unprepared(Env):
        async def prepare_sandbox(self, item: Any, ctx: Any) -> None:
            ctx.write_file("a.txt", "1")
            raise LookupError("no image")

    async def act() -> Any:
        env = make_env(Unprepared, enabled_toolsets=["file"], server="http://127.0.0.1:9/v1", rollout_retries=1)
        with pytest.raises(LookupError, match="no image"):
            await env.collect_trajectory("x")
        return env

    env = asyncio.run(act())
    assert (env._counts["train/rollouts_environment_failed"], len(set(cleaned))) == (2, 2)


LATER = {
    "terminal": lambda ctx, path: ctx.terminal("true"),
    "a long command": lambda ctx, path: ctx.terminal("true", timeout=100_000),
    "read_file": lambda ctx, path: ctx.read_file("a.txt"),
    "write_file": lambda ctx, path: ctx.write_file("a.txt", "text"),
    "upload_file": lambda ctx, path: ctx.upload_file(str(path), "a.txt"),
    "upload_dir": lambda ctx, path: ctx.upload_dir(str(path.parent), "d"),
    "download_file": lambda ctx, path: ctx.download_file("a.txt", str(path)),
    "download_dir": lambda ctx, path: ctx.download_dir(".", str(path.parent)),
    "search": lambda ctx, path: ctx.search("a"),
    "web_search": lambda ctx, path: ctx.web_search("a"),
    "call_tool": lambda ctx, path: ctx.call_tool("terminal", {"command": "true"}),
}


@pytest.mark.parametrize("use", LATER.values(), ids=LATER)
def test_context_of_a_rollout_is_closed_after_the_block(make_env, cleaned, tmp_path, use):
    """A later call would open a new, empty sandbox, find nothing there, and leave it behind."""
    path = tmp_path / "file"
    path.write_text("text")

    async def act(env: Any) -> Any:
        async with env.agent_rollout("x") as rollout:
            pass
        with pytest.raises(ContextClosedError) as raised:
            use(rollout.ctx, path)
        return rollout, str(raised.value)

    rollout, text = run(make_env, act, script=[say("done")])

    assert text.startswith(f"ctx of rollout {rollout.task_id} was used (tool ")
    assert text.endswith(
        "after its agent_rollout block, which released the sandbox and its files. Use rollout.ctx inside the block: compute the "
        "reward there, and keep the result"
    )
    assert (sandbox_directory(rollout.task_id), cleaned) == (None, [rollout.task_id])


def test_setting_that_is_none_is_named(make_env, cleaned):
    """Before a sandbox is opened."""

    async def act(env: Any) -> None:
        async with env.agent_rollout("x", temperature="hot"):
            pass

    with pytest.raises(TypeError, match="temperature must be a number, got str 'hot'"):
        run(make_env, act, server="http://127.0.0.1:9/v1")

    assert cleaned == []


CONFIGURED = {
    "agent_temperature": 0.3,
    "max_token_length": 77,
    "extra_body": {"provider": "a"},
    "system_prompt": "be good",
    "max_agent_turns": 1,
}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, (0.3, 77, "a", ["be good", "item x"], 1)),
        ({"temperature": 0.0}, (0.0, 77, "a", ["be good", "item x"], 1)),
        ({"max_tokens": 5, "max_turns": 2}, (0.3, 5, "a", ["be good", "item x"], 2)),
        ({"extra_body": {"provider": "b"}}, (0.3, 77, "b", ["be good", "item x"], 1)),
        ({"extra_body": {}, "system_prompt": ""}, (0.3, 77, None, ["item x"], 1)),
        ({"system_prompt": "be brief", "prompt": "hello"}, (0.3, 77, "a", ["be brief", "hello"], 1)),
    ],
)
def test_explicit_settings_win_over_the_configured_ones(make_env, mock_server, given, sent):
    """They reach the model's request, and the loop's limit of turns."""
    mock_server.add(lambda _: call("read_file", path="a.txt"))

    async def act(env: Any) -> int:
        async with env.agent_rollout("x", **given) as rollout:
            return rollout.result.turns_used

    turns = run(make_env, act, server=mock_server, **CONFIGURED)

    request = mock_server.journal[0].request
    opening = [message["content"] for message in request["messages"]]
    assert (request["temperature"], request["max_tokens"], request.get("provider"), opening, turns) == sent


@pytest.mark.parametrize(
    ("script", "answered", "text"),
    [
        ([fail(500)], 0, "InternalServerError"),
        ([call("read_file", path="a.txt"), fail(500)], 1, "InternalServerError"),
        ([garbage("<html>")], 0, ""),
        ([empty_choices()], 0, ""),
    ],
)
def test_failure_of_the_model_server_is_on_the_rollout(make_env, script, answered, text):
    """The loop ends without an exception, so the rollout says what ended it."""

    async def act(env: Any) -> Any:
        async with env.agent_rollout("x") as rollout:
            return rollout

    rollout = run(make_env, act, script=script)

    assert isinstance(rollout.failure, Exception)
    assert text in repr(rollout.failure)
    assert (rollout.result.turns_used, len(rollout.result.reasoning_per_turn)) == (answered + 1, answered)


@pytest.mark.hermes_allow_leftovers
@pytest.mark.parametrize("where", ["prompt", "tools", "loop", "body"])
def test_sandbox_is_released_when_a_step_raises(make_env, cleaned, monkeypatch, where):
    """Once, and the error goes on as it was."""

    async def broken(self: Any, messages: Any) -> Any:
        raise LookupError("loop")

    async def act(env: Any) -> None:
        if where == "loop":
            monkeypatch.setattr(HermesAgentLoop, "run", broken)
        if where == "tools":
            env.config.enabled_toolsets = ["nonsense"]
        async with env.agent_rollout("no prompt" if where == "prompt" else "x"):
            raise LookupError("body")

    with pytest.raises((LookupError, ValueError), match="nonsense" if where == "tools" else where):
        run(make_env, act, script=[say("done")])

    assert len(cleaned) == (0 if where == "tools" else 1)


@pytest.mark.hermes_allow_leftovers
@pytest.mark.parametrize("where", ["loop", "body"])
def test_sandbox_is_released_when_the_task_is_cancelled(make_env, cleaned, where):
    """Cancelled again and again while it cleans up, the rollout still cleans up once, to the end."""
    script = lambda _: turn(hang(60), say("late")) if where == "loop" else say("done")  # noqa: E731

    async def act(env: Any) -> bool:
        reached = asyncio.Event()
        real = env.server.chat_completion

        async def ask(**request: Any) -> Any:
            if where == "loop":
                reached.set()
            return await real(**request)

        async def use() -> None:
            async with env.agent_rollout("x"):
                reached.set()
                await asyncio.Event().wait()

        env.server.chat_completion = ask
        task = asyncio.ensure_future(use())
        await reached.wait()
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        return task.cancelled()

    assert run(make_env, act, script=script)
    assert len(cleaned) == 1


@pytest.mark.hermes_allow_leftovers
def test_error_of_token_mode_is_raised(make_env, cleaned):
    """A server that stops giving exact tokens is not a model that said nothing; collect_trajectory counts it for training."""
    errors: list[str] = []

    async def act(env: Any) -> int:
        async def broken(*_args: Any, **_kwargs: Any) -> Any:
            server.failure = TokenModeError("no tokens")
            raise server.failure

        async with env.rollout_server() as server:
            server.chat_completion = broken
            try:
                async with env.agent_rollout("x", server=server):
                    errors.append("entered")
            except TokenModeError as error:
                errors.append(str(error))
        return env._counts["train/token_mode_errors"]

    counted = run(make_env, act, script=lambda _: say("done"), server_type="vllm")

    assert (errors, counted, len(cleaned)) == (["no tokens"], 0, 1)
