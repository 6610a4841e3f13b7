"""The rewards of a reward's probes in another process: with another hash seed, other random numbers, and on another day.

`play.probe_here` is the other process, which prints them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from dataclasses import asdict, dataclass

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.play.probing.record import Probe, RewardProbes, Trial

PROGRAM = "pytest_hermes_env.play.probe_here"
HASH_SEED = "20260119"
LONGEST_S = 90.0
MARK = "rewards elsewhere: "
"""Begins the line of the answer."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to probe: a target as `find_class` reads it, and the module of its layer, which is imported with the real clock."""

    target: str
    layer: str
    server_type: str
    real_tools: str


async def probes_elsewhere(request: Request) -> RewardProbes:
    """Probe in another process, and return the rewards that it found, or why it could not."""
    command = [sys.executable, "-m", PROGRAM, json.dumps(asdict(request))]
    child = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONHASHSEED": HASH_SEED, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        output, errors = await asyncio.wait_for(child.communicate(), LONGEST_S)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
        if not isinstance(error, TimeoutError):
            raise
        return RewardProbes(unavailable=f"the other process did not end within {LONGEST_S:g} s")
    found = next((line for line in output.decode(errors="replace").splitlines() if line.startswith(MARK)), "")
    if not found:
        last = errors.decode(errors="replace").strip().rpartition("\n")[2]
        return RewardProbes(unavailable=f"the other process failed: {shorten(last)}")
    answer = json.loads(found.removeprefix(MARK))
    rewards = [Probe(name="", expression=shown, trial=Trial(value=reward)) for shown, reward in answer["rewards"].items()]
    return RewardProbes(unavailable=answer["unavailable"], item=answer["item"], probes=tuple(rewards))
