"""``hermes-env mock``: serves a scripted model for manual tests."""

from __future__ import annotations

import re
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import HermesEnvError
from pytest_hermes_env.inference.token_engines import ENGINES, MODES
from pytest_hermes_env.redaction.shown_text import shown

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_hermes_env.inference.conversation import Exchange

OK, UNEXPECTED, USAGE = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--script", required=True, metavar="FILE", help="YAML file with the model's script")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0 picks a free one (default: 8000)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--template", metavar="NAME", help="serve token ids, with this chat template: chatml, qwen3, ...")
    parser.add_argument(
        "--tokenizer", metavar="DIR", help="directory of the tokenizer for token mode (default: a tiny built-in one)"
    )
    parser.add_argument("--family", metavar="NAME", help="tool-call format in token mode (default: the template's)")
    parser.add_argument("--model", default="mock-model", help="name of the model (default: mock-model)")
    parser.add_argument(
        "--engine", default="any", choices=ENGINES, help="the server that it is like in token mode (default: any)"
    )
    parser.add_argument("--logprobs-mode", choices=MODES, help="the logprobs that it returns (default: as the real server)")


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM and print a line per request. Must run in the main thread.

    Returns 0; 1 if the script did not cover a request; 2 if the script or the address is invalid.
    """
    from pytest_hermes_env.inference.refusals import load_types  # noqa: PLC0415
    from pytest_hermes_env.inference.server import MockServer  # noqa: PLC0415 -- the other commands need no server
    from pytest_hermes_env.inference.yaml_script import load_script  # noqa: PLC0415 -- loads yaml

    load_types()
    with _stop_signals() as stopped:
        try:
            file = load_script(args.script)
            server = MockServer(
                list(file.scripts),
                judge=file.judge,
                model=args.model,
                template=args.template,
                tokenizer=args.tokenizer,
                family=args.family,
                host=args.host,
                port=args.port,
                engine=args.engine,
                logprobs_mode=args.logprobs_mode,
                on_exchange=lambda exchange: _print(_line(exchange)),
            ).start()
        except HermesEnvError as exc:
            print(shown(f"hermes-env mock: {type(exc).__name__}: {exc}"), file=sys.stderr)
            return USAGE
        turns = sum(len(script.turns) for script in file.scripts)
        tokens = "" if server.template is None else f", tokens of {server.template}"
        _print(
            f"mock model listening on {server.base_url} "
            f"(script {args.script}, {turns} {'turn' if turns == 1 else 'turns'}{tokens}) - Ctrl-C to stop"
        )
        try:
            stopped.wait()
        finally:
            server.stop()
    unexpected = server.problem_count
    _print(f"stopped after {server.request_count} requests, {unexpected} of them unexpected")
    try:
        server.verify()
    except HermesEnvError as exc:
        of_tests = re.compile(r"^  fix .*hermes_allow_leftovers.*\n?", re.MULTILINE)  # nobody marks a test here
        _print(of_tests.sub("", f"{type(exc).__name__}: {exc}").rstrip())
    return UNEXPECTED if unexpected else OK


def _line(exchange: Exchange) -> str:
    """Return the exchange as one line, such as ``turn 2 of 3f2a91: 200 say 'done'``."""
    if exchange.problem is not None:
        return f"{exchange.path}: {exchange.status} {exchange.problem.splitlines()[0]}"
    if exchange.conversation is None:
        return f"{exchange.path}: {exchange.status} ({exchange.kind})"
    place = f"turn {exchange.conversation.turn + 1} of {exchange.conversation.id[:6]}"
    if exchange.kind == "judge":
        place = "judge question"
    return f"{place}: {exchange.status} {exchange.said}"


def _print(line: str) -> None:
    print(shown(line), flush=True)


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set; restore the previous handlers at the end."""
    stopped = threading.Event()
    previous = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
