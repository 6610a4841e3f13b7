"""Fixture of the room of faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.plugin.plain_failure import verifying
from pytest_hermes_env.plugin.tool_answers import allows_leftovers

if TYPE_CHECKING:
    from pytest_hermes_env.faults.plan import FaultPlan


@pytest.fixture
def fault_plan(request: pytest.FixtureRequest) -> Iterator[FaultPlan]:
    """What fails in this test: ``fault_plan.on("model", "reset", at=2)``.

    The mock models, ``run_api``, ``trainer`` and the tools of the test play it. A planned fault that was never played fails the test at
    teardown. See `pytest_hermes_env.faults.plan.FaultPlan.on`.
    """
    from pytest_hermes_env.faults.plan import FaultPlan  # noqa: PLC0415

    plan = FaultPlan(allow_leftovers=allows_leftovers(request))
    with verifying(request.node, plan.verify):
        try:
            yield plan
        finally:
            plan.released.set()


def planned_faults(request: pytest.FixtureRequest) -> FaultPlan | None:
    """Return the fault plan of the test, if it has one."""
    plan: FaultPlan | None = request.getfixturevalue("fault_plan") if "fault_plan" in request.fixturenames else None
    return plan
