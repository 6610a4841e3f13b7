"""Measure a whole contract run of TerminalTestEnv for several group sizes and numbers of evaluation items.

Run as ``python benchmarks/contract.py``. All rules are judged; the first run is not counted because it includes the imports.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pytest_hermes_env.contract.engine import ClassContract
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.layer import find_class

TARGET = Path(__file__).parents[1] / "environments" / "terminal_test_env" / "terminal_test_env.py"


def variant(env_class: Any, group_size: int, times: int) -> Any:
    """Return the class with another group size and its evaluation items repeated ``times`` times."""

    class Variant(env_class):  # type: ignore[misc]
        @classmethod
        def config_init(cls) -> Any:
            config, servers = super().config_init()
            return config.model_copy(update={"group_size": group_size}), servers

        async def setup(self) -> None:
            await super().setup()
            for name, value in vars(self).items():
                if "eval" in name and isinstance(value, list):
                    setattr(self, name, value * times)

    return Variant


def seconds(env_class: Any) -> tuple[float, float]:
    """Return wall and CPU seconds of one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    contract = ClassContract(env_class, sandbox="fake", timeout_s=60)
    for rule in ALL_RULES:
        contract.result(rule)
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Print one line per size."""
    (env_class,) = find_class(f"{TARGET}:TerminalTestEnv")
    seconds(env_class)
    print(f"{len(ALL_RULES)} rules, load {os.getloadavg()[0]:.1f}")
    for group_size, times in ((2, 1), (4, 1), (8, 1), (16, 1), (2, 4), (2, 16)):
        wall, cpu = seconds(variant(env_class, group_size, times))
        print(f"group of {group_size:>2}, evaluation items x{times:<2}   {wall:5.2f} s wall   {cpu:5.2f} s CPU")


if __name__ == "__main__":
    main()
