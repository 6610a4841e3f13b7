import asyncio

import pytest
from envs.reverse.env import ReverseEnv

from pytest_hermes_env import call, env_contract, say


@pytest.mark.slow
@env_contract(ReverseEnv)
def test_contract(check):
    check()


def test_a_group_is_scored(make_env, fake_sandbox):
    script = [call("write_file", path="result.txt", content="hsa kao hsa"), say("Done.")]
    env = make_env(ReverseEnv, script=script)

    async def collect():
        await env.setup()
        return await env.collect_trajectories({"text": "ash oak ash"})

    assert asyncio.run(collect())[0]["scores"] == [1.0, 1.0]
