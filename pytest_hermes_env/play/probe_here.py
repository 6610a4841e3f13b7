"""Probes a reward in this process, on another day, and prints the rewards: ``python -m pytest_hermes_env.play.probe_here REQUEST``.

Place in the flow: `probing.other_process` starts it with another hash seed.
"""

from __future__ import annotations

import datetime as dt
import importlib
import json
import sys
import time
from typing import Any, cast

from pytest_hermes_env.layer import find_class
from pytest_hermes_env.patches import assign
from pytest_hermes_env.play.driver import Collector
from pytest_hermes_env.play.probing.other_process import MARK, Request
from pytest_hermes_env.play.scenario import PROBES
from pytest_hermes_env.types import RealToolsUse

__all__: list[str] = []

SHIFT_S = 211 * 86400 + 12 * 3600 + 1800.0
"""Seconds that the clock is ahead: another month, weekday and half of the day."""


def _begin_another_day() -> None:
    """Shift the clock of `time` and `datetime` for as long as this process lives; monotonic clocks stay.

    CPython's ``today`` asks `time.time`, its ``now`` does not.
    """
    now, now_ns, local, universal = time.time, time.time_ns, time.localtime, time.gmtime
    shift = dt.timedelta(seconds=SHIFT_S)

    class LaterDatetime(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return super().now(tz) + shift

        @classmethod
        def utcnow(cls) -> Any:
            return super().utcnow() + shift

    replacements: dict[str, Any] = {
        "time.time": lambda: now() + SHIFT_S,
        "time.time_ns": lambda: now_ns() + int(SHIFT_S * 1e9),
        "time.localtime": lambda seconds=None: local(now() + SHIFT_S if seconds is None else seconds),
        "time.gmtime": lambda seconds=None: universal(now() + SHIFT_S if seconds is None else seconds),
        "datetime.datetime": LaterDatetime,
    }
    for target, value in replacements.items():
        assign(target, value)


def _probe(request: Request) -> dict[str, Any]:
    importlib.import_module(request.layer)
    _begin_another_day()
    (env_class,) = find_class(request.target)
    collector = Collector(env_class, server_type=request.server_type, real_tools=cast(RealToolsUse, request.real_tools))
    scenario = collector.collect((PROBES,)).scenarios[PROBES]
    found = scenario.probes
    if found is None:
        return {"unavailable": str(scenario.unavailable or scenario.error), "item": "", "rewards": {}}
    rewards = {probe.expression: probe.trial.number for probe in found.probes if not probe.trial.judged}
    return {"unavailable": "", "item": found.item, "rewards": rewards}


if __name__ == "__main__":
    print(MARK + json.dumps(_probe(Request(**json.loads(sys.argv[1])))))  # noqa: T201 - the answer
