"""Runs an item's tests against a solution, in the rollout's sandbox.

Tests and verifier are written as files into a new directory with a random name; the shell command contains that name and no text of
the item. Python is started by the absolute path that it has in a new sandbox and without the agent's variables, so that the agent
cannot replace it through PATH. A run passes if it ends with exit code 0 *and* prints a proof, a hash of a key in the request: a
program that only exits with 0 does not have it.

Place in the flow: `HermesSweEnv.compute_reward` calls `verify`, which runs `verifier` in the sandbox.
"""

from __future__ import annotations

import hashlib
import json
import logging
import posixpath
import secrets
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.hermes_swe_env import verifier
from environments.tool_context import ToolContext

logger = logging.getLogger(__name__)

NOT_FOUND = 127
"""The shell's exit code for a command that does not exist."""

GRACE_S = 30
"""Seconds in addition to the tests' limit, for starting and ending Python."""


class VerificationError(Exception):
    """The sandbox or the tests themselves failed, so there is no verdict on the solution."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of the tests; ``reason`` is one line."""

    passed: bool
    reason: str


def find_python(ctx: ToolContext) -> str:
    """Return the command that starts Python in a new sandbox: its absolute path, with a clean environment.

    Without ``python3`` it is the bare name, which fails later. A shim on PATH (pyenv's) is resolved to the real path.
    """
    if ctx.terminal("command -v python3").get("exit_code") != 0:
        return "python3"
    found = ctx.terminal("python3 -I -c 'import sys; print(sys.executable)'")
    path = str(found.get("output") or "").strip()
    if found.get("exit_code") != 0 or not posixpath.isabs(path):
        return "python3"
    return f"/usr/bin/env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 {shlex.quote(path)}"


def verify(
    ctx: ToolContext, *, solution: str, tests: str, entry_point: str, directory: str, timeout_s: int, python: str = "python3"
) -> Verdict:
    """Run ``tests`` against the file ``solution`` (an absolute path in the sandbox), with a new directory in ``directory``.

    ``python`` is the result of `find_python`.

    Raises: VerificationError without a verdict: the files cannot be written, or the tests are unusable.
    """
    key = secrets.token_hex(16)
    place = posixpath.join(directory, f".verifier-{secrets.token_hex(8)}")
    request = {"solution": solution, "tests": tests, "entry_point": entry_point, "seconds": timeout_s, "key": key}
    program = _write(ctx, place, "verifier", Path(verifier.__file__).read_text(encoding="utf-8"))
    question = _write(ctx, place, "request", json.dumps(request))
    answer = ctx.terminal(f"{python} -I -S {shlex.quote(program)} {shlex.quote(question)}", timeout=timeout_s + GRACE_S)
    return _verdict(answer, proof=hashlib.sha256(key.encode()).hexdigest())


def _write(ctx: ToolContext, place: str, name: str, content: str) -> str:
    path = posixpath.join(place, name)
    result = ctx.write_file(path, content)
    if result.get("error"):
        raise VerificationError(f"The tests cannot be written to {path} in the sandbox: {str(result['error'])[:200]}")
    return path


def _verdict(answer: dict[str, Any], *, proof: str) -> Verdict:
    code, output = answer.get("exit_code"), str(answer.get("output") or "")
    last = output.strip().splitlines()[-1] if output.strip() else f"exit code {code}, no output"
    if code == verifier.PASSED and proof in output:
        return Verdict(passed=True, reason="all tests passed")
    if code == verifier.UNUSABLE:
        raise VerificationError(f"The tests of this item reach no verdict: {last[:500]}")
    if not isinstance(code, int) or code < 0:
        raise VerificationError(f"The sandbox did not run the tests: {str(answer.get('error') or last)[:500]}")
    if code == NOT_FOUND:
        logger.warning("python3 was not found in the sandbox: nothing can pass there (%s)", last[:200])
    return Verdict(passed=False, reason=last)
