"""``hermes-env serve-rollouts``: serves an environment class until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

import uvicorn
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from pydantic_cli.argparse import FailedExecutionException

from environments.command_line import main as command_line
from environments.command_line import settings as command_settings
from environments.sandbox.nonblocking_calls import end_despite_hanging_calls
from environments.service.app import build_app
from environments.service.lazy_tokenizer import loading_later
from environments.service.service import RolloutService, without_key
from environments.service.waiting_line import Refused, WaitingLine

logger = logging.getLogger(__name__)

TOKEN_VARIABLE, JUDGE_KEY_VARIABLE = "HERMES_ENV_TOKEN", "HERMES_ENV_JUDGE_KEY"
MEGABYTE = 1 << 20
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A client whose machine vanished is gone after a minute, and its place is given back."""
KEEP_S = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs, so that none is closed under a request."""
GRACE_S = 10
"""Seconds in which open connections may end after the last rollout."""


def _checked(kind: type[int | float], is_valid: Callable[[float], bool], requirement: str) -> Callable[[str], float]:
    """Return the type of an option whose value is a number of that kind."""

    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            if is_valid(number := kind(text)):
                return number
        raise argparse.ArgumentTypeError(f"must be {requirement}, not {text!r}")

    return read


_positive = _checked(int, lambda number: number >= 1, "at least 1")
_not_negative = _checked(int, lambda number: number >= 0, "at least 0")
_seconds = _checked(float, lambda number: 0 < number < float("inf"), "a number of seconds above 0")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8765, help="port to listen on; 0 picks a free one (default: 8765)")
    parser.add_argument(
        "--concurrency", type=_positive, default=16, metavar="N", help="rollouts that run at once (default: 16)"
    )
    parser.add_argument(
        "--queue", type=_not_negative, default=256, metavar="N", help="rollouts that wait; others get 429 (default: 256)"
    )
    parser.add_argument(
        "--token",
        default=os.environ.get(TOKEN_VARIABLE),
        help=f"bearer token of clients (default: {TOKEN_VARIABLE}, or a new one)",
    )
    parser.add_argument(
        "--endpoint-host",
        action="append",
        default=[],
        metavar="HOST",
        help="HOST or HOST:PORT that rollouts may call in addition to the client's own machine; * is any",
    )
    parser.add_argument(
        "--judge-base-url", metavar="URL", help=f"model of compute_reward; its key is read from {JUDGE_KEY_VARIABLE}"
    )
    parser.add_argument("--judge-model", default="default", metavar="NAME", help="name of the judge's model")
    parser.add_argument("--rollout-timeout", type=_seconds, metavar="S", help="seconds after which a rollout is cancelled")
    parser.add_argument(
        "--drain", type=_seconds, default=600.0, metavar="S", help="seconds to finish rollouts on SIGTERM (default: 600)"
    )
    for name, what, most in (
        ("body", "request", 8),
        ("reply", "reply of an engine", 8),
        ("conversation", "request to an engine, with all messages so far", 32),
    ):
        help_text = f"largest {what} (default: {most})"
        parser.add_argument(f"--max-{name}", type=_positive, default=most, metavar="MB", help=help_text)
    parser.add_argument("--config", metavar="FILE", help="YAML file with the environment's settings; --env.* flags override it")


def run(cls: Any, options: argparse.Namespace, flags: Sequence[str]) -> int:
    """Serve ``cls`` until a signal; ``flags`` are its ``--env.*`` settings. Returns the exit code."""
    _log_to_stderr()
    try:
        return asyncio.run(_serve(_environment(cls, options, flags), options))
    except FailedExecutionException as error:
        sys.stderr.write(f"{error.message}\n")
        return command_settings.USAGE_ERROR


def _environment(cls: Any, options: argparse.Namespace, flags: Sequence[str]) -> Any:
    command_line.load_dotenv_of_cwd()
    if any(flag.startswith(f"--{command_settings.SERVER_PREFIX}") for flag in flags):
        raise command_settings.usage_error(
            "--openai.* has no meaning here: each request names the policy's endpoint, and --judge-base-url the judge's"
        )
    settings = command_settings.settings_of(cls, "serve", flags, options.config)
    # a rollout is a group of one; groups, files and wandb are the engine's
    config = settings.env.model_copy(update={"group_size": 1, "use_wandb": False, "data_path_to_save_groups": None})
    judge = APIServerConfig(
        base_url=options.judge_base_url or "http://127.0.0.1:9/no-judge",
        model_name=options.judge_model,
        api_key=os.environ.get(JUDGE_KEY_VARIABLE) or "none",
        server_type="openai",
        health_check=False,
    )
    # one that was asked for is loaded now, so that a wrong name is seen; the class's own only if something uses it
    is_default = config.tokenizer_name == getattr(command_settings.initial_settings(cls)[0], "tokenizer_name", None)
    with command_line.naming_the_tokenizer(settings), loading_later() if is_default else contextlib.nullcontext():
        return cls(config=config, server_configs=[judge])


async def _serve(env: Any, options: argparse.Namespace) -> int:
    service = RolloutService(
        env,
        line=WaitingLine(options.concurrency, options.queue),
        has_judge=options.judge_base_url is not None,
        endpoint_hosts=options.endpoint_host,
        rollout_timeout=options.rollout_timeout,
        max_reply=options.max_reply * MEGABYTE,
        max_conversation=options.max_conversation * MEGABYTE,
    )
    try:
        await env.setup()
        try:
            await service.tasks.load()
        except Refused as error:
            raise command_settings.usage_error(f"{type(env).__name__} has nothing to serve: {error}") from error
        token = options.token or secrets.token_urlsafe(32)
        app = build_app(service, token=token, max_body=options.max_body * MEGABYTE)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                proxy_headers=False,  # with them, a client could name its own address, and with that its endpoint
                timeout_keep_alive=KEEP_S,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]  # `_stop_on_signals` has them
        with _listener(options.host, options.port) as listener:
            host, port = listener.getsockname()[:2]
            shown = "" if options.token else f", token {token}"
            sys.stdout.write(f"rollouts of {type(env).__name__} on http://{host}:{port}{shown}\n")
            sys.stdout.flush()
            stopping = _stop_on_signals(server, service.line, options.drain)
            await server.serve(sockets=[listener])
            stopping.cancel()
    finally:
        await service.close()
        await command_line.close_servers(env)
        end_despite_hanging_calls(0)
    return 0


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise command_settings.usage_error(
            f"the service cannot listen on {host}:{port}: {error}; choose another --port"
        ) from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # connections have it from the listener
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return listener


def _stop_on_signals(server: uvicorn.Server, line: WaitingLine, drain_s: float) -> asyncio.Task[None]:
    """On the first signal, admit no rollouts and let those that run finish; on the second, or too late, cancel them."""
    loop = asyncio.get_running_loop()
    signals = asyncio.Semaphore(0)

    async def stop() -> None:
        await signals.acquire()
        line.close()
        logger.info("shutting down: %d rollouts may finish within %g seconds", len(line.running), drain_s)
        ends = [loop.create_task(line.empty()), loop.create_task(signals.acquire())]
        await asyncio.wait(ends, timeout=drain_s, return_when=asyncio.FIRST_COMPLETED)
        if line.running:
            logger.warning("shutting down: %d rollouts are cancelled", len(line.running))
            await line.cancel()
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.release)
    return loop.create_task(stop())


class _WithoutKeys(logging.Formatter):
    """Leaves out the key of the rollout in whose task a record was made."""

    def format(self, record: logging.LogRecord) -> str:
        return without_key(super().format(record))


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_WithoutKeys("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in ("httpx", "httpcore", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
