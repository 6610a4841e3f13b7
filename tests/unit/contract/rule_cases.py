"""Cases of rules: a source, the outcome, and the messages at the lines that the source marks."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_hermes_env.contract.verdict import Outcome

MAIN = '\n\nif __name__ == "__main__":\n    Env.cli()\n'


@dataclass(frozen=True, kw_only=True)
class Case:
    """A source and what a rule makes of it: a violation where there are messages, one for each marked line."""

    name: str
    source: str
    messages: tuple[str, ...] = ()
    outcome: Outcome = Outcome.PASSED

    def __str__(self) -> str:
        """Return the name, which is the id of the test."""
        return self.name


def broken(name: str, source: str, *messages: str) -> Case:
    """Return a case in which the rule finds these."""
    return Case(name=name, source=source, messages=messages, outcome=Outcome.FAILED)


def sound(name: str, source: str) -> Case:
    """Return a case that passes."""
    return Case(name=name, source=source)


def open_(name: str, source: str) -> Case:
    """Return a case that the source alone cannot decide."""
    return Case(name=name, source=source, outcome=Outcome.UNDECIDED)


def other(name: str, source: str) -> Case:
    """Return a case that the rule does not concern."""
    return Case(name=name, source=source, outcome=Outcome.NOT_APPLICABLE)


def check(judge, rule_id: str, case: Case) -> None:
    """Hold a rule to a case."""
    judgement = judge(rule_id, case.source)

    lines = judgement.marked if case.messages else ()
    assert (judgement.outcome, judgement.messages, judgement.lines) == (case.outcome, case.messages, lines)
