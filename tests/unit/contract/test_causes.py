"""An error of the environment's code is reported by one rule, at its line; the others say that it kept them from judging."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract.judge import Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.causes import reported_once, with_causes
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.play.journal import EvaluationLogged, Place, Raised
from pytest_hermes_env.play.scenario import Collection, ItemSeen, Scenario

ERROR = "KeyError: 'paht'"


def rule(label: str) -> Rule:
    return Rule(doc=f"{label}\nLaw.\n\nFix: Do it.", severity=Severity.ERROR)


PROMPT, PAID, ASKED, LOGGED = map(rule, ("HE204 prompt", "HE412 paid", "HE701 asked", "HE705 logged"))


@pytest.fixture
def env_file(tmp_path: Path) -> str:
    file = tmp_path / "env.py"
    file.write_text("def format_prompt(item):\n    text = 'x'\n    return item['paht'] + text\n", encoding="utf-8")
    return str(file)


def collection(env_file: str, *, prompt: object = None, more: tuple[Raised, ...] = ()) -> Collection:
    raised = Raised(text=ERROR, place=Place(path=env_file, line=3, function="format_prompt"), advice="Write item['path'].")
    return Collection(
        raised=(raised, *more),
        scenarios={
            "items": Scenario(name="items", items=(ItemSeen(value={}, key="0", prompt=prompt, error=ERROR),)),
            "evaluate": Scenario(name="evaluate", events=(EvaluationLogged(metrics={}, samples=2, failed=2, error=ERROR),)),
        },
    )


def failed(message: str, env_file: str, *, scenario: str = "", is_confirmed: bool = True) -> Verdict:
    return Verdict.failed([Finding(message=message, path=env_file, line=1, scenario=scenario, is_confirmed=is_confirmed)])


def judged(verdicts: dict[Rule, Verdict], played: Collection) -> dict[Rule, Verdict]:
    return reported_once({one: with_causes(verdict, played) for one, verdict in verdicts.items()}, played)


def test_the_first_rule_stands_for_the_others_at_the_line_that_raised(env_file: str) -> None:
    played = collection(env_file, prompt="is one")
    told = {
        PROMPT: failed(f"format_prompt raised {ERROR}", env_file),
        PAID: failed(f"gold got no reward: {ERROR}", env_file),
        LOGGED: failed("evaluate() scored none of its 2 items", env_file, scenario="evaluate"),
    }

    found = judged(told, played)
    (finding,) = found[PROMPT].findings

    assert (finding.line, PROMPT.fix(finding), finding.also) == (3, "Write item['path'].", ("HE412", "HE705"))
    assert finding.raised_by == "return item['paht'] + text"
    assert [(found[one].outcome, found[one].blocked_by) for one in (PAID, LOGGED)] == [(Outcome.NOT_EXERCISED, ("HE204",))] * 2


def test_what_a_rule_found_beside_the_cause_still_fails_it(env_file: str) -> None:
    both = Verdict.failed([Finding(message=f"raised {ERROR}"), Finding(message="gold earned 0")])

    found = judged({PROMPT: failed(f"raised {ERROR}", env_file), PAID: both}, collection(env_file, prompt="is one"))

    assert [finding.message for finding in found[PAID].findings] == ["gold earned 0"]


def test_two_places_with_the_same_error_are_two_causes(env_file: str) -> None:
    other = Raised(text=ERROR, place=Place(path=env_file, line=2))
    told = {PROMPT: failed(f"raised {ERROR}", env_file), PAID: Verdict.failed([Finding(message=ERROR, path=env_file, line=2)])}

    found = judged(told, collection(env_file, prompt="is one", more=(other,)))

    assert [verdict.outcome for verdict in found.values()] == [Outcome.FAILED, Outcome.FAILED]
    assert found[PAID].findings[0].line == 2


def test_an_error_in_the_message_of_another_is_not_taken_for_it(env_file: str) -> None:
    short = Raised(text="KeyError", place=Place(path=env_file, line=2))

    (finding,) = with_causes(failed("raised KeyErrorOfMine", env_file), Collection(raised=(short,))).findings

    assert finding.cause is None


def test_a_cause_without_advice_has_no_fix_and_one_elsewhere_that_of_its_rule(env_file: str) -> None:
    here, elsewhere = (Raised(text=ERROR, place=Place(path=path, line=3 if path else 0)) for path in (env_file, ""))

    fixes = [
        PROMPT.fix(with_causes(failed(ERROR, env_file), Collection(raised=(one,))).findings[0]) for one in (here, elsewhere)
    ]

    assert fixes == ["", "Do it."]


@pytest.mark.parametrize("prompt", [None, ["a", "list"]])
def test_where_no_item_has_a_prompt_rollouts_show_nothing(env_file: str, prompt: object) -> None:
    """Rules that looked at rollouts wait for HE204; what the source shows is judged."""
    told = {
        PROMPT: failed("format_prompt must return a string", env_file),
        ASKED: failed("evaluate() never called the model", env_file, scenario="evaluate"),
        LOGGED: failed("evaluate logs nothing", env_file, is_confirmed=False),
    }

    found = judged(told, collection(env_file, prompt=prompt))

    assert [found[one].outcome for one in told] == [Outcome.FAILED, Outcome.NOT_EXERCISED, Outcome.FAILED]
    assert found[PROMPT].findings[0].also == ("HE701",)
