"""Another process, in which the cases and probes of a class are played again: what they earn must not depend on where.

Its hash seed, working directory, order of cases and clock are others. Place in the flow: `contract.run.plays` starts it beside the first one
and joins what both wrote; `child` calls `begin_elsewhere` before the class is imported.
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
from pytest_hermes_env.play.evidence_file import EvidenceWriter
from pytest_hermes_env.play.scenario import ELSEWHERE, Cause, Scenario, Unavailable

HASH_SEED = "20260119"
SHIFT_S = 211 * 86400 + 12 * 3600 + 1800.0
"""Seconds that the clock is ahead: another month, weekday and half of the day."""


def job_elsewhere(job: Any) -> Any:
    """Return what of a `Job` is played elsewhere; None where nothing is. Cases that a test holds stay in a process like its own."""
    if ELSEWHERE not in job.scenarios:
        return None
    module, colon, name = job.target.rpartition(":")
    target = f"{os.path.abspath(module)}{colon}{name}" if module.endswith(".py") else job.target
    return dataclasses.replace(
        job,
        target=os.path.abspath(target) if target.endswith(".py") else target,
        scenarios=(ELSEWHERE,),
        is_elsewhere=True,
        env_class=job.env_class if job.cases is not None else None,
        lines_of=(),
    )


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
    shift = dt.timedelta(seconds=SHIFT_S)

    class LaterDatetime(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return super().now(tz) + shift

        @classmethod
        def utcnow(cls) -> Any:
            return super().utcnow() + shift

    later = types.ModuleType("datetime")
    vars(later).update(vars(dt) | {"datetime": LaterDatetime})
    folder = os.path.dirname(os.path.abspath(getattr(sys.modules.get(env_class.__module__), "__file__", None) or "")) + os.sep
    for module in list(sys.modules.values()):
        if str(getattr(module, "__file__", None) or "").startswith(folder):
            for name, value in list(vars(module).items()):
                if value is dt or value is dt.datetime:
                    assign("Module.*", later if value is dt else LaterDatetime, owner=module, name=name)


def join(part: str, other: str | None) -> None:
    """Append the record of the scenario that was played elsewhere, in ``other``, to a part; or why there is none."""
    lines = Path(other).read_text(encoding="utf-8").splitlines() if other is not None and os.path.exists(other) else []
    rows = [json.loads(line) for line in lines if line.startswith('{"scenario"')]
    found = [row["scenario"] for row in rows if row["scenario"].get("name") == ELSEWHERE]
    with EvidenceWriter(part) as writer:
        if found:
            writer.write_encoded("scenario", found[-1])
        else:
            reason = Unavailable(Cause.NOT_REACHED, "it was played in another process")
            writer.write("scenario", Scenario(name=ELSEWHERE, unavailable=reason))
