"""Work that is shared out among forks comes back whole and in order, also when a fork fails."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SHARED = """
import os
from pytest_hermes_env.contract.fork_pool import shared_out

parent = os.getpid()
{work}
results = shared_out(work, 100, 3)
print([value for value, _ in results] == list(range(100)), len({{pid for _, pid in results}}))
"""


def shared(work: str) -> str:
    """Run a piece of work in a process that has no other threads."""
    return subprocess.run([sys.executable, "-c", SHARED.format(work=work)], check=True, capture_output=True, text=True).stdout


def test_results_come_back_in_order_from_all_processes() -> None:
    """A hundred pieces, three processes, one list."""
    assert shared("work = lambda index: (index, os.getpid())") == "True 3\n"


@pytest.mark.parametrize("fault", ["os._exit(3)", "raise ValueError", "os.kill(os.getpid(), 9)"])
def test_what_a_fork_failed_to_do_is_done_here(fault: str) -> None:
    """A fork that ends early costs time, never a result."""
    work = f"""
def work(index):
    if os.getpid() != parent and index == 52:
        {fault}
    return index, os.getpid()
"""

    assert shared(work) == "True 2\n"


def test_few_pieces_are_done_here() -> None:
    """A handful of classes is not worth a fork."""
    from pytest_hermes_env.contract.fork_pool import shared_out

    assert shared_out(lambda index: (index, os.getpid()), 3, 8) == [(index, os.getpid()) for index in range(3)]
