import asyncio

import pytest
from envs.upper.env import UpperEnv

from pytest_hermes_env import call, env_contract, say


@pytest.mark.slow
@env_contract(UpperEnv)
def test_contract(check):
    check()


def test_a_group_is_scored(make_env, fake_sandbox):
    script = [call("write_file", path="result.txt", content="ASH OAK ASH"), say("Done.")]
    env = make_env(UpperEnv, script=script)

    async def collect():
        await env.setup()
        return await env.collect_trajectories({"text": "ash oak ash"})

    assert asyncio.run(collect())[0]["scores"] == [1.0, 1.0]
