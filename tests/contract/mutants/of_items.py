"""HE2: what is wrong with items and prompts."""

from __future__ import annotations

from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals

BASE = "signals_base"
LOAD = "            return [dict(row) for row in load_dataset(self.config.dataset_name, split=self.config.dataset_split)]\n"
ORDER = "        order = random.Random(self.config.split_seed).sample(rows, len(rows))\n"
SPLIT = "        self.books, self.exam = BOOKS[:split], BOOKS[split:]\n"
KEPT = "        self.items, self.exam = items[:-kept], items[-kept:]\n"
NUMBERS = '        numbers = ", ".join(map(str, item["rows"]))\n'
TRY_LOAD = f"""\
        try:
            from datasets import load_dataset

{LOAD}        except Exception as error:
            log.warning("%s cannot be loaded, the built-in letters are taken: %s", self.config.dataset_name, error)
            return []
"""

MUTANTS = (
    # ------------------------------------------------------------------ HE201
    graded_letters(
        rule="HE201",
        name="no try",
        changes=changed(TRY_LOAD, f"        from datasets import load_dataset\n\n{LOAD[4:]}"),
    ),
    graded_letters(
        rule="HE201",
        name="logs and raises",
        changes=changed(
            "self.config.dataset_name, error)\n            return []\n", "self.config.dataset_name, error)\n            raise\n"
        ),
    ),
    graded_letters(
        rule="HE201",
        name="the wrong exception",
        changes=changed(
            '        except Exception as error:\n            log.warning("%s cannot',
            '        except KeyError as error:\n            log.warning("%s cannot',
        ),
    ),
    ledger_books(
        rule="HE201",
        name="books from the network",
        changes=(
            ("import logging\n", "import json\nimport logging\n"),
            ("import uuid\n", "import uuid\nimport urllib.request\n"),
            (
                "        split = len(BOOKS)",
                '        if address := os.environ.get("LEDGER_BOOKS_URL"):\n'
                "            with urllib.request.urlopen(address) as answer:\n"
                "                BOOKS[:] = json.load(answer)\n"
                "        split = len(BOOKS)",
            ),
        ),
    ),
    many_signals(
        rule="HE201",
        name="a file of the hub",
        file=BASE,
        changes=changed(
            "        items = self.all_items()\n",
            "        items = self.all_items()\n"
            "        if self.config.dataset_name:\n"
            "            from huggingface_hub import hf_hub_download\n\n"
            '            rows = open(hf_hub_download(self.config.dataset_name, "pairs.txt")).read().split()\n'
            '            items = [dict(zip(("source", "target"), row.split(":"))) for row in rows]\n',
        ),
    ),
    # ------------------------------------------------------------------ HE202
    ledger_books(rule="HE202", name="no modulo", changes=changed("[self.turned % len(self.books)]", "[self.turned]")),
    graded_letters(
        rule="HE202",
        name="counts on",
        changes=changed("(self.position + 1) % len(self.training)", "self.position + 1"),
    ),
    many_signals(
        rule="HE202",
        name="never starts again",
        file=BASE,
        changes=changed("        if self.turn >= len(self.items):\n            self.turn = 0\n", ""),
    ),
    ledger_books(
        rule="HE202",
        name="an iterator that ends",
        changes=(
            ("        self.turned = 0\n", "        self.turned = 0\n        self.queue = iter(self.books)\n"),
            ("        book = self.books[self.turned % len(self.books)]\n", "        book = next(self.queue)\n"),
        ),
    ),
    many_signals(
        rule="HE202",
        name="takes items away",
        file=BASE,
        changes=changed("        return self.items[self.turn - 1]\n", "        return self.items.pop(0)\n"),
    ),
    graded_letters(
        rule="HE202",
        name="says that an epoch is over",
        changes=changed(
            "        self.position = (self.position + 1) % len(self.training)\n",
            "        if self.position + 1 == len(self.training):\n"
            '            raise RuntimeError("the epoch is over")\n'
            "        self.position += 1\n",
        ),
    ),
    # ------------------------------------------------------------------ HE203
    ledger_books(
        rule="HE203",
        name="trains on everything",
        changes=changed(SPLIT, "        self.books, self.exam = BOOKS, BOOKS[split:]\n"),
    ),
    graded_letters(
        rule="HE203",
        name="evaluates the training letters",
        changes=changed("(one(item) for item in self.held_out)", "(one(item) for item in self.training)"),
    ),
    many_signals(
        rule="HE203",
        name="keeps and trains",
        file=BASE,
        changes=changed(KEPT, "        self.items, self.exam = items, items[-kept:]\n"),
    ),
    many_signals(
        rule="HE203",
        name="one off",
        file=BASE,
        changes=changed(KEPT, "        self.items, self.exam = items[: len(items) - kept + 1], items[-kept:]\n"),
    ),
    graded_letters(
        rule="HE203",
        name="a sample of what is trained on",
        changes=changed(
            "        self.held_out, self.training = order[:size], order[size:]\n",
            "        self.training = order\n"
            "        self.held_out = random.Random(self.config.split_seed).sample(self.training, size)\n",
        ),
    ),
    ledger_books(
        rule="HE203",
        name="the first of the training books",
        changes=changed("        for book in self.exam:\n", "        for book in self.books[: self.config.held_out]:\n"),
    ),
    # ------------------------------------------------------------------ HE204
    ledger_books(
        rule="HE204",
        name="a message in place of a text",
        changes=changed(
            "        return f\"Write the sum of {numbers} into the file {item['file']}, and nothing else.\"\n",
            '        return {"role": "user", "content": f"Write the sum of {numbers} into {item[\'file\']}."}\n',
        ),
    ),
    graded_letters(
        rule="HE204",
        name="notes that it was asked",
        changes=changed(
            '        return (\n            f"Write a short letter',
            '        item["asked"] = item.get("asked", 0) + 1\n        return (\n            f"Write a short letter',
        ),
        is_only_read=True,
    ),
    many_signals(
        rule="HE204",
        name="a list of messages",
        changes=changed(
            '        return "Make an empty file named {source}, then rename it to {target}.".format(**item)\n',
            '        return [{"role": "user", "content": "Make {source}, then rename it to {target}.".format(**item)}]\n',
        ),
    ),
    capitals_exam(
        rule="HE204",
        name="the return is forgotten",
        changes=changed('        return f"What is the capital', '        f"What is the capital'),
    ),
    ledger_books(
        rule="HE204",
        name="sorts in place",
        changes=changed(NUMBERS, '        item["rows"].sort(reverse=True)\n' + NUMBERS),
        is_only_read=True,
    ),
    many_signals(
        rule="HE204",
        name="a field that items do not have",
        changes=changed(
            '        return "Make an empty file named {source}, then rename it to {target}.".format(**item)\n',
            '        return item.get("task", "")\n',
        ),
    ),
    # ------------------------------------------------------------------ HE205
    graded_letters(
        rule="HE205",
        name="no seed",
        changes=changed(ORDER, "        order = random.sample(rows, len(rows))\n"),
        is_only_read=True,
    ),
    ledger_books(
        rule="HE205",
        name="the module's list in place",
        changes=(
            ("import os\n", "import os\nimport random\n"),
            ("        split = len(BOOKS)", "        random.Random(7).shuffle(BOOKS)\n        split = len(BOOKS)"),
        ),
        is_only_read=True,
    ),
    many_signals(
        rule="HE205",
        name="a generator without a seed",
        file=BASE,
        changes=(
            ("import time\n", "import random\nimport time\n"),
            ("        kept = min(", "        random.Random().shuffle(items)\n        kept = min("),
        ),
        is_only_read=True,
    ),
    capitals_exam(
        rule="HE205",
        name="the questions of an exam",
        changes=(
            ("import os\n", "import os\nimport random\n"),
            ("        self.outcomes: Counter", "        random.shuffle(self.questions)\n        self.outcomes: Counter"),
        ),
    ),
)
