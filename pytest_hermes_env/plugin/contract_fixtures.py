"""Fixture of the contract room."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.plugin.run_state import contract_of


@pytest.fixture
def hermes_rule(request: pytest.FixtureRequest) -> Callable[[], None]:
    """One rule on one class, as ``@env_contract`` parametrizes it; call it to judge."""
    check, session = getattr(request, "param", None), contract_of(request.config)
    if check is None:
        raise UsageError("hermes_rule is the fixture behind @env_contract: write @env_contract(MyEnv) above a test(check)")
    return lambda: check.run(request.node, session)
