"""HE801 to HE803: what is wrong with wandb_log."""

from __future__ import annotations

from .mutant import capitals_exam, changed, graded_letters, ledger_books, many_signals

LEDGER_SUPER = "        await super().wandb_log(metrics)\n"
LETTERS_SUPER = "        await super().wandb_log(wandb_metrics)\n"

MUTANTS = (
    ledger_books(rule="HE801", name="not awaited", changes=changed(LEDGER_SUPER, "        super().wandb_log(metrics)\n")),
    capitals_exam(
        rule="HE801",
        name="a task that nobody awaits",
        changes=changed(LEDGER_SUPER, "        asyncio.create_task(super().wandb_log(metrics))\n"),
    ),
    ledger_books(
        rule="HE801",
        name="only when there is something to report",
        changes=changed(LEDGER_SUPER, "        if len(metrics) > 1:\n            await super().wandb_log(metrics)\n"),
    ),
    graded_letters(
        rule="HE801",
        name="without the metrics",
        changes=changed(LETTERS_SUPER, "        await super().wandb_log()\n"),
    ),
    many_signals(
        rule="HE801",
        name="to the service itself",
        file="signals_base",
        changes=changed(
            "        return await super().wandb_log(metrics)\n",
            "        import wandb\n\n        wandb.log(metrics)\n        return None\n",
        ),
    ),
    graded_letters(
        rule="HE801",
        name="returns early without buffers",
        changes=changed(
            "        for key, values in self.metrics.items():\n",
            "        if not self.metrics:\n            return\n        for key, values in self.metrics.items():\n",
        ),
    ),
    graded_letters(
        rule="HE802",
        name="item assignment into None",
        changes=changed("        if wandb_metrics is None:\n            wandb_metrics = {}\n", ""),
    ),
    ledger_books(
        rule="HE802",
        name="no default",
        changes=changed(
            "async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None)",
            "async def wandb_log(self, wandb_metrics: dict[str, Any])",
        ),
    ),
    many_signals(
        rule="HE802",
        name="unpacks None",
        file="signals_base",
        changes=changed("{**(wandb_metrics or {}), ", "{**wandb_metrics, "),
    ),
    ledger_books(
        rule="HE802",
        name="copies None",
        changes=changed("dict(wandb_metrics or {})", "dict(wandb_metrics)"),
    ),
    capitals_exam(
        rule="HE802",
        name="updates None",
        changes=changed("metrics = wandb_metrics if wandb_metrics is not None else {}", "metrics = wandb_metrics"),
    ),
    graded_letters(
        rule="HE803",
        name="reports and keeps",
        changes=changed("        self.metrics = defaultdict(list)\n        await super()", "        await super()"),
    ),
    many_signals(
        rule="HE803",
        name="keeps the tally",
        file="signals_base",
        changes=changed("        tally, self.tally = self.tally, Tally()\n", "        tally = self.tally\n"),
    ),
    graded_letters(
        rule="HE803",
        name="empties a copy",
        changes=changed(
            "        self.metrics = defaultdict(list)\n        await super()",
            "        reported = dict(self.metrics)\n        reported.clear()\n        await super()",
        ),
    ),
    ledger_books(
        rule="HE803",
        name="a list without an end",
        changes=(
            ("deque(maxlen=500)", "deque()"),
            ("            self.recent.clear()\n", ""),
        ),
    ),
    ledger_books(
        rule="HE803",
        name="through a property",
        changes=(
            ("        self.recent: deque[float] = deque(maxlen=500)\n", "        self.scores: list[float] = []\n"),
            ("            self.recent.extend(group", "            self.scores.extend(group"),
            (
                '            metrics["train/recent_reward"] = sum(self.recent) / len(self.recent)\n            self.recent.clear()\n',
                '            metrics["train/recent_reward"] = sum(self.recent) / len(self.recent)\n',
            ),
            (
                "    def opening(self",
                "    @property\n"
                "    def recent(self) -> list[float]:\n"
                '        """Return the scores so far."""\n'
                "        return list(self.scores)\n\n"
                "    def opening(self",
            ),
        ),
    ),
)
