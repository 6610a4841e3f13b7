"""The test that ``--hermes-keep-gold`` adds to a live run: a real model tries items of each target, and its best work is kept as gold."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.options import real_tools_of
from pytest_hermes_env.patches import intercept
from pytest_hermes_env.plugin.tool_answers import answering_tools

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.fake import FakeSandbox

ITEMS, TRIES = 3, 2
"""How many items are tried, and how often each."""


def items_of(session: pytest.Session) -> list[pytest.Item]:
    """Return the test of this module."""
    return list(session.genitems(pytest.Module.from_parent(session, path=Path(__file__))))


@pytest.fixture
def fake_sandbox(request: pytest.FixtureRequest) -> Iterator[FakeSandbox]:
    """A machine on which a model may call whatever it likes."""
    from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

    sandbox = FakeSandbox(unscripted="not found", allow_leftovers=True, real_tools=real_tools_of(request.config))
    with contextlib.closing(sandbox), answering_tools(request, sandbox):
        yield sandbox


@pytest.mark.hermes_live
@pytest.mark.hermes_allow_leftovers
@pytest.mark.usefixtures("fake_sandbox")
def test_keep_gold(request: pytest.FixtureRequest, make_env: Callable[..., Any], tmp_path: Path) -> None:
    """Write a file of cases for each target. Raises: there is one, or no rollout earned → UsageError."""
    from pytest_hermes_env.contract.init_file import start  # noqa: PLC0415 - heavy
    from pytest_hermes_env.layer import find_class  # noqa: PLC0415

    for target in request.config.getoption("hermes_env"):
        for env_class in find_class(target):
            rollouts = tmp_path / f"{env_class.__name__}.jsonl"
            groups = asyncio.run(_tried(make_env(env_class)))
            rollouts.write_text("".join(json.dumps(group, default=str) + "\n" for group in groups), encoding="utf-8")
            done = start(f"{inspect.getsourcefile(env_class)}:{env_class.__name__}", rollouts=str(rollouts))
            terminal = request.config.pluginmanager.get_plugin("terminalreporter")
            if terminal is not None:
                terminal.write_line(
                    f"\nhermes-env: wrote {done.file} with gold of {done.items} items: look at it before you commit it"
                )


async def _tried(env: Any) -> list[dict[str, Any]]:
    """Return a group for each item, as `process` writes them: the messages and rewards of its rollouts."""
    groups: list[dict[str, Any]] = []

    async def note(real: Callable[..., Any], item: Any, result: Any, ctx: Any) -> Any:
        reward = await real(item, result, ctx)
        groups[-1]["scores"].append(reward)
        groups[-1]["messages"].append(copy.deepcopy(result.messages))
        return reward

    await env.setup()
    with intercept("HermesAgentBaseEnv.compute_reward", note, owner=env):
        for _ in range(ITEMS):
            if (item := await env.get_next_item()) is None:
                break
            groups.append({"scores": [], "messages": []})
            await asyncio.gather(*(env.collect_trajectory(item) for _ in range(TRIES)))
    return groups
