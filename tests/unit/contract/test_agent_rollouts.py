"""The layer's agent_rollout, evaluate_items and get_eval_items, as the static halves of the rules read them."""

from __future__ import annotations

import pytest

from .rule_cases import Case, broken, check, open_, other, sound

HEAD = "import functools\nfrom contextlib import AsyncExitStack, asynccontextmanager\n"


def env(*methods: str) -> str:
    """Return an environment with these methods."""
    lines = [line for method in methods for line in ("", *method.strip("\n").splitlines())]
    return HEAD + "class Env(HermesAgentBaseEnv):\n" + "\n".join(f"    {line}" if line else "" for line in lines) + "\n"


SCORED = "reward = await self.compute_reward(item, rollout.result, rollout.ctx)"

ENTERED = {
    "a block": f"""
async def evaluate(self):
    for item in self.eval_items:
        async with self.agent_rollout(item, temperature=0.0) as rollout:  # <- here
            {SCORED}
""",
    "a variable": f"""
async def evaluate(self):
    for item in self.eval_items:
        run = self.agent_rollout(item, temperature=0.0)  # <- here
        async with run as rollout:
            {SCORED}
""",
    "an exit stack": f"""
async def evaluate(self):
    async with AsyncExitStack() as stack:
        for item in self.eval_items:
            rollout = await stack.enter_async_context(self.agent_rollout(item, temperature=0.0))  # <- here
            {SCORED}
""",
    "a helper": f"""
async def evaluate(self):
    await asyncio.gather(*(self.one(item) for item in self.eval_items))

async def one(self, item):
    async with self.agent_rollout(item=item, temperature=0.0) as rollout:  # <- here
        {SCORED}
""",
    "a wrapper that returns it": f"""
async def evaluate(self):
    for item in self.eval_items:
        async with self.greedy(item) as rollout:
            {SCORED}

def greedy(self, item):
    return self.agent_rollout(item, temperature=0.0)  # <- here
""",
    "a wrapper that is a context manager": f"""
async def evaluate(self):
    for item in self.eval_items:
        async with self.greedy(item) as rollout:
            {SCORED}

@asynccontextmanager
async def greedy(self, item):
    async with self.agent_rollout(item, temperature=0.0) as rollout:  # <- here
        yield rollout
""",
    "an override": f"""
async def evaluate(self):
    for item in self.eval_items:
        async with self.agent_rollout(item, temperature=0.0) as rollout:
            {SCORED}

@asynccontextmanager
async def agent_rollout(self, item, temperature=0.0):
    async with super().agent_rollout(item, temperature=temperature) as rollout:  # <- here
        yield rollout
""",
    "an alias": f"""
async def evaluate(self):
    rollout_of = self.agent_rollout
    for item in self.eval_items:
        async with rollout_of(item, temperature=0.0) as rollout:  # <- here
            {SCORED}
""",
    "a lock beside it": f"""
async def evaluate(self):
    for item in self.eval_items:
        async with asyncio.Semaphore(4), self.agent_rollout(item, temperature=0.0) as rollout:  # <- here
            {SCORED}
""",
}


@pytest.mark.parametrize("rule", ["HE601", "HE701", "HE703"])
@pytest.mark.parametrize("body", ENTERED.values(), ids=ENTERED)
def test_a_rollout_that_is_entered_passes(judge, rule, body):
    check(judge, rule, sound("entered", env(body)))


@pytest.mark.parametrize("body", [body for name, body in ENTERED.items() if name != "an override"])
def test_a_rollout_without_a_temperature_samples_like_training(judge, body):
    warm = body.replace(", temperature=0.0", "")
    function = warm[: warm.index("# <- here")].rpartition("def ")[2].partition("(")[0]

    message = f"{function} calls agent_rollout without a temperature: it samples at agent_temperature = 1.0"
    check(judge, "HE703", broken("warm", env(warm), message))


CONFIG = "@classmethod\ndef config_init(cls):\n    return HermesAgentEnvConfig(agent_temperature={}), [APIServerConfig()]\n"
RUN = "async def evaluate(self):\n    async with self.agent_rollout(1{}) as rollout:  # <- here\n        pass\n"

TEMPERATURES = (
    sound("training is greedy too", env(CONFIG.format("0.0"), RUN.format(""))),
    broken(
        "the temperature of the configuration",
        env(CONFIG.format("0.7"), RUN.format("")),
        "evaluate calls agent_rollout without a temperature: it samples at agent_temperature = 0.7",
    ),
    broken(
        "None",
        env(RUN.format(", temperature=None")),
        "evaluate calls agent_rollout without a temperature: it samples at agent_temperature = 1.0",
    ),
    broken("a number", env(RUN.format(", temperature=0.5")), "evaluation samples at temperature 0.5, not greedily"),
    open_(
        "options that cannot be followed", env("async def evaluate(self, **options):\n    self.agent_rollout(1, **options)\n")
    ),
    sound(
        "a partial",
        env(
            "async def evaluate(self):\n"
            "    options = dict(temperature=0.0)\n"
            "    async with self.agent_rollout(1, **options) as rollout:\n        pass\n"
        ),
    ),
    sound(
        "a partial that fixes it",
        env(
            "async def evaluate(self):\n"
            "    greedy = functools.partial(self.agent_rollout, temperature=0.0)\n"
            "    async with greedy(1) as rollout:\n        pass\n"
        ),
    ),
    sound("evaluate_items", env("async def evaluate(self):\n    await self.evaluate_items()\n")),
    sound("evaluate_items at 0", env("async def evaluate(self):\n    await self.evaluate_items(temperature=0)\n")),
    broken(
        "evaluate_items at 1",
        env("async def evaluate(self):\n    await self.evaluate_items(temperature=1.0)  # <- here\n"),
        "evaluation samples at temperature 1.0, not greedily",
    ),
    broken(
        "evaluate_items at the temperature of training",
        env("async def evaluate(self):\n    await self.evaluate_items(temperature=None)  # <- here\n"),
        "evaluate calls evaluate_items without a temperature: it samples at agent_temperature = 1.0",
    ),
    broken(
        "evaluate_items at a setting",
        env("async def evaluate(self):\n    await self.evaluate_items(temperature=self.config.agent_temperature)  # <- here\n"),
        "evaluation samples at temperature self.config.agent_temperature = 1.0, not greedily",
    ),
)


@pytest.mark.parametrize("case", TEMPERATURES, ids=str)
def test_the_temperature_of_an_evaluation(judge, case: Case):
    check(judge, "HE703", case)


NEVER = (
    broken(
        "awaited",
        env("async def evaluate(self):\n    rollout = await self.agent_rollout(1)  # <- here\n"),
        "evaluate calls agent_rollout without `async with`: the agent never runs",
    ),
    broken(
        "called alone",
        env("async def evaluate(self):\n    self.agent_rollout(1)  # <- here\n"),
        "evaluate calls agent_rollout without `async with`: the agent never runs",
    ),
    broken(
        "a plain with",
        env("async def evaluate(self):\n    with self.agent_rollout(1) as rollout:  # <- here\n        pass\n"),
        "evaluate enters agent_rollout with `with`: it requires `async with`",
    ),
    broken(
        "a variable that nothing enters",
        env("async def evaluate(self):\n    rollout = self.agent_rollout(1)  # <- here\n    return 1\n"),
        "evaluate calls agent_rollout and never enters it: the agent never runs",
    ),
    broken(
        "a variable that is awaited",
        env("async def evaluate(self):\n    run = self.agent_rollout(1)\n    rollout = await run  # <- here\n"),
        "evaluate calls agent_rollout without `async with`: the agent never runs",
    ),
    broken(
        "a wrapper that is awaited",
        env(
            "async def evaluate(self):\n    await self.one(1)\n",
            "async def one(self, item):\n    await self.agent_rollout(item)  # <- here\n",
        ),
        "one calls agent_rollout without `async with`: the agent never runs",
    ),
    broken(
        "returned by a wrapper, and entered by none",
        env(
            "async def evaluate(self):\n    self.greedy(1)  # <- here\n",
            "def greedy(self, item):\n    return self.agent_rollout(item)\n",
        ),
        "evaluate calls agent_rollout without `async with`: the agent never runs",
    ),
    broken(
        "entered by hand",
        env("async def evaluate(self):\n    rollout = await self.agent_rollout(1).__aenter__()  # <- here\n"),
        "evaluate enters agent_rollout by hand and never exits it: its sandbox is never released",
    ),
    open_(
        "entered and exited by hand",
        env(
            "async def evaluate(self):\n    run = self.agent_rollout(1)\n    await run.__aenter__()\n"
            "    await run.__aexit__(None, None, None)\n"
        ),
    ),
    broken(
        "a stack that is kept and never closed",
        env(
            "async def setup(self):\n    self.stack = AsyncExitStack()\n",
            "async def evaluate(self):\n    await self.stack.enter_async_context(self.agent_rollout(1))  # <- here\n",
        ),
        "evaluate enters agent_rollout on self.stack, which is never closed: its sandbox is never released",
    ),
    broken(
        "a local stack that is never closed",
        env(
            "async def evaluate(self):\n    stack = AsyncExitStack()\n"
            "    await stack.enter_async_context(self.agent_rollout(1))  # <- here\n"
        ),
        "evaluate enters agent_rollout on stack, which is never closed: its sandbox is never released",
    ),
    open_(
        "a stack that is closed elsewhere",
        env(
            "async def setup(self):\n    self.stack = AsyncExitStack()\n",
            "async def evaluate(self):\n    await self.stack.enter_async_context(self.agent_rollout(1))\n"
            "    await self.stack.aclose()\n",
        ),
    ),
    open_(
        "a local stack that is closed by hand",
        env(
            "async def evaluate(self):\n    stack = AsyncExitStack()\n"
            "    try:\n        await stack.enter_async_context(self.agent_rollout(1))\n    finally:\n        await stack.aclose()\n"
        ),
    ),
    open_(
        "the stack of a caller",
        env("async def one(self, stack):\n    return await stack.enter_async_context(self.agent_rollout(1))\n"),
    ),
    sound(
        "a stack that is entered later",
        env(
            "async def evaluate(self):\n    stack = AsyncExitStack()\n    async with stack:\n"
            "        await stack.enter_async_context(self.agent_rollout(1))\n"
        ),
    ),
    sound(
        "a stack of an outer function",
        env(
            "async def evaluate(self):\n    async with AsyncExitStack() as stack:\n        async def one(item):\n"
            "            return await stack.enter_async_context(self.agent_rollout(item))\n"
            "        await asyncio.gather(one(1), one(2))\n"
        ),
    ),
    open_("kept", env("async def evaluate(self):\n    self.runs = [self.agent_rollout(1)]\n")),
    sound(
        "a coroutine that returns it",
        env(
            "async def evaluate(self):\n    async with await self.greedy(1) as rollout:\n        pass\n",
            "async def greedy(self, item):\n    return self.agent_rollout(item)\n",
        ),
    ),
    other("evaluate_items", env("async def evaluate(self):\n    await self.evaluate_items()\n")),
)


@pytest.mark.parametrize("case", NEVER, ids=str)
def test_a_rollout_must_be_entered(judge, case: Case):
    check(judge, "HE601", case)


LOGGED = (
    sound("evaluate_items", env("async def evaluate(self):\n    await self.evaluate_items()\n")),
    sound(
        "its result",
        env("async def evaluate(self):\n    result = await self.evaluate_items(pass_score=0.5)\n    return result\n"),
    ),
    sound(
        "a wrapper",
        env(
            "async def evaluate(self):\n    await self.run_all()\n",
            "async def run_all(self):\n    return await self.evaluate_items(self.eval_items)\n",
        ),
    ),
    sound(
        "an override",
        env(
            "async def evaluate(self):\n    await self.evaluate_items()\n",
            "async def evaluate_items(self, **options):\n    return await super().evaluate_items(**options)\n",
        ),
    ),
    sound(
        "metrics of its own",
        env('async def evaluate(self):\n    await self.evaluate_items(metrics=lambda samples: {"eval/long": len(samples)})\n'),
    ),
    broken(
        "not awaited",
        env("async def evaluate(self):\n    self.evaluate_items()  # <- here\n"),
        "evaluate calls evaluate_items without awaiting it: nothing is evaluated or logged",
    ),
    broken(
        "a lambda with other names",
        env('async def evaluate(self):\n    await self.evaluate_items(metrics=lambda samples: {"long": 1})  # <- here\n'),
        "the metric 'long' of evaluate does not begin with 'eval/'",
    ),
    broken(
        "a method with other names",
        env(
            "async def evaluate(self):\n    await self.evaluate_items(metrics=self.more)\n",
            'def more(self, samples):\n    return {"train/long": 1}  # <- here\n',
        ),
        "the metric 'train/long' of evaluate does not begin with 'eval/'",
    ),
)


@pytest.mark.parametrize("case", LOGGED, ids=str)
def test_evaluate_items_logs(judge, case: Case):
    check(judge, "HE705", case)


def test_a_rollout_alone_logs_nothing(judge):
    source = env(RUN.format(", temperature=0.0").replace("  # <- here", "")).replace(
        "evaluate(self):", "evaluate(self):  # <- here"
    )

    check(judge, "HE705", broken("no log", source, "evaluate logs nothing: it never awaits evaluate_log"))


@pytest.mark.parametrize(
    "body",
    [
        "async def evaluate(self):\n    await self.evaluate_items()\n",
        "async def evaluate(self):\n    await self.all()\n\nasync def all(self):\n    await self.evaluate_items(score=self.grade)\n",
    ],
)
def test_evaluate_items_is_an_evaluation_of_an_agent(judge, body):
    check(judge, "HE701", sound("evaluate_items", env(body)))


SPLIT = """
async def setup(self):
    rows = [1, 2, 3]
    self.{held}, self.train = rows[:1], rows[{start}]

async def get_next_item(self):
    return self.train[0]
"""
ASKS = (
    "async def evaluate(self):\n    await self.evaluate_items(){}\n",
    "async def evaluate(self):\n    for item in await self.get_eval_items():{}\n        pass\n",
)
OWN = "async def get_eval_items(self):\n    return self.held_out  # <- here\n"
PLAIN = "def get_eval_items(self):\n    return list(self.held_out)  # <- here\n"


@pytest.mark.parametrize("evaluate", ASKS)
def test_held_out_items_are_those_of_get_eval_items(judge, evaluate):
    """They are self.eval_items, unless the class has a get_eval_items of its own."""
    shared = "shares rows with self.train, from which get_next_item takes training items"
    kept = evaluate.format("")

    check(judge, "HE203", sound("default", env(SPLIT.format(held="eval_items", start="1:"), kept)))
    check(
        judge,
        "HE203",
        broken(
            "default, shared",
            env(SPLIT.format(held="eval_items", start=":2"), evaluate.format("  # <- here")),
            f"evaluate iterates over self.eval_items, which {shared}",
        ),
    )
    for own in (OWN, PLAIN):
        sound_source = env(SPLIT.format(held="held_out", start="1:"), own.replace("  # <- here", ""), kept)
        check(judge, "HE203", sound("own", sound_source))
        shared_source = env(SPLIT.format(held="held_out", start=":2"), own, kept)
        check(judge, "HE203", broken("own, shared", shared_source, f"evaluate iterates over self.held_out, which {shared}"))


def test_items_that_are_given_to_evaluate_items_count(judge):
    source = env(
        SPLIT.format(held="eval_items", start="1:"),
        "async def evaluate(self):\n    await self.evaluate_items(self.train)  # <- here\n",
    )

    check(
        judge,
        "HE203",
        broken("given", source, "evaluate iterates over self.train, from which get_next_item takes training items"),
    )


def test_a_score_that_cleans_up_is_seen(judge):
    reward = "async def compute_reward(self, item, result, ctx):\n    return 1.0\n"
    source = env(
        reward,
        "async def evaluate(self):\n    await self.evaluate_items(score=self.grade)\n",
        "async def grade(self, rollout):\n    rollout.ctx.cleanup()  # <- here\n    return 1.0\n",
    )

    check(judge, "HE411", broken("cleans", source, "grade cleans up the tool context that it was given: rollout.ctx.cleanup"))


def test_the_result_of_a_rollout_is_an_agent_result(judge):
    source = env(
        "async def compute_reward(self, item, result, ctx):\n    return 1.0\n",
        "async def evaluate(self):\n    async with self.agent_rollout(1, temperature=0.0) as rollout:\n"
        "        answer = rollout.result.final_response  # <- here\n",
    )

    judgement = judge("HE301", source)

    assert judgement.lines == judgement.marked


def test_the_task_id_of_a_rollout_is_its_own(judge):
    source = env(
        "async def evaluate(self):\n    async with self.agent_rollout(1, temperature=0.0) as rollout:\n"
        "        ctx = ToolContext(rollout.task_id)\n"
    )

    check(judge, "HE602", sound("task_id", source))


def test_a_score_that_blocks_is_seen(judge):
    source = env(
        "async def evaluate(self):\n    await self.evaluate_items(score=self.grade)\n",
        "async def grade(self, rollout):\n    time.sleep(1)  # <- here\n    return 1.0\n",
    )

    check(judge, "HE605", broken("blocks", source, "time.sleep blocks the event loop in grade: every other rollout waits"))


def test_buffers_that_compute_reward_fills_are_filled_by_evaluate_items(judge):
    source = env(
        "async def compute_reward(self, item, result, ctx):\n    self.rewards.append(1.0)  # <- here\n    return 1.0\n",
        "async def evaluate(self):\n    await self.evaluate_items()\n",
    )

    assert judge("HE702", source).outcome == "failed"
