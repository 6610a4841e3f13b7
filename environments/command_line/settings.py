"""Merges an environment's settings: the command line overrides the YAML file, which overrides ``config_init``.

Texts that are printed, written or raised here only name settings: a value may be an API key.

Place in the flow: `command_line` reads the settings of a run with `settings_of` and shows them with `without_secrets`.

Source: flags, files and their priority are those of atroposlib 0.4.0 (``BaseEnv.cli``).
"""

from __future__ import annotations

import difflib
import re
import types
import typing
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from atroposlib.envs.constants import ENV_NAMESPACE, NAMESPACE_SEP, OPENAI_NAMESPACE
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from atroposlib.envs.server_handling.server_manager import ServerManagerConfig
from atroposlib.utils.cli import merge_dicts
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_cli.argparse import FailedExecutionException

from environments.tokens.answer_checks import without_credentials
from hermes_env_shared.bounded_yaml import BeyondBounds, load_yaml

Mode = Literal["serve", "process", "evaluate"]

ENV_PREFIX = f"{ENV_NAMESPACE}{NAMESPACE_SEP}"
SERVER_PREFIX = f"{OPENAI_NAMESPACE}{NAMESPACE_SEP}"
USAGE_ERROR = 2
SHORTEST_KEY = 8
"""Characters. A shorter key is a placeholder like "none" or "local", which may be the value of another setting."""

_SECRET_NAME = re.compile(
    r"(api|access|auth|secret|private|judge|grader)[_-]?key$|secret$|password$|credentials?$|authorization$"
    r"|(^|access|auth|api|hf|bearer)[_-]?token$",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a run."""

    env: Any
    servers: list[APIServerConfig]
    manager: ServerManagerConfig


def usage_error(message: str) -> FailedExecutionException:
    """Return the error that ends the program with ``message`` and no traceback."""
    return FailedExecutionException(USAGE_ERROR, message)


def initial_settings(cls: Any) -> tuple[BaseModel, list[APIServerConfig]]:
    """Return the result of ``config_init``. Raises: FailedExecutionException when it is not (config, [servers])."""
    returned = cls.config_init()
    where = f"{cls.__name__}.config_init() must return (config, [APIServerConfig, ...])"
    if not isinstance(returned, tuple) or len(returned) != 2:  # noqa: PLR2004 - a pair
        raise usage_error(f"{where}; it returned {type(returned).__name__}")
    config, servers = returned
    if not isinstance(config, BaseModel):
        raise usage_error(f"{where}; its first value is {type(config).__name__}, not a configuration")
    if not isinstance(servers, list) or not servers:
        raise usage_error(
            f"{where}; its second value is {type(servers).__name__}, not a filled list. Atropos would ignore it and wait for "
            "model servers on localhost:9004 to 9007. Put the server's configuration into a list."
        )
    if wrong := [type(server).__name__ for server in servers if not isinstance(server, APIServerConfig)]:
        raise usage_error(f"{where}; its list holds {', '.join(wrong)}")
    return config, servers


def settings_of(cls: Any, mode: Mode, yaml_path: str | None, arguments: Sequence[str]) -> Settings:
    """Return the settings of one run. Raises: FailedExecutionException for invalid settings."""
    config, servers = initial_settings(cls)
    from_yaml = _read_yaml(yaml_path)
    flags = passed_flags(arguments)
    return Settings(
        env=_env_config(config, mode, cls.name, from_yaml, flags),
        servers=_server_configs(servers, from_yaml.get(OPENAI_NAMESPACE), flags),
        manager=_manager_config(from_yaml, flags),
    )


# ---------------------------------------------------------------------- flags


def flags_of(cls: Any) -> dict[str, FieldInfo]:
    """Return the flags of a class, without dashes, with the fields that they set. Raises: see `initial_settings`."""
    config, servers = initial_settings(cls)
    sections = (("", ServerManagerConfig), (SERVER_PREFIX, type(servers[0])), (ENV_PREFIX, type(config)))
    fields = {f"{prefix}{name}": field for prefix, model in sections for name, field in model.model_fields.items()}
    return {"config": FieldInfo(annotation=str, description="Path of a YAML file; flags override it."), **fields}


def check_arguments(arguments: Sequence[str], modes: Sequence[str], flags: Mapping[str, FieldInfo]) -> None:
    """Reject unknown flags and values without a flag, without repeating a value. Raises: FailedExecutionException."""
    if not arguments or (arguments[0] not in modes and arguments[0] != "--help"):
        raise usage_error(f"The first word must be one of {', '.join(modes)}. `--help` after it lists the settings.")
    if arguments[0] == "--help":
        return
    for name, values in _flag_words(arguments[1:]):
        if not name:
            raise usage_error("Expected a flag, found a value (not shown). Flags begin with two dashes.")
        if name not in {*flags, "help"}:
            near = difflib.get_close_matches(name, flags, n=3)
            hint = f" Did you mean {' or '.join(f'--{other}' for other in near)}?" if near else ""
            raise usage_error(f"There is no setting --{name}.{hint}")
        if not values and name != "help":
            raise usage_error(f"--{name} takes a value and got none.")
        if len(values) > 1 and not is_list(flags[name].annotation):
            raise usage_error(f"--{name} takes one value and got {len(values)}; quote a value that contains spaces.")


def passed_flags(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the given flags without dashes. Several values become a list, no value means True, ``None`` means None."""
    flags: dict[str, Any] = {}
    for name, values in _flag_words(arguments):
        if name:
            flags[name] = True if not values else _none(values[0]) if len(values) == 1 else values
    return flags


def _flag_words(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return (name, values) per flag; values before the first flag, and words with one dash, have an empty name."""
    found: list[tuple[str, list[str]]] = []
    takes_values = False
    for word in arguments:
        if not _is_flag(word):
            if takes_values:
                found[-1][1].append(word)
            else:
                found.append(("", [word]))
            continue
        name, equals, value = word[2:].partition("=") if word.startswith("--") else ("", "", word)
        found.append((name, [value] if equals else []))
        takes_values = bool(name) and not equals
    return found


def _is_flag(word: str) -> bool:
    """Return whether a word is a flag; a negative number is a value."""
    if not word.startswith("-") or word == "-":
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False


def _none(text: str) -> str | None:
    return None if text == "None" else text


def _within(flags: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in flags.items() if name.startswith(prefix)}


# ---------------------------------------------------------------------- YAML


def _read_yaml(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = load_yaml(Path(path).read_text(encoding="utf-8"))
    except BeyondBounds as error:
        raise usage_error(f"Cannot read --config {path}: line {error.line}: {error}") from None
    except yaml.MarkedYAMLError as error:  # its own text quotes the line, which may hold a key
        mark = error.problem_mark
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise usage_error(f"Cannot read --config {path}: {error.problem}{where}") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise usage_error(f"Cannot read --config {path}: {reason}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise usage_error(f"--config {path} must hold a mapping, not {type(content).__name__}")
    _warn_unknown(content, {ENV_NAMESPACE, OPENAI_NAMESPACE, *ServerManagerConfig.model_fields}, "The YAML file")
    return content


def _section(value: object, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise usage_error(f"`{name}` in the YAML file must hold a mapping, not {type(value).__name__}")
    return value


def _warn_unknown(given: Iterable[object], known: Collection[str], where: str) -> None:
    if unknown := sorted(str(name) for name in given if name not in known):
        rows = ", ".join(f"{name!r}{_hint(difflib.get_close_matches(name, known, n=1))}" for name in unknown)
        warnings.warn(f"{where} has unknown fields, which have no effect: {rows}", stacklevel=2)


def _hint(near: Sequence[str]) -> str:
    return f" (did you mean {near[0]!r}?)" if near else ""


# ---------------------------------------------------------------------- configurations


def _env_config(config: BaseModel, mode: Mode, name: str | None, from_yaml: dict[str, Any], flags: dict[str, Any]) -> Any:
    defaults = config.model_dump()
    if mode == "process":
        defaults |= {"ensure_scores_are_not_same": False, "include_messages": True}
        defaults["data_path_to_save_groups"] = defaults.get("data_path_to_save_groups") or f"data/{name or 'groups'}.jsonl"
    fields = type(config).model_fields
    section = _section(from_yaml.get(ENV_NAMESPACE), ENV_NAMESPACE)
    _warn_unknown(section, fields, f"The YAML file's `{ENV_NAMESPACE}`")
    given = {
        field: [value] if field in fields and is_list(fields[field].annotation) and isinstance(value, str) else value
        for field, value in _within(flags, ENV_PREFIX).items()
    }
    return _validated(type(config), merge_dicts(defaults, section, given), ENV_PREFIX)


def is_list(annotation: Any) -> bool:
    """Return whether a field's type is a list, or a list or None."""
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return any(is_list(part) for part in typing.get_args(annotation))
    return annotation is list or typing.get_origin(annotation) is list


def _server_configs(defaults: list[APIServerConfig], from_yaml: Any, flags: dict[str, Any]) -> list[APIServerConfig]:
    """Return the model servers; flags can only change one server."""
    given = _within(flags, SERVER_PREFIX)
    raw = from_yaml if isinstance(from_yaml, list) else [from_yaml] if from_yaml else []
    sections = [_section(section, OPENAI_NAMESPACE) for section in raw]
    for section in sections:
        _warn_unknown(section, type(defaults[0]).model_fields, f"The YAML file's `{OPENAI_NAMESPACE}`")
    if given and max(len(sections), len(defaults) if not sections else 0) > 1:
        raise usage_error(
            f"--{SERVER_PREFIX}* flags change a single model server, but several are configured; set them in the YAML file."
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
    """Build ``model``; errors name the setting and never its value, which may be a key."""
    try:
        return model(**values)
    except ValidationError as error:
        rows = ((".".join(map(str, row["loc"])), row["msg"]) for row in error.errors())
        lines = [f"  {prefix}{name}: {message}" if name else f"  {message}" for name, message in rows]
        raise usage_error("\n".join([f"{model.__name__} has invalid settings:", *lines])) from None


# ---------------------------------------------------------------------- secrets


def without_secrets(model: BaseModel, keys: Collection[str] = ()) -> dict[str, Any]:
    """Return a configuration as plain data, without fields named like secrets and without the given ``keys``."""
    secrets = frozenset(key for key in keys if len(key) >= SHORTEST_KEY)
    return typing.cast("dict[str, Any]", _stripped(model.model_dump(mode="json"), secrets))


def is_secret_name(name: str) -> bool:
    """Return whether a field or variable of this name holds a secret."""
    return bool(_SECRET_NAME.search(name))


def _stripped(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, str):
        for key in keys:
            value = value.replace(key, "***")
        return without_credentials(value)
    if isinstance(value, dict):
        return {
            name: _stripped(inner, keys)
            for name, inner in value.items()
            if not (is_secret_name(str(name)) or (isinstance(inner, str) and inner in keys))
        }
    if isinstance(value, list):
        return [_stripped(inner, keys) for inner in value if not (isinstance(inner, str) and inner in keys)]
    return value
