"""The three modes of an environment's command line: ``serve``, ``process``, ``evaluate``.

Settings come from the command line, then the YAML file, then ``config_init``. API keys are neither printed nor written.

Source: flags, files and their priority are those of atroposlib 0.4.0 (``BaseEnv.cli``), whose own commands print the key,
write it into ``evaluate_config.yaml``, and drop the environment's name in ``serve``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import string
import sys
import types
import typing
import warnings
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import wandb
import yaml
from atroposlib.envs.constants import ENV_NAMESPACE, NAMESPACE_SEP, OPENAI_NAMESPACE
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from atroposlib.envs.server_handling.server_manager import ServerManagerConfig
from atroposlib.frontend.jsonl2html import generate_html
from atroposlib.utils.cli import get_prefixed_pydantic_model, merge_dicts
from dotenv import load_dotenv
from pydantic import BaseModel, Field, ValidationError
from pydantic_cli import Cmd, FailedExecutionException, run_and_exit
from rich import print as rich_print

if TYPE_CHECKING:
    from environments.hermes_base_env import HermesAgentBaseEnv

__all__ = ["command_class", "load_dotenv_of_cwd", "main", "process_groups"]

logger = logging.getLogger(__name__)

Mode = Literal["serve", "process", "evaluate"]

ENV_PREFIX = f"{ENV_NAMESPACE}{NAMESPACE_SEP}"
SERVER_PREFIX = f"{OPENAI_NAMESPACE}{NAMESPACE_SEP}"
SECRET_FIELDS = frozenset({"api_key"})
USAGE_ERROR = 2


def load_dotenv_of_cwd() -> None:
    """Load ``.env`` of the working directory if there is one; what is already set stays."""
    path = Path.cwd() / ".env"
    if path.is_file():
        load_dotenv(path, override=False)


def main(cls: type[HermesAgentBaseEnv]) -> None:
    """Parse ``sys.argv``, run the mode that it names, and exit the process with its code."""
    load_dotenv_of_cwd()
    try:
        commands = {mode: command_class(cls, mode) for mode in typing.get_args(Mode)}
    except FailedExecutionException as error:
        sys.stderr.write(f"{error.message}\n")
        sys.exit(error.exit_code)
    run_and_exit(commands, description=f"Command line of {cls.__name__}", exception_handler=_exit_code_of)


def _exit_code_of(error: BaseException) -> int:
    if isinstance(error, FailedExecutionException):
        sys.stderr.write(f"{error.message}\n")
        return USAGE_ERROR
    raise error


def command_class(cls: type[HermesAgentBaseEnv], mode: Mode) -> type:
    """Return the pydantic-cli command of one mode, its defaults taken from ``config_init``."""
    config, servers = _initial_settings(cls)

    class Command(
        get_prefixed_pydantic_model(type(config), ENV_PREFIX),  # type: ignore[misc]
        get_prefixed_pydantic_model(type(servers[0]), SERVER_PREFIX),  # type: ignore[misc]
        ServerManagerConfig,
        Cmd,  # type: ignore[misc]
    ):
        """Settings come from the command line, then the YAML file, then config_init."""

        config: str | None = Field(default=None, description="Path of a YAML file; flags win over it.")

        def run(self) -> None:
            """Build the environment and run the mode."""
            _run(cls, mode, self.config)

    Command.__name__ = f"Cli{mode.capitalize()}Config"
    return Command


def _initial_settings(cls: type[HermesAgentBaseEnv]) -> tuple[BaseModel, list[APIServerConfig]]:
    """Return what ``config_init`` gives. Raises: FailedExecutionException when it is not (config, [servers])."""
    returned = cls.config_init()
    where = f"{cls.__name__}.config_init() must return (config, [APIServerConfig, ...])"
    if not isinstance(returned, tuple) or len(returned) != 2:  # noqa: PLR2004 - a pair
        raise FailedExecutionException(f"{where}; it returned {type(returned).__name__}", USAGE_ERROR)
    config, servers = returned
    if not isinstance(servers, list) or not servers:
        raise FailedExecutionException(
            f"{where}; its second value is {type(servers).__name__}, not a filled list. Atropos would ignore it and wait for "
            "model servers on localhost:9004 to 9007. Put the server's configuration into a list.",
            USAGE_ERROR,
        )
    return config, servers


def _run(cls: type[HermesAgentBaseEnv], mode: Mode, yaml_path: str | None) -> None:
    config, servers = _initial_settings(cls)
    from_yaml = _read_yaml(yaml_path)
    flags = _passed_flags(sys.argv[1:])
    env_config = _env_config(config, mode, cls.name, from_yaml, flags)
    server_configs = _server_configs(servers, from_yaml.get(OPENAI_NAMESPACE), flags)
    manager = _manager_config(from_yaml, flags)
    _show(env_config, server_configs)
    if mode == "evaluate":
        _prepare_evaluation(env_config, server_configs, manager)
    env = cls(config=env_config, server_configs=server_configs, slurm=manager.slurm, testing=manager.testing)
    asyncio.run(_run_and_close(env, mode))


async def _run_and_close(env: HermesAgentBaseEnv, mode: Mode) -> None:
    """Run one mode; the servers' clients and health checks end with it."""
    try:
        if mode == "serve":
            await env.env_manager()
        elif mode == "process":
            env.process_mode = True
            env.n_groups_to_process = env.config.total_steps
            env.group_size_to_process = env.config.group_size
            await env.process_manager()
        else:
            await env._run_evaluate()  # noqa: SLF001 - Atropos' own entry: setup, then evaluate
    finally:
        for server in env.server.servers:
            if getattr(server, "check_task", None) is not None:
                server.check_task.cancel()
            if hasattr(server, "openai"):
                await server.openai.close()


async def process_groups(env: HermesAgentBaseEnv, *, give_up_after: int) -> None:
    """Collect groups into the JSONL file and write the HTML page beside it; see `HermesAgentBaseEnv.process_manager`."""
    await env.setup()
    if env.config.use_wandb:
        name = f"{env.name}-{date.today():%Y-%m-%d}-{''.join(random.choices(string.ascii_lowercase, k=6))}"
        wandb.init(project=env.wandb_project, name=name, group=env.wandb_group, config=env.config.model_dump())
    env.config.group_size = env.group_size_to_process
    env.curr_step = failures = 0
    try:
        while env.curr_step < env.n_groups_to_process:
            item = await env.get_next_item()
            if item is None:
                logger.info("get_next_item gave None: no more items to process")
                break
            group, _ = await env.collect_trajectories(item)
            processed = await env.postprocess_histories(group) if group else None
            if not processed:
                failures += 1
                if failures >= give_up_after:
                    raise RuntimeError(_no_data_message(env, failures))
                logger.warning("A group gave no data; %d of %d tries", failures, give_up_after)
                continue
            failures = 0
            await env.handle_send_to_api(
                processed, item, do_send_to_api=False, abort_on_any_max_length_exceeded=False
            )
            await env.wandb_log()
            env.curr_step += 1
            logger.info("Processed group %d of %d", env.curr_step, env.n_groups_to_process)
    finally:
        if env.jsonl_writer is not None:
            env.jsonl_writer.close()
    generate_html(env.config.data_path_to_save_groups)


def _no_data_message(env: HermesAgentBaseEnv, failures: int) -> str:
    return (
        f"process gives up: collect_trajectories of {type(env).__name__} gave no data for {failures} items in a row, with "
        f"{env.curr_step} of {env.n_groups_to_process} groups written. An evaluation-only environment has nothing to process; "
        "run `evaluate` instead. Otherwise look at the warnings above."
    )


# ---------------------------------------------------------------------- settings


def _read_yaml(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise FailedExecutionException(f"Cannot read --config {path}: {error}", USAGE_ERROR) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise FailedExecutionException(f"--config {path} must hold a mapping, not {type(content).__name__}", USAGE_ERROR)
    return content


def _passed_flags(arguments: list[str]) -> dict[str, Any]:
    """Return the flags that were given, without dashes. Several values make a list, none means True, ``None`` is None."""
    flags: dict[str, Any] = {}
    position = 0
    while position < len(arguments):
        word = arguments[position]
        position += 1
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        values = [value] if equals else []
        while not equals and position < len(arguments) and not _is_flag(arguments[position]):
            values.append(arguments[position])
            position += 1
        flags[name] = True if not values else _none(values[0]) if len(values) == 1 else values
    return flags


def _is_flag(word: str) -> bool:
    """Tell a flag from a value: a negative number is a value."""
    return word.startswith("-") and not word[1:].replace(".", "", 1).isdecimal()


def _none(text: str) -> str | None:
    return None if text == "None" else text


def _within(flags: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in flags.items() if name.startswith(prefix)}


def _env_config(
    config: BaseModel, mode: Mode, name: str | None, from_yaml: dict[str, Any], flags: dict[str, Any]
) -> Any:
    defaults = config.model_dump()
    if mode == "process":
        defaults |= {"ensure_scores_are_not_same": False, "include_messages": True}
        defaults["data_path_to_save_groups"] = defaults.get("data_path_to_save_groups") or f"data/{name or 'groups'}.jsonl"
    section = from_yaml.get(ENV_NAMESPACE) or {}
    fields = type(config).model_fields
    if unknown := sorted(set(section) - set(fields)):
        warnings.warn(f"The YAML file's `{ENV_NAMESPACE}` has fields that nothing reads: {unknown}", stacklevel=2)
    given = {
        field: [value] if field in fields and _is_list(fields[field].annotation) and isinstance(value, str) else value
        for field, value in _within(flags, ENV_PREFIX).items()
    }
    return _validated(type(config), merge_dicts(defaults, section, given), ENV_PREFIX)


def _is_list(annotation: Any) -> bool:
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return any(_is_list(part) for part in typing.get_args(annotation))
    return annotation is list or typing.get_origin(annotation) is list


def _server_configs(defaults: list[APIServerConfig], from_yaml: Any, flags: dict[str, Any]) -> list[APIServerConfig]:
    """Return the model servers; flags can only change a single one."""
    given = _within(flags, SERVER_PREFIX)
    sections = from_yaml if isinstance(from_yaml, list) else [from_yaml] if from_yaml else []
    if given and max(len(sections), len(defaults) if not sections else 0) > 1:
        raise FailedExecutionException(
            f"--{SERVER_PREFIX}* flags change one model server, and several are configured; set them in the YAML file.",
            USAGE_ERROR,
        )
    if len(sections) > 1:
        return [_validated(type(defaults[0]), section, SERVER_PREFIX) for section in sections]
    if len(defaults) > 1 and not sections:
        return defaults
    merged = merge_dicts(defaults[0].model_dump(), *sections, given)
    return [_validated(type(defaults[0]), merged, SERVER_PREFIX)]


def _manager_config(from_yaml: dict[str, Any], flags: dict[str, Any]) -> ServerManagerConfig:
    names = ServerManagerConfig.model_fields
    chosen = {name: source[name] for source in (from_yaml, flags) for name in names if name in source}
    return _validated(ServerManagerConfig, chosen, "")


def _validated(model: Any, values: dict[str, Any], prefix: str) -> Any:
    """Build ``model``; errors name the setting and never repeat its value, which may be a key."""
    try:
        return model(**values)
    except ValidationError as error:
        rows = "\n".join(f"  {prefix}{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in error.errors())
        raise FailedExecutionException(f"{model.__name__} was given settings that it cannot take:\n{rows}", USAGE_ERROR) from None


def _show(env_config: BaseModel, servers: list[APIServerConfig]) -> None:
    rich_print(env_config)
    for server in servers:
        shown = _without_secrets(server) | {"api_key": "set, not shown" if server.api_key else "not set"}
        rich_print({type(server).__name__: shown})


def _without_secrets(model: BaseModel) -> dict[str, Any]:
    return {name: value for name, value in model.model_dump(mode="json").items() if name not in SECRET_FIELDS}


def _prepare_evaluation(env_config: Any, servers: list[APIServerConfig], manager: ServerManagerConfig) -> None:
    """Write ``evaluate_config.yaml``, or say early that nothing will be saved."""
    directory = env_config.data_dir_to_save_evals
    if directory is None:
        warnings.warn(
            "evaluate will save nothing: set --env.data_dir_to_save_evals DIR for metrics.json and samples.jsonl", stacklevel=2
        )
        return
    os.makedirs(directory, exist_ok=True)
    content = {
        ENV_NAMESPACE: env_config.model_dump(mode="json"),
        OPENAI_NAMESPACE: [_without_secrets(server) for server in servers],
        "slurm": manager.slurm,
        "testing": manager.testing,
    }
    text = yaml.safe_dump(content, default_flow_style=False, sort_keys=False)
    (Path(directory) / "evaluate_config.yaml").write_text(text, encoding="utf-8")
