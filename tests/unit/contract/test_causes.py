"""An error of the environment's code is reported by one rule, at its line; the others say that it kept them from judging."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract.judge import Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.causes import reported_once, with_causes
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.play.journal import Place, Raised
from pytest_hermes_env.play.scenario import Collection, Rung, Scenario

ERROR = "KeyError: 'paht'"


def rule(label: str) -> Rule:
    return Rule(doc=f"{label}\nLaw.\n\nFix: Do it.", severity=Severity.ERROR)


PROMPT, PAID, ASKED, LOGGED = map(rule, ("HE204 prompt", "HE412 paid", "HE701 asked", "HE705 logged"))


@pytest.fixture
def env_file(tmp_path: Path) -> str:
    file = tmp_path / "env.py"
    file.write_text("def format_prompt(item):\n    text = 'x'\n    return item['paht'] + text\n", encoding="utf-8")
    return str(file)


def collection(env_file: str, *, reward: float | None = 1.0, more: tuple[Raised, ...] = ()) -> Collection:
    """What was played: one error is known, and gold has a reward, or no rollout has one."""
    raised = Raised(text=ERROR, place=Place(path=env_file, line=3, function="format_prompt"), advice="Write item['path'].")
    rung = Rung(name="gold", item="0", is_automatic=False, reward=reward)
    return Collection(raised=(raised, *more), scenarios={"cases": Scenario(name="cases", rungs=(rung,))})


def failed(message: str, path: str = "", *, line: int = 1, is_confirmed: bool = True, **more: str) -> Verdict:
    return Verdict.failed([Finding(message=message, path=path, line=line, is_confirmed=is_confirmed, **more)])  # type: ignore[arg-type]


def judged(verdicts: dict[Rule, Verdict], played: Collection, waived: tuple[Rule, ...] = ()) -> dict[Rule, Verdict]:
    with_them = {one: with_causes(verdict, played) for one, verdict in verdicts.items()}
    return reported_once(with_them, played, lambda one, _: one in waived)


def test_the_first_rule_stands_for_the_others_at_the_line_that_raised(env_file: str) -> None:
    told = {
        PROMPT: failed(f"format_prompt raised {ERROR}", env_file),
        PAID: failed(f"gold got no reward: {ERROR}", "my.contract.yaml"),
        LOGGED: failed(f"evaluate() scored none of its 2 items: {ERROR}", env_file),
    }

    found = judged(told, collection(env_file))
    (finding,) = found[PROMPT].findings

    assert (finding.line, PROMPT.fix(finding), finding.also) == (3, "Write item['path'].", ("HE412", "HE705"))
    assert finding.raised_by == "return item['paht'] + text"
    assert [(found[one].outcome, found[one].blocked_by) for one in (PAID, LOGGED)] == [(Outcome.NOT_EXERCISED, ("HE204",))] * 2


def test_a_waived_cause_stands_for_nothing(env_file: str) -> None:
    """Or a comment at one method would accept that nothing is paid."""
    told = {PROMPT: failed(f"raised {ERROR}", env_file), PAID: failed(ERROR), LOGGED: failed(ERROR)}

    found = judged(told, collection(env_file), waived=(PROMPT,))

    assert [verdict.outcome for verdict in found.values()] == [Outcome.FAILED, Outcome.FAILED, Outcome.NOT_EXERCISED]
    assert found[LOGGED].blocked_by == ("HE412",)


def test_a_warning_stands_for_no_error(env_file: str) -> None:
    warned = Verdict.failed([Finding(message=f"raised {ERROR}", severity=Severity.WARNING)])

    found = judged({PROMPT: warned, PAID: failed(ERROR)}, collection(env_file))

    assert found[PAID].outcome is Outcome.FAILED


def test_what_a_rule_found_beside_the_cause_still_fails_it(env_file: str) -> None:
    both = Verdict.failed([Finding(message=f"raised {ERROR}"), Finding(message="gold earned 0")])

    found = judged({PROMPT: failed(f"raised {ERROR}", env_file), PAID: both}, collection(env_file))

    assert [finding.message for finding in found[PAID].findings] == ["gold earned 0"]


def test_two_places_with_the_same_error_are_two_causes(env_file: str) -> None:
    other = Raised(text=ERROR, place=Place(path=env_file, line=2))
    told = {PROMPT: failed(f"raised {ERROR}", env_file, line=3), PAID: failed(ERROR, env_file, line=2)}

    found = judged(told, collection(env_file, more=(other,)))

    assert [verdict.outcome for verdict in found.values()] == [Outcome.FAILED, Outcome.FAILED]
    assert found[PAID].findings[0].line == 2


def test_of_two_places_none_is_guessed(env_file: str) -> None:
    other = Raised(text=ERROR, place=Place(path=env_file, line=2))

    (finding,) = with_causes(failed(ERROR, "my.contract.yaml", line=7), collection(env_file, more=(other,))).findings

    assert (finding.path, finding.line, finding.cause) == ("my.contract.yaml", 7, None)


def test_an_error_in_the_message_of_another_is_not_taken_for_it(env_file: str) -> None:
    short = Raised(text="KeyError", place=Place(path=env_file, line=2))

    (finding,) = with_causes(failed("raised KeyErrorOfMine", env_file), Collection(raised=(short,))).findings

    assert finding.cause is None


def test_a_finding_that_tells_no_error_stays_where_it_is(env_file: str) -> None:
    """Also in a scenario that ended with one: it is another violation."""
    (finding,) = with_causes(failed("blocks the loop", env_file, line=2, scenario="evaluate"), collection(env_file)).findings

    assert (finding.line, finding.cause) == (2, None)


def test_a_cause_without_advice_has_no_fix_and_one_elsewhere_that_of_its_rule(env_file: str) -> None:
    here, elsewhere = (Raised(text=ERROR, place=Place(path=path, line=3 if path else 0)) for path in (env_file, ""))

    fixes = [
        PROMPT.fix(with_causes(failed(ERROR, env_file), Collection(raised=(one,))).findings[0]) for one in (here, elsewhere)
    ]

    assert fixes == ["", "Do it."]


@pytest.mark.parametrize(("reward", "asked"), [(None, Outcome.NOT_EXERCISED), (1.0, Outcome.FAILED)])
def test_where_no_rollout_is_rewarded_they_show_nothing(env_file: str, reward: float | None, asked: Outcome) -> None:
    """Rules that looked at rollouts wait for the one that says why; what the source shows, or a line of the environment raised, is judged."""
    told = {
        PROMPT: failed("format_prompt must return a string", env_file),
        PAID: failed(f"gold got no reward: {ERROR}", env_file),
        ASKED: failed("evaluate() never called the model", env_file, scenario="evaluate"),
        LOGGED: failed("evaluate logs nothing", env_file, is_confirmed=False),
    }

    found = judged(told, collection(env_file, reward=reward))

    assert [found[one].outcome for one in told] == [Outcome.FAILED, Outcome.FAILED, asked, Outcome.FAILED]


@pytest.mark.parametrize(("waived", "expected"), [((), Outcome.NOT_EXERCISED), ((LOGGED,), Outcome.FAILED)])
def test_what_follows_from_another_violation_waits_for_it(env_file: str, waived: tuple[Rule, ...], expected: Outcome) -> None:
    """Also from that of a later rule; alone, and beside one that is waived, it fails."""
    follows = failed("gold earned 0", env_file, because_of="HE705")

    assert (
        judged({PAID: follows, LOGGED: failed("it logs nothing", env_file)}, collection(env_file), waived)[PAID].outcome
        is expected
    )
    assert judged({PAID: follows}, collection(env_file))[PAID].outcome is Outcome.FAILED


def test_what_happens_where_an_await_is_missing_follows_from_it(env_file: str) -> None:
    awaits = rule("HE102 awaits")
    told = {
        awaits: failed("load is called without await", env_file, line=2),
        ASKED: failed("evaluate() never called the model", env_file, scenario="evaluate"),
        LOGGED: failed("evaluate() logged nothing", env_file, line=9, scenario="evaluate"),
    }

    found = judged(told, collection(env_file))

    assert found[awaits].findings[0].also == ("HE701",)
    assert [found[one].outcome for one in (ASKED, LOGGED)] == [Outcome.NOT_EXERCISED, Outcome.FAILED]
