"""The commands ``hermes-env record`` and ``hermes-env replay``: the user's process.

It starts the command with `startup` on its PYTHONPATH, waits for its end, and prints the outcome. Output and exit code are the
command's own, unless recording or replay fails.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from types import FrameType
from typing import Any

from pytest_hermes_env.atomic_files import exclusive, replace_file
from pytest_hermes_env.cassette.format import read_tape
from pytest_hermes_env.cassette.inventory import DEFAULT_DIRECTORY
from pytest_hermes_env.cassette.origin import version_drift
from pytest_hermes_env.cassette.paths import SUFFIX, cassette_path
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.errors import BadCassette, UsageError
from pytest_hermes_env.recorded_command.child import RECORDED
from pytest_hermes_env.recorded_command.process_settings import VARIABLE, Report, Settings, read_reports
from pytest_hermes_env.redaction.shown_text import shown

OK, DIFFERS, USAGE = 0, 1, 2
MODES = ("evaluate", "process", "serve")
STARTUP = Path(__file__).parent / "startup"
KEYS = ("OPENAI_API_KEY", "OPENROUTER_API_KEY")
"""Variables without which some configurations fail; a replay does not need them."""
PLACEHOLDER = "no-key-in-a-replay"
INCOMPLETE = ".incomplete"
SIGNALLED = 128
SHOWN = 8


def add_arguments(parser: argparse.ArgumentParser, *, plays: bool) -> None:
    """Add the arguments of ``record`` or ``replay``; ``rest`` of the namespace is the command."""
    parser.usage = f"{parser.prog} [options] -- COMMAND [ARGUMENTS]"
    parser.add_argument(
        "--cassette", metavar="FILE", default="", help=f"the file (default: {DEFAULT_DIRECTORY}/<script>/<mode>{SUFFIX})"
    )
    if plays:
        parser.add_argument(
            "--replay-tools",
            choices=("recorded", "live"),
            default="recorded",
            help="the source of tool results: the cassette (default), or hermes' own tools",
        )
        parser.add_argument("--allow-leftovers", action="store_true", help="accept unused recordings")
    else:
        parser.add_argument(
            "--recorded-from", metavar="TEXT", default="", help="a description of the server (default: its address)"
        )
        parser.add_argument("--provider", metavar="NAME", default="", help="the provider's name, stored in the cassette")


def run(options: argparse.Namespace, *, plays: bool) -> int:
    """Run a command on a cassette, and return the exit code. Raises: UsageError, BadCassette."""
    words: list[str] = options.rest
    verb = "replay" if plays else "record"
    if not words:
        raise UsageError(
            f"hermes-env {verb} was given no command.\n"
            f"  expected  the command of an environment behind two dashes\n"
            f"  fix       hermes-env {verb} -- python my_env.py evaluate"
        )
    path = Path(options.cassette) if options.cassette else default_cassette(words)
    again = f"hermes-env record --cassette {shlex.quote(str(path))} -- {_shown(words)}"
    if plays and not path.exists():
        raise BadCassette(f"there is no cassette {path}.\n  fix       record it: {again}")
    settings = Settings(
        plays=plays,
        cassette=str(path.absolute()),
        name=str(path),
        again=again,
        tools=options.replay_tools if plays else "recorded",
        allow_leftovers=plays and options.allow_leftovers,
        recorded_from="" if plays else options.recorded_from,
        provider="" if plays else options.provider,
        python_path=os.environ.get("PYTHONPATH"),
    )
    with tempfile.TemporaryDirectory(prefix="hermes-env-cassette-") as place, contextlib.ExitStack() as stack:
        directory = Path(place)
        if plays:
            read_tape(path)  # an invalid cassette fails before the command starts
        else:
            stack.enter_context(exclusive(path))
        settings.write(directory)
        code = _run(words, _environment(directory, plays=plays))
        report = _report(directory, words, code, verb)
        if report is None:
            return code or DIFFERS
        return _tell_replay(report, path, code) if plays else _tell_recording(report, directory, path, code)


def default_cassette(words: list[str]) -> Path:
    """Return the path of a command's cassette, named after its script or module, and its mode."""
    script = next((PurePath(word).stem for word in words if word.endswith(".py")), None)
    if script is None and "-m" in words[:-1]:
        script = words[words.index("-m") + 1].rpartition(".")[2]
    mode = next((word for word in words if word in MODES), "command")
    return cassette_path(Path(DEFAULT_DIRECTORY), script or PurePath(words[0]).name, mode)


def _shown(words: list[str]) -> str:
    """Return a command without keys, for messages and files."""
    redactor = Redactor()
    hidden = [
        "KEY" if number and "key" in words[number - 1].lower() and words[number - 1].startswith("-") else word
        for number, word in enumerate(words)
    ]
    return redactor.text(shlex.join(hidden))


def _environment(directory: Path, *, plays: bool) -> dict[str, str]:
    """Return the command's environment variables."""
    environment = dict(os.environ)
    python_path = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(STARTUP), *([python_path] if python_path else [])])
    environment[VARIABLE] = str(directory)
    if plays:
        for name in KEYS:
            if not environment.get(name, "").strip():
                environment[name] = PLACEHOLDER
        environment.setdefault("HF_HUB_OFFLINE", "1")  # an unreachable hub costs half a minute of retries
        environment.setdefault("WANDB_MODE", "disabled")
    return environment


def _run(words: list[str], environment: dict[str, str]) -> int:
    """Run a command to its end and return its exit code; the command handles signals to this process."""
    try:
        process = subprocess.Popen(words, env=environment)
    except OSError as error:
        raise UsageError(
            f"the command {shlex.quote(words[0])} cannot be started: {error.strerror}.\n"
            "  fix       write it as you would without hermes-env: hermes-env record -- python my_env.py evaluate"
        ) from error
    with _passing_on(process):
        code = process.wait()
    return SIGNALLED - code if code < 0 else code


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave Ctrl-C to the command, which gets it from the terminal too, and pass SIGTERM on to it."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        process.send_signal(number)

    handlers: dict[int, Callable[..., Any] | int] = {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: pass_on}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    print(shown(f"hermes-env: {text}"), file=sys.stderr)


def _report(directory: Path, words: list[str], code: int, verb: str) -> Report | None:
    """Return the report of the process that had the cassette; if there is none, print why and return None."""
    reports = read_reports(directory)
    lacking = [path.read_text(encoding="utf-8") for path in directory.glob("lacking-*")]
    done = "recorded" if verb == "record" else "replayed"
    refused = next((report for report in reports if report.error and not report.is_whole), None)
    if lacking:
        _say(
            f"error: nothing was {done}: pytest-hermes-env is not installed where the command runs.\n"
            f"  seen      {lacking[0]}\n"
            "  fix       install it there too: pip install pytest-hermes-env"
        )
    elif refused is not None:
        _say(f"error: nothing was {done}: {refused.error}")
    elif not reports:
        _say(
            f"error: nothing was {done}: `{_shown(words)}` ended with exit code {code} and built no environment.\n"
            "  expected  a command that starts Python, also through uv run or a script, and builds a Hermes environment\n"
            f"  seen      no class below HermesAgentBaseEnv was built in a Python process that heeds PYTHONPATH (-I and -E do not)\n"
            f"  fix       see the command's output above; then hermes-env {verb} -- python my_env.py evaluate"
        )
    elif not reports[0].is_whole:
        _say(
            f"error: nothing was {done}: the process with the environment was ended by os._exit or a signal such as SIGKILL.\n"
            f"  seen      exit code {code}\n"
            "  fix       let it exit normally, or stop it with Ctrl-C or SIGTERM"
        )
    else:
        return reports[0]
    return None


def _tell_recording(report: Report, directory: Path, path: Path, code: int) -> int:
    if not report.calls:
        _say(
            f"error: nothing was recorded: the command ended with exit code {code} and called no model.\n"
            "  expected  a request to an inference server, by the openai client (httpx) or aiohttp\n"
            "  fix       see the command's output above; does it work without hermes-env record?"
        )
        return code or DIFFERS
    if report.error:
        _say(f"error: {report.error}")
        return code or DIFFERS
    data = (directory / RECORDED).read_bytes()
    if code:
        beside = path.with_name(path.name + INCOMPLETE)
        replace_file(beside, data)
        _say(
            f"error: {path} was not written because the command ended with exit code {code}.\n"
            f"  seen      {_what(report)}\n"
            f"  fix       fix the command and record again; the recording so far is in {beside}"
        )
        return code
    is_there = path.exists()
    replace_file(path, data)
    _say(f"{path} {'was replaced' if is_there else 'was written'}: {_what(report)}, {len(data) / 1000:.0f} KB")
    return OK


def _tell_replay(report: Report, path: Path, code: int) -> int:
    if not report.error:
        _say(f"{path} was replayed: {_what(report)}, all as recorded" + (f"; exit code {code}" if code else ""))
        return code
    notes = [f"  note      {drift}" for drift in version_drift(read_tape(path).header)]
    if report.refused:
        notes.append(f"  note      refused on the way: {', '.join(report.refused)}")
    _say("error: " + "\n".join([report.error, *notes]))
    return code or DIFFERS


def _what(report: Report) -> str:
    """Return a short description of a recording or a replay."""
    calls = "1 call" if report.calls == 1 else f"{report.calls} calls"
    rollouts = "1 rollout" if report.rollouts == 1 else f"{report.rollouts} rollouts"
    more = "" if len(report.rewards) <= SHOWN else f" and {len(report.rewards) - SHOWN} more"
    rewards = ", ".join("none" if reward is None else f"{reward:g}" for reward in report.rewards[:SHOWN])
    return f"{calls}, {rollouts}" + (f", rewards {rewards}{more}" if rewards else "")
