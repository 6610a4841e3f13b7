"""The ladder: what each scripted policy earned, from the highest reward down, with what it cost.

Place in the flow: ledgers of HE405 carry it to the end of the run, and show it there.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_hermes_env.play.cases.values import AUTOMATIC, GOLD, HACK, MADE_FROM_GOLD, NEAR_MISS, NOTHING
from pytest_hermes_env.play.scenario import Rung

COMPARED = (GOLD, HACK, NEAR_MISS)
"""Declared transcripts of which no two should earn the same."""
_HEAD = ("policy", "reward", "turns", "tools", "tokens", "")


@dataclass(frozen=True, kw_only=True)
class LadderRow:
    """One policy over all items that it was played on. ``reward``, ``turns``, ``tools`` and ``tokens`` are means.

    ``reward`` is None where there was none; ``note`` says why, or what the policy does.
    """

    name: str
    rollouts: int
    reward: float | None
    turns: float
    tools: float
    tokens: float
    is_automatic: bool
    note: str = ""


def ladder_rows(rungs: Iterable[Rung]) -> tuple[LadderRow, ...]:
    """Return one row for each policy, the highest mean reward first, those without one last."""
    by_name: dict[str, list[Rung]] = {}
    for rung in (rung for rung in rungs if rung.name not in MADE_FROM_GOLD):
        by_name.setdefault(rung.name, []).append(rung)
    rows = [_row(name, found) for name, found in by_name.items()]
    return tuple(sorted(rows, key=lambda row: (row.reward is None, -(row.reward or 0.0))))


def _row(name: str, rungs: list[Rung]) -> LadderRow:
    played = [rung for rung in rungs if not rung.unavailable and not rung.problem]
    rewards = [rung.reward for rung in played if rung.reward is not None]
    is_automatic = all(rung.is_automatic for rung in rungs)
    notes = [rung.unavailable or rung.problem or rung.error for rung in rungs]
    remark = next((note.partition("\n")[0] for note in notes if note), "")
    if is_automatic and not remark:
        remark = AUTOMATIC.get(name, "")
    if any(rung.is_judge_guessed for rung in played):
        remark += "; the judge's answer is a guess" if remark else "the judge's answer is a guess"

    def mean(values: list[float]) -> float:
        return statistics.fmean(values) if values else 0.0

    return LadderRow(
        name=name,
        rollouts=len(played),
        reward=statistics.fmean(rewards) if rewards else None,
        turns=mean([rung.turns for rung in played]),
        tools=mean([len(rung.tools) for rung in played]),
        tokens=mean([rung.tokens for rung in played]),
        is_automatic=is_automatic,
        note=remark,
    )


def ladder_in_brief(rows: Iterable[LadderRow]) -> list[str]:
    """Return the policies with their rewards, the best first, then what is remarkable: why a declared one has none, and `remarks`.

    Nothing where none has a reward: then a rule says why.
    """
    shown = list(rows)
    if all(row.reward is None for row in shown):
        return []
    earned = ", ".join(f"{row.name} {'-' if row.reward is None else f'{row.reward:.3g}'}" for row in shown)
    silent = [f"{row.name}: {row.note}" for row in shown if row.reward is None and row.note and not row.is_automatic]
    return [earned, *silent[:1], *remarks(shown)]


def remarks(rows: Iterable[LadderRow]) -> list[str]:
    """Return what the rewards of the policies say about the reward function, as an author should hear it."""
    shown = list(rows)
    earned = {row.name: row.reward for row in shown if row.reward is not None}
    found = []
    if not any(row.name == GOLD for row in shown):
        found.append("no gold is declared, so nothing shows that good work is rewarded: hermes-env init FILE")
    if idle := earned.get(NOTHING):
        found.append(f"a transcript that does nothing earns {idle:.3g}")
    for one, other in itertools.combinations([name for name in COMPARED if name in earned], 2):
        if earned[one] == earned[other]:
            found.append(f"{_spoken(one)} and {_spoken(other)} earn the same")
    return found


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def ladder_lines(rows: Iterable[LadderRow]) -> list[str]:
    """Return the ladder as a table."""
    shown = list(rows)
    if not shown:
        return []
    table: list[tuple[str, ...]] = [_HEAD]
    for row in shown:
        reward = "-" if row.reward is None else f"{row.reward:.3g}"
        numbers = (f"{row.turns:.3g}", f"{row.tools:.3g}", f"{row.tokens:.4g}") if row.rollouts else ("-", "-", "-")
        table.append((row.name, reward, *numbers, row.note))
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEAD) - 1)]
    lines = ["ladder"]
    for line in table:
        first, *rest = line[:-1]
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        lines.append(f"  {'  '.join(cells)}  {line[-1]}".rstrip())
    return [*lines, *(f"  {remark}" for remark in remarks(shown))]
