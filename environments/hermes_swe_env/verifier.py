"""Runs an item's tests against a solution, in a process that never runs the solution's code.

    python3 -I -S verifier.py                    runs the tests, and prints a report
    python3 -I -B verifier.py --serve SOLUTION   imports the solution and answers calls of its functions

The first starts the second. The tests see a proxy for each function of the solution: it sends its arguments to the serving
process and returns the answer as plain data. The solution can only answer: its ``sys.exit`` or ``os._exit``, patched
builtins, or an object that equals everything do not affect the tests. The tests, and the word before the report, come on standard input:
they are in no file that the solution could read.

Place in the flow: `HermesSweEnv.compute_reward` runs this file by `environments.verification.run_check`, with the sandbox's ``python3``,
which must be 3.8 or later.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.util
import inspect
import json
import os
import signal
import site
import subprocess
import sys
import threading
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any

PASSED, FAILED, UNUSABLE = 0, 1, 3
"""Exit codes: all tests passed; the solution failed; the tests are unusable. Python itself uses 2."""

SERVE = "--serve"
TESTS, SOLUTION = "tests", "solution"
"""Names of the tests' own module, and of the module with the solution's proxies."""
LONGEST_ANSWER = 1 << 24
"""Maximum bytes of one answer."""
CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class Failed(Exception):
    """The solution failed a test, or did not answer."""


class Unusable(Exception):
    """The tests cannot decide whether any solution is right."""


# ---------------------------------------------------------------------- messages between the processes


def encode(value: Any) -> Any:
    """Return plain data in a form that JSON can hold. Raises: TypeError for anything else, so that only data is passed."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(inner)] for key, inner in value.items()]}
    for name, kind in CONTAINERS.items():
        if isinstance(value, kind):
            return {name: [encode(inner) for inner in value]}
    raise TypeError(f"{type(value).__name__} is not plain data; functions take and return numbers, text, bytes and containers")


def decode(value: Any) -> Any:
    """Return the value that `encode` got, with subclasses as their plain base."""
    if not isinstance(value, dict):
        return value
    ((name, inner),) = value.items()
    if name == "bytes":
        return bytes.fromhex(inner)
    if name == "dict":
        return {decode(key): decode(kept) for key, kept in inner}
    return CONTAINERS[name](decode(kept) for kept in inner)


# ---------------------------------------------------------------------- the testing process


class Solution:
    """A solution in a separate process. ``functions`` are the names that it defines, ``calls`` counts their calls."""

    def __init__(self, path: str, seconds: float) -> None:
        """Start the process, which is killed after ``seconds``."""
        self.calls = 0
        self.functions: list[str] = []
        self._silent = ""
        self._seconds = seconds
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", os.path.abspath(__file__), SERVE, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.path.dirname(path) or None,
            start_new_session=True,
        )
        self._stdin: Any = self._process.stdin
        self._stdout: Any = self._process.stdout
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.start()

    def load(self) -> None:
        """Wait until it is imported. Raises: Failed, or the error of the import."""
        self.functions = self._answer("importing it")

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a function's answer, or raise the builtin exception nearest to its error."""
        question = json.dumps({"call": name, "args": encode(args), "kwargs": encode(kwargs)})
        with self._turn:
            self.calls += 1
            with contextlib.suppress(OSError):  # it has ended, so there will be no answer
                self._stdin.write(question.encode() + b"\n")
                self._stdin.flush()
            return self._answer(f"{name}()")

    def check_alive(self) -> None:
        """Raises: Failed when an answer was missing, even if the tests took that for an expected exception."""
        if self._silent:
            raise Failed(self._silent)

    def close(self) -> None:
        """Kill the process and its children."""
        self._timer.cancel()
        self._kill()
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._stdout.close()
        self._process.wait()

    def _answer(self, what: str) -> Any:
        line = self._stdout.readline(LONGEST_ANSWER)
        if not line.endswith(b"\n"):
            self._silent = f"{what} returned no answer: its process ended, or was stopped after {self._seconds:g} s"
            raise Failed(self._silent)
        answer = json.loads(line)
        if "raised" in answer:
            raise _nearest_builtin(answer["raised"])(f"{what} raised {answer['raised'][0]}: {answer['text']}")
        return decode(answer["value"])

    def _kill(self) -> None:
        with contextlib.suppress(OSError):  # it has ended
            os.killpg(self._process.pid, signal.SIGKILL)


def _nearest_builtin(names: Sequence[str]) -> type[Exception]:
    """Return the first of an exception's classes that is a builtin, can be built from a text, and does not end a process."""
    unfit = (UnicodeError, getattr(builtins, "BaseExceptionGroup", UnicodeError))
    for name in names:
        kind = getattr(builtins, str(name), None)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, unfit):
            return kind
    return Failed


def run_tests(source: str, entry_point: str, solution: Any) -> None:
    """Run a test text: its statements, then ``check(candidate)`` and the test functions that it defines.

    It sees the solution's functions as globals, and in a module ``solution``. Raises: Unusable; any other error is a failure.
    """
    try:
        code = compile(source, "<tests>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise Unusable(f"the tests cannot be compiled: {error}") from error
    if entry_point and entry_point not in solution.functions:
        raise Failed(f"there is no function {entry_point}")
    module, proxies = types.ModuleType(TESTS), types.ModuleType(SOLUTION)
    for name in solution.functions:
        if not hasattr(builtins, name):  # its own `all` must not become that of the tests
            setattr(proxies, name, _proxy(name, solution))
            setattr(module, name, getattr(proxies, name))
    sys.modules[TESTS], sys.modules[SOLUTION] = module, proxies
    try:
        exec(code, vars(module))  # noqa: S102 - the dataset's code, in the sandbox
    except ModuleNotFoundError as error:
        if error.name in {None, SOLUTION}:
            raise
        raise Unusable(f"the tests need the module {error.name}, which this Python does not have") from error
    _run_defined_tests(module, entry_point, called=bool(solution.calls))
    solution.check_alive()
    if not solution.calls:
        raise Unusable("the tests never called a function of the solution")


def _proxy(name: str, solution: Solution) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return solution.call(name, args, kwargs)

    call.__name__ = call.__qualname__ = name
    return call


def _run_defined_tests(module: types.ModuleType, entry_point: str, *, called: bool) -> None:
    """Run ``check`` and the test functions that the module itself defines."""
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == TESTS}
    if "check" in own and entry_point and not called:
        own["check"](getattr(module, entry_point))
    for name, value in own.items():
        if inspect.isfunction(value) and name.startswith("test"):
            _run_function(value)


def _run_function(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    if needed := [one.name for one in parameters if one.default is one.empty]:
        raise Unusable(f"{function.__name__} takes {', '.join(needed)}: fixtures and parameters are not provided")
    function()


def decide() -> int:
    """Run the tests of the request on standard input, print the word with the outcome in one sentence, and return the exit code."""
    word, request = sys.stdin.readline().strip(), json.loads(sys.stdin.readline())
    sys.path += site.getsitepackages()  # installed packages can be imported, but -S runs no installed hook
    solution = Solution(os.path.abspath(request["solution"]), request["seconds"])
    try:
        solution.load()
        run_tests(request["tests"], request["entry_point"], solution)
        code, text = PASSED, "all tests passed"
    except Unusable as error:
        code, text = UNUSABLE, str(error)
    except BaseException as error:  # noqa: BLE001 - also SystemExit: ending the tests early is a failure
        code, text = FAILED, _reason(error)
    finally:
        solution.close()
    sys.stdout.write(f"\n{word} {json.dumps(text)}\n")
    return code


def _reason(error: BaseException) -> str:
    """Return the error in one line, with the line of the tests."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<tests>"]
    where = f"line {lines[-1]} of the tests: " if lines else ""
    return f"{where}{type(error).__name__}: {error}".strip()[:2000]


# ---------------------------------------------------------------------- the serving process


def serve(path: str) -> None:
    """Import the solution and answer calls until stdin closes. The output of the solution is discarded."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(devnull, 1)
    sys.path.insert(0, os.path.dirname(path))
    module: list[Any] = []

    def load() -> list[str]:
        module.append(_load(path))
        return _functions_of(module[0])

    def send(act: Callable[[], Any]) -> None:
        answers.write(_answer_of(act) + b"\n")
        answers.flush()

    send(load)
    for line in questions:
        question = json.loads(line)
        args, kwargs = decode(question["args"]), decode(question["kwargs"])
        send(lambda: getattr(module[0], question["call"])(*args, **kwargs))  # noqa: B023 - called before the next line


def _answer_of(act: Callable[[], Any]) -> bytes:
    try:
        text = json.dumps({"value": encode(act())})
    except BaseException as error:  # noqa: BLE001 - also SystemExit: a solution must not end this process
        text = json.dumps({"raised": [kind.__name__ for kind in type(error).__mro__], "text": str(error)[:500]})
    return text.encode()


def _load(path: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(SOLUTION, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[SOLUTION] = module
    spec.loader.exec_module(module)
    return module


def _functions_of(module: types.ModuleType) -> list[str]:
    functions = [name for name, value in vars(module).items() if callable(value) and not isinstance(value, type)]
    return [name for name in functions if name.isidentifier() and not name.startswith("_")]


if __name__ == "__main__":
    if SERVE in sys.argv:
        serve(sys.argv[2])
    else:
        sys.exit(decide())
