import asyncio

from acme_rl.words import LINES, WordsEnv

from pytest_hermes_env import call, env_contract, say


@env_contract(WordsEnv)
def test_contract(check):
    check()


def test_a_group_is_scored(make_env, fake_sandbox):
    env = make_env(WordsEnv, script=[call("terminal", command="echo 3 > count.txt"), say("Done.")])

    async def collect():
        await env.setup()
        return await env.collect_trajectories(await env.get_next_item())

    group, _ = asyncio.run(collect())

    assert group["scores"] == [1.0, 1.0]


def test_a_wrong_number_earns_nothing(make_env, agent_result, fake_sandbox, tool_context):
    fake_sandbox.files["count.txt"] = "17"
    result = agent_result.of(WordsEnv).say("Seventeen.")

    assert asyncio.run(make_env(WordsEnv).compute_reward({"line": LINES[0]}, result, tool_context)) == 0.0
