"""HE406 judge-falls-back
The reward follows what its judge says about the work; a judge that fails leaves a number, which pays nothing.

What: While the judge of `compute_reward` (a request to a chat or completions endpoint, by any client, to any host) answers text without a score,
JSON whose values are null, or no text at all, or every call to it fails, `compute_reward` returns a finite number. Where the declared gold
asks a judge, its answer is varied: with the worst verdict gold earns less, by the gap; with half of the score no more than with all of it; wrong work about which the judge says nothing that is a score, or
its worst after numbers in a reason, earns no more than with the worst verdict alone. What the judge is asked contains the agent's work (the file that the prompt asks for, where the last words are the same for each item), or other work with the same verdict earns less.

Why: Judges are remote. They time out, hit rate limits, and answer "As an AI, I cannot" one time in a hundred. Without a
fallback each of these becomes an exception in `compute_reward`, which costs the rollout a second run, and then its group; with a generous one an hour of outage pays
for everything. A judge that is shown the reference in place of the answer, or whose "0" is taken for "no score", pays every rollout.

Fix: Put the call and the parsing of its answer into one `try`, and return a heuristic score in the handler, such as the
overlap of the answer's words with the expected ones. Compare with `is None`, not with `or`. Ask for JSON, parse all of it, and take the one key.

Source: The environment guide's judge pattern (always a heuristic fallback); atroposlib 0.4.0, `ServerManager`.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict, finding_in, one_per_place
from pytest_hermes_env.play.cases.values import GOLD, JUDGED, SILENCES
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.probing.record import as_number
from pytest_hermes_env.play.scenario import CASES, Rung, Worth
from pytest_hermes_env.source.reach import reach_of

_SETTING = (ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Raise)
_GOOD = re.compile(
    r"(?:^|_)(?:bonus|extra|good|correct|pass(?:ed|es)?|complete|valid|ok|success(?:ful)?|perfect|excellent)(?:_|$)",
    re.IGNORECASE,
)
"""Statements that give the reward or end it, and flags whose names are good: such a one may only add."""
_HOW = {
    "garbage_judge": "returned text without a score",
    "null_judge": "returned JSON whose values are null",
    "wordless_judge": "returned no text",
    "failing_judge": "failed every request",
}
SCENARIOS = tuple(_HOW)
TINY = 1e-9


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what compute_reward returned while its judge answered garbage, while it failed, and while its verdict on gold was varied."""
    ran = evidence.scenarios(*SCENARIOS)
    varied = [rung for rung in evidence.rungs if rung.name == JUDGED]
    if not ran and not varied:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    rewards = [(scenario.name, reward) for scenario in ran for reward in scenario.of(Reward)]
    if not rewards and not varied:
        return Verdict.not_exercised("compute_reward was not called while the judge failed")
    findings = [
        finding_in(name, reward.place, f"the judge {_HOW[name]}, and compute_reward raised {reward.error}")
        if reward.error
        else evidence.finding_of_reward(
            reward.value, f"the judge {_HOW[name]}, and compute_reward returned {reward.value!r}", scenario=name
        )
        for name, reward in rewards
        if reward.error or as_number(reward.value) is None
    ]
    found = [*one_per_place(findings), *_of_verdicts(evidence, varied)]
    followed = f", and gold's followed {len(varied)} verdicts" if varied else ""
    return Verdict.of(found[:3], f"{len(rewards)} rewards were numbers while the judge failed{followed}")


_FIX_OF_SILENCE = "Pay gold's reward only where the judge gave its verdict: where none can be read, return what a heuristic finds in the answer, below that."

_FIX_OF_VERDICTS = "Let the reward follow the verdict, read from its own place (one key of an object, the last line), and from no other number or word of the answer."
_FIXES = {
    Worth.JUDGED_UNSEEN: "Put all that the agent wrote into what the judge is asked: look at the pattern, the slice or the key that takes it from the answer or file.",
    Worth.JUDGED_PART: "Pay a criterion only as far as the work that it is about is there: a part of the work must earn less than all of it.",
}


def _of_verdicts(evidence: Evidence, varied: list[Rung]) -> Iterator[Finding]:
    """Yield the verdicts on gold that its reward does not follow."""
    golds = {rung.item: rung.reward for rung in evidence.rungs if rung.name == GOLD and rung.reward is not None}
    by_worth = {rung.worth: rung.reward for rung in reversed(varied) if rung.reward is not None}  # the first of each
    worst, bad, gap = by_worth.get(Worth.JUDGED_WORST), by_worth.get(Worth.JUDGED_BAD), evidence.cases.gap - TINY
    for rung in varied:
        gold, reward = golds.get(rung.item), rung.reward
        what = ""
        if reward is None:
            what = f"compute_reward gave no number: {rung.error}"
        elif gold is None:
            continue
        elif rung.worth in {Worth.JUDGED_WORST, Worth.JUDGED_LOW} and gold - reward < gap:
            what = f"gold earned {reward:g}, and {gold:g} with the declared verdict: the reward does not follow the judge"
        elif rung.worth is Worth.JUDGED_VETO:
            if abs(gold - reward) > TINY or not _decides(evidence, rung.change.partition(" for ")[2]):
                continue
            what = f"gold earned {reward:g}, as with false: compute_reward asks for it, and nothing follows"
        elif rung.worth is Worth.JUDGED_BAD and gold - reward < gap:
            what = f"that earned {reward:g}, and gold {gold:g} with the declared verdict"
        elif rung.worth is Worth.JUDGED_PART and reward > gold - TINY:
            what = f"that earned {reward:g}, and the whole with the declared verdict {gold:g}"
        elif rung.worth is Worth.JUDGED_HALF and reward > gold + TINY:
            what = f"gold earned {reward:g}, and {gold:g} with twice the score"
        elif rung.worth is Worth.JUDGED_BEST and gold - reward >= gap:
            what = f"gold earned {reward:g}, and {gold:g} with the lower verdict that is declared"
        elif rung.worth is Worth.JUDGED_SILENT and bad is not None and reward - bad >= gap:
            what = f"it earned {reward:g}, and {bad:g} with the judge's worst verdict"
        elif rung.worth is Worth.JUDGED_SILENT and bad is None and reward >= gold - TINY:
            what = f"it earned {reward:g}, and gold {gold:g} with the declared verdict"
        elif rung.worth is Worth.JUDGED_UNSEEN and (reward >= gold - TINY or (worst is not None and reward - worst >= gap)):
            what = f"it was asked the same about other work, which earned {reward:g} with its verdict on gold"
        if what:
            found = evidence.finding(
                f"the judge {rung.change}: {what}", "compute_reward", seen="; ".join(rung.transcript), scenario=CASES
            )
            fix = _FIX_OF_SILENCE if rung.change.startswith(SILENCES) else _FIXES.get(rung.worth, _FIX_OF_VERDICTS)
            yield dataclasses.replace(found, fix=found.fix if reward is None else fix)


def _decides(evidence: Evidence, key: str) -> bool:
    """Whether what the reward is, is decided by a key of the verdict, beyond whether it is there and of which type. One whose name is good may only add."""
    if _GOOD.search(key):
        return False
    functions = reach_of(evidence.source).functions("compute_reward") if evidence.source is not None else ()
    return any(_holds(test, key) for one in functions for node in one.nodes for test in _tests(node))


def _tests(node: ast.AST) -> list[ast.expr]:
    """Return the condition of a branch that returns or sets something, and comparisons whose outcome is kept."""
    match node:
        case ast.If() if any(isinstance(part, _SETTING) for part in [*node.body, *node.orelse]):
            return [node.test]
        case ast.IfExp():
            return [node.test]
        case ast.Assign(value=ast.Compare() | ast.BoolOp() | ast.UnaryOp() as value):
            return [value]
    return []


def _holds(test: ast.AST, key: str) -> bool:
    match test:
        case (
            ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn(), *_])
            | ast.Call(func=ast.Name(id="isinstance" | "type"))
        ):
            return False
        case (
            ast.Subscript(slice=ast.Constant(value=value))
            | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=value), *_])
        ) if value == key:
            return True
    return any(_holds(part, key) for part in ast.iter_child_nodes(test))


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(*SCENARIOS, CASES))
