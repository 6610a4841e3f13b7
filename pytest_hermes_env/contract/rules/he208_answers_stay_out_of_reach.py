"""HE208 answers-stay-out-of-reach
The expected answer is not in the prompt, in the sandbox before the agent works, or in its variables.

What: Fields of an item that are named like an answer (answer, expected, solution, gold, truth, hidden, checks and similar) get other words, and a
rollout of the item begins. None of these words is in a message to the model, in a file of the sandbox, or in a variable
of the process when the model is asked for the first time, and `setup` writes them to no place for temporary files where the agent works on the same machine. No file that is prepared, and no object that git keeps by itself (packs are not opened), holds just what gold writes into another one, unless the prompt or gold names it. No item is its own solved example, and no list that is to be put into an order is given in it on every item. Answers that the class writes into the text of a prompt before items are given out cannot
be told from the question.

Why: An agent that can read the answer learns to read it. The reward rises to 1.0 within a few steps, and the evaluation with it, while nothing of the
task is learnt.

Fix: Give the answer to `compute_reward` alone, by the item. Upload hidden tests in `compute_reward`, after the agent has ended. Write into the
sandbox only the fields that the task needs.

Source: SWE-bench, terminal-bench and others had fixes in the history, or answers on the disk, of their sandboxes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.play.buffers import fields_of
from pytest_hermes_env.play.cases.values import GOLD
from pytest_hermes_env.play.item_texts import LABEL, NO_LABEL, pairs_under
from pytest_hermes_env.play.scenario import CASES

LONG, BEFORE, FEWEST = 16, 400, 3
"""Characters of an answer that is no coincidence, of the prompt before it that are read, and items whose own answer is their example."""
ITEMS_IN_ORDER = 5
"""From so many items on, gold in the order that the task gives is more than a coincidence."""
_EXAMPLE = re.compile(r"\bexamples?\b|\be\.g\.|\bfor instance\b|\bsolved\b|\bdemonstration", re.IGNORECASE)
_WHERE = {
    "message": "the {} message",
    "variable": "the variable {}",
    "file": "the file {} of the sandbox",
    "host file": "{}, which setup writes and an agent on this machine (`terminal_backend`: local) can read,",
}

_METHODS = {"message": ("format_prompt",), "host file": ("setup",)}


def dynamic(evidence: Evidence) -> Verdict:
    """Look at where replaced answers were seen, and for what gold writes."""
    copies = [
        evidence.finding(
            f"what gold writes on {rung.item} lies in the sandbox before: {rung.copied}", "prepare_sandbox", scenario=CASES
        )
        for rung in evidence.rungs
        if rung.copied
    ]
    copies = [*copies[:1], *_of_examples(evidence), *_of_order(evidence)]
    verdict = _of_answers(evidence)
    return Verdict.failed([*copies, *verdict.findings], verdict.note) if copies else verdict


def _of_examples(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding where items are their own example: a long answer stands behind that word, and in no other field of the item."""
    found: dict[str, str] = {}
    seen = [one for one in evidence.scenario("items").items if isinstance(one.prompt, str)]
    for one in seen:
        fields = {str(name).lower(): value for name, value in fields_of(one.value).items()}
        answers = [name for name in fields if LABEL.search(name) and not NO_LABEL.search(name)]
        others = [text for name, value in fields.items() if name not in answers for _, text in pairs_under(name, value)]
        for text in (fields[name] for name in answers if isinstance(fields[name], str)):
            place = one.prompt.find(text.strip()) if len(text.strip()) >= LONG else -1
            is_example = place >= 0 and _EXAMPLE.search(one.prompt[max(0, place - BEFORE) : place]) is not None
            if is_example and not any(text.strip() in other for other in others):
                found[text] = one.prompt[max(0, place - BEFORE) : place + len(text)]
    if len(found) >= FEWEST:
        message = f"the prompts of {len(found)} of {len(seen)} training items have the item's own answer as an example"
        where = evidence.finding(message, "format_prompt", scenario="items", seen=next(iter(found.values())))
        fix = "Take examples from other items: leave out the item itself, by its id, where an example is chosen."
        yield dataclasses.replace(where, fix=fix)


def _of_order(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding where what is to be put into an order is given in it, or in its reverse, on every item."""
    orders = [rung.order for rung in evidence.rungs if rung.name == GOLD and rung.order and rung.reward]
    if len(orders) >= ITEMS_IN_ORDER and len({*orders}) == 1 and orders[0] != "other":
        how = "the order" if orders[0] == "kept" else "the reverse order"
        message = f"the task lists what is to be ordered in {how} of gold, on each of {len(orders)} items"
        found = evidence.finding(message, "format_prompt", "prepare_sandbox", scenario=CASES)
        fix = "Shuffle the list before it is shown, by a seed of the item: `random.Random(item['id']).shuffle(shown)`."
        yield dataclasses.replace(found, fix=fix)


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
            *_METHODS.get(seen.where, ("prepare_sandbox", "collect_trajectory")),
            scenario="answers_replaced",
        )
        for seen in scenario.sightings
    ]
    return Verdict.of(findings[:3], f"{scenario.note} were in no message, file or variable before the agent worked")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=("answers_replaced", CASES, "items"))
