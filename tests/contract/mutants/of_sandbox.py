"""HE6: what is wrong with sandboxes and isolation."""

from __future__ import annotations

from .mutant import Mutant

LEDGER_TRY = "        ctx = ToolContext(uuid.uuid4().hex)\n        try:\n"

MUTANTS = (
    Mutant(
        rule="HE601",
        name="cleans up only after success",
        env="ledger_books",
        changes=(
            (
                "            return await self.compute_reward(book, result, ctx), result.turns_used\n        finally:\n            ctx.cleanup()\n",
                "            score = await self.compute_reward(book, result, ctx)\n"
                "            ctx.cleanup()\n"
                "            return score, result.turns_used\n"
                "        finally:\n"
                "            logger.debug('done')\n",
            ),
        ),
    ),
    Mutant(
        rule="HE601",
        name="never cleans up",
        env="many_signals",
        file="signals_base",
        changes=(("        finally:\n            ctx.cleanup()\n", ""),),
    ),
    Mutant(
        rule="HE601",
        name="cleans up only what raised an exception",
        env="capitals_exam",
        changes=(
            (
                '            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n        finally:\n            ctx.cleanup()\n',
                '            ctx.cleanup()\n            return Attempt(item[0], 0.0, f"{type(error).__name__}: {error}")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE601",
        name="a context manager without finally",
        env="graded_letters",
        changes=(
            (
                "        try:\n            yield ctx\n        finally:\n            ctx.cleanup()\n",
                "        yield ctx\n        ctx.cleanup()\n",
            ),
        ),
    ),
    Mutant(
        rule="HE601",
        name="cleans up twice",
        env="ledger_books",
        changes=(
            (
                "        finally:\n            ctx.cleanup()\n",
                "        finally:\n            ctx.cleanup()\n            ctx.cleanup()\n",
            ),
        ),
    ),
    Mutant(
        rule="HE601",
        name="no context for the rollout of evaluation",
        env="many_signals",
        file="signals_base",
        changes=(
            ("        ctx = ToolContext(task_id)\n        try:\n", "        try:\n"),
            (
                '            return {"prompt": prompt, "score": await self.compute_reward(item, result, ctx)}\n',
                '            return {"prompt": prompt, "score": float(result.finished_naturally)}\n',
            ),
            ("        finally:\n            ctx.cleanup()\n", ""),
        ),
    ),
)
