"""The harness supports environments on a fork with its own layer, and never mixes that layer with ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES

UNSEEN = 11
FORK = Path(__file__).parent / "old_layer"

ENVIRONMENT = """
import uuid
from atroposlib.envs.server_handling.server_manager import APIServerConfig
from oldhermes.agent_loop import HermesAgentLoop
from oldhermes.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from oldhermes.tool_context import ToolContext


class ForkEnv(HermesAgentBaseEnv):
    name = "fork"

    @classmethod
    def config_init(cls):
        return HermesAgentEnvConfig(enabled_toolsets=["terminal", "file"]), [APIServerConfig(base_url="http://x/v1")]

    async def setup(self):
        self.rewards = []

    async def get_next_item(self):
        return {"text": "hello"}

    def format_prompt(self, item):
        return item["text"]

    async def compute_reward(self, item, result, ctx):
        has_worked = any(message["role"] == "tool" for message in result.messages)
        has_worked = has_worked and (result.messages[-1].get("content") or "") == item["text"]
        reward = 1.0 if has_worked and "hello" in ctx.terminal("echo hello")["output"] else 0.0
        self.rewards.append(reward)
        return reward

    async def evaluate(self, *args, **kwargs):
        tools, names = self._resolve_tools_for_group()
        kept = list(self.rewards)
        task_id = str(uuid.uuid4())
        ctx = ToolContext(task_id)
        try:
            limits = {"max_turns": self.config.max_agent_turns, "max_tokens": self.config.max_token_length}
            loop = HermesAgentLoop(self.server, tools, names, task_id=task_id, temperature=0.0, **limits)
            result = await loop.run([{"role": "user", "content": "evaluate"}])
            reward = await self.compute_reward({"text": "evaluate"}, result, ctx)
        except Exception:
            reward = 0.0
        finally:
            self.rewards = kept
            ctx.cleanup()
        await self.evaluate_log({"eval/reward": reward}, samples=[{"score": reward}])

    async def wandb_log(self, wandb_metrics=None):
        metrics = dict(wandb_metrics or {})
        metrics["train/reward"] = sum(self.rewards)
        self.rewards = []
        await super().wandb_log(metrics)


if __name__ == "__main__":
    ForkEnv.cli()
"""


GOLD = 'items: [{where: "*", gold: [{call: terminal, with: {command: "true"}}, {say: "${item.text}"}]}]'


def test_an_environment_on_a_fork_is_judged_on_the_forks_own_classes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No rule fails an environment whose base, loop and tool context are the fork's; skipped rules do not apply here."""
    monkeypatch.syspath_prepend(FORK)
    pytester.makepyfile(fork_env=ENVIRONMENT)
    pytester.path.joinpath("fork_env.contract.yaml").write_text(GOLD, encoding="utf-8")

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--hermes-env", "fork_env.py")

    result.assert_outcomes(passed=len(ALL_RULES) - UNSEEN, skipped=UNSEEN)


def test_make_env_builds_an_environment_on_a_fork(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """make_env does not need our layer."""
    monkeypatch.syspath_prepend(FORK)
    pytester.makepyfile(
        fork_env=ENVIRONMENT,
        test_fork="""
        import asyncio
        from fork_env import ForkEnv
        from pytest_hermes_env import call, say

        def test_group(make_env):
            env = make_env(ForkEnv, script=[call("terminal", command="true"), say("hello")])

            async def collect():
                await env.setup()
                return await env.collect_trajectories(await env.get_next_item())

            group, _ = asyncio.run(collect())
            assert group["scores"] == [1.0, 1.0]
        """,
    )

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "error")

    result.assert_outcomes(passed=1)


@pytest.mark.usefixtures("warm_python")
def test_a_checkout_whose_layer_is_called_as_ours_is_judged(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout of hermes-agent with a package `environments` of its own, first on the path, in another process than ours."""
    package = pytester.path / "checkout" / "environments"
    package.mkdir(parents=True)
    for file in (FORK / "oldhermes").glob("*.py"):
        (package / file.name).write_text(
            file.read_text(encoding="utf-8").replace("oldhermes", "environments"), encoding="utf-8"
        )
    (package / "fork_env.py").write_text(ENVIRONMENT.replace("oldhermes", "environments"), encoding="utf-8")
    (package / "fork_env.contract.yaml").write_text(GOLD, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))

    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "--hermes-env", str(package / "fork_env.py"), "--hermes-rules", "HE403,HE404"
    )

    result.assert_outcomes(passed=2, deselected=len(ALL_RULES) - 2)
