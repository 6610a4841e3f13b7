"""Runs a task's tests in the rollout's sandbox, after the agent is done.

In a container the tests are in ``/tests`` and write their reward to ``/logs/verifier/reward.txt``, as Terminal-Bench's tests expect. On
the local backend, which has no root of its own, both are in a new directory with a random name; the variables TEST_DIR and
VERIFIER_DIR name them on every backend.
"""

from __future__ import annotations

import posixpath
import secrets
import shlex
import tempfile
from pathlib import Path
from typing import Any

from environments.benchmarks.terminalbench_2.tasks import TerminalTask, unpack
from environments.tool_context import ToolContext  # first: explains shadowed modules

# isort: split
from environments.sandbox.isolation import sandbox_directory
from environments.verification import BASH, CLEAN_BASH, TIMED_OUT, clean_command, machine_path

CONTAINER_DIRECTORY = "/app"


class SetupError(RuntimeError):
    """Files of a task cannot be written, or its tests cannot be run, so there is no verdict on the agent's work."""


def start_directory(ctx: ToolContext, backend: str) -> str:
    """Return the directory in which the agent started."""
    if backend != "local":
        return CONTAINER_DIRECTORY
    return sandbox_directory(ctx.task_id) or str(ctx.terminal("pwd")["output"]).strip()


def upload_archive(ctx: ToolContext, archive: str, remote: str) -> None:
    """Unpack an archive into a directory of the sandbox. Raises: ArchiveError; SetupError when a file cannot be written."""
    if not archive:
        return
    with tempfile.TemporaryDirectory() as directory:
        unpack(archive, Path(directory))
        for written in ctx.upload_dir(directory, remote):
            _check(written, f"{written.get('path', remote)} cannot be written")


def reward_of_tests(ctx: ToolContext, task: TerminalTask, *, backend: str, timeout_s: int) -> float:
    """Return what the tests write to ``reward.txt``; without it 1.0 if they end with exit code 0, else 0.0.

    Tests that do not end in time are failed. Raises: ArchiveError, SetupError, ValueError when the reward is not a number.
    """
    start = start_directory(ctx, backend)
    root = posixpath.join(start, f".verifier-{secrets.token_hex(8)}") if backend == "local" else "/"
    tests, logs = posixpath.join(root, "tests"), posixpath.join(root, "logs/verifier")
    reward_file = posixpath.join(logs, "reward.txt")
    places = f"{shlex.quote(tests)} {shlex.quote(logs)}"
    clear = "" if backend == "local" else f"rm -rf -- {places} && "  # what the agent may have put there, in its container
    _check(ctx.terminal(f"{clear}mkdir -p -- {places}"), "the tests cannot be written")
    upload_archive(ctx, task["tests_tar"], tests)
    script = posixpath.join(tests, "test.sh")
    written = ctx.write_file(script, task["test_sh"])
    if written.get("error"):
        raise SetupError(f"{script} cannot be written: {str(written['error'])[:300]}")
    places_of_tests = {"TEST_DIR": tests, "VERIFIER_DIR": logs}
    run = clean_command(f'exec {BASH} "$1"', script, path=machine_path(ctx), directory=start, **places_of_tests)
    ran = ctx.terminal(run, timeout=timeout_s)
    code = ran.get("exit_code")
    if not isinstance(code, int) or code < 0:
        raise SetupError(f"the tests did not run: {str(ran.get('error') or ran.get('output'))[:300]}")
    if code == TIMED_OUT:
        return 0.0
    if ctx.terminal(f"{CLEAN_BASH} -c 'test -e \"$0\"' {shlex.quote(reward_file)}").get("exit_code") == 1:
        return float(code == 0)
    reward = ctx.read_file(reward_file)
    if reward.get("error"):
        raise SetupError(f"{reward_file} cannot be read: {str(reward['error'])[:300]}")
    return float(reward["content"])


def _check(answer: dict[str, Any], problem: str) -> None:
    if answer.get("exit_code") != 0:
        raise SetupError(f"{problem}: {str(answer.get('error') or answer.get('output'))[:300]}")
