"""wandb, warnings and TLS contexts during a contract run."""

from __future__ import annotations

import ssl
import warnings

import pytest
import wandb

from pytest_hermes_env.rollout.faults import Faults, InjectedFault
from pytest_hermes_env.rollout.journal import Journal, recording
from pytest_hermes_env.rollout.watchers.services import recording_warnings, sharing_tls_context, watching_wandb


def test_metrics_go_into_the_scenario_that_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of them; outside of such a scenario wandb gets them."""
    real: list[object] = []
    monkeypatch.setattr(wandb, "log", lambda data, **_: real.append(data))
    logged: list[dict[str, object]] = []
    with watching_wandb():
        with recording(Journal(log=logged.append)):
            metrics = {"a": 1}
            wandb.log(metrics, step=3)
            metrics.clear()
        with recording(Journal()):
            wandb.log({"b": 2})

    assert (logged, real) == ([{"a": 1}], [{"b": 2}])


def test_wandb_fails_where_the_scenario_asks_for_it() -> None:
    """As it does without a connection."""
    journal = Journal(log=lambda _: None, faults=Faults(fault="wandb_raises"))
    with watching_wandb(), recording(journal), pytest.raises(InjectedFault):
        wandb.log({})


def test_warnings_are_recorded_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Each time they come up; those outside of a scenario are dropped."""
    with recording_warnings():
        with recording() as journal:
            for _ in range(2):
                warnings.warn("careful", UserWarning, stacklevel=1)
        warnings.warn("nobody hears", UserWarning, stacklevel=1)

    assert (journal.warnings, capsys.readouterr().err) == (["careful", "careful"], "")


def test_one_tls_context_serves_all_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """For equal arguments, also in later runs; a new one for others, and for whoever comes outside of a run."""
    made: list[object] = []
    monkeypatch.setattr(ssl, "create_default_context", lambda *args, **_: made.append(args) or len(made))
    with sharing_tls_context():
        inside = [ssl.create_default_context(), ssl.create_default_context(), ssl.create_default_context(cafile="x")]
    after = ssl.create_default_context()
    with sharing_tls_context():
        later = ssl.create_default_context()

    assert (inside, after, later) == ([1, 1, 2], 3, 1)
