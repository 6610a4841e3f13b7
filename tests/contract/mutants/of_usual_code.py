"""Sound environments that do much of what people usually do, close to what many rules forbid: each is played once for all of them."""

from __future__ import annotations

from .mutant import READ, after, before, graded_letters, many_signals, terminal_tasks

OPENED = "        ctx = ToolContext(str(uuid.uuid4()))\n        try:\n"
CLOSED = "        finally:\n            ctx.cleanup()\n"

LOOKALIKES = (
    terminal_tasks(
        "HE302 HE404 HE408 HE411 HE603 HE605",
        "a reward with a cache, copies, a sandbox of its own and a wait in a thread",
        after("self.next_index = 0", "        self.known: dict[str, str] = {}\n"),
        before(
            READ,
            "        path = self.known.setdefault(item['path'], item['path'])\n"
            "        words = sorted(list(item['content']))\n"
            "        item = dict(item, path=path)\n"
            "        item['words'] = str(len(words))\n"
            "        await asyncio.to_thread(time.sleep, 0.2)\n"
            "        for message in result.messages:\n"
            "            for call in message.get('tool_calls') or []:\n"
            "                function = call['function'] if isinstance(call, dict) else call.function\n"
            "                logger.debug(function)\n"
            "        box = ToolContext(str(uuid.uuid4()))\n"
            "        try:\n"
            "            box.terminal('ls')\n"
            "        finally:\n"
            "            box.cleanup()\n",
        ),
    ),
    terminal_tasks(
        "HE601 HE602 HE701 HE703 HE704 HE705 HE802",
        "an evaluation with an exit stack, a partial, names made by a helper and a task that logs",
        after("import uuid", "from contextlib import ExitStack\nfrom functools import partial\n"),
        before("    async def wandb_log(", "    def new_name(self):\n        return f'eval-{uuid.uuid4().hex[:8]}'\n\n"),
        (
            OPENED,
            "        with ExitStack() as stack:\n"
            "            ctx = ToolContext(self.new_name())\n"
            "            stack.callback(ctx.cleanup)\n"
            "            greedy = partial(HermesAgentLoop, temperature=0.0)\n",
        ),
        ("            agent = HermesAgentLoop(\n", "            agent = greedy(\n"),
        ("                temperature=0.0,\n", ""),
        (CLOSED, ""),
        (
            "await self.evaluate_log(metrics=metrics, samples=samples, start_time=start_time, end_time=time.time())",
            "await asyncio.create_task(self.evaluate_log(metrics, samples=samples, start_time=start_time, end_time=time.time()))",
        ),
        ("metrics = {} if wandb_metrics is None else wandb_metrics", "metrics = {'train/x': 1.0} | (wandb_metrics or {})"),
    ),
    many_signals(
        "HE104 HE105 HE106 HE108 HE303",
        "a server in the local network, all toolsets, and settings that are set afterwards",
        ('enabled_toolsets=["terminal"], max_agent_turns=12', "max_agent_turns=3"),
        ("http://localhost:8000/v1", "http://10.0.0.4:8000/v1"),
        ("            health_check=False,\n", ""),
        (
            "        return config, [server]\n",
            "        config.enabled_toolsets = ['all']\n        return config, list((server,))\n",
        ),
    ),
    terminal_tasks(
        "HE108",
        "a toolset that an imported module registers",
        after("from environments.tool_context import ToolContext", "\nfrom .own_tools import TOOLSET\n"),
        ('enabled_toolsets=["terminal", "file"]', 'enabled_toolsets=["terminal", TOOLSET]'),
        beside=(
            (
                "own_tools.py",
                "from toolsets import create_custom_toolset\n\nTOOLSET = 'notes'\n"
                "create_custom_toolset(TOOLSET, 'Files to write notes into.', tools=['read_file', 'write_file'])\n",
            ),
        ),
    ),
    graded_letters(
        "HE205 HE406 HE407",
        "a judge whose failures are gathered, and letters that a seeded generator shuffles",
        (
            "        order = random.Random(self.config.split_seed).sample(rows, len(rows))\n",
            "        order = list(rows)\n        random.Random(self.config.split_seed).shuffle(order)\n",
        ),
        (
            '        parts = {"judged": await self.judged(item, letter),',
            "        (given,) = await asyncio.gather(self.judged(item, letter), return_exceptions=True)\n"
            '        parts = {"judged": given if isinstance(given, float) else 0.0,',
        ),
    ),
)
"""Sound: what their rules look for is not there."""
