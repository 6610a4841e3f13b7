import asyncio

import pytest
from envs.count.env import CountEnv

from pytest_hermes_env import call, env_contract, say


@pytest.mark.slow
@env_contract(CountEnv)
def test_contract(check):
    check()


def test_a_group_is_scored(make_env, fake_sandbox):
    script = [call("write_file", path="result.txt", content="3"), say("Done.")]
    env = make_env(CountEnv, script=script)

    async def collect():
        await env.setup()
        return await env.collect_trajectories({"text": "ash oak ash"})

    assert asyncio.run(collect())[0]["scores"] == [1.0, 1.0]
