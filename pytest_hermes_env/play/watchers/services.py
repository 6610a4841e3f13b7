"""Records what a scenario logs to wandb and which warnings come up; spares its clients work that changes nothing."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from pytest_hermes_env.patches import intercept
from pytest_hermes_env.play.journal import current_journal


def watching_wandb() -> AbstractContextManager[None]:
    """Record what a scenario logs to wandb; calls outside of scenarios reach wandb."""
    return intercept("wandb.log", _log)


def _log(real: Any, data: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    journal = current_journal.get()
    if journal is None or journal.log is None:
        return real(data, *args, **kwargs)
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


def sharing_tls_context() -> AbstractContextManager[None]:
    """Create one TLS context for the clients of all runs: reading the certificate authorities takes longer than a scripted rollout.

    The clients of a contract run reach a model in this process or on loopback, and never use TLS.
    """
    return intercept("ssl.create_default_context", _shared)


def sending_plain_requests() -> AbstractContextManager[None]:
    """Send chat requests of plain JSON values without openai's comparison with its types.

    Source: openai 2.24, `_utils/_transform.py`: it renames keys and formats values where the types say so, and those of a chat
    request do not.
    """
    return intercept("openai.resources.chat.completions.completions.async_maybe_transform", _as_given)


async def _as_given(real: Callable[..., Any], data: dict[str, Any], expected_type: Any) -> Any:
    from openai import NotGiven, Omit  # noqa: PLC0415 - heavy

    given = {name: value for name, value in data.items() if not isinstance(value, NotGiven | Omit)}
    return given if _is_json(given) else await real(data, expected_type)


def _is_json(value: Any) -> bool:
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_is_json, value.values()))
    return all(map(_is_json, value)) if type(value) is list else type(value) in {str, int, float, bool, type(None)}


@functools.cache
def _shared(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return real(*args, **kwargs)
