"""The program that decides about solutions: what passes, what fails, and what cannot talk it into passing."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from environments.hermes_swe_env import verifier
from environments.hermes_swe_env.coding_items import sample_tasks

RIGHT = "def double(n):\n    return 2 * n\n"
WRONG = "def double(n):\n    return n\n"
TESTS = "assert double(4) == 8\nassert double(0) == 0\n"
PROOF = "all tests passed"
ALL_SOLUTIONS = Path(__file__).with_name("hermes_swe_solutions.py")


def verify(directory: Path, solution: str, tests: str, *, entry_point: str = "double", seconds: float = 20) -> tuple[int, str]:
    """Run the verifier as the sandbox does; return its exit code and what it said."""
    path = directory / "solution.py"
    path.write_text(solution)
    content = {"solution": str(path), "tests": tests, "entry_point": entry_point, "seconds": seconds}
    finished = subprocess.run(
        [sys.executable, "-I", "-S", verifier.__file__],
        cwd=directory,
        input=f"word\n{json.dumps(content)}\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    _, told, report = finished.stdout.strip().rpartition("word ")
    return finished.returncode, json.loads(report) if told else f"not told: {report}"


@pytest.mark.parametrize(
    "tests",
    [
        TESTS,
        "def check(candidate):\n    assert candidate(4) == 8\n",
        "def check(candidate):\n    assert candidate(4) == 8\ncheck(double)\n",
        "from solution import double as twice\nassert twice(4) == 8\n",
        "import solution\nassert solution.double(n=4) == 8\n",
        "def test_four():\n    assert double(4) == 8\n",
    ],
)
def test_tests_of_every_style_are_run(tmp_path, tests):
    """Statements, check(candidate), test functions: a right solution passes, a wrong one does not."""
    right, wrong = verify(tmp_path, RIGHT, tests), verify(tmp_path, WRONG, tests)

    assert right == (verifier.PASSED, PROOF)
    assert wrong[0] == verifier.FAILED
    assert "AssertionError" in wrong[1]


def test_every_sample_task_can_be_solved(tmp_path):
    """Right solutions pass the tests of all tasks, in one run."""
    tests = "\n".join(item["test"] for item in sample_tasks())

    assert verify(tmp_path, ALL_SOLUTIONS.read_text(), tests, entry_point="") == (verifier.PASSED, PROOF)


@pytest.mark.parametrize("answer", ["None", "args[0]", "0", "''", "[]", "True", "False", "1"])
def test_no_sample_task_is_solved_by_a_constant(answer):
    """A function that returns its argument, or always the same, passes no task: the tests do ask for something."""
    passed = []
    for item in sample_tasks():
        names: dict[str, Any] = {}
        exec(f"def {item['entry_point']}(*args): return {answer}", names)
        with contextlib.suppress(Exception):
            exec(item["test"], names)
            passed.append(item["entry_point"])

    assert passed == []


HACKS = {
    "exits with 0 when imported": "import sys; sys.exit(0)",
    "ends its process with 0 when imported": "import os; os._exit(0)",
    "exits with 0 when called": "import sys\ndef double(n): sys.exit(0)",
    "ends its process with 0 when called": "import os\ndef double(n): os._exit(0)",
    "returns what equals everything": "class Yes:\n    __eq__ = lambda self, other: True\ndef double(n): return Yes()",
    "returns a number that equals everything": "class Yes(int):\n    __eq__ = lambda self, other: True\ndef double(n): return Yes(1)",
    "patches builtins": "import builtins\nbuiltins.all = builtins.any = lambda items: True\ndef double(n): return n",
    "brings builtins of its own": "all = any = isinstance = lambda *args: True\ndef double(n): return n",
    "patches unittest": "import unittest\nunittest.TestCase.assertEqual = print\ndef double(n): return n",
    "brings a check of its own": "def check(f): pass\ndef test_it(): pass\ndef double(n): return n",
    "registers an exit handler": "import atexit, os\natexit.register(os._exit, 0)\ndef double(n): return n",
    "prints a proof": f"print('proof ' + {'0' * 64!r}, flush=True)\ndef double(n): return n",
    "kills the tests": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "writes answers of its own": (
        "import os\n"
        "for fd in range(3, 20):\n"
        "    try: os.write(fd, b'{\"value\": 8}\\n' * 9)\n"
        "    except OSError: pass\n"
        "def double(n): return n"
    ),
    "answers with what is not an answer": (
        "import os\n"
        "def double(n):\n"
        "    for fd in range(3, 20):\n"
        "        try: os.write(fd, b'[]\\n{}\\nnull\\n')\n"
        "        except OSError: pass\n"
        "    return n"
    ),
    "reads the tests": (
        "import os, re\n"
        "def double(n):\n"
        "    for root, _, names in os.walk(os.path.dirname(__file__)):\n"
        "        for name in names:\n"
        "            text = open(os.path.join(root, name), errors='replace').read()\n"
        "            if name.endswith(('request', '.data', '.json')) and str(n) in text: return 2 * n\n"
    ),
}


@pytest.mark.parametrize("hack", HACKS)
@pytest.mark.parametrize(
    "tests",
    [
        "import unittest\nassert all([double(n) == 2 * n for n in (123, 246)])\n",
        "import unittest\ndef test_it():\n    unittest.TestCase().assertEqual(double(123), 246)\n",
    ],
    ids=["statements", "unittest"],
)
def test_no_hack_passes(tmp_path, hack, tests):
    """Whatever a solution does other than answering rightly, there is no proof."""
    code, output = verify(tmp_path, HACKS[hack], tests)

    assert (code == verifier.PASSED, output == PROOF) == (False, False)


def test_modules_beside_the_solution_do_not_reach_the_tests(tmp_path):
    """conftest.py, sitecustomize.py and modules named like the standard library's are imported by nobody but the solution."""
    for name in ("conftest", "sitecustomize", "usercustomize", "unittest", "json", "pytest", "tests", "solution_tests"):
        (tmp_path / f"{name}.py").write_text("import os\nos._exit(0)\n")

    code, output = verify(tmp_path, WRONG, "import unittest\n" + TESTS)

    assert (code, output) == (verifier.FAILED, "line 2 of the tests: AssertionError:")


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("assert double(4 == 8", "the tests cannot be compiled: '(' was never closed (<tests>, line 1)"),
        ("x = '\0'", "the tests cannot be compiled: source code string cannot contain null bytes"),
        ("import nothing_of_that_name", "the tests need the module nothing_of_that_name, which this Python does not have"),
        ("assert 1 == 1", "the tests never called a function of the solution"),
        ("def check_it(candidate): ...", "the tests never called a function of the solution"),
        ("def test_it(tmp_path): ...", "test_it takes tmp_path: fixtures and parameters are not provided"),
    ],
)
def test_tests_that_decide_nothing_are_not_a_failure_of_the_solution(tmp_path, tests, said):
    """They have an exit code of their own."""
    assert verify(tmp_path, RIGHT, tests) == (verifier.UNUSABLE, said)


def test_exceptions_arrive_as_the_nearest_builtin(tmp_path):
    """A test that expects an error finds it, also when the solution raises a class of its own or one with odd arguments."""
    solution = (
        "class Own(KeyError): pass\n"
        "def double(n):\n"
        "    if n == 0: raise Own('no')\n"
        "    if n == 1: b'\\xff'.decode()\n"
        "    if n == 2: raise type('Odd', (Exception,), {})('x')\n"
        "    if n == 3: raise SystemExit(0)\n"
    )
    tests = (
        "seen = []\n"
        "for n in range(4):\n"
        "    try: double(n)\n"
        "    except Exception as error: seen.append(type(error).__name__)\n"
        "assert seen == ['KeyError', 'ValueError', 'Exception', 'Failed'], seen\n"
    )

    assert verify(tmp_path, solution, tests) == (verifier.PASSED, PROOF)


def test_expected_error_is_not_a_process_that_ended(tmp_path):
    """Where the tests expect an exception, a solution that ends its process has not raised one."""
    tests = "try:\n    double(4)\nexcept Exception:\n    pass\n"

    code, output = verify(tmp_path, "import os\ndef double(n): os._exit(0)\n", tests)

    assert (code, output) == (
        verifier.FAILED,
        "Failed: double() returned no answer: its process ended, or was stopped after 20 s",
    )


@pytest.mark.parametrize("solution", ["while True: pass", "def double(n):\n    while True: pass"])
def test_solution_that_does_not_end_is_stopped(tmp_path, solution):
    """After the time that the tests may take."""
    code, output = verify(tmp_path, solution, TESTS, seconds=0.5)

    assert (code, "was stopped after 0.5 s" in output) == (verifier.FAILED, True)


def test_value_survives_the_way_to_the_solution_and_back(tmp_path):
    """Plain data of every kind and depth, exactly."""
    tests = (
        "values = [None, True, 1, 2**80, -0.5, float('inf'), 'a\\n\\ud800\\u20ac', b'\\x00\\xff', [], (), {1: 'a', (2, 'x'): [None]}, "
        "{1, 2}, frozenset({3}), [(1, [2, {3: {4}}])], {'dict': {'list': 1}}, {}]\n"
        "for value in values:\n"
        "    back = double(value)\n"
        "    assert (type(back), back) == (type(value), value), (back, value)\n"
    )

    assert verify(tmp_path, WRONG, tests) == (verifier.PASSED, PROOF)


@pytest.mark.parametrize("value", ["object()", "[object()]", "double", "{1: range(3)}"])
def test_what_is_no_plain_data_cannot_be_given(tmp_path, value):
    """An argument that the other process could not have is an error of the call."""
    code, output = verify(tmp_path, RIGHT, f"double({value})")

    assert (code, "is not plain data; functions take and return numbers" in output) == (verifier.FAILED, True)


def test_nothing_goes_on_afterwards(tmp_path):
    """What the solution started in its process group ends with it."""
    solution = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "def double(n): return 2 * n\n"
    )
    verify(tmp_path, solution, TESTS)

    assert not _is_running(int((tmp_path / "pid").read_text()))


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
