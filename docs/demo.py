"""The demo, offline: a good environment passes its contract, recorded rollouts are replayed, a bad environment is caught.

Run by ``tox run -e demo``; needs only the installed package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
GOOD = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
BAD = str((HERE / "tutorial" / "word_count_env.py").relative_to(Path.cwd()))
RECORDED = ("tests/cassettes/test_replay_terminal.py", "tests/cassettes/test_replay_web_research.py")
PYTEST = ("pytest", "-q", "-p", "no:cacheprovider")

STEPS = (
    (
        "1. A good environment. Its contract is checked on rollouts: a mock model calls tools, an in-memory machine answers",
        (*PYTEST, "--hermes-env", GOOD),
        0,
    ),
    (
        "2. Recorded rollouts, replayed in chat mode and token mode. No server, no key, no process, and the same rewards",
        (*PYTEST, *RECORDED),
        0,
    ),
    (
        "3. A bad environment, checked without importing it. This works even if the file cannot be imported",
        ("hermes-env", "check", BAD),
        1,
    ),
    (
        "4. The same bad environment, checked on its rollouts",
        (*PYTEST, "-r", "N", "--hermes-env", BAD),
        1,
    ),
)


def main() -> int:
    """Run all steps at the same time and print them in order; a step fails the demo if its exit code is not the expected one."""
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _, command, _ in STEPS
    ]
    outputs = [process.communicate()[0] for process in running]
    for (title, command, expected), process, output in zip(STEPS, running, outputs, strict=True):
        print(f"\n=== {title}\n\n$ {' '.join(command)}\n\n{output}")
        if process.returncode != expected:
            print(f"The demo failed: this step ended with exit code {process.returncode}, expected {expected}.")
            return 1
    print("That is the demo. Run it on your own environment:  pytest --hermes-env path/to/your_env.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
