"""The demo: a good environment passes its contract on real rollouts, recorded rollouts are replayed, a bad one is caught, all offline.

Run by ``tox run -e demo``; needs nothing but the installed package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
GOOD = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
BAD = str((HERE / "tutorial" / "word_count_env.py").relative_to(Path.cwd()))
RECORDED = ("tests/cassettes/test_replay_terminal.py", "tests/cassettes/test_replay_web_research.py")

STEPS = (
    (
        "1. A good environment: its contract is judged on real rollouts, with a mock model and hermes' own tools",
        ["pytest", "-q", "-p", "no:cacheprovider", "--hermes-env", GOOD],
        0,
    ),
    (
        "2. Recorded rollouts, replayed in chat and token mode: no server, no key, no process, and the same rewards",
        ["pytest", "-q", "-p", "no:cacheprovider", *RECORDED],
        0,
    ),
    (
        "3. A bad environment, judged without importing it: in milliseconds, also when it cannot be imported",
        ["hermes-env", "check", BAD],
        1,
    ),
    (
        "4. The same environment, judged on its rollouts",
        ["pytest", "-q", "-p", "no:cacheprovider", "-r", "N", "--hermes-env", BAD],
        1,
    ),
)


def main() -> int:
    """Run every step; a step that ends otherwise than it should fails the demo."""
    for title, command, expected in STEPS:
        print(f"\n=== {title}\n\n$ {' '.join(command)}\n", flush=True)
        code = subprocess.run(command, check=False).returncode
        if code != expected:
            print(f"\nThe demo failed: this step ended with exit code {code}, expected {expected}.")
            return 1
    print("\nThat is the demo. Point it at your own environment:  pytest --hermes-env path/to/your_env.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
