"""What is played in processes of its own: the cases and probes once more, whose rewards must not depend on where, and the searches.

Of the first, the hash seed, working directory, order of cases and clock are others. Place in the flow: `player_process` starts them beside
the process that plays the rest, and joins what all wrote; `child` calls `begin_elsewhere` before the class is imported.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

from pytest_hermes_env.patches import assign
from pytest_hermes_env.play.evidence_file import CODEC, EvidenceWriter
from pytest_hermes_env.play.scenario import ELSEWHERE, TAMPERING, WRONG_PROGRAMS, Cause, Scenario, Unavailable

HASH_SEED = "20260119"
SHIFT_S = 211 * 86400 + 12 * 3600 + 1800.0
"""Seconds that the clock is ahead: another month, weekday and half of the day."""


def job_elsewhere(job: Any) -> Any:
    """Return what of a `Job` is played elsewhere; None where nothing is."""
    if ELSEWHERE not in job.scenarios:
        return None
    module, colon, name = job.target.rpartition(":")
    target = f"{os.path.abspath(module)}{colon}{name}" if module.endswith(".py") else job.target
    return dataclasses.replace(
        job,
        target=os.path.abspath(target) if target.endswith(".py") else target,
        scenarios=(ELSEWHERE,),
        is_elsewhere=True,
        lines_of=(),
    )


def searches_of(job: Any) -> list[Any]:
    """Return the searches of a `Job`, each as a job: they take longest, and hold up a loop. None where that is all, or they would only be skipped."""
    wanted = {TAMPERING, WRONG_PROGRAMS} if job.effort > 1 else {TAMPERING}
    found = [name for name in job.scenarios if name in wanted]
    is_worth_it = job.sandbox == "fake" and len(found) < len(job.scenarios) and (os.cpu_count() or 1) > 1
    return [dataclasses.replace(job, scenarios=(name,), lines_of=()) for name in found] if is_worth_it else []


def begin_elsewhere(directory: str) -> None:
    """Go to an empty directory below ``directory``, and begin another day: for as long as this process lives; monotonic clocks stay.

    CPython's ``today`` asks `time.time`, its ``now`` does not.
    """
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]
    place = Path(directory, f"elsewhere-{os.getpid()}")
    place.mkdir()
    os.chdir(place)
    now, now_ns, local, universal = time.time, time.time_ns, time.localtime, time.gmtime
    replacements: dict[str, Any] = {
        "time.time": lambda: now() + SHIFT_S,
        "time.time_ns": lambda: now_ns() + int(SHIFT_S * 1e9),
        "time.localtime": lambda seconds=None: local(now() + SHIFT_S if seconds is None else seconds),
        "time.gmtime": lambda seconds=None: universal(now() + SHIFT_S if seconds is None else seconds),
    }
    for target, value in replacements.items():
        assign(target, value)


def show_later_day(env_class: type) -> None:
    """Give the modules beside a class a ``datetime`` of that day. In others it stays: libraries in C crash with another class."""
    shift, real = dt.timedelta(seconds=SHIFT_S), dt.datetime

    class AsBefore(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

    class LaterDatetime(dt.datetime, metaclass=AsBefore):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return real.now(tz) + shift

        @classmethod
        def utcnow(cls) -> Any:
            return real.utcnow() + shift

    later = types.ModuleType("datetime")
    vars(later).update(vars(dt) | {"datetime": LaterDatetime})
    own = env_class.__module__.partition(".")[0]
    folder = os.path.dirname(os.path.abspath(getattr(sys.modules.get(env_class.__module__), "__file__", None) or "")) + os.sep
    for name, module in list(sys.modules.items()):
        is_beside = "site-packages" not in folder and str(getattr(module, "__file__", None) or "").startswith(folder)
        if is_beside or name.partition(".")[0] == own:
            for attribute, value in list(vars(module).items()):
                if value is dt or value is real:
                    assign("Module.*", later if value is dt else LaterDatetime, owner=module, name=attribute)


def has_record(part: str | None) -> bool:
    """Return whether a part has a record of the scenario that is played elsewhere."""
    return _record_in(part, ELSEWHERE) is not None


def are_in_the_way(*parts: str) -> bool:
    """Return whether the class could begin in one of several processes and not in another: a port, or a file, that only one can have."""
    records = [CODEC.decode(record) for part in parts for record in _records_in(part)]
    return len({record.unavailable is not None and record.unavailable.cause in _NOT_BEGUN for record in records}) > 1


_NOT_BEGUN = frozenset({Cause.CANNOT_BUILD, Cause.SETUP_FAILED})


def join(part: str, other: str | None, name: str = ELSEWHERE) -> None:
    """Append the record of the scenario that was played in another process, in ``other``, to a part; or that there is none, and what a search refused."""
    lost = Unavailable(Cause.NOT_REACHED, "it was played in another process")
    if name != ELSEWHERE:  # of which the rest of the class depends on nothing
        lost = Unavailable(Cause.EARLIER_FAILURE, "the process of this search left no record of it")
    with EvidenceWriter(part) as writer:
        if (found := _record_in(other, name)) is not None:
            writer.write_encoded("scenario", found)
        else:
            writer.write("scenario", Scenario(name=name, unavailable=lost))
        for line in _lines_of(other) if name != ELSEWHERE else ():
            row = json.loads(line)
            for kind in {"refused", "blocked"} & row.keys():
                writer.write_encoded(kind, row.pop(kind), **row)


def _record_in(part: str | None, name: str) -> Any:
    return next((record for record in reversed(_records_in(part)) if record.get("name") == name), None)


def _records_in(part: str | None) -> list[Any]:
    return [json.loads(line)["scenario"] for line in _lines_of(part) if line.startswith('{"scenario"')]


def _lines_of(part: str | None) -> list[str]:
    return Path(part).read_text(encoding="utf-8").splitlines() if part is not None and os.path.exists(part) else []
