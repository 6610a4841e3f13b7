"""HE208 answers-stay-out-of-reach
The expected answer is not in the prompt, in the sandbox before the agent works, or in its variables.

What: Fields of an item that are named like an answer (answer, expected, solution, gold, truth, hidden, checks and similar) get other words, and a
rollout of the item begins. None of these words is in a message to the model, in a file of the sandbox, or in a variable
of the process when the model is asked for the first time. No file that is prepared holds just what gold writes into another one, unless the prompt or gold names it. Answers that the class writes into the text of a prompt before items are given out cannot
be told from the question.

Why: An agent that can read the answer learns to read it. The reward rises to 1.0 within a few steps, and the evaluation with it, while nothing of the
task is learnt.

Fix: Give the answer to `compute_reward` alone, by the item. Upload hidden tests in `compute_reward`, after the agent has ended. Write into the
sandbox only the fields that the task needs.

Source: SWE-bench, terminal-bench and others had fixes in the history, or answers on the disk, of their sandboxes.
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.scenario import CASES

_WHERE = {"message": "the {} message", "variable": "the variable {}", "file": "the file {} of the sandbox"}


def dynamic(evidence: Evidence) -> Verdict:
    """Look at where replaced answers were seen, and for what gold writes."""
    copies = [
        evidence.finding(
            f"what gold writes on {rung.item} lies in the sandbox before: {rung.copied}", "prepare_sandbox", scenario=CASES
        )
        for rung in evidence.rungs
        if rung.copied
    ]
    verdict = _of_answers(evidence)
    return Verdict.failed([*copies[:1], *verdict.findings], verdict.note) if copies else verdict


def _of_answers(evidence: Evidence) -> Verdict:
    scenario = evidence.scenario("answers_replaced")
    if not scenario.happened:
        return Verdict.not_exercised(scenario.unavailable, "HE206", "HE202")
    if not scenario.requests:
        return Verdict.not_applicable(
            f"a rollout with other answers did not begin: {scenario.error or 'the model was not asked'}"
        )
    findings = [
        evidence.finding(
            f"{', '.join(seen.words)} of the item is in {_WHERE[seen.where].format(seen.name)} before the agent works",
            *(("format_prompt",) if seen.where == "message" else ("prepare_sandbox", "collect_trajectory")),
            scenario="answers_replaced",
        )
        for seen in scenario.sightings
    ]
    return Verdict.of(findings[:3], f"{scenario.note} were in no message, file or variable before the agent worked")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=("answers_replaced", CASES))
