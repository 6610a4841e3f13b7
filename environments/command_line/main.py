"""The three modes of an environment's command line: ``serve``, ``process``, ``evaluate``.

Source: atroposlib 0.4.0 (``BaseEnv.cli``), whose own commands print the API key, write it into ``evaluate_config.yaml``, drop
the environment's name in ``serve``, and retry a failing item forever. `command_settings` merges the settings.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
import traceback
import typing
import uuid
import warnings
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import wandb
import yaml
from atroposlib.envs.base import BaseEnv
from atroposlib.envs.constants import ENV_NAMESPACE, OPENAI_NAMESPACE
from dotenv import load_dotenv
from pydantic_cli.argparse import FailedExecutionException
from rich import print as rich_print

from environments.command_line.settings import (
    USAGE_ERROR,
    FlagParser,
    Mode,
    Settings,
    settings_of,
    usage_error,
    without_secrets,
)
from environments.loop.log_once import failures_of_servers
from environments.rollout.concurrency import ProgressBar, progress_bar
from environments.rollout.file import write_page
from environments.rollout.recorder import recorded_group, records_path
from environments.rollout.secret_names import is_secret_name
from environments.tokens.answer_checks import without_credentials
from environments.tokens.server_check import ModelServerError
from environments.trainer.groups import failed_rows

logger = logging.getLogger(__name__)

FAILED = 1
EXIT_BY_SIGNAL = 128
"""The exit code of a program that a signal ended is this plus the signal's number."""

CLOCK_S = 2.0
"""Seconds by which the clock of a file system may lag behind."""


class NothingCollectedError(RuntimeError):
    """Several groups in a row had no rollout that was scored."""


def load_dotenv_of_cwd() -> None:
    """Load ``.env`` of the working directory if there is one, without overriding variables."""
    path = Path.cwd() / ".env"
    if path.is_file():
        load_dotenv(path, override=False)


def main(cls: type[BaseEnv]) -> None:
    """Parse ``sys.argv``, run the mode, and exit the process with its code."""
    load_dotenv_of_cwd()
    if not logging.root.handlers:  # else the first error that atroposlib logs adds one that shows all it says from then on
        told = logging.StreamHandler()
        told.setLevel(logging.WARNING)
        logging.root.addHandler(told)
    arguments, modes = sys.argv[1:], typing.get_args(Mode)
    try:
        if not arguments or arguments[0] not in {*modes, "--help"}:
            raise usage_error(f"The first word must be one of {', '.join(modes)}. `--help` after it lists the settings.")
        if "--help" in arguments:
            FlagParser(cls).print_help()
        else:
            mode: Any = arguments[0]
            _run(cls, mode, settings_of(cls, mode, arguments[1:]))
    except FailedExecutionException as error:
        sys.stderr.write(f"{error.message}\n")
        sys.exit(USAGE_ERROR)
    sys.exit(0)


def _run(cls: type[BaseEnv], mode: Mode, settings: Settings) -> None:
    _show(settings)
    if mode == "evaluate":
        _prepare_evaluation(settings)
    manager = settings.manager
    with naming_the_tokenizer(settings):
        env = cls(config=settings.env, server_configs=settings.servers, slurm=manager.slurm, testing=manager.testing)
    began = time.time()
    try:
        asyncio.run(_run_and_close(env, mode))
        if mode == "evaluate" and (failed := getattr(env, "_failed_evaluation", "")):
            said = failures_of_servers()
            is_why = bool(said) and said.partition(":")[0] in failed
            fix = _fix_of_server(said) if is_why else "the first error of each kind is above, with its line"
            sys.stderr.write(f"Nothing was measured.\n  seen      {failed}{_at(env) if is_why else ''}\n  fix       {fix}\n")
            sys.exit(FAILED)
    except (ModelServerError, NothingCollectedError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(FAILED)
    except (KeyboardInterrupt, asyncio.CancelledError) as stop:
        number = signal.SIGINT if isinstance(stop, KeyboardInterrupt) else signal.SIGTERM
        after = f", after {env.curr_step} of {env.config.total_steps} groups" if mode == "process" else ""
        sys.stderr.write(f"{mode} was stopped by {number.name}{after}\n")
        sys.exit(EXIT_BY_SIGNAL + number)
    finally:
        _show_files(env.config, mode, began)


@contextlib.contextmanager
def naming_the_tokenizer(settings: Settings) -> Iterator[None]:
    """End with a usage error where transformers cannot load a tokenizer, whose own error fills pages and names no setting."""
    try:
        yield
    except (OSError, ValueError) as error:
        frames = traceback.walk_tb(error.__traceback__)
        if not any(str(frame.f_globals.get("__name__", "")).startswith("transformers.") for frame, _ in frames):
            raise
        names = [settings.env.tokenizer_name, *(getattr(server, "tokenizer_name", "none") for server in settings.servers)]
        tokenizers = ", ".join(dict.fromkeys(str(name) for name in names if name not in {None, "none"}))
        raise usage_error(
            f"The tokenizer could not be loaded: {tokenizers}.\n"
            f"  seen      {str(error).splitlines()[0]}\n"
            "  fix       --env.tokenizer_name NAME or DIRECTORY: a tokenizer on disk needs no internet"
        ) from None


def without_tokens(server: Any) -> FailedExecutionException:
    """Return the error for ``serve`` on a server without token ids."""
    return usage_error(
        "serve would send placeholder tokens, on which nobody can train: the model server is asked for chat completions.\n"
        "  expected  a server that returns the ids and logprobs of the tokens that it samples\n"
        f"  seen      --openai.server_type {server.server_type}, at {without_credentials(str(server.base_url))}\n"
        "  fix       --openai.server_type vllm (`vllm serve` as it is) or sglang, with --env.tokenizer_name of the served model\n"
        "            or --env.trainer_reads messages, if the trainer encodes the messages itself\n"
        "            or `process`, which writes groups to a file, or `evaluate`: neither sends tokens"
    )


async def _run_and_close(env: BaseEnv, mode: Mode) -> None:
    """Run one mode, then close the servers' clients and health checks.

    SIGTERM cancels the mode as SIGINT does, so that running rollouts release their sandboxes.
    """
    task = asyncio.current_task()
    if task is not None and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        if hasattr(env, "check_model_servers"):
            await env.check_model_servers(mode)
        if mode == "serve":
            await env.env_manager()
        elif mode == "process":
            env.process_mode = True
            env.n_groups_to_process = env.config.total_steps
            env.group_size_to_process = env.config.group_size
            await env.process_manager()
        else:
            await env._run_evaluate()
    finally:
        await close_servers(env)


async def close_servers(env: BaseEnv) -> None:
    """Close the clients of the environment's model servers, and end their health checks."""
    for server in env.server.servers:
        if getattr(server, "check_task", None) is not None:
            server.check_task.cancel()
        if hasattr(server, "openai"):
            await server.openai.close()


async def process_groups(env: BaseEnv, *, give_up_after: int) -> None:
    """Collect groups into the JSONL file and write the HTML page next to it; see `HermesAgentBaseEnv.process_manager`."""
    await env.setup()
    if env.config.use_wandb:
        name = f"{env.name}-{datetime.now().astimezone():%Y-%m-%d}-{uuid.uuid4().hex[:6]}"
        wandb.init(project=env.wandb_project, name=name, group=env.wandb_group, config=without_secrets(env.config))
    env.config.group_size = env.group_size_to_process
    env.curr_step = 0
    try:
        with progress_bar("process", unit="group", total=env.n_groups_to_process) as bar:
            await _process(env, bar, give_up_after=give_up_after)
    finally:
        if env.jsonl_writer is not None:
            env.jsonl_writer.close()
        if env.config.data_path_to_save_groups is not None and (env.curr_step or not sys.exc_info()[0]):
            write_page(Path(env.config.data_path_to_save_groups))


async def _process(env: BaseEnv, bar: ProgressBar, *, give_up_after: int) -> None:
    """Collect and write groups until there are enough, or no further items."""
    failures = 0
    while env.curr_step < env.n_groups_to_process:
        item = await env.get_next_item()
        if item is None:
            logger.info("get_next_item returned None: no more items to process")
            break
        processed, error = await _collected(env, item)
        if not processed:
            failures += 1
            if failures >= give_up_after:
                raise error or NothingCollectedError(_nothing_collected(env, failures))
            logger.warning("A group returned no data; %d of %d tries", failures, give_up_after, exc_info=error)
            continue
        failures = 0
        await env.handle_send_to_api(processed, item, do_send_to_api=False, abort_on_any_max_length_exceeded=False)
        await env.wandb_log()
        env.curr_step += 1
        bar.update()
        logger.info("Processed group %d of %d", env.curr_step, env.n_groups_to_process)


def _nothing_collected(env: BaseEnv, failures: int) -> str:
    """Return why nothing comes: what the model server said, if it failed, else what an environment without training would do."""
    told = (
        f"process gives up: collect_trajectories of {type(env).__name__} returned no data for {failures} items in a row, with "
        f"{env.curr_step} of {env.n_groups_to_process} groups written.\n"
    )
    if said := failures_of_servers():
        return f"{told}  seen      {said}{_at(env)}\n  fix       {_fix_of_server(said)}"
    return (
        f"{told}  fix       the warnings above say why a group was dropped; one that is only for evaluation has nothing to process: run "
        "`evaluate` instead"
    )


def _at(env: BaseEnv) -> str:
    """Return the addresses of the model servers."""
    return ", at " + ", ".join(without_credentials(str(server.config.base_url)) for server in env.server.servers)


def _fix_of_server(said: str) -> str:
    """Return what to do about the error of a model server."""
    is_unreached = said.startswith(("APIConnectionError", "APITimeoutError", "Connect"))
    return (
        "start the model server, or correct --openai.base_url"
        if is_unreached
        else "correct what the model server refuses: it says why"
    )


async def _collected(env: BaseEnv, item: Any) -> tuple[Any, Exception | None]:
    """Return the group of an item, or None if it has no rollout that was scored; and what it raised."""
    try:
        with recorded_group(env, "process"):
            group, _ = await env.collect_trajectories(item)
        processed = await env.postprocess_histories(group) if group else None
    except Exception as error:  # noqa: BLE001 - raised when no further item is tried
        return None, error
    groups = processed if isinstance(processed, list) else [processed]
    has_scored = any(group and not (isinstance(group, dict) and all(failed_rows(group) or [False])) for group in groups)
    return (processed if has_scored else None), None


def _show(settings: Settings) -> None:
    """Print the settings that are not the defaults of their class; of a server its address and model, too."""
    keys = list(_keys(settings))
    rich_print({type(settings.env).__name__: without_secrets(settings.env, keys, exclude_defaults=True)})
    for server in settings.servers:
        always = without_secrets(server, keys, include={"base_url", "model_name"})
        always["api_key"] = "set, not shown" if server.api_key else "not set"
        rich_print({type(server).__name__: without_secrets(server, keys, exclude_defaults=True) | always})


def _show_files(config: Any, mode: Mode, began: float) -> None:
    """Print which files this run has written."""
    written: list[Path | None] = []
    if mode == "evaluate" and config.data_dir_to_save_evals is not None:
        written = [*sorted(Path(config.data_dir_to_save_evals).glob("*"))]
    elif mode == "process" and config.data_path_to_save_groups is not None:
        groups = Path(config.data_path_to_save_groups)
        written = [groups, groups.with_suffix(".html"), records_path(config, mode)]
    for path in filter(None, written):
        if path.is_file() and path.stat().st_mtime >= began - CLOCK_S:
            sys.stdout.write(f"wrote {path} ({path.stat().st_size:,} bytes)\n")


def _keys(settings: Settings) -> Iterator[str]:
    yield from (server.api_key for server in settings.servers if server.api_key)
    yield from (value for name, value in os.environ.items() if is_secret_name(name))


def _prepare_evaluation(settings: Settings) -> None:
    """Write ``evaluate_config.yaml``, or warn early that nothing will be saved."""
    directory = settings.env.data_dir_to_save_evals
    if directory is None:
        warnings.warn(
            "evaluate will save nothing: set --env.data_dir_to_save_evals DIR for metrics.json and samples.jsonl", stacklevel=2
        )
        return
    keys = list(_keys(settings))
    content = {
        ENV_NAMESPACE: without_secrets(settings.env, keys),
        OPENAI_NAMESPACE: [without_secrets(server, keys) for server in settings.servers],
        "slurm": settings.manager.slurm,
        "testing": settings.manager.testing,
    }
    Path(directory).mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(content, default_flow_style=False, sort_keys=False)
    (Path(directory) / "evaluate_config.yaml").write_text(text, encoding="utf-8")
