"""HE605: no code of an environment blocks the event loop."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.verdict import Outcome

ENV = "import os\nimport subprocess\nfrom time import sleep\n\nCURRENT = None\n\nclass Env(HermesAgentBaseEnv):\n"

BROKEN = (
    """
    async def compute_reward(self, item, result, ctx):
        sleep(1)  # <- here
        return 1.0
    """,
    """
    async def evaluate(self):
        return self._tests()

    def _tests(self):
        return subprocess.run(["pytest"])  # <- here
    """,
    """
    def format_prompt(self, item):
        return subprocess.check_output(["cat", item["file"]]).decode()  # <- here
    """,
    """
    async def get_next_item(self):
        def wait():
            time.sleep(5)  # <- here

        wait()
    """,
)

SOUND = (
    """
    async def compute_reward(self, item, result, ctx):
        await asyncio.to_thread(time.sleep, 5)
        await asyncio.sleep(5)
        time.sleep(0.01)
        return ctx.terminal("sleep 5")["exit_code"]
    """,
    """
    async def setup(self):
        time.sleep(5)

    async def evaluate(self):
        def work():
            return subprocess.run(["pytest"])

        await asyncio.to_thread(work)
        await asyncio.get_running_loop().run_in_executor(None, self._work)

    def _work(self):
        time.sleep(5)
    """,
)


@pytest.mark.parametrize("body", BROKEN)
def test_a_call_that_waits_on_the_event_loop_is_found(judge, body):
    judgement = judge("HE605", ENV + body)

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("body", SOUND)
def test_a_wait_in_a_thread_or_in_setup_passes(judge, body):
    assert judge("HE605", ENV + body).outcome is Outcome.PASSED
