"""What is never played: set-ups that do not end, loaders that leave nothing, errors that are caught, exits, and gold without a reward."""

from __future__ import annotations

from .mutant import Mutant, after, before, capitals_exam, graded_letters, ledger_books, signals_base, terminal_tasks

BOOKS_SET_UP = "        self.turned = 0\n        self.recent"
LETTERS_SET_UP = "        size = min(max(1, round("
SIGNALS_SET_UP = "        self.tally = Tally()\n        self.turn = 0\n"
EXAM_SET_UP = "        self.outcomes: Counter[str] = Counter()\n"
TASKS_SET_UP = "        self.next_index = 0\n"

BOOKS_GROUP = "        group, backlog = await super().collect_trajectories(item)\n        if group is not None:\n"
LETTERS_ROLLOUT = "        scored, backlog = await super().collect_trajectory(item)\n        if scored is not None:\n"
SIGNALS_GROUP = "        self.note(group)\n        return group, backlog\n"

GOOD_BOOK = "        if written == expected:\n            return 1.0\n"
GOOD_TASK = '        if found.rstrip("\\n") == item["content"]:\n            return 1.0\n'


def _good_book(rule: str, name: str, given: str, follow_up: str = "") -> Mutant:
    """Give something else for the right sum, which only the author's case reaches."""
    return ledger_books(rule, name, (GOOD_BOOK, GOOD_BOOK.replace("            return 1.0\n", given)), follow_up=follow_up)


def _good_task(rule: str, name: str, given: str, follow_up: str = "") -> Mutant:
    """Do something else with a file that is right, which only the author's case writes."""
    return terminal_tasks(rule, name, (GOOD_TASK, GOOD_TASK.replace("            return 1.0\n", given)), follow_up=follow_up)


MUTANTS = (
    # ------------------------------------------------------------------ HE206
    ledger_books(
        "HE206",
        "the file of the books is missing",
        before(BOOKS_SET_UP, '        self.notes = open("/no/such/directory/books.txt").read()  # <- here\n'),
    ),
    graded_letters(
        "HE206", "leaves without a key", before(LETTERS_SET_UP, '        raise SystemExit("no key is set")  # <- here\n')
    ),
    signals_base(
        "HE206",
        "skips itself",
        before(SIGNALS_SET_UP, '        import unittest\n\n        raise unittest.SkipTest("no GPU")\n'),
    ),
    capitals_exam("HE206", "is cancelled", before(EXAM_SET_UP, "        raise asyncio.CancelledError  # <- here\n")),
    terminal_tasks(
        "HE206",
        "a thread leaves",
        before(TASKS_SET_UP, "        import sys\n\n        await asyncio.to_thread(sys.exit, 0)  # <- here\n"),
    ),
    terminal_tasks("HE206", "is interrupted", before(TASKS_SET_UP, "        raise KeyboardInterrupt  # <- here\n")),
    graded_letters("HE206", "the constructor leaves", ("self.position = 0", 'raise SystemExit("no GPU")  # <- here')),
    terminal_tasks(
        "HE206",
        "a method is still abstract",
        after("import uuid", "from abc import abstractmethod\n"),
        before(
            "    async def setup(self) -> None:",
            '    @abstractmethod\n    def verifier(self) -> str:\n        """Return the command."""\n\n',
        ),
    ),
    ledger_books(
        "HE206",
        "a filter that nothing passes",
        (
            "self.books, self.exam = BOOKS[:split], BOOKS[split:]",
            'self.books = [book for book in BOOKS[:split] if book.get("level") == "easy"]\n        self.exam = BOOKS[split:]',
        ),
        before(
            "        book = self.books[self.turned % len(self.books)]", "        if not self.books:\n            return None\n"
        ),
    ),
    signals_base(
        "HE206",
        "the queue is never filled",
        after(SIGNALS_SET_UP, "        self.waiting: list[dict[str, str]] = []\n"),
        before("        if self.turn >= len(self.items):", "        if not self.waiting:\n            return None\n"),
    ),
    # ------------------------------------------------------------------ HE511
    ledger_books(
        "HE511",
        "catches its own wrong call",
        (
            BOOKS_GROUP,
            "        try:\n"
            "            group, backlog = await super().collect_trajectories(item, self.config.group_size)\n"
            "        except Exception:\n"
            "            return None, []\n"
            "        if group is not None:\n",
        ),
    ),
    ledger_books(
        "HE511",
        "catches what it does with the group",
        (
            'self.recent.extend(group["scores"])',
            "try:\n"
            '                self.recent.extend(group["rewards"])\n'
            "            except KeyError:\n"
            "                return None, backlog",
        ),
    ),
    graded_letters(
        "HE511",
        "each rollout catches its error",
        (
            LETTERS_ROLLOUT,
            "        try:\n"
            '            scored, backlog = await super().collect_trajectory(item["letter"])\n'
            "        except (KeyError, TypeError):\n"
            "            return None, []\n"
            "        if scored is not None:\n",
        ),
    ),
    signals_base("HE511", "the return is forgotten", (SIGNALS_GROUP, "        self.note(group)\n")),
    signals_base("HE511", "returns the group alone", (SIGNALS_GROUP, "        self.note(group)\n        return group\n")),
    terminal_tasks(
        "HE511", "leaves after a rollout", before("        self.reward_buffer.append(", "        raise SystemExit(0)\n")
    ),
    terminal_tasks(
        "HE511",
        "leaves in a function of another name",
        before("        self.reward_buffer.append(", "        (lambda: exec('raise SystemExit(0)'))()\n"),
    ),
    graded_letters(
        "HE511",
        "is cancelled",
        before("        if scored is not None:\n            self.metrics", "        raise asyncio.CancelledError\n"),
    ),
    signals_base(
        "HE511", "a row that is not there", ('self.tally.rewards += group["scores"]', 'self.tally.rewards += group["reward"]')
    ),
    # ------------------------------------------------------------------ what only the author's cases reach
    _good_book("HE401", "nothing for the right sum", "            return None\n"),
    _good_task("HE401", "true for the right file", "            return True\n"),
    _good_book("HE401", "not a number for the right sum", '            return float("nan")\n'),
    _good_task("HE401", "a text for the right file", '            return "1.0"\n'),
    _good_book("HE403", "stumbles over the right sum", "            return 1.0 / (written - expected)\n"),
    _good_task("HE403", "leaves with the right file", "            raise SystemExit(1)\n"),
    _good_book(
        "HE403", "skips the right sum", '            import unittest\n\n            raise unittest.SkipTest("solved")\n'
    ),
    _good_task("HE403", "interrupts at the right file", "            raise KeyboardInterrupt\n"),
    _good_book("HE404", "a bonus by chance", "            return 0.9 + time.perf_counter() % 0.1\n"),
    _good_task(
        "HE404",
        "the second one counts less",
        "            self.seen = getattr(self, 'seen', 0) + 1\n            return 1 / self.seen\n",
        follow_up="HE405",
    ),
    _good_task("HE408", "marks the task as done", '            item["done"] = "yes"\n            return 1.0\n'),
    _good_task("HE411", "cleans up after good work", "            ctx.cleanup()\n            return 1.0\n"),
    _good_task(
        "HE604",
        "remembers the last file",
        '            os.environ["LAST_FILE"] = item["path"]\n            return 1.0\n',
        follow_up="HE603",
    ),
    # ------------------------------------------------------------------ what ends the run
    ledger_books(
        "HE705",
        "raises at its start",
        before("        began = time.time()\n", '        assert not self.exam, "exam"  # <- here\n'),
    ),
    terminal_tasks("HE705", "leaves at its end", before("        scores = [sample", "        raise SystemExit(0)\n")),
    capitals_exam(
        "HE705",
        "skips itself",
        before("        right = sum(attempt.score", '        import unittest\n\n        raise unittest.SkipTest("no key")\n'),
    ),
    ledger_books("HE204", "leaves", before('        numbers = ", ".join', "        raise SystemExit(0)\n")),
    terminal_tasks(
        "HE202", "leaves", before("        item = self.train_items[self.next", "        raise SystemExit(0)  # <- here\n")
    ),
    ledger_books(
        "HE801",
        "divides by no scores",
        (
            "if self.recent:\n"
            '            metrics["train/recent_reward"] = sum(self.recent) / len(self.recent)\n'
            "            self.recent.clear()",
            'metrics["train/recent_reward"] = sum(self.recent) / len(self.recent)\n        self.recent.clear()',
        ),
        follow_up="HE802",
    ),
    ledger_books("HE801", "leaves", before("        metrics = dict(wandb_metrics or {})\n", "        raise SystemExit(0)\n")),
    ledger_books(
        "HE105",
        "leaves without a key",
        before(
            "        settings = LedgerConfig(",
            '        if "LEDGER_KEY" not in os.environ:\n            raise SystemExit("set LEDGER_KEY")\n',
        ),
        follow_up="HE108",
    ),
)
