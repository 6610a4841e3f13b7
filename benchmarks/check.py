"""Files per second of `hermes-env check`, `ruff check` and flake8 on the same generated environments, in the same run.

``python benchmarks/check.py [FILES]``; ruff and flake8 are measured where they are installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "docs" / "tutorial" / "word_count_env.py"


def main() -> None:
    """Print a line for each command, with its speed as a share of hermes-env's."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    text = SOURCE.read_text(encoding="utf-8")
    commands = {
        "hermes-env": ["pytest_hermes_env.cli", "check"],
        "ruff": ["ruff", "check", "--isolated", "--no-cache"],
        "flake8": ["flake8", "--isolated"],
    }
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            Path(folder, f"env_{number}.py").write_text(text.replace("WordCount", f"WordCount{number}"), encoding="utf-8")
        own = 0.0
        for name, (module, *words) in commands.items():
            if find_spec(module) is None:
                print(f"{name:<12}not installed")
                continue
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", module, *words, folder], stdout=subprocess.DEVNULL, check=False)
            speed = count / (time.perf_counter() - start)
            own = own or speed
            print(f"{name:<12}{speed:8.0f} files/s   {speed / own:6.2f} times hermes-env")


if __name__ == "__main__":
    main()
