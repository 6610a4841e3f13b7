"""Which tools a group of rollouts is offered."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from tests.environments.plain_env import PlainEnv

GROUPS, GROUP_SIZE = 16, 4


class Env(PlainEnv):
    """Items are texts; every rollout that did something is worth 1.0."""

    def format_prompt(self, item: Any) -> str:
        return f"item {item}"


def with_env(make_env: Any, act: Any, **fields: Any) -> Any:
    """Build an environment inside a loop and return what ``act(env)`` gives."""

    async def scenario() -> Any:
        return act(make_env(Env, server="http://127.0.0.1:9/v1", **fields))

    return asyncio.run(scenario())


def test_tools_are_schemas_and_the_names_that_may_run(make_env):
    """Schemas in OpenAI's format, and exactly their names."""
    schemas, names = with_env(make_env, lambda env: env._resolve_tools_for_group(), enabled_toolsets=["terminal", "file"])

    assert names == {"terminal", "process", "read_file", "write_file", "patch", "search_files"}
    assert {schema["function"]["name"] for schema in schemas} == names


def test_disabled_toolsets_are_taken_away(make_env):
    """What is disabled is gone after the choice."""
    _, names = with_env(
        make_env,
        lambda env: env._resolve_tools_for_group(),
        enabled_toolsets=["terminal", "file"],
        disabled_toolsets=["file"],
    )

    assert names == {"terminal", "process"}


def test_offering_everything_warns(make_env, caplog):
    """None offers every tool, messaging included: that is rarely meant."""
    _, names = with_env(make_env, lambda env: env._resolve_tools_for_group())

    assert "terminal" in names
    assert "the model is offered every tool, messaging included" in caplog.text


@pytest.mark.parametrize("field", ["enabled_toolsets", "disabled_toolsets"])
def test_misspelt_toolset_is_an_error_that_names_the_known(make_env, field):
    """hermes would silently offer nothing, or take nothing away."""
    fields = {"enabled_toolsets": ["file"], field: ["file", "terminl"]}

    with pytest.raises(ValueError, match=r"Unknown toolsets \['terminl'\]. Known toolsets: .*'terminal'"):
        with_env(make_env, lambda env: env._resolve_tools_for_group(), **fields)


def test_misspelt_distribution_is_an_error_that_names_the_known(make_env):
    """hermes would raise something else, or sample nothing."""
    with pytest.raises(ValueError, match=r"Unknown distribution 'defualt'. Known distributions: .*'default'"):
        with_env(make_env, lambda env: env._resolve_tools_for_group(), distribution="defualt")


@pytest.mark.parametrize("fields", [{"enabled_toolsets": []}, {"enabled_toolsets": ["file"], "disabled_toolsets": ["file"]}])
def test_no_tool_at_all_is_an_error(make_env, fields):
    """An agent without tools is never meant."""
    with pytest.raises(ValueError, match=r"No tool is available with enabled_toolsets=.* Known toolsets: "):
        with_env(make_env, lambda env: env._resolve_tools_for_group(), **fields)


def test_concurrent_groups_keep_their_own_sampled_tools(make_env, monkeypatch, mock_server):
    """16 groups of 4 that run at once are each offered what was sampled for them, in every turn."""
    import toolset_distributions

    from pytest_hermes_env.inference import call, say, unoffered

    choices = (["terminal"], ["file"], ["terminal", "file"], ["todo"])
    seeded = random.Random(7)
    monkeypatch.setattr(toolset_distributions, "sample_toolsets_from_distribution", lambda _name: seeded.choice(choices))
    mock_server.add(lambda chat: unoffered(call("nothing")) if chat.turn == 0 else say("done"))

    async def scenario() -> dict[str, set[str]]:
        env = make_env(Env, server=mock_server, group_size=GROUP_SIZE, distribution="default")
        sampled: dict[str, set[str]] = {}
        resolve = env._resolve_tools_for_group

        def remember() -> Any:
            tools = resolve()
            sampled[f"item {len(sampled)}"] = tools[1]
            return tools

        env._resolve_tools_for_group = remember
        await asyncio.gather(*(env.collect_trajectories(number) for number in range(GROUPS)))
        return sampled

    sampled = asyncio.run(scenario())
    offered = [(entry.conversation.first_user, set(entry.conversation.tools)) for entry in mock_server.journal]

    assert len({frozenset(names) for names in sampled.values()}) == len(choices)
    assert len(offered) == GROUPS * GROUP_SIZE * 2
    assert [(first, names) for first, names in offered if names != sampled[first]] == []


def test_old_environment_may_assign_its_groups_tools(make_env, mock_server):
    """Environments with a collect_trajectories of their own used to set the attribute; it holds for their group only."""
    from pytest_hermes_env.inference import say

    class Old(Env):
        async def collect_trajectories(self, item: Any) -> Any:
            schemas, _ = self._resolve_tools_for_group()
            chosen = [schema for schema in schemas if schema["function"]["name"] == item]
            self._current_group_tools = (chosen, {item})
            await asyncio.sleep(0)
            scored, _ = await self.collect_trajectory(item)
            return scored, []

    mock_server.add(lambda _chat: say("done"))

    async def scenario() -> Any:
        env = make_env(Old, server=mock_server, enabled_toolsets=["file"])
        await asyncio.gather(*(env.collect_trajectories(name) for name in ("read_file", "patch")))
        return env._current_group_tools

    outside = asyncio.run(scenario())

    assert outside is None
    assert {entry.conversation.first_user: set(entry.conversation.tools) for entry in mock_server.journal} == {
        "item read_file": {"read_file"},
        "item patch": {"patch"},
    }
