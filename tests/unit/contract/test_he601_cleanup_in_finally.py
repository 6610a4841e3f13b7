"""HE601: a ToolContext is cleaned up in a finally that begins right after it is opened."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source and what the rule makes of it."""

    name: str
    source: str
    message: str = ""


BROKEN = (
    Case(
        name="what the loop left is there already, and something can raise before the try",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                result = await HermesAgentLoop(server=self.server, task_id="task").run([])
                ctx = ToolContext("task")  # <- here
                answer = self.final_answer(result)
                try:
                    await self.compute_reward({"answer": answer}, result, ctx)
                finally:
                    ctx.cleanup()

            def final_answer(self, result): ...

            async def compute_reward(self, item, result, ctx): ...
        """,
        message="evaluate opens a ToolContext, but line {line+1} can raise before the try that cleans it up",
    ),
    Case(
        name="never cleaned",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                ctx = ToolContext("task")  # <- here
                return await self.compute_reward({}, AgentResult([]), ctx)

            async def compute_reward(self, item, result, ctx): ...
        """,
        message="evaluate opens a ToolContext and never cleans it up",
    ),
    Case(
        name="cleaned on the happy way only",
        source="""
        class Env(HermesAgentBaseEnv):
            async def _verify(self, task_id):
                sandbox = ToolContext(task_id)  # <- here
                passed = sandbox.terminal("pytest -q")["exit_code"] == 0
                sandbox.cleanup()
                return passed
        """,
        message="_verify cleans up its ToolContext outside a finally (line {line+2}): an exception before it leaks",
    ),
    Case(
        name="cleaned in an except",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                ctx = ToolContext("task")  # <- here
                try:
                    await self.score(ctx)
                except ValueError:
                    ctx.cleanup()

            async def score(self, ctx): ...
        """,
        message="evaluate cleans up its ToolContext outside a finally (line {line+4}): an exception before it leaks",
    ),
    Case(
        name="the loop runs before the try",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                ctx = ToolContext("task")  # <- here
                agent = HermesAgentLoop(server=self.server, tool_schemas=self.tools, task_id="task")
                result = await agent.run([])
                try:
                    return await self.compute_reward({}, result, ctx)
                finally:
                    ctx.cleanup()

            async def compute_reward(self, item, result, ctx): ...
        """,
        message="evaluate opens a ToolContext, but line {line+2} awaits before the try that cleans it up",
    ),
    Case(
        name="an assertion before the try",
        source="""
        import environments.tool_context

        class Env(HermesAgentBaseEnv):
            def _open(self, item):
                ctx = environments.tool_context.ToolContext(item["id"])  # <- here
                assert ctx.terminal("ls")["output"]
                try:
                    ctx.write_file("a", "b")
                finally:
                    ctx.cleanup()
        """,
        message="_open opens a ToolContext, but line {line+1} can raise before the try that cleans it up",
    ),
    Case(
        name="closing",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                with contextlib.closing(ToolContext("task")) as ctx:  # <- here
                    ctx.terminal("ls")
        """,
        message="evaluate wraps a ToolContext in closing(), which calls close(), not cleanup()",
    ),
    Case(
        name="never held",
        source="""
        from environments.tool_context import ToolContext as Sandbox

        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                return await self.compute_reward({}, None, Sandbox("task"))  # <- here

            async def compute_reward(self, item, result, ctx): ...
        """,
        message="evaluate opens a ToolContext and never cleans it up",
    ),
    Case(
        name="a context manager without a finally",
        source="""
        class Env(HermesAgentBaseEnv):
            @contextlib.contextmanager
            def _sandbox(self, task_id):
                ctx = ToolContext(task_id)  # <- here
                yield ctx
                ctx.cleanup()
        """,
        message="_sandbox cleans up its ToolContext outside a finally (line {line+2}): an exception before it leaks",
    ),
    Case(
        name="handed up to a caller that forgets it",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                ctx = self._open("task")  # <- here
                ctx.terminal("ls")

            def _open(self, task_id):
                ctx = ToolContext(task_id)
                return ctx
        """,
        message="evaluate opens a ToolContext and never cleans it up",
    ),
    Case(
        name="a loop without any clean-up",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                agent = HermesAgentLoop(server=self.server, tool_schemas=self.tools)  # <- here
                return await agent.run([])
        """,
        message="evaluate runs a HermesAgentLoop and never cleans up: the sandbox of its rollouts is never released",
    ),
)

SOUND = (
    Case(
        name="only the prompt is built before the try, when there is no sandbox yet",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                for item in self.items:
                    ctx = ToolContext(str(uuid4()))
                    messages = [{"role": "user", "content": self.format_prompt(item)}]
                    if self.config.system_prompt:
                        messages.insert(0, {"role": "system", "content": self.config.system_prompt})
                    try:
                        agent = HermesAgentLoop(server=self.server, task_id=ctx.task_id)
                        await self.compute_reward(item, await agent.run(messages), ctx)
                    finally:
                        ctx.cleanup()

            async def compute_reward(self, item, result, ctx): ...
        """,
    ),
    Case(
        name="right after it",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                ctx = ToolContext("task")
                try:
                    agent = HermesAgentLoop(server=self.server, tool_schemas=self.tools, task_id="task")
                    return await self.compute_reward({}, await agent.run([]), ctx)
                finally:
                    ctx.cleanup()

            async def compute_reward(self, item, result, ctx): ...
        """,
    ),
    Case(
        name="harmless lines between, a guard in the finally",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                ctx = None
                try:
                    ctx = ToolContext(str(uuid.uuid4()))
                    ctx.terminal("ls")
                finally:
                    if ctx is not None:
                        ctx.cleanup()
                second = ToolContext("second")
                started = time.time()
                samples = []
                logger.info("started at %s", started)
                try:
                    samples.append(second.terminal("ls"))
                finally:
                    await asyncio.to_thread(second.cleanup)
        """,
    ),
    Case(
        name="an exit stack, and a helper that cleans",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                async with contextlib.AsyncExitStack() as stack:
                    ctx = ToolContext("task")
                    stack.callback(ctx.cleanup)
                    await self.score(ctx)
                other = ToolContext("other")
                try:
                    await self.score(other)
                finally:
                    self._release(other)

            def _release(self, sandbox):
                logger.debug("done")
                sandbox.cleanup()

            async def score(self, ctx): ...
        """,
    ),
    Case(
        name="a context manager of its own, and one handed up",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                async with self._sandbox("task") as ctx:
                    ctx.terminal("ls")
                ctx = self._open("other")
                try:
                    ctx.terminal("ls")
                finally:
                    ctx.cleanup()

            @contextlib.asynccontextmanager
            async def _sandbox(self, task_id):
                ctx = ToolContext(task_id)
                try:
                    yield ctx
                finally:
                    ctx.cleanup()

            def _open(self, task_id):
                return ToolContext(task_id)
        """,
    ),
    Case(
        name="inside a nested function, cleaned by another",
        source="""
        class Env(HermesAgentBaseEnv):
            async def evaluate(self):
                async def one(item):
                    ctx = ToolContext(item["id"])
                    def release():
                        ctx.cleanup()
                    try:
                        agent = HermesAgentLoop(server=self.server, tool_schemas=self.tools)
                        return await agent.run([])
                    finally:
                        release()
                return await asyncio.gather(*(one(item) for item in self.items))
        """,
    ),
)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_context_that_may_be_left_open_is_found_where_it_is_opened(judge, case):
    judgement = judge("HE601", case.source)

    (line,) = judgement.marked
    message = case.message
    for step in range(1, 6):
        message = message.replace(f"{{line+{step}}}", str(line + step))
    assert (judgement.lines, judgement.messages) == ((line,), (message,))


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_a_context_that_is_cleaned_on_every_way_passes(judge, case):
    assert judge("HE601", case.source).verdict.outcome is Outcome.PASSED, judge("HE601", case.source)


@pytest.mark.parametrize(
    "source",
    [
        "class Env(HermesAgentBaseEnv):\n    async def setup(self):\n        self.ctx = ToolContext('a')\n",
        "from company import verify\n\nclass Env(HermesAgentBaseEnv):\n    async def setup(self):\n"
        "        verify(ToolContext('a'))\n",
        "class Env(HermesAgentBaseEnv):\n    def open(self):\n        return ToolContext('a')\n",
    ],
    ids=["kept on self", "handed to code that cannot be read", "returned to nobody here"],
)
def test_a_context_that_leaves_sight_is_undecided(judge, source):
    assert judge("HE601", source).outcome is Outcome.UNDECIDED


def test_a_class_that_opens_none_is_not_concerned(judge):
    verdict = judge("HE601", "class Env(HermesAgentBaseEnv):\n    async def setup(self): ...\n").verdict

    assert (verdict.outcome, verdict.note) == (
        Outcome.NOT_APPLICABLE,
        "the class opens no ToolContext and enters no agent_rollout",
    )
