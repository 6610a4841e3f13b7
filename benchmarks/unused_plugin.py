"""What the installed plugin costs a test suite that does not use it: the same trivial tests with it and with ``-p no:hermes_env``.

Prints processor times of the quickest runs and ratios: ``python benchmarks/unused_plugin.py``. respx, a dependency, has a pytest plugin
that loads httpx in every run; its share is printed too.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = 500
REPEATS = 3
RUNS = {
    "unused plugin": [],
    "-p no:hermes_env": ["-p", "no:hermes_env"],
    "-p no:hermes_env -p no:respx": ["-p", "no:hermes_env", "-p", "no:respx"],
}


def seconds_of(file: Path, options: list[str]) -> float:
    """Return the processor time of one pytest run: a busy machine changes it less than the wall time."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *options, str(file)]
    before = _children()
    subprocess.run(command, check=True, capture_output=True, cwd=file.parent)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def quickest(file: Path) -> dict[str, float]:
    """Return the time of the quickest run for each set of options. The runs alternate: a busy machine slows all alike."""
    times: dict[str, list[float]] = {name: [] for name in RUNS}
    for _ in range(REPEATS):
        for name, options in RUNS.items():
            times[name].append(seconds_of(file, options))
    return {name: min(values) for name, values in times.items()}


def main() -> None:
    """Print start and cost per test."""
    with tempfile.TemporaryDirectory() as directory:
        one, many = Path(directory, "test_one.py"), Path(directory, "test_many.py")
        one.write_text("def test_0(): pass\n", encoding="utf-8")
        many.write_text("".join(f"def test_{number}(): pass\n" for number in range(TESTS + 1)), encoding="utf-8")
        start, whole = quickest(one), quickest(many)
    base = "-p no:hermes_env"
    per_test = {name: (whole[name] - start[name]) / TESTS for name in RUNS}
    for name in RUNS:
        print(
            f"{name:30} one test {start[name]:6.3f} s ({start[name] / start[base]:.2f})   "
            f"each further test {per_test[name] * 1e6:5.0f} us ({per_test[name] / per_test[base]:.2f})"
        )


if __name__ == "__main__":
    main()
