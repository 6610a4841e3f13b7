"""Decides in a rollout's own sandbox whether a solution passes an item's tests.

Tests and verifier travel as files, into a fresh directory whose name nobody can guess; the shell sees that name and nothing of
the item. A passed run is one that ends with exit code 0 *and* prints a proof that only the verifier can compute: whatever else
answers in its place (a `python3` function in the agent's shell, a program that exits with 0) has no proof.

Place in the flow: `HermesSweEnv.compute_reward` calls `verify`; `verifier` is what runs in the sandbox.
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

__all__ = ["Verdict", "VerificationError", "verify"]

logger = logging.getLogger(__name__)

NOT_FOUND = 127
"""The shell's exit code for a command that does not exist."""

GRACE_S = 30
"""Seconds that the sandbox gets on top of the tests' own limit, to start Python and to end it."""


class VerificationError(Exception):
    """Nothing was decided about the solution, because of the sandbox or of the tests themselves."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of the tests; ``reason`` is one line."""

    passed: bool
    reason: str


def verify(ctx: ToolContext, *, solution: str, tests: str, entry_point: str, directory: str, timeout_s: int) -> Verdict:
    """Run ``tests`` against the file ``solution`` (an absolute path in the sandbox), with a new directory in ``directory``.

    Raises: VerificationError when that decides nothing: the files cannot be written, or the tests cannot be used.
    """
    key = secrets.token_hex(16)
    place = posixpath.join(directory, f".verifier-{secrets.token_hex(8)}")
    request = {"solution": solution, "tests": tests, "entry_point": entry_point, "seconds": timeout_s, "key": key}
    program = _write(ctx, place, "verifier", Path(verifier.__file__).read_text(encoding="utf-8"))
    question = _write(ctx, place, "request", json.dumps(request))
    answer = ctx.terminal(f"python3 -I -S {shlex.quote(program)} {shlex.quote(question)}", timeout=timeout_s + GRACE_S)
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
        raise VerificationError(f"The tests of this item decide nothing: {last[:500]}")
    if not isinstance(code, int) or code < 0:
        raise VerificationError(f"The sandbox did not run the tests: {str(answer.get('error') or last)[:500]}")
    if code == NOT_FOUND:
        logger.warning("python3 was not found in the sandbox: nothing can pass there (%s)", last[:200])
    return Verdict(passed=False, reason=last)
