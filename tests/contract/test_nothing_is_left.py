"""A contract run leaves nothing in the temporary directory: not what the kit makes, and not what Python removes at the end of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
import os
import tempfile

from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

KEPT = tempfile.TemporaryDirectory(prefix="of-the-module-")


class Env(TerminalTestEnv):
    async def setup(self):
        await super().setup()
        {ends}
"""


@pytest.mark.parametrize("ends", ["pass", "os.kill(os.getpid(), 9)"], ids=["well", "killed"])
def test_a_run_leaves_no_directories(ends: str, tmp_path: Path) -> None:
    """Also where the environment's process was killed: only what that process itself made may stay then."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "kept_env.py").write_text(MODULE.format(ends=ends))
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--hermes-env",
        "kept_env.py:Env",
        "--hermes-rules=HE301",
    ]

    ran = subprocess.run(
        words, check=False, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)}
    )

    assert (ran.returncode == 0) == (ends == "pass"), ran.stdout + ran.stderr
    left = [path.name for path in temporary.iterdir() if ends == "pass" or not path.name.startswith("of-the-module-")]
    assert left == []
