"""Replays 200 groups of 4 rollouts with 3 turns, many times, with seeded delays, and compares every score with the recording.

    python benchmarks/replay_soak.py [rounds] [groups]

Ends with status 1 at the first score that is not the recorded one, in its place.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
import time
from pathlib import Path

from pytest_hermes_env import MockServer
from pytest_hermes_env.cassette.session import recording, replaying
from pytest_hermes_env.cassette_mode import NO_SERVER, RecordedServer
from pytest_hermes_env.sandbox.seam import RealTools

TESTED = Path(__file__).parents[1] / "tests" / "unit" / "cassette" / "test_groups.py"


def main() -> int:
    """Record once, replay often."""
    rounds, groups = (int(given or usual) for given, usual in zip([*sys.argv[1:], "", ""], (20, 200), strict=False))
    spec = importlib.util.spec_from_file_location("groups", TESTED)
    world = importlib.util.module_from_spec(spec)
    sys.modules["groups"] = world
    spec.loader.exec_module(world)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cassette.json"
        with (
            MockServer(world.policy(), allow_leftovers=True) as server,
            recording(path, recorded_from="a mock server") as session,
        ):
            recorded = world.collect(session, server, world.Dice(), seed=0, ids=list(range(groups)))
        print(f"recorded {groups} groups: {path.stat().st_size / 1e6:.1f} MB")
        for number in range(1, rounds + 1):
            ids = random.Random(number).sample(range(groups), groups)
            began = time.perf_counter()
            with replaying(path) as session:
                server = RecordedServer(base_url=NO_SERVER, model="mock-model")
                played = world.collect(session, server, RealTools(), seed=number, ids=ids)
            if played != recorded:
                print(f"round {number}: another score in {[key for key in recorded if recorded[key] != played[key]]}")
                return 1
            print(
                f"round {number}: {session.played} calls played, all scores as recorded, {time.perf_counter() - began:.1f} s",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
