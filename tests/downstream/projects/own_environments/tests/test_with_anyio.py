import pytest
from environments.dates_env import DatesEnv as Env

from pytest_hermes_env import say


@pytest.mark.anyio
async def test_nothing_is_worth_nothing(make_env, fake_sandbox):
    env = make_env(Env, script=[say("I do not know.")])
    await env.setup()
    group, _ = await env.collect_trajectories(await env.get_next_item())

    assert group["scores"] == [0.0, 0.0]


@pytest.fixture
def anyio_backend():
    return "asyncio"
