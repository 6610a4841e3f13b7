"""HE602: each rollout has a task_id of its own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_hermes_env.contract.verdict import Outcome

HEAD = """
import hashlib
import itertools
import uuid as ids
from environments.agent_loop import HermesAgentLoop as Agent
from secrets import token_hex

RUN = str(uuid.uuid4())
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Methods of an environment; the line of a violation ends with the mark."""

    name: str
    body: str


BROKEN = (
    Case(
        name="a constant",
        body="""
        async def evaluate(self):
            for item in self.items:
                ctx = ToolContext("eval")  # <- here
        """,
    ),
    Case(
        name="the index, by position",
        body="""
        async def evaluate(self):
            for number, item in enumerate(self.items):
                agent = HermesAgentLoop(self.server, self.tools, self.names, 5, f"eval-{number}")  # <- here
        """,
    ),
    Case(
        name="the item's id in a helper, through an alias",
        body="""
        async def evaluate(self):
            for item in self.items:
                await self.run_one(item, item["id"])

        async def run_one(self, item, name):
            agent = Agent(self.server, self.tools, self.names, task_id=str(name))  # <- here
            return await agent.run([])
        """,
    ),
    Case(
        name="a hash of the prompt",
        body="""
        async def collect_trajectory(self, item):
            key = hashlib.md5(item["q"].encode()).hexdigest()
            ctx = ToolContext(task_id=key)  # <- here
        """,
    ),
    Case(
        name="made once before the loop",
        body="""
        async def evaluate(self):
            task_id = str(uuid.uuid4())
            for item in self.items:
                ctx = ToolContext(task_id)  # <- here
        """,
    ),
    Case(
        name="made once around a nested function",
        body="""
        async def evaluate(self):
            task_id = ids.uuid4().hex

            async def one(item):
                ctx = ToolContext(task_id)  # <- here

            await asyncio.gather(*(one(item) for item in self.items))
        """,
    ),
    Case(
        name="made once and given to a helper",
        body="""
        async def evaluate(self):
            run = token_hex(8)
            await asyncio.gather(*[self.one(item, run) for item in self.items])

        async def one(self, item, run):
            ctx = ToolContext(run)  # <- here
        """,
    ),
    Case(
        name="made when the module is imported",
        body="""
        async def evaluate(self):
            for item in self.items:
                ctx = ToolContext(RUN)  # <- here
        """,
    ),
    Case(
        name="kept on self",
        body="""
        async def setup(self):
            self.task_id = str(uuid.uuid4())

        async def collect_trajectory(self, item):
            ctx = ToolContext(self.task_id)  # <- here
        """,
    ),
    Case(
        name="a default, made at the def",
        body="""
        async def evaluate(self):
            async with asyncio.TaskGroup() as group:
                for item in self.items:
                    group.create_task(self.one(item))

        async def one(self, item, task_id=str(uuid.uuid4())):
            ctx = ToolContext(task_id)  # <- here
        """,
    ),
    Case(
        name="a walrus",
        body="""
        async def evaluate(self):
            for item in self.items:
                if (name := "eval-" + str(item["id"])):
                    ctx = ToolContext(name)  # <- here
        """,
    ),
    Case(
        name="a helper that makes no new one",
        body="""
        def name_of(self, item):
            return "-".join(["eval", item["id"]])

        async def evaluate(self):
            for item in self.items:
                ctx = ToolContext(self.name_of(item))  # <- here
        """,
    ),
    Case(
        name="of a context that several rollouts are given",
        body="""
        async def evaluate(self):
            ctx = ToolContext(str(uuid.uuid4()))
            for item in self.items:
                await Agent(self.server, self.tools, self.names, task_id=ctx.task_id).run([])  # <- here
        """,
    ),
)

SOUND = (
    Case(
        name="around a nested function that runs once",
        body="""
        async def _one(self, item):
            task_id = str(uuid.uuid4())

            async def attempt():
                return await Agent(self.server, self.tools, self.names, task_id=task_id).run([])

            return await asyncio.wait_for(attempt(), 60)
        """,
    ),
    Case(
        name="of a context that a helper is given, or that a with statement opens",
        body="""
        async def evaluate(self):
            for item in self.items:
                ctx = ToolContext(str(uuid.uuid4()))
                await self._run(item, self.server, ctx)
                with self._box() as box:
                    await self._run(item, self.server, box)

        async def _run(self, item, server, ctx):
            return await Agent(server, self.tools, self.names, task_id=ctx.task_id).run([])

        @contextlib.contextmanager
        def _box(self):
            box = ToolContext(str(uuid.uuid4()))
            try:
                yield box
            finally:
                box.cleanup()
        """,
    ),
    Case(
        name="where the rollout begins",
        body="""
        async def evaluate(self):
            for item in self.items:
                task_id = f"eval-{item['id']}-{uuid.uuid4().hex[:8]}"
                ctx = ToolContext(task_id)
                agent = Agent(self.server, self.tools, self.names, task_id=task_id)
        """,
    ),
    Case(
        name="the loop's own",
        body="""
        async def evaluate(self):
            for item in self.items:
                agent = HermesAgentLoop(self.server, self.tools, self.names)
                ctx = ToolContext(agent.task_id)
        """,
    ),
    Case(
        name="given by each caller",
        body="""
        async def evaluate(self):
            await asyncio.gather(*(self.one(item, str(ids.uuid4())) for item in self.items))

        async def one(self, item, task_id):
            ctx = ToolContext(task_id)
        """,
    ),
    Case(
        name="made unless given",
        body="""
        async def evaluate(self):
            for item in self.items:
                await self.one(item)

        async def one(self, item, task_id=None):
            task_id = task_id or str(uuid.uuid4())
            ctx = ToolContext(task_id)
        """,
    ),
    Case(
        name="made by a helper and a context manager",
        body="""
        def new_id(self):
            return "eval-" + token_hex(4)

        @contextlib.asynccontextmanager
        async def sandbox(self):
            task_id = self.new_id()
            ctx = ToolContext(task_id)
            try:
                yield task_id, ctx
            finally:
                ctx.cleanup()

        async def evaluate(self):
            for item in self.items:
                async with self.sandbox() as (task_id, ctx):
                    agent = Agent(self.server, self.tools, self.names, task_id=task_id)
        """,
    ),
    Case(
        name="made in a nested function",
        body="""
        async def evaluate(self):
            async def one(item):
                task_id = str(uuid.uuid4())
                ctx = ToolContext(task_id)

            await asyncio.gather(*map(one, self.items))
        """,
    ),
)

UNDECIDED = (
    Case(
        name="a counter",
        body="""
        async def evaluate(self):
            for item in self.items:
                ctx = ToolContext(f"eval-{next(self.numbers)}")
        """,
    ),
    Case(
        name="a run and a number",
        body="""
        async def evaluate(self):
            run = uuid.uuid4()
            for number, item in enumerate(self.items):
                ctx = ToolContext(f"{run}-{number}")
        """,
    ),
    Case(
        name="unpacked settings",
        body="""
        async def evaluate(self):
            agent = Agent(self.server, self.tools, self.names, **self.settings())
        """,
    ),
    Case(
        name="ids in a list",
        body="""
        async def evaluate(self):
            made = [str(uuid.uuid4()) for _ in self.items]
            for item, task_id in zip(self.items, made):
                ctx = ToolContext(task_id)
        """,
    ),
)


def environment(body: str) -> str:
    """Return a class with these methods."""
    return f"{HEAD}\nclass Env(HermesAgentBaseEnv):\n{body}".replace("\n        ", "\n    ")


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_task_id_that_rollouts_share_is_found(judge, case):
    judgement = judge("HE602", environment(case.body))

    assert (judgement.outcome, judgement.lines) == (Outcome.FAILED, judgement.marked)


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_a_task_id_that_is_made_for_its_rollout_passes(judge, case):
    assert judge("HE602", environment(case.body)).verdict.outcome is Outcome.PASSED, judge("HE602", environment(case.body))


@pytest.mark.parametrize("case", UNDECIDED, ids=lambda case: case.name)
def test_what_only_running_it_tells_is_undecided(judge, case):
    assert judge("HE602", environment(case.body)).outcome is Outcome.UNDECIDED


def test_the_finding_says_what_is_shared(judge):
    once, same = (judge("HE602", environment(BROKEN[index].body)).messages for index in (4, 0))

    assert (once, same) == (
        ("task_id, the task_id of this rollout, is created once and shared by several rollouts, and so is their sandbox",),
        ("'eval', the task_id of this rollout, is not created per rollout: rollouts share one sandbox",),
    )


def test_a_class_that_opens_nothing_is_not_concerned(judge):
    judgement = judge("HE602", "class Env(HermesAgentBaseEnv):\n    async def evaluate(self): ...\n")

    assert judgement.outcome is Outcome.NOT_APPLICABLE
