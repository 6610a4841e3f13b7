"""HE2: what is wrong with items and prompts."""

from __future__ import annotations

from .mutant import after, before, capitals_exam, graded_letters, ledger_books, many_signals, signals_base

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
    graded_letters("HE201", "no try", (TRY_LOAD, f"        from datasets import load_dataset\n\n{LOAD[4:]}")),
    graded_letters(
        "HE201",
        "logs and raises",
        ("self.config.dataset_name, error)\n            return []", "self.config.dataset_name, error)\n            raise"),
    ),
    graded_letters(
        "HE201",
        "the wrong exception",
        (
            'except Exception as error:\n            log.warning("%s cannot',
            'except KeyError as error:\n            log.warning("%s cannot',
        ),
    ),
    ledger_books(
        "HE201",
        "books from the network",
        before("import logging", "import json\n"),
        after("import uuid", "import urllib.request\n"),
        before(
            "        split = len(BOOKS)",
            '        if address := os.environ.get("LEDGER_BOOKS_URL"):\n'
            "            with urllib.request.urlopen(address) as answer:\n"
            "                BOOKS[:] = json.load(answer)\n",
        ),
    ),
    signals_base(
        "HE201",
        "a file of the hub",
        after(
            "items = self.all_items()",
            "        if self.config.dataset_name:\n"
            "            from huggingface_hub import hf_hub_download\n"
            "\n"
            '            rows = open(hf_hub_download(self.config.dataset_name, "pairs.txt")).read().split()\n'
            '            items = [dict(zip(("source", "target"), row.split(":"))) for row in rows]\n',
        ),
    ),
    # ------------------------------------------------------------------ HE202
    signals_base("HE202", "never starts again", ("        if self.turn >= len(self.items):\n            self.turn = 0\n", "")),
    ledger_books(
        "HE202",
        "an iterator that ends",
        after("self.turned = 0", "        self.queue = iter(self.books)\n"),
        ("book = self.books[self.turned % len(self.books)]", "book = next(self.queue)"),
    ),
    signals_base("HE202", "takes items away", ("return self.items[self.turn - 1]", "return self.items.pop(0)")),
    graded_letters(
        "HE202",
        "says that an epoch is over",
        (
            "self.position = (self.position + 1) % len(self.training)",
            "if self.position + 1 == len(self.training):\n"
            '            raise RuntimeError("the epoch is over")\n'
            "        self.position += 1",
        ),
    ),
    # ------------------------------------------------------------------ HE203
    ledger_books("HE203", "trains on everything", (SPLIT, "        self.books, self.exam = BOOKS, BOOKS[split:]\n")),
    signals_base("HE203", "one off", (KEPT, "        self.items, self.exam = items[: len(items) - kept + 1], items[-kept:]\n")),
    graded_letters(
        "HE203",
        "a sample of what is trained on",
        (
            "self.held_out, self.training = order[:size], order[size:]",
            "self.training = order\n        self.held_out = random.Random(self.config.split_seed).sample(self.training, size)",
        ),
    ),
    ledger_books(
        "HE203",
        "the first of the training books",
        ("for book in self.exam:", "for book in self.books[: self.config.held_out]:"),
    ),
    ledger_books(
        "HE203",
        "examples of the evaluation in each prompt",
        (
            '        numbers = ", ".join(map(str, item["rows"]))\n        return f"Write',
            '        numbers = ", ".join(map(str, item["rows"]))\n'
            "        ask = lambda one: f\"Write the sum of {one['rows']} into the file {one['file']}, and nothing else.\"\n"
            '        shown = "\\n".join(f"{ask(one)}\\n{sum(one[\'rows\'])}" for one in self.exam[:2])\n'
            '        return f"{shown}\\n{ask(item)}" or f"Write',
        ),
    ),
    # ------------------------------------------------------------------ HE207
    graded_letters(
        "HE207", "the same letter for ever", ("(self.position + 1) % len(self.training)", "(self.position + 1) % 1")
    ),
    graded_letters(
        "HE207",
        "as many items as a group has rollouts are passed",
        ("(self.position + 1) % len(self.training)", "(self.position + self.config.group_size) % len(self.training)"),
    ),
    # ------------------------------------------------------------------ HE208
    graded_letters(
        "HE208",
        "the answer in the prompt",
        (
            "        return self.training[self.position]\n",
            '        letter = self.training[self.position]\n        return {**letter, "answer": " ".join(letter["words"])}\n',
        ),
        ('then answer with the letter."', "then answer with the letter. {item.get('answer', '')}\""),
        follow_up="HE203",
    ),
    # ------------------------------------------------------------------ HE204
    ledger_books(
        "HE204",
        "a message in place of a text",
        (
            "return f\"Write the sum of {numbers} into the file {item['file']}, and nothing else.\"",
            'return {"role": "user", "content": f"Write the sum of {numbers} into {item[\'file\']}."}',
        ),
        follow_up="HE507",
    ),
    graded_letters(
        "HE204",
        "notes that it was asked",
        before('        return (\n            f"Write a short letter', '        item["asked"] = item.get("asked", 0) + 1\n'),
        follow_up="HE702",
    ),
    many_signals(
        "HE204",
        "a list of messages",
        (
            'return "Make an empty file named {source}, then rename it to {target}.".format(**item)',
            'return [{"role": "user", "content": "Make {source}, then rename it to {target}.".format(**item)}]',
        ),
    ),
    capitals_exam("HE204", "the return is forgotten", ('return f"What is the capital', 'f"What is the capital')),
    ledger_books("HE204", "sorts in place", before(NUMBERS, '        item["rows"].sort(reverse=True)\n'), follow_up="HE702"),
    many_signals(
        "HE204",
        "a field that items do not have",
        (
            'return "Make an empty file named {source}, then rename it to {target}.".format(**item)',
            'return item.get("task", "")',
        ),
    ),
    # ------------------------------------------------------------------ HE205
    graded_letters("HE205", "no seed", (ORDER, "        order = random.sample(rows, len(rows))\n"), follow_up="HE203"),
    ledger_books(
        "HE205",
        "the module's list in place",
        after("import os", "import random\n"),
        before("        split = len(BOOKS)", "        random.Random(7).shuffle(BOOKS)\n"),
        follow_up="HE203 HE405",
    ),
    signals_base(
        "HE205",
        "a generator without a seed",
        before("import time", "import random\n"),
        before("        kept = min(", "        random.Random().shuffle(items)\n"),
        follow_up="HE203",
    ),
    capitals_exam(
        "HE205",
        "the questions of an exam",
        after("import os", "import random\n"),
        before("        self.outcomes: Counter", "        random.shuffle(self.questions)\n"),
    ),
)
