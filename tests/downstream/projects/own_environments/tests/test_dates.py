import asyncio
import unittest

import pytest

from environments.dates_env import DatesEnv
from pytest_hermes_env import call, env_contract, say


@env_contract(DatesEnv)
def test_contract(check):
    check()


class DatesCase(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _on_the_double(self, make_env, fake_sandbox):
        self.env = make_env(DatesEnv, script=[call("write_file", path="date.txt", content="31 January 2024"), say("Done.")])

    def test_a_group_is_scored(self):
        async def collect():
            await self.env.setup()
            return await self.env.collect_trajectories(await self.env.get_next_item())

        self.assertEqual(asyncio.run(collect())[0]["scores"], [1.0, 1.0])


class TestReward:
    @pytest.mark.parametrize(("written", "reward"), [("1 December 1999", 1.0), ("12 January 1999", 0.0)])
    def test_reward(self, make_env, agent_result, fake_sandbox, tool_context, written, reward):
        fake_sandbox.files["date.txt"] = written
        result = agent_result.say("Done.")

        assert asyncio.run(make_env(DatesEnv).compute_reward({"date": "1999-12-01"}, result, tool_context)) == reward
