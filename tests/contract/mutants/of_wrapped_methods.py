"""Methods that are wrapped, items that end after some passes, rewards that another process or day changes, and what looks like it."""

from __future__ import annotations

from .mutant import added, capitals_exam, changed, graded_letters, ledger_books, terminal_tasks

MUTANTS = (
    terminal_tasks(
        rule="HE102",
        name="a helper that never runs",
        changes=(
            (
                '        found = ctx.read_file(item["path"])',
                '        self.log_task(item)\n        found = ctx.read_file(item["path"])',
            ),
            *added("    async def log_task(self, item: Task) -> None:\n        logger.info(item['path'])\n"),
        ),
    ),
    terminal_tasks(
        rule="HE102",
        name="a thread that nobody waits for",
        changes=(
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        reply = asyncio.to_thread(ctx.read_file, item["path"])\n        found = reply.get("content", "")\n',
            ),
        ),
        is_only_read=True,
    ),
    terminal_tasks(
        rule="HE603",
        name="the item of the class",
        changes=(
            (
                "        self.next_index += 1\n        return item\n",
                "        self.next_index += 1\n        self.current = item\n        return item\n",
            ),
            ('        found = ctx.read_file(item["path"])', '        found = ctx.read_file(self.current["path"])'),
        ),
        is_only_read=True,
    ),
    terminal_tasks(
        rule="HE403",
        name="a key that no item has",
        changes=changed('partial_credit if item["content"] in', 'partial_credit if item["text"] in'),
        follow_up="HE705",
    ),
    graded_letters(
        rule="HE202",
        name="epochs",
        changes=changed(
            "        self.position = (self.position + 1) % len(self.training)\n        return self.training[self.position]\n",
            "        self.position += 1\n"
            "        if self.position >= 2 * len(self.training):\n"
            "            return None\n"
            "        return self.training[self.position % len(self.training)]\n",
        ),
    ),
    terminal_tasks(
        rule="HE202",
        name="an empty queue is none",
        changes=changed(
            "        item = self.train_items[self.next_index % len(self.train_items)]\n"
            "        self.next_index += 1\n"
            "        return item\n",
            "        if not hasattr(self, 'queue'):\n"
            "            self.queue = list(self.train_items)\n"
            "        try:\n"
            "            return self.queue.pop(0)\n"
            "        except IndexError:\n"
            "            return None\n",
        ),
    ),
    terminal_tasks(
        rule="HE102",
        name="a decorated setup that never was async",
        changes=(
            (
                "class TerminalTasksConfig(",
                "def traced(method):\n"
                "    def inner(*args, **kwargs):\n"
                "        return method(*args, **kwargs)\n"
                "    return inner\n"
                "\n"
                "\n"
                "class TerminalTasksConfig(",
            ),
            ("    async def setup(self) -> None:\n", "    @traced\n    def setup(self) -> None:\n"),
        ),
    ),
    ledger_books(
        rule="HE102",
        name="a decorated evaluate that drops async",
        changes=(
            (
                "class LedgerConfig(",
                "def timed(method):\n"
                "    def inner(*args, **kwargs):\n"
                "        method(*args, **kwargs)\n"
                "    return inner\n"
                "\n"
                "\n"
                "class LedgerConfig(",
            ),
            (
                "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
                "    @timed\n    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
            ),
        ),
    ),
    ledger_books(
        rule="HE102",
        name="a decorated evaluate whose wrapper requires",
        follow_up="HE705",
        changes=(
            (
                "class LedgerConfig(",
                "def timed(method):\n"
                "    async def inner(self, step):\n"
                "        return await method(self)\n"
                "    return inner\n"
                "\n"
                "\n"
                "class LedgerConfig(",
            ),
            (
                "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
                "    @timed\n    async def evaluate(self) -> None:\n",
            ),
        ),
    ),
    ledger_books(
        rule="HE102",
        name="a decorated reward that waits by itself",
        changes=(
            (
                "class LedgerConfig(",
                "import functools\n"
                "\n"
                "\n"
                "def counted(method):\n"
                "    @functools.wraps(method)\n"
                "    def inner(self, *args):\n"
                "        coroutine = method(self, *args)\n"
                "        try:\n"
                "            coroutine.send(None)\n"
                "        except StopIteration as end:\n"
                "            return end.value\n"
                "    return inner\n"
                "\n"
                "\n"
                "class LedgerConfig(",
            ),
            ("    async def compute_reward(", "    @counted\n    async def compute_reward("),
        ),
    ),
    ledger_books(
        rule="HE102",
        name="a decorated log that drops it",
        follow_up="HE801",
        changes=(
            (
                "class LedgerConfig(",
                "def quiet(method):\n"
                "    def inner(self, metrics=None):\n"
                "        asyncio.ensure_future(method(self, metrics))\n"
                "    return inner\n"
                "\n"
                "\n"
                "class LedgerConfig(",
            ),
            ("import logging\n", "import asyncio\nimport logging\n"),
            ("    async def wandb_log(", "    @quiet\n    async def wandb_log("),
        ),
    ),
    terminal_tasks(
        rule="HE404",
        name="the day",
        follow_up="HE405",
        changes=changed(
            '        if found.rstrip("\\n") == item["content"]:\n'
            "            return 1.0\n"
            '        return self.config.partial_credit if item["content"] in found else 0.0\n',
            '        return 0.9 if found.rstrip("\\n") == item["content"] else (int(time.time()) // 86400 % 7) / 10\n',
        ),
    ),
    terminal_tasks(
        rule="HE404",
        name="hash of a text",
        follow_up="HE405",
        changes=changed(
            '        if found.rstrip("\\n") == item["content"]:\n'
            "            return 1.0\n"
            '        return self.config.partial_credit if item["content"] in found else 0.0\n',
            '        return 0.9 if found.rstrip("\\n") == item["content"] else (hash(item["content"]) % 10007) / 20014\n',
        ),
    ),
    terminal_tasks(
        rule="HE301",
        name="attrgetter",
        changes=(
            ("import uuid\n", "import uuid\nfrom operator import attrgetter\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        found = ctx.read_file(item["path"]).get("content", "")\n'
                "        said = attrgetter('final_response')(result)\n"
                "        if not said:\n"
                "            return 0.0\n",
            ),
        ),
    ),
    terminal_tasks(
        rule="HE301",
        name="itemgetter",
        follow_up="HE403",
        changes=(
            ("import uuid\n", "import uuid\nfrom operator import itemgetter\n"),
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        found = ctx.read_file(item["path"]).get("content", "")\n'
                "        said = itemgetter('final_response')(result)\n"
                "        if not said:\n"
                "            return 0.0\n",
            ),
        ),
    ),
    terminal_tasks(
        rule="HE301",
        name="match class pattern",
        changes=changed(
            '        found = ctx.read_file(item["path"]).get("content", "")\n',
            '        found = ctx.read_file(item["path"]).get("content", "")\n'
            "        match result:\n"
            "            case AgentResult(final_response=said) if said:\n"
            "                pass\n"
            "            case _:\n"
            "                return 0.0\n",
        ),
    ),
    capitals_exam(
        rule="HE204",
        name="a benchmark's prompt is a list",
        changes=changed(
            '        return f"What is the capital of {country}? Write its name into capital.txt."\n',
            '        return [f"What is the capital of {country}?", "Write its name into capital.txt."]\n',
        ),
    ),
    terminal_tasks(
        rule="HE204",
        name="bytes",
        changes=changed(
            "            f\"without a line break at the end:\\n{item['content']}\"\n        )\n",
            "            f\"without a line break at the end:\\n{item['content']}\"\n        ).encode()\n",
        ),
    ),
)

LOOKALIKES = (
    ledger_books(
        rule="HE102",
        name="a pass-through decorator that is plain",
        changes=(
            (
                "class LedgerConfig(",
                "def timed(method):\n"
                "    def inner(*args, **kwargs):\n"
                "        return method(*args, **kwargs)\n"
                "    return inner\n"
                "\n"
                "\n"
                "class LedgerConfig(",
            ),
            (
                "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
                "    @timed\n    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
            ),
        ),
    ),
    ledger_books(
        rule="HE102",
        name="a decorator with arguments",
        changes=(
            (
                "class LedgerConfig(",
                "def timed(name):\n"
                "    def outer(method):\n"
                "        async def inner(*args, **kwargs):\n"
                "            return await method(*args, **kwargs)\n"
                "        return inner\n"
                "    return outer\n"
                "\n"
                "\n"
                "class LedgerConfig(",
            ),
            (
                "    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
                "    @timed('x')\n    async def evaluate(self, *args: Any, **kwargs: Any) -> None:\n",
            ),
        ),
    ),
    terminal_tasks(
        rule="HE202",
        name="a limit of items that are in flight",
        changes=(
            ("        self.next_index = 0\n", "        self.next_index = 0\n        self.in_flight = 0\n"),
            (
                "        item = self.train_items[self.next_index % len(self.train_items)]\n"
                "        self.next_index += 1\n"
                "        return item\n",
                "        if self.in_flight >= 16:\n"
                "            return None\n"
                "        self.in_flight += 1\n"
                "        item = self.train_items[self.next_index % len(self.train_items)]\n"
                "        self.next_index += 1\n"
                "        return item\n",
            ),
            (
                "        scored, backlog = await super().collect_trajectory(item)\n",
                "        scored, backlog = await super().collect_trajectory(item)\n"
                "        self.in_flight = max(0, self.in_flight - 1)\n",
            ),
        ),
    ),
    terminal_tasks(
        rule="HE404",
        name="a set that is only counted",
        changes=changed(
            '        if found.rstrip("\\n") == item["content"]:\n'
            "            return 1.0\n"
            '        return self.config.partial_credit if item["content"] in found else 0.0\n',
            '        words = set(found.split()) & set(item["content"].split())\n'
            '        return 1.0 if found.rstrip("\\n") == item["content"] else 0.5 * len(words) / 10\n',
        ),
    ),
)
"""Sound: what their rule looks for is not there."""
