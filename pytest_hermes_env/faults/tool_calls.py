"""Plays the faults of tools: where a tool seam or a script would answer a call, and where the layer makes a sandbox's directory."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from pytest_hermes_env.faults.plan import FAULTS, FaultPlan, PlannedFault, half
from pytest_hermes_env.patches import intercept

ANSWERED = frozenset(FAULTS["sandbox"]) - {"cannot_open"}
POLL_S = 0.005
INTERRUPTED = json.dumps({"output": "[Command interrupted]", "exit_code": 130, "error": None})
FULL_TERMINAL = json.dumps({"output": "bash: line 1: write error: No space left on device", "exit_code": 1, "error": None})


def answer_or_fault(plan: FaultPlan, name: str, arguments: dict[str, Any], answer: Callable[[], Any]) -> Any:
    """Return ``answer()``, or play the fault that the plan has for this call."""
    text = f"{name} {json.dumps(arguments, ensure_ascii=False, default=str)}"
    fault = plan.strike("sandbox", text, ANSWERED)
    if fault is None:
        return answer()
    if fault.kind == "raises":
        raise RuntimeError(f"planned fault: {fault}")
    if fault.kind == "disk_full":
        if name == "terminal":
            return FULL_TERMINAL
        raise _no_space()
    if fault.kind == "broken_json":
        whole = answer()
        return half(whole) if isinstance(whole, str) else whole
    if _is_interrupted(plan, fault):
        return INTERRUPTED
    return answer()


def _is_interrupted(plan: FaultPlan, fault: PlannedFault) -> bool:
    """Wait: for the fault's seconds, or if it hangs until hermes interrupts the tool, or the plan is over."""
    from tools.interrupt import is_interrupted  # noqa: PLC0415 - hermes' module

    end = time.monotonic() + fault.seconds
    while not plan.released.wait(POLL_S):
        if is_interrupted():
            return True
        if fault.kind == "slow" and time.monotonic() > end:
            return False
    return True


@contextlib.contextmanager
def refusing_directories(plan: FaultPlan) -> Iterator[None]:
    """Let the layer find no space for a sandbox's directory where the plan says so, while the context lasts."""

    def mkdtemp(real: Any, suffix: Any = None, prefix: Any = None, dir: Any = None) -> Any:  # noqa: A002 - its signature
        if str(prefix).startswith("hermes-") and plan.strike("sandbox", f"open {prefix}", frozenset({"cannot_open"})):
            raise _no_space()
        return real(suffix, prefix, dir)

    with intercept("tempfile.mkdtemp", mkdtemp):
        yield


def _no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
