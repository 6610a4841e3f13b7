"""Records what a scenario logs to wandb and which warnings come up; shares one TLS context between its clients."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from pytest_hermes_env.patches import intercept
from pytest_hermes_env.rollout.faults import InjectedFault
from pytest_hermes_env.rollout.journal import current_journal

__all__ = ["recording_warnings", "sharing_tls_context", "watching_wandb"]


@contextlib.contextmanager
def watching_wandb() -> Iterator[None]:
    """Record what a scenario logs to wandb; calls outside of scenarios reach wandb."""
    with intercept("wandb.log", _log):
        yield


def _log(real: Any, data: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    journal = current_journal.get()
    if journal is None or journal.log is None:
        return real(data, *args, **kwargs)
    if journal.faults.fault == "wandb_raises":
        raise InjectedFault("wandb failed, as this scenario requires")
    return journal.log(dict(data))


@contextlib.contextmanager
def recording_warnings() -> Iterator[None]:
    """Write warnings into the journal of the scenario in which they come up, and show none."""

    def note(message: Warning | str, *_args: Any, **_kwargs: Any) -> None:
        journal = current_journal.get()
        if journal is not None:
            journal.warnings.append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note  # restored by catch_warnings
        yield


@contextlib.contextmanager
def sharing_tls_context() -> Iterator[None]:
    """Create one TLS context for the clients of all runs: reading the certificate authorities takes longer than a scripted rollout.

    The clients of a contract run reach a model in this process or on loopback, and never use TLS.
    """
    with intercept("ssl.create_default_context", _shared):
        yield


@functools.cache
def _shared(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return real(*args, **kwargs)
