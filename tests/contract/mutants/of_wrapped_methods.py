"""Methods that are wrapped, items that end after some passes, rewards that another process or day changes, and what looks like it."""

from __future__ import annotations

from .mutant import added, after, before, graded_letters, ledger_books, terminal_tasks

MUTANTS = (
    terminal_tasks(
        "HE102",
        "a helper that never runs",
        before('        found = ctx.read_file(item["path"])', "        self.log_task(item)\n"),
        added("    async def log_task(self, item: Task) -> None:\n        logger.info(item['path'])\n"),
    ),
    terminal_tasks(
        "HE403",
        "a key that no item has",
        ('partial_credit if item["content"] in', 'partial_credit if item["text"] in'),
        follow_up="HE705",
    ),
    graded_letters(
        "HE202",
        "epochs",
        (
            "self.position = (self.position + 1) % len(self.training)\n        return self.training[self.position]",
            "self.position += 1\n"
            "        if self.position >= 2 * len(self.training):\n"
            "            return None\n"
            "        return self.training[self.position % len(self.training)]",
        ),
    ),
    terminal_tasks(
        "HE202",
        "an empty queue is none",
        (
            "item = self.train_items[self.next_index % len(self.train_items)]\n"
            "        self.next_index += 1\n"
            "        return item",
            "if not hasattr(self, 'queue'):\n"
            "            self.queue = list(self.train_items)\n"
            "        try:\n"
            "            return self.queue.pop(0)\n"
            "        except IndexError:\n"
            "            return None",
        ),
    ),
    ledger_books(
        "HE102",
        "a decorated evaluate that drops async",
        before(
            "class LedgerConfig(",
            "def timed(method):\n    def inner(*args, **kwargs):\n        method(*args, **kwargs)\n    return inner\n\n\n",
        ),
        before("    async def evaluate(self, *args: Any, **kwargs: Any) -> None:", "    @timed\n"),
    ),
    ledger_books(
        "HE102",
        "a decorated evaluate whose wrapper requires",
        before(
            "class LedgerConfig(",
            "def timed(method):\n    async def inner(self, step):\n        return await method(self)\n    return inner\n\n\n",
        ),
        ("async def evaluate(self, *args: Any, **kwargs: Any) -> None:", "@timed\n    async def evaluate(self) -> None:"),
        follow_up="HE705",
    ),
    ledger_books(
        "HE102",
        "a decorated log that drops it",
        before(
            "class LedgerConfig(",
            "def quiet(method):\n"
            "    def inner(self, metrics=None):\n"
            "        asyncio.ensure_future(method(self, metrics))\n"
            "    return inner\n"
            "\n"
            "\n",
        ),
        before("import logging", "import asyncio\n"),
        before("    async def wandb_log(", "    @quiet\n"),
        follow_up="HE801",
    ),
    terminal_tasks(
        "HE404",
        "the day",
        (
            'if found.rstrip("\\n") == item["content"]:\n'
            "            return 1.0\n"
            '        return self.config.partial_credit if item["content"] in found else 0.0',
            'return 0.9 if found.rstrip("\\n") == item["content"] else (int(time.time()) // 86400 % 7) / 10',
        ),
        follow_up="HE405",
    ),
    terminal_tasks(
        "HE404",
        "hash of a text",
        (
            'if found.rstrip("\\n") == item["content"]:\n'
            "            return 1.0\n"
            '        return self.config.partial_credit if item["content"] in found else 0.0',
            'return 0.9 if found.rstrip("\\n") == item["content"] else (hash(item["content"]) % 10007) / 20014',
        ),
        follow_up="HE405",
    ),
    terminal_tasks(
        "HE204",
        "bytes",
        (
            "f\"without a line break at the end:\\n{item['content']}\"\n        )",
            "f\"without a line break at the end:\\n{item['content']}\"\n        ).encode()",
        ),
    ),
)

LOOKALIKES = (
    ledger_books(
        "HE102",
        "a pass-through decorator that is plain",
        before(
            "class LedgerConfig(",
            "def timed(method):\n"
            "    def inner(*args, **kwargs):\n"
            "        return method(*args, **kwargs)\n"
            "    return inner\n"
            "\n"
            "\n",
        ),
        before("    async def evaluate(self, *args: Any, **kwargs: Any) -> None:", "    @timed\n"),
    ),
    ledger_books(
        "HE102",
        "a decorator with arguments",
        before(
            "class LedgerConfig(",
            "def timed(name):\n"
            "    def outer(method):\n"
            "        async def inner(*args, **kwargs):\n"
            "            return await method(*args, **kwargs)\n"
            "        return inner\n"
            "    return outer\n"
            "\n"
            "\n",
        ),
        before("    async def evaluate(self, *args: Any, **kwargs: Any) -> None:", "    @timed('x')\n"),
    ),
    terminal_tasks(
        "HE202",
        "a limit of items that are in flight",
        after("self.next_index = 0", "        self.in_flight = 0\n"),
        before(
            "        item = self.train_items[self.next_index % len(self.train_items)]\n"
            "        self.next_index += 1\n"
            "        return item",
            "        if self.in_flight >= 16:\n            return None\n        self.in_flight += 1\n",
        ),
        after(
            "scored, backlog = await super().collect_trajectory(item)", "        self.in_flight = max(0, self.in_flight - 1)\n"
        ),
    ),
    terminal_tasks(
        "HE404",
        "a set that is only counted",
        (
            'if found.rstrip("\\n") == item["content"]:\n'
            "            return 1.0\n"
            '        return self.config.partial_credit if item["content"] in found else 0.0',
            'words = set(found.split()) & set(item["content"].split())\n'
            '        return 1.0 if found.rstrip("\\n") == item["content"] else 0.5 * len(words) / 10',
        ),
    ),
)
"""Sound: what their rule looks for is not there."""
