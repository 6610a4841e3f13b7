"""What is never played: set-ups that do not end, loaders that leave nothing, errors that are caught, exits, and gold without a reward."""

from __future__ import annotations

from .mutant import Mutant, changed, graded_letters, ledger_books, many_signals, terminal_tasks

BASE = "signals_base"

BOOKS_SET_UP = "        self.turned = 0\n        self.recent"
LETTERS_SET_UP = "        size = min(max(1, round("
SIGNALS_SET_UP = "        self.tally = Tally()\n        self.turn = 0\n"
EXAM_SET_UP = "        self.outcomes: Counter[str] = Counter()\n"
TASKS_SET_UP = "        self.next_index = 0\n"

BOOKS_GROUP = "        group, backlog = await super().collect_trajectories(item)\n        if group is not None:\n"
LETTERS_ROLLOUT = "        scored, backlog = await super().collect_trajectory(item)\n        if scored is not None:\n"
SIGNALS_GROUP = "        self.note(group)\n        return group, backlog\n"
TASKS_ROLLOUT = "        scored, backlog = await super().collect_trajectory(item)\n        self.reward_buffer"

GOOD_BOOK = "        if written == expected:\n            return 1.0\n"
GOOD_TASK = '        if found.rstrip("\\n") == item["content"]:\n            return 1.0\n'
GOOD_SIGNALS = "        return min(1.0, max(0.0, sum(weight * signal"


def _before(rule: str, name: str, env: str, anchor: str, lines: str, *, file: str = "", follow_up: str = "") -> Mutant:
    """Put lines before others."""
    return Mutant(rule=rule, name=name, env=env, file=file, changes=changed(anchor, lines + anchor), follow_up=follow_up)


def _good_book(rule: str, name: str, given: str, follow_up: str = "") -> Mutant:
    """Give something else for the right sum, which only the author's case reaches."""
    return ledger_books(
        rule=rule,
        name=name,
        changes=changed(GOOD_BOOK, GOOD_BOOK.replace("            return 1.0\n", given)),
        follow_up=follow_up,
    )


def _good_task(rule: str, name: str, given: str, follow_up: str = "") -> Mutant:
    """Do something else with a file that is right, which only the author's case writes."""
    return terminal_tasks(
        rule=rule,
        name=name,
        changes=changed(GOOD_TASK, GOOD_TASK.replace("            return 1.0\n", given)),
        follow_up=follow_up,
    )


MUTANTS = (
    # ------------------------------------------------------------------ HE206
    _before(
        "HE206",
        "the file of the books is missing",
        "ledger_books",
        BOOKS_SET_UP,
        '        self.notes = open("/no/such/directory/books.txt").read()  # <- here\n',
    ),
    _before(
        "HE206",
        "leaves without a key",
        "graded_letters",
        LETTERS_SET_UP,
        '        raise SystemExit("no key is set")  # <- here\n',
    ),
    _before(
        "HE206",
        "skips itself",
        "many_signals",
        SIGNALS_SET_UP,
        '        import unittest\n\n        raise unittest.SkipTest("no GPU")\n',
        file=BASE,
    ),
    _before("HE206", "is cancelled", "capitals_exam", EXAM_SET_UP, "        raise asyncio.CancelledError  # <- here\n"),
    _before(
        "HE206",
        "a thread leaves",
        "terminal_tasks",
        TASKS_SET_UP,
        "        import sys\n\n        await asyncio.to_thread(sys.exit, 0)  # <- here\n",
    ),
    _before("HE206", "is interrupted", "terminal_tasks", TASKS_SET_UP, "        raise KeyboardInterrupt  # <- here\n"),
    graded_letters(
        rule="HE206",
        name="the constructor leaves",
        changes=changed("        self.position = 0\n", '        raise SystemExit("no GPU")  # <- here\n'),
    ),
    terminal_tasks(
        rule="HE206",
        name="a method is still abstract",
        changes=(
            ("import uuid\n", "import uuid\nfrom abc import abstractmethod\n"),
            (
                "    async def setup(self) -> None:\n",
                "    @abstractmethod\n    def verifier(self) -> str:\n"
                '        """Return the command."""\n\n    async def setup(self) -> None:\n',
            ),
        ),
    ),
    ledger_books(
        rule="HE206",
        name="a filter that nothing passes",
        changes=(
            (
                "        self.books, self.exam = BOOKS[:split], BOOKS[split:]\n",
                '        self.books = [book for book in BOOKS[:split] if book.get("level") == "easy"]\n'
                "        self.exam = BOOKS[split:]\n",
            ),
            (
                "        book = self.books[self.turned % len(self.books)]\n",
                "        if not self.books:\n            return None\n        book = self.books[self.turned % len(self.books)]\n",
            ),
        ),
    ),
    many_signals(
        rule="HE206",
        name="the queue is never filled",
        file=BASE,
        changes=(
            (SIGNALS_SET_UP, SIGNALS_SET_UP + "        self.waiting: list[dict[str, str]] = []\n"),
            (
                "        if self.turn >= len(self.items):\n",
                "        if not self.waiting:\n            return None\n        if self.turn >= len(self.items):\n",
            ),
        ),
    ),
    # ------------------------------------------------------------------ HE511
    ledger_books(
        rule="HE511",
        name="catches its own wrong call",
        changes=changed(
            BOOKS_GROUP,
            "        try:\n"
            "            group, backlog = await super().collect_trajectories(item, self.config.group_size)\n"
            "        except Exception:\n"
            "            return None, []\n"
            "        if group is not None:\n",
        ),
    ),
    ledger_books(
        rule="HE511",
        name="catches what it does with the group",
        changes=changed(
            '            self.recent.extend(group["scores"])\n',
            "            try:\n"
            '                self.recent.extend(group["rewards"])\n'
            "            except KeyError:\n"
            "                return None, backlog\n",
        ),
    ),
    graded_letters(
        rule="HE511",
        name="each rollout catches its error",
        changes=changed(
            LETTERS_ROLLOUT,
            "        try:\n"
            '            scored, backlog = await super().collect_trajectory(item["letter"])\n'
            "        except (KeyError, TypeError):\n"
            "            return None, []\n"
            "        if scored is not None:\n",
        ),
    ),
    many_signals(
        rule="HE511",
        name="the return is forgotten",
        file=BASE,
        changes=changed(SIGNALS_GROUP, "        self.note(group)\n"),
    ),
    many_signals(
        rule="HE511",
        name="returns the group alone",
        file=BASE,
        changes=changed(SIGNALS_GROUP, "        self.note(group)\n        return group\n"),
    ),
    _before(
        "HE511",
        "leaves after a rollout",
        "terminal_tasks",
        "        self.reward_buffer.append(",
        "        raise SystemExit(0)\n",
    ),
    _before(
        "HE511",
        "is cancelled",
        "graded_letters",
        "        if scored is not None:\n            self.metrics",
        "        raise asyncio.CancelledError\n",
    ),
    many_signals(
        rule="HE511",
        name="a row that is not there",
        file=BASE,
        changes=changed(
            '            self.tally.rewards += group["scores"]\n', '            self.tally.rewards += group["reward"]\n'
        ),
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
    _before(
        "HE705",
        "raises at its start",
        "ledger_books",
        "        began = time.time()\n",
        '        assert not self.exam, "exam"  # <- here\n',
    ),
    _before("HE705", "leaves at its end", "terminal_tasks", "        scores = [sample", "        raise SystemExit(0)\n"),
    _before(
        "HE705",
        "skips itself",
        "capitals_exam",
        "        right = sum(attempt.score",
        '        import unittest\n\n        raise unittest.SkipTest("no key")\n',
    ),
    _before("HE204", "leaves", "ledger_books", '        numbers = ", ".join', "        raise SystemExit(0)\n"),
    _before(
        "HE202",
        "leaves",
        "terminal_tasks",
        "        item = self.train_items[self.next",
        "        raise SystemExit(0)  # <- here\n",
    ),
    ledger_books(
        rule="HE202",
        name="waits forever after one pass",
        changes=changed(
            "        book = self.books[self.turned % len(self.books)]\n",
            "        if self.turned >= len(self.books):\n            return None\n        book = self.books[self.turned]\n",
        ),
    ),
    ledger_books(
        rule="HE801",
        name="divides by no scores",
        changes=changed(
            "        if self.recent:\n"
            '            metrics["train/recent_reward"] = sum(self.recent) / len(self.recent)\n'
            "            self.recent.clear()\n",
            '        metrics["train/recent_reward"] = sum(self.recent) / len(self.recent)\n        self.recent.clear()\n',
        ),
        follow_up="HE802",
    ),
    _before(
        "HE801", "leaves", "ledger_books", "        metrics = dict(wandb_metrics or {})\n", "        raise SystemExit(0)\n"
    ),
    ledger_books(
        rule="HE105",
        name="leaves without a key",
        changes=changed(
            "        settings = LedgerConfig(\n",
            '        if "LEDGER_KEY" not in os.environ:\n            raise SystemExit("set LEDGER_KEY")\n'
            "        settings = LedgerConfig(\n",
        ),
        follow_up="HE108",
    ),
)
