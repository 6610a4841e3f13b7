"""Which requests a plan strikes, and what it says about a plan that was not played."""

from __future__ import annotations

import pytest

from pytest_hermes_env.errors import LeftoverFaults, UsageError
from pytest_hermes_env.faults.plan import FAULTS, FaultPlan


def struck(plan: FaultPlan, texts: list[str], place: str = "model") -> list[bool]:
    return [plan.strike(place, text) is not None for text in texts]


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({}, [True, True, True, True]),
        ({"at": 3}, [False, False, True, True]),
        ({"times": 2}, [True, True, False, False]),
        ({"at": 2, "times": 1}, [False, True, False, False]),
        ({"where": "b"}, [False, True, False, True]),
        ({"where": "b", "at": 2}, [False, False, False, True]),
        ({"rate": 1.0}, [True, True, True, True]),
    ],
)
def test_requests_that_a_fault_strikes(when, expected):
    """By number, by text, by share; other places do not count."""
    plan = FaultPlan().on("model", "reset", **when)
    plan.strike("run_api", "a b")

    assert struck(plan, ["a", "b", "c", "a b"]) == expected
    assert [str(strike.fault.kind) for strike in plan.strikes] == ["reset"] * sum(expected)


def test_rate_is_drawn_by_the_seed():
    """Equal seeds strike the same requests, at about the rate; another seed strikes others."""
    drawn = [struck(FaultPlan(seed=seed).on("model", "reset", rate=0.05), ["a"] * 2000) for seed in (1, 1, 2)]

    assert drawn[0] == drawn[1] != drawn[2]
    assert 60 < sum(drawn[0]) < 140


def test_first_due_fault_strikes_and_all_count():
    """Two faults never strike the same request."""
    plan = FaultPlan().on("model", "reset", at=2, times=1).on("model", "cut", at=2)

    kinds = [fault.kind if (fault := plan.strike("model", "a")) else None for _ in range(3)]

    assert kinds == [None, "reset", "cut"]


def test_fault_that_was_never_played_is_an_error():
    """It says what was seen."""
    plan = FaultPlan().on("model", "reset", at=3).on("sandbox", "raises", where="rm").on("model", "cut", rate=0.001)
    plan.strike("model", "a")

    with pytest.raises(LeftoverFaults) as raised:
        plan.verify()

    assert str(raised.value) == (
        "2 of 3 planned faults were never played.\n"
        "  planned   model reset, at 3; 1 requests or calls of it were seen\n"
        "  planned   sandbox raises, where 'rm'; 0 requests or calls of it were seen\n"
        "  fix       check `where` and `at`, or accept it: @pytest.mark.hermes_allow_leftovers"
    )
    assert plan.released.is_set()


@pytest.mark.parametrize(
    ("arguments", "when", "part"),
    [
        (("moon", "reset"), {}, "a place: model, sandbox, run_api, trainer"),
        (("sandbox", "refused"), {}, "a fault of 'sandbox': raises, hangs"),
        (("model", "reset"), {"at": 0}, "at= of a planned fault must be an integer from 1; got int 0"),
        (("model", "reset"), {"times": True}, "times= of a planned fault"),
        (("model", "reset"), {"rate": 0}, "rate= of a planned fault must be above 0"),
    ],
)
def test_impossible_plan_is_refused(arguments, when, part):
    """At the line that wrote it."""
    with pytest.raises(UsageError) as raised:
        FaultPlan().on(*arguments, **when)

    assert part in str(raised.value)


def test_every_fault_says_what_happens():
    """The table of the documentation is this one."""
    assert all(text for kinds in FAULTS.values() for text in kinds.values())
