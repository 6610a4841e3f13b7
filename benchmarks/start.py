"""What people wait for: the start of a run, a whole contract run, the static check, and a suite that does not use the plugin."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.registry import Figure, Pair, Spent, benchmark, command, least

ROOT = Path(__file__).parents[1]
TERMINAL_TEST = f"{ROOT}/environments/terminal_test_env/terminal_test_env.py:TerminalTestEnv"
TESTS = 500

FIRST_RULE = f"""
import os, pytest

class Stop:
    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            os._exit(0)

pytest.main(["-q", "-p", "no:cacheprovider", "--hermes-env", {TERMINAL_TEST!r}], plugins=[Stop()])
os._exit(1)
"""


@benchmark(
    Figure(
        "start to the first rule",
        "s CPU",
        "You wait this long before a contract run judges anything; nearly all of it is imports that every environment needs.",
        "import atroposlib.envs.base",
    ),
    Figure(
        "a whole contract run",
        "s CPU",
        "All rules on TerminalTestEnv with `pytest --hermes-env`, from the shell's prompt to the ledger.",
        "import atroposlib.envs.base",
    ),
)
def contract_run(n: int) -> Iterator[Pair]:
    """Measure processes of their own, with all imports."""
    bare = command(n, sys.executable, "-c", "import atroposlib.envs.base").cpu
    yield command(n, sys.executable, "-c", FIRST_RULE, cwd=ROOT).cpu, bare
    whole = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--hermes-env", TERMINAL_TEST)
    yield command(n, *whole, cwd=ROOT).cpu, bare


@benchmark(
    Figure(
        "hermes-env check",
        "files/s",
        "What a pre-commit hook costs: each file holds an environment, and all static rules judge it.",
        "flake8",
    ),
    Figure("hermes-env check", "files/s", "Ruff is compiled and knows no rule of an environment.", "ruff"),
)
def static_check(n: int, count: int = 300) -> Iterator[Pair]:
    """Check the same generated environments with each command."""
    text = (ROOT / "docs" / "tutorial" / "word_count_env.py").read_text(encoding="utf-8")
    peers = {"flake8": ("--isolated",), "ruff": ("check", "--isolated", "--no-cache")}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            Path(folder, f"env_{number}.py").write_text(text.replace("WordCount", f"WordCount{number}"), encoding="utf-8")
        check = command(n, sys.executable, "-m", "pytest_hermes_env.cli", "check", folder, ok=(0, 1), cwd=ROOT)
        for module, words in peers.items():
            peer = None
            if importlib.util.find_spec(module):
                peer = count / command(n, sys.executable, "-m", module, *words, folder, ok=(0, 1)).wall
            yield count / check.wall, peer


@benchmark(
    Figure(
        "a suite that does not use the plugin, start",
        "s CPU",
        "What it costs to have the plugin installed in a project that never uses it.",
        "-p no:hermes_env",
    ),
    Figure(
        "a suite that does not use the plugin, each test",
        "us CPU",
        "The same, for each test of such a suite.",
        "-p no:hermes_env",
    ),
)
def unused_plugin(n: int) -> Iterator[Pair]:
    """Run trivial tests with the plugin and without it. The runs alternate: a busy machine slows all alike."""
    pytest = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider")
    options = {"with": (), "without": ("-p", "no:hermes_env")}
    with tempfile.TemporaryDirectory() as folder:
        for size in (1, TESTS + 1):
            tests = "".join(f"def test_{number}(): pass\n" for number in range(size))
            Path(folder, f"test_{size}.py").write_text(tests, encoding="utf-8")
        runs: dict[tuple[str, int], list[Spent]] = {}
        for _ in range(n):
            for name, extra in options.items():
                for size in (1, TESTS + 1):
                    runs.setdefault((name, size), []).append(command(1, *pytest, *extra, f"test_{size}.py", cwd=folder))
    cpu = {key: least(several).cpu for key, several in runs.items()}
    yield cpu["with", 1], cpu["without", 1]
    yield tuple((cpu[name, TESTS + 1] - cpu[name, 1]) / TESTS * 1e6 for name in options)
