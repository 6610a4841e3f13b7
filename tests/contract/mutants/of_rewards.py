"""HE4: what is wrong with the reward."""

from __future__ import annotations

from .mutant import Mutant

GRADE = '        return self.grade(self.written(ctx, item["file"]), sum(item["rows"]))\n'

MUTANTS = (
    Mutant(
        rule="HE401",
        name="a bool",
        env="ledger_books",
        changes=((GRADE, '        return self.written(ctx, item["file"]) == sum(item["rows"])\n'),),
    ),
    Mutant(
        rule="HE401",
        name="nothing where there is no answer",
        env="ledger_books",
        changes=(
            (
                "        if written is None:\n            return 0.0\n",
                "        if written is None:\n            return None\n",
            ),
        ),
    ),
    Mutant(
        rule="HE401",
        name="not a number",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))\n",
                '        total = sum(weight * signal for weight, signal in signals)\n        return total or float("nan")\n',
            ),
        ),
    ),
    Mutant(
        rule="HE401",
        name="the parts in place of the sum",
        env="graded_letters",
        changes=(
            (
                "        reward, _ = await self.graded(item, result)\n        return reward\n",
                "        return await self.graded(item, result)\n",
            ),
            (
                '            return {"to": item["to"], "score": await self.compute_reward(item, outcome, ctx), "messages": outcome.messages}\n',
                '            score, _ = await self.compute_reward(item, outcome, ctx)\n            return {"to": item["to"], "score": score}\n',
            ),
        ),
    ),
    Mutant(
        rule="HE401",
        name="infinite where nothing was called",
        env="many_signals",
        file="signals_base",
        changes=(
            (
                "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))\n",
                "        if not calls:\n"
                '            return float("-inf")\n'
                "        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))\n",
            ),
        ),
    ),
)
