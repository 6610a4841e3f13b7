"""HE2: what is wrong with items and prompts."""

from __future__ import annotations

from .mutant import Mutant

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
    Mutant(
        rule="HE201",
        name="no try",
        env="graded_letters",
        changes=((TRY_LOAD, f"        from datasets import load_dataset\n\n{LOAD[4:]}"),),
    ),
    Mutant(
        rule="HE201",
        name="logs and raises",
        env="graded_letters",
        changes=(
            (
                "self.config.dataset_name, error)\n            return []\n",
                "self.config.dataset_name, error)\n            raise\n",
            ),
        ),
    ),
    Mutant(
        rule="HE201",
        name="the wrong exception",
        env="graded_letters",
        changes=(
            (
                '        except Exception as error:\n            log.warning("%s cannot',
                '        except KeyError as error:\n            log.warning("%s cannot',
            ),
        ),
    ),
    Mutant(
        rule="HE201",
        name="books from the network",
        env="ledger_books",
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
    Mutant(
        rule="HE201",
        name="a file of the hub",
        env="many_signals",
        file=BASE,
        changes=(
            (
                "        items = self.all_items()\n",
                "        items = self.all_items()\n"
                "        if self.config.dataset_name:\n"
                "            from huggingface_hub import hf_hub_download\n\n"
                '            rows = open(hf_hub_download(self.config.dataset_name, "pairs.txt")).read().split()\n'
                '            items = [dict(zip(("source", "target"), row.split(":"))) for row in rows]\n',
            ),
        ),
    ),
    # ------------------------------------------------------------------ HE202
    Mutant(rule="HE202", name="no modulo", env="ledger_books", changes=(("[self.turned % len(self.books)]", "[self.turned]"),)),
    Mutant(
        rule="HE202",
        name="counts on",
        env="graded_letters",
        changes=(("(self.position + 1) % len(self.training)", "self.position + 1"),),
    ),
    Mutant(
        rule="HE202",
        name="never starts again",
        env="many_signals",
        file=BASE,
        changes=(("        if self.turn >= len(self.items):\n            self.turn = 0\n", ""),),
    ),
    Mutant(
        rule="HE202",
        name="an iterator that ends",
        env="ledger_books",
        changes=(
            ("        self.turned = 0\n", "        self.turned = 0\n        self.queue = iter(self.books)\n"),
            ("        book = self.books[self.turned % len(self.books)]\n", "        book = next(self.queue)\n"),
        ),
    ),
    Mutant(
        rule="HE202",
        name="takes items away",
        env="many_signals",
        file=BASE,
        changes=(("        return self.items[self.turn - 1]\n", "        return self.items.pop(0)\n"),),
    ),
    Mutant(
        rule="HE202",
        name="says that an epoch is over",
        env="graded_letters",
        changes=(
            (
                "        self.position = (self.position + 1) % len(self.training)\n",
                "        if self.position + 1 == len(self.training):\n"
                '            raise RuntimeError("the epoch is over")\n'
                "        self.position += 1\n",
            ),
        ),
    ),
    # ------------------------------------------------------------------ HE203
    Mutant(
        rule="HE203",
        name="trains on everything",
        env="ledger_books",
        changes=((SPLIT, "        self.books, self.exam = BOOKS, BOOKS[split:]\n"),),
    ),
    Mutant(
        rule="HE203",
        name="evaluates the training letters",
        env="graded_letters",
        changes=(("(one(item) for item in self.held_out)", "(one(item) for item in self.training)"),),
    ),
    Mutant(
        rule="HE203",
        name="keeps and trains",
        env="many_signals",
        file=BASE,
        changes=((KEPT, "        self.items, self.exam = items, items[-kept:]\n"),),
    ),
    Mutant(
        rule="HE203",
        name="one off",
        env="many_signals",
        file=BASE,
        changes=((KEPT, "        self.items, self.exam = items[: len(items) - kept + 1], items[-kept:]\n"),),
    ),
    Mutant(
        rule="HE203",
        name="a sample of what is trained on",
        env="graded_letters",
        changes=(
            (
                "        self.held_out, self.training = order[:size], order[size:]\n",
                "        self.training = order\n"
                "        self.held_out = random.Random(self.config.split_seed).sample(self.training, size)\n",
            ),
        ),
    ),
    Mutant(
        rule="HE203",
        name="the first of the training books",
        env="ledger_books",
        changes=(("        for book in self.exam:\n", "        for book in self.books[: self.config.held_out]:\n"),),
    ),
    # ------------------------------------------------------------------ HE204
    Mutant(
        rule="HE204",
        name="a message in place of a text",
        env="ledger_books",
        changes=(
            (
                "        return f\"Write the sum of {numbers} into the file {item['file']}, and nothing else.\"\n",
                '        return {"role": "user", "content": f"Write the sum of {numbers} into {item[\'file\']}."}\n',
            ),
        ),
    ),
    Mutant(
        rule="HE204",
        name="notes that it was asked",
        env="graded_letters",
        changes=(
            (
                '        return (\n            f"Write a short letter',
                '        item["asked"] = item.get("asked", 0) + 1\n        return (\n            f"Write a short letter',
            ),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE204",
        name="a list of messages",
        env="many_signals",
        changes=(
            (
                '        return "Make an empty file named {source}, then rename it to {target}.".format(**item)\n',
                '        return [{"role": "user", "content": "Make {source}, then rename it to {target}.".format(**item)}]\n',
            ),
        ),
    ),
    Mutant(
        rule="HE204",
        name="the return is forgotten",
        env="capitals_exam",
        changes=(('        return f"What is the capital', '        f"What is the capital'),),
        follow_up="HE405",
    ),
    Mutant(
        rule="HE204",
        name="sorts in place",
        env="ledger_books",
        changes=((NUMBERS, '        item["rows"].sort(reverse=True)\n' + NUMBERS),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE204",
        name="a field that items do not have",
        env="many_signals",
        changes=(
            (
                '        return "Make an empty file named {source}, then rename it to {target}.".format(**item)\n',
                '        return item.get("task", "")\n',
            ),
        ),
    ),
    # ------------------------------------------------------------------ HE205
    Mutant(
        rule="HE205",
        name="no seed",
        env="graded_letters",
        changes=((ORDER, "        order = random.sample(rows, len(rows))\n"),),
        is_only_read=True,
    ),
    Mutant(
        rule="HE205",
        name="the module's list in place",
        env="ledger_books",
        changes=(
            ("import os\n", "import os\nimport random\n"),
            ("        split = len(BOOKS)", "        random.Random(7).shuffle(BOOKS)\n        split = len(BOOKS)"),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE205",
        name="a generator without a seed",
        env="many_signals",
        file=BASE,
        changes=(
            ("import time\n", "import random\nimport time\n"),
            ("        kept = min(", "        random.Random().shuffle(items)\n        kept = min("),
        ),
        is_only_read=True,
    ),
    Mutant(
        rule="HE205",
        name="the questions of an exam",
        env="capitals_exam",
        changes=(
            ("import os\n", "import os\nimport random\n"),
            ("        self.outcomes: Counter", "        random.shuffle(self.questions)\n        self.outcomes: Counter"),
        ),
    ),
)
