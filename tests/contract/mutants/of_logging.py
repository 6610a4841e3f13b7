"""HE801 to HE803: what is wrong with wandb_log."""

from __future__ import annotations

from .mutant import before, capitals_exam, graded_letters, ledger_books, signals_base

LEDGER_SUPER = "        await super().wandb_log(metrics)\n"
LETTERS_SUPER = "        await super().wandb_log(wandb_metrics)\n"

MUTANTS = (
    ledger_books(
        "HE801",
        "only when there is something to report",
        (LEDGER_SUPER, "        if len(metrics) > 1:\n            await super().wandb_log(metrics)\n"),
    ),
    graded_letters("HE801", "without the metrics", (LETTERS_SUPER, "        await super().wandb_log()\n")),
    signals_base(
        "HE801",
        "to the service itself",
        ("return await super().wandb_log(metrics)", "import wandb\n\n        wandb.log(metrics)\n        return None"),
    ),
    graded_letters(
        "HE801",
        "returns early without buffers",
        before("        for key, values in self.metrics.items():", "        if not self.metrics:\n            return\n"),
    ),
    graded_letters(
        "HE802", "item assignment into None", ("        if wandb_metrics is None:\n            wandb_metrics = {}\n", "")
    ),
    signals_base("HE802", "unpacks None", ("{**(wandb_metrics or {}), ", "{**wandb_metrics, ")),
    ledger_books("HE802", "copies None", ("dict(wandb_metrics or {})", "dict(wandb_metrics)")),
    capitals_exam(
        "HE802", "updates None", ("metrics = wandb_metrics if wandb_metrics is not None else {}", "metrics = wandb_metrics")
    ),
    graded_letters("HE803", "reports and keeps", ("self.metrics = defaultdict(list)\n        await super()", "await super()")),
    signals_base("HE803", "keeps the tally", ("tally, self.tally = self.tally, Tally()", "tally = self.tally")),
    graded_letters(
        "HE803",
        "empties a copy",
        (
            "self.metrics = defaultdict(list)\n        await super()",
            "reported = dict(self.metrics)\n        reported.clear()\n        await super()",
        ),
    ),
    ledger_books("HE803", "a list without an end", ("deque(maxlen=500)", "deque()"), ("            self.recent.clear()\n", "")),
    ledger_books(
        "HE803",
        "through a property",
        ("self.recent: deque[float] = deque(maxlen=500)", "self.scores: list[float] = []"),
        ("self.recent.extend(group", "self.scores.extend(group"),
        (
            'metrics["train/recent_reward"] = sum(self.recent) / len(self.recent)\n            self.recent.clear()',
            'metrics["train/recent_reward"] = sum(self.recent) / len(self.recent)',
        ),
        before(
            "    def opening(self",
            "    @property\n"
            "    def recent(self) -> list[float]:\n"
            '        """Return the scores so far."""\n'
            "        return list(self.scores)\n"
            "\n",
        ),
    ),
)
