"""HE411: compute_reward leaves the clean-up of its tool context to whoever opened it."""

from __future__ import annotations

import textwrap

import pytest

from pytest_hermes_env.contract.verdict import Outcome

BROKEN = {
    "at once, whatever the parameter is called": """
        async def compute_reward(self, task, outcome, sandbox):
            passed = sandbox.terminal("pytest -q")["exit_code"] == 0
            sandbox.cleanup()  # <- here
            return float(passed)
    """,
    "in a finally, under an alias": """
        async def compute_reward(self, item, result, ctx):
            box = ctx
            try:
                return float(box.terminal("true")["exit_code"] == 0)
            finally:
                box.cleanup()  # <- here
    """,
    "in a helper, by position": """
        async def compute_reward(self, item, result, ctx):
            return self._verify(ctx)

        def _verify(self, machine):
            found = machine.read_file("a").get("content", "")
            machine.cleanup()  # <- here
            return float(bool(found))
    """,
    "as a callback": """
        async def compute_reward(self, item, result, ctx):
            async with contextlib.AsyncExitStack() as stack:
                stack.callback(ctx.cleanup)  # <- here
                return 1.0
    """,
    "with a constant getattr, in a nested function": """
        async def compute_reward(self, item, result, ctx):
            def finish():
                getattr(ctx, "cleanup")()  # <- here
            finish()
            return 1.0
    """,
    "through a walrus": """
        async def compute_reward(self, item, result, ctx):
            if (box := ctx):
                box.cleanup()  # <- here
            return 1.0
    """,
}

SOUND = {
    "the reward only reads": """
        async def compute_reward(self, item, result, ctx):
            return float(ctx.terminal("true")["exit_code"] == 0)
    """,
    "evaluate cleans up what it opened": """
        async def compute_reward(self, item, result, ctx):
            return 1.0

        async def evaluate(self):
            ctx = ToolContext("a")
            try:
                return await self.compute_reward({}, None, ctx)
            finally:
                ctx.cleanup()
    """,
    "a machine of the reward's own": """
        async def compute_reward(self, item, result, ctx):
            own = ToolContext(str(uuid.uuid4()))
            try:
                return float(own.terminal("true")["exit_code"] == 0)
            finally:
                own.cleanup()
    """,
    "something else is cleaned up": """
        async def compute_reward(self, item, result, ctx):
            self.cache.cleanup()
            return 1.0
    """,
}


def source_of(body: str) -> str:
    return "class Env(HermesAgentBaseEnv):\n" + textwrap.indent(textwrap.dedent(body), "    ")


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_clean_up_of_the_given_context_is_found(judge, body):
    judgement = judge("HE411", source_of(body))

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_other_clean_ups_pass(judge, body):
    verdict = judge("HE411", source_of(body)).verdict

    assert (verdict.outcome, verdict.note) == (Outcome.PASSED, "compute_reward does not clean up its tool context")


def test_the_message_names_the_method_and_the_call(judge):
    judgement = judge("HE411", source_of(BROKEN["in a helper, by position"]))

    assert judgement.messages == ("_verify cleans up the tool context that it was given: machine.cleanup",)


def test_an_inherited_reward_that_cannot_be_read_is_undecided(judge):
    verdict = judge("HE411", "from elsewhere import Base\n\nclass Env(Base, HermesAgentBaseEnv):\n    pass\n").verdict

    assert (verdict.outcome, verdict.note) == (
        Outcome.UNDECIDED,
        "compute_reward may come from elsewhere.Base, which cannot be read",
    )
