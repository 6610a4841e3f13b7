"""Collects calls and orders them by rollout, so that the same run results in the same tape; and says where a recording comes from."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_hermes_env.cassette.rollouts import LiveRollout
from pytest_hermes_env.cassette.tape import Call, Header, ModelCall, RecordedRollout, Tape
from pytest_hermes_env.versions import installed_versions


class Recorder:
    """Collects model calls and tool calls, in the order in which they begin. Safe to use from several threads."""

    def __init__(self) -> None:
        self._places: list[tuple[LiveRollout | None, list[Call]]] = []

    def begin(self, rollout: LiveRollout | None) -> Callable[[Call], None]:
        """Reserve the place of a call that begins, and return the function that adds the call when it is answered."""
        answered: list[Call] = []
        self._places.append((rollout, answered))
        return answered.append

    @property
    def is_empty(self) -> bool:
        """Whether no model call was recorded."""
        return not any(isinstance(call, ModelCall) for _, calls in self._places for call in calls)

    def tape(self, header: Header, rollouts: Iterable[LiveRollout], before: Tape | None = None) -> Tape:
        """Return the recorded calls, appended to those of ``before``."""
        older = before.calls if before is not None else ()
        recorded = [
            replace(call, rollout=0 if rollout is None else rollout.number)
            for rollout, answered in list(self._places)
            for call in answered
        ]
        calls = sorted((*older, *recorded), key=lambda call: call.rollout)
        known = before.rollouts if before is not None else ()
        new = tuple(
            RecordedRollout(
                number=rollout.number, opening=rollout.opening, reward=rollout.reward, reward_error=rollout.reward_error
            )
            for rollout in rollouts
            if not rollout.is_recorded
        )
        return Tape(
            header=header,
            calls=tuple(replace(call, number=number) for number, call in enumerate(calls, start=1)),
            rollouts=(*known, *sorted(new, key=lambda rollout: rollout.number)),
        )


# ---------------------------------------------------------------------- where a recording comes from


def header_of(*, recorded_from: str, provider: str = "", model: str = "", test: str = "") -> Header:
    """Return a header with the current time and the installed versions."""
    return Header(
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        recorded_from=recorded_from,
        provider=provider,
        model=model,
        test=test,
        versions=installed_versions(),
    )


def with_environment(header: Header, environment: type) -> Header:
    """Return the header with the name and the source of the environment's class."""
    try:
        source = Path(inspect.getfile(environment)).read_bytes()
    except (OSError, TypeError):
        source = b""
    return replace(
        header,
        environment=f"{_module_name(environment)}:{environment.__qualname__}",
        source_hash=hashlib.sha256(source).hexdigest() if source else "",
    )


def _module_name(environment: type) -> str:
    """Return the module name of a class; for a class of the main script, the name of its file."""
    spec = getattr(sys.modules.get(environment.__module__), "__spec__", None)
    if environment.__module__ != "__main__":
        return environment.__module__
    return spec.name if spec is not None else Path(inspect.getfile(environment)).stem


def version_drift(header: Header) -> Iterator[str]:
    """Yield a sentence for each package whose version differs from the recorded one."""
    for package, installed in sorted(installed_versions().items()):
        recorded = header.versions.get(package)
        if recorded is None:
            yield f"the version of {package} was not recorded"
        elif recorded != installed:
            yield f"{package} was {recorded}, is {installed}"
