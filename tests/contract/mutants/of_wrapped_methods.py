"""Methods that are wrapped, items that end after some passes, rewards that another process or day changes, and what looks like it."""

from __future__ import annotations

from .mutant import Mutant

MUTANTS = (
    Mutant(
        rule="HE202",
        name="epochs",
        env="graded_letters",
        changes=(
            (
                "        self.position = (self.position + 1) % len(self.training)\n"
                "        return self.training[self.position]\n",
                "        self.position += 1\n"
                "        if self.position >= 2 * len(self.training):\n"
                "            return None\n"
                "        return self.training[self.position % len(self.training)]\n",
            ),
        ),
    ),
    Mutant(
        rule="HE202",
        name="an empty queue is none",
        env="terminal_tasks",
        changes=(
            (
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
    ),
    Mutant(
        rule="HE102",
        name="a decorated setup that never was async",
        env="terminal_tasks",
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
    Mutant(
        rule="HE102",
        name="a decorated evaluate that drops async",
        env="ledger_books",
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
    Mutant(
        rule="HE102",
        name="a decorated evaluate whose wrapper requires",
        env="ledger_books",
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
    Mutant(
        rule="HE102",
        name="a decorated reward that waits by itself",
        env="ledger_books",
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
    Mutant(
        rule="HE102",
        name="a decorated log that drops it",
        env="ledger_books",
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
    Mutant(
        rule="HE404",
        name="the day",
        env="terminal_tasks",
        follow_up="HE405",
        changes=(
            (
                '        if found.rstrip("\\n") == item["content"]:\n'
                "            return 1.0\n"
                '        return self.config.partial_credit if item["content"] in found else 0.0\n',
                '        return 0.9 if found.rstrip("\\n") == item["content"] else (int(time.time()) // 86400 % 7) / 10\n',
            ),
        ),
    ),
    Mutant(
        rule="HE404",
        name="hash of a text",
        env="terminal_tasks",
        follow_up="HE405",
        changes=(
            (
                '        if found.rstrip("\\n") == item["content"]:\n'
                "            return 1.0\n"
                '        return self.config.partial_credit if item["content"] in found else 0.0\n',
                '        return 0.9 if found.rstrip("\\n") == item["content"] else (hash(item["content"]) % 10007) / 20014\n',
            ),
        ),
    ),
    Mutant(
        rule="HE301",
        name="attrgetter",
        env="terminal_tasks",
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
    Mutant(
        rule="HE301",
        name="itemgetter",
        env="terminal_tasks",
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
    Mutant(
        rule="HE301",
        name="match class pattern",
        env="terminal_tasks",
        changes=(
            (
                '        found = ctx.read_file(item["path"]).get("content", "")\n',
                '        found = ctx.read_file(item["path"]).get("content", "")\n'
                "        match result:\n"
                "            case AgentResult(final_response=said) if said:\n"
                "                pass\n"
                "            case _:\n"
                "                return 0.0\n",
            ),
        ),
    ),
    Mutant(
        rule="HE204",
        name="a benchmark's prompt is a list",
        env="capitals_exam",
        changes=(
            (
                '        return f"What is the capital of {country}? Write its name into capital.txt."\n',
                '        return [f"What is the capital of {country}?", "Write its name into capital.txt."]\n',
            ),
        ),
    ),
    Mutant(
        rule="HE204",
        name="bytes",
        env="terminal_tasks",
        changes=(
            (
                "            f\"without a line break at the end:\\n{item['content']}\"\n        )\n",
                "            f\"without a line break at the end:\\n{item['content']}\"\n        ).encode()\n",
            ),
        ),
    ),
)

LOOKALIKES = (
    Mutant(
        rule="HE102",
        name="a pass-through decorator that is plain",
        env="ledger_books",
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
    Mutant(
        rule="HE102",
        name="a decorator with arguments",
        env="ledger_books",
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
    Mutant(
        rule="HE202",
        name="a limit of items that are in flight",
        env="terminal_tasks",
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
    Mutant(
        rule="HE404",
        name="a set that is only counted",
        env="terminal_tasks",
        changes=(
            (
                '        if found.rstrip("\\n") == item["content"]:\n'
                "            return 1.0\n"
                '        return self.config.partial_credit if item["content"] in found else 0.0\n',
                '        words = set(found.split()) & set(item["content"].split())\n'
                '        return 1.0 if found.rstrip("\\n") == item["content"] else 0.5 * len(words) / 10\n',
            ),
        ),
    ),
)
"""Sound: what their rule looks for is not there."""
