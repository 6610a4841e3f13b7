"""`hermes-env watch`, as a user runs it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil

SOUND = Path(__file__).parents[1] / "contract" / "sound" / "terminal_tasks.py"


WATCH = """
import signal, sys
from pytest_hermes_env.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job ignores, and its children inherit that
sys.exit(main(["watch", *sys.argv[1:]]))
"""


def verdict(process: subprocess.Popen[str]) -> str:
    """Return the next verdict that it prints, without the time."""
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("hermes-env watch: "))
    return line.removeprefix("hermes-env watch: ").partition(" after")[0]


def test_each_save_is_judged_until_ctrl_c(tmp_path: Path) -> None:
    """The environment is broken, and mended again; at the end nothing is left running."""
    file = tmp_path / "my_tasks.py"
    shutil.copy(SOUND, file)
    sound = file.read_text(encoding="utf-8")
    broken = sound.replace("        found = ctx", '        raise ValueError("no verifier")\n        found = ctx')
    command = [sys.executable, "-c", WATCH, file.name, "--hermes-rules", "HE403"]
    verdicts = []

    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            verdicts.append(verdict(process))
            for text in (broken, sound):
                file.write_text(text, encoding="utf-8")
                verdicts.append(verdict(process))
            started = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=60)
        finally:
            process.kill()

    _, left = psutil.wait_procs(started, timeout=30)
    assert (verdicts, code, left) == (["passed", "failed", "passed"], 0, [])
