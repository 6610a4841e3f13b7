"""HE801 to HE803: what is wrong with wandb_log."""

from __future__ import annotations

from .mutant import Mutant

LEDGER_SUPER = "        await super().wandb_log(metrics)\n"
LETTERS_SUPER = "        await super().wandb_log(wandb_metrics)\n"

MUTANTS = (
    Mutant(
        rule="HE801", name="not awaited", env="ledger_books", changes=((LEDGER_SUPER, "        super().wandb_log(metrics)\n"),)
    ),
    Mutant(
        rule="HE801",
        name="a task that nobody awaits",
        env="capitals_exam",
        changes=((LEDGER_SUPER, "        asyncio.create_task(super().wandb_log(metrics))\n"),),
    ),
    Mutant(
        rule="HE801",
        name="only when there is something to report",
        env="ledger_books",
        changes=((LEDGER_SUPER, "        if len(metrics) > 1:\n            await super().wandb_log(metrics)\n"),),
    ),
    Mutant(
        rule="HE801",
        name="without the metrics",
        env="graded_letters",
        changes=((LETTERS_SUPER, "        await super().wandb_log()\n"),),
    ),
    Mutant(
        rule="HE801",
        name="to the service itself",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        return await super().wandb_log(metrics)\n",
                "        import wandb\n\n        wandb.log(metrics)\n        return None\n",
            ),
        ),
    ),
    Mutant(
        rule="HE801",
        name="returns early without buffers",
        env="graded_letters",
        changes=(
            (
                "        for key, values in self.metrics.items():\n",
                "        if not self.metrics:\n            return\n        for key, values in self.metrics.items():\n",
            ),
        ),
    ),
    Mutant(
        rule="HE802",
        name="item assignment into None",
        env="graded_letters",
        changes=(("        if wandb_metrics is None:\n            wandb_metrics = {}\n", ""),),
    ),
    Mutant(
        rule="HE802",
        name="no default",
        env="ledger_books",
        changes=(
            (
                "async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None)",
                "async def wandb_log(self, wandb_metrics: dict[str, Any])",
            ),
        ),
    ),
    Mutant(
        rule="HE802",
        name="unpacks None",
        env="many_signals",
        file="signals_base",
        changes=(("{**(wandb_metrics or {}), ", "{**wandb_metrics, "),),
    ),
    Mutant(
        rule="HE802",
        name="copies None",
        env="ledger_books",
        changes=(("dict(wandb_metrics or {})", "dict(wandb_metrics)"),),
    ),
    Mutant(
        rule="HE802",
        name="updates None",
        env="capitals_exam",
        changes=(("metrics = wandb_metrics if wandb_metrics is not None else {}", "metrics = wandb_metrics"),),
    ),
    Mutant(
        rule="HE803",
        name="reports and keeps",
        env="graded_letters",
        changes=(("        self.metrics = defaultdict(list)\n        await super()", "        await super()"),),
    ),
    Mutant(
        rule="HE803",
        name="keeps the tally",
        env="many_signals",
        file="signals_base",
        changes=(("        tally, self.tally = self.tally, Tally()\n", "        tally = self.tally\n"),),
    ),
    Mutant(
        rule="HE803",
        name="empties a copy",
        env="graded_letters",
        changes=(
            (
                "        self.metrics = defaultdict(list)\n        await super()",
                "        reported = dict(self.metrics)\n        reported.clear()\n        await super()",
            ),
        ),
    ),
    Mutant(
        rule="HE803",
        name="a list without an end",
        env="ledger_books",
        changes=(
            ("deque(maxlen=500)", "deque()"),
            ("            self.recent.clear()\n", ""),
        ),
    ),
    Mutant(
        rule="HE803",
        name="through a property",
        env="ledger_books",
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
