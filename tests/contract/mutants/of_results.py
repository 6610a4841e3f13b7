"""HE3: what is wrong with how a result is read."""

from __future__ import annotations

from .mutant import Mutant

LETTER = "        letter = last_answer(result.messages)\n"
GRADE = '        return self.grade(self.written(ctx, item["file"]), sum(item["rows"]))\n'

MUTANTS = (
    Mutant(
        rule="HE301",
        name="final_response",
        env="graded_letters",
        changes=((LETTER, "        letter = result.final_response\n"),),
    ),
    Mutant(
        rule="HE301",
        name="through an alias in a helper",
        env="many_signals",
        file="signals_base",
        changes=(("    for message in result.messages:\n", "    outcome = result\n    for message in outcome.output:\n"),),
    ),
    Mutant(
        rule="HE301",
        name="as a dict",
        env="graded_letters",
        changes=((LETTER, '        letter = last_answer(result["messages"])\n'),),
    ),
    Mutant(
        rule="HE301",
        name="get",
        env="graded_letters",
        changes=((LETTER, '        letter = last_answer(result.get("messages", []))\n'),),
    ),
    Mutant(
        rule="HE301",
        name="tools_used behind another parameter name",
        env="ledger_books",
        changes=(
            (
                "async def compute_reward(self, item: dict[str, Any], result: AgentResult, ctx: ToolContext) -> float:",
                "async def compute_reward(self, item, outcome, ctx) -> float:",
            ),
            (GRADE, "        if not outcome.tools_used:\n            return 0.0\n" + GRADE),
        ),
    ),
    Mutant(
        rule="HE301",
        name="getattr with a constant",
        env="capitals_exam",
        changes=(
            (
                "        _, capital = item\n",
                '        _, capital = item\n        if not getattr(result, "tool_calls"):\n            return 0.0\n',
            ),
        ),
    ),
)
