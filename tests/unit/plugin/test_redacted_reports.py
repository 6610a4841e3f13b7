"""Ids of parameters are redacted where pytest keeps them; where it does not, that is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env.plugin.redacted_reports import RedactedReports
from pytest_hermes_env.plugin.usage import FIXTURES


def generated(**of_metafunc: Any) -> Any:
    """Run the hook for a test that uses the plugin."""
    config: Any = SimpleNamespace(stash={FIXTURES: frozenset()})
    definition = SimpleNamespace(config=config, check=None, fixturenames=(), iter_markers=lambda: ())
    metafunc = SimpleNamespace(definition=definition, **of_metafunc)
    list(RedactedReports(config).pytest_generate_tests(metafunc))
    return metafunc


@pytest.mark.parametrize(
    "of_metafunc", [{}, {"_calls": [SimpleNamespace(ids=["a"])]}, {"_calls": [SimpleNamespace(_idlist=["a\x1b"])]}]
)
def test_a_pytest_that_keeps_ids_elsewhere_is_told(of_metafunc):
    """The test runs all the same; a secret in its name would be shown."""
    with pytest.warns(pytest.PytestWarning, match="secrets in the ids of parameters are shown: pytest .* keeps ids elsewhere"):
        generated(**of_metafunc)


def test_a_test_without_parameters_is_left_alone():
    assert generated(_calls=[])._calls == []
