"""Merges an environment's settings: the command line overrides the YAML file, which overrides ``config_init``.

Texts that are printed, written or raised here only name settings: a value may be an API key.

Place in the flow: `command_line` reads the settings of a run with `settings_of` and shows them with `without_secrets`.

Source: flags, files and their priority are those of atroposlib 0.4.0 (``BaseEnv.cli``).
"""

from __future__ import annotations

import argparse
import difflib
import re
import types
import typing
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

import yaml
from atroposlib.envs.constants import ENV_NAMESPACE, NAMESPACE_SEP, OPENAI_NAMESPACE
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from atroposlib.envs.server_handling.server_manager import ServerManagerConfig
from atroposlib.utils.cli import merge_dicts
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_cli.argparse import FailedExecutionException

from environments.rollout.secret_names import SHORTEST_KEY, is_secret_name
from environments.tokens.answer_checks import without_credentials
from hermes_env_shared.bounded_yaml import BeyondBounds, load_yaml

Mode = Literal["serve", "process", "evaluate"]

ENV_PREFIX = f"{ENV_NAMESPACE}{NAMESPACE_SEP}"
SERVER_PREFIX = f"{OPENAI_NAMESPACE}{NAMESPACE_SEP}"
USAGE_ERROR = 2


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


def settings_of(cls: Any, mode: Mode, arguments: Sequence[str], yaml_path: str | None = None) -> Settings:
    """Return the settings of one run, whose flags may name the YAML file. Raises: FailedExecutionException for invalid settings."""
    config, servers = initial_settings(cls)
    flags = FlagParser(cls).passed(arguments)
    from_yaml = _read_yaml(yaml_path or flags.get("config"))
    both = from_yaml | flags
    return Settings(
        env=_env_config(config, mode, cls.name, from_yaml, flags),
        servers=_server_configs(servers, from_yaml.get(OPENAI_NAMESPACE), flags),
        manager=_validated(
            ServerManagerConfig, {name: both[name] for name in ServerManagerConfig.model_fields if name in both}, ""
        ),
    )


# ---------------------------------------------------------------------- flags


class FlagParser(argparse.ArgumentParser):
    """Parses the flags of a class; what it reports names settings and shows no value."""

    def __init__(self, cls: Any) -> None:
        """Read the flags of a class, one for each field of a configuration. Raises: see `initial_settings`."""
        description = (
            f"Command line of {cls.__name__}. Settings come from the command line, then the YAML file, then config_init."
        )
        super().__init__(
            usage=f"%(prog)s {{{','.join(typing.get_args(Mode))}}} [--SETTING VALUE ...]",
            description=description,
            add_help=False,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        # argparse's own takes -1e-5 and -inf for flags
        self._negative_number_matcher = re.compile(r"-(?:\.?\d|(?:inf(?:inity)?|nan)$)", re.IGNORECASE)
        config, servers = initial_settings(cls)
        self.flags = {"config": FieldInfo(annotation=str, description="Path of a YAML file; flags override it.")}
        for prefix, model in (("", ServerManagerConfig), (SERVER_PREFIX, type(servers[0])), (ENV_PREFIX, type(config))):
            self.flags |= {f"{prefix}{name}": field for name, field in model.model_fields.items()}
        for name, field in self.flags.items():
            takes_several = _is_list(field.annotation)
            default = "" if field.is_required() or takes_several else field.get_default(call_default_factory=True)
            shown = "" if default in ("", None) else f" (default: {default})"
            text = f"{field.description or ''}{shown}".strip().replace("%", "%%")
            self.add_argument(f"--{name}", metavar="VALUE", nargs="+" if takes_several else None, help=text)

    def error(self, message: str) -> NoReturn:
        """Raise FailedExecutionException."""
        raise usage_error(message)

    def passed(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Return the given flags without dashes; ``None`` means None. Raises: FailedExecutionException for unknown flags and values."""
        given, unknown = self.parse_known_args(arguments)
        for word in unknown:
            if not word.startswith("--"):
                raise usage_error(self._about_a_value(word, arguments))
            name = word[2:].partition("=")[0]
            near = difflib.get_close_matches(name, self.flags, n=3)
            hint = f" Did you mean {' or '.join(f'--{other}' for other in near)}?" if near else ""
            raise usage_error(f"There is no setting --{name}.{hint}")
        return {name: None if value in ("None", ["None"]) else value for name, value in vars(given).items()}

    def _about_a_value(self, stray: str, arguments: Sequence[str]) -> str:
        """Return the error for a value that no flag takes; it names the flag before it, if that has one already."""
        name, values = "", list[str]()
        for word in (*arguments, "--"):
            if not word.startswith("-") or word == "-" or self._negative_number_matcher.match(word):
                values.append(word)
                continue
            if stray in values[1:] and name in self.flags and not _is_list(self.flags[name].annotation):
                return f"--{name} takes one value and got {len(values)}; quote a value that contains spaces."
            name, values = word.removeprefix("--"), []
        return "Expected a flag, found a value (not shown). Flags begin with two dashes; quote a value that contains spaces."


def _is_list(annotation: Any) -> bool:
    """Return whether a field's type is a list, or a list or None."""
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        return any(_is_list(part) for part in typing.get_args(annotation))
    return annotation is list or typing.get_origin(annotation) is list


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
        near = {name: difflib.get_close_matches(name, known, n=1) for name in unknown}
        rows = ", ".join(f"{name!r} (did you mean {found[0]!r}?)" if found else repr(name) for name, found in near.items())
        warnings.warn(f"{where} has unknown fields, which have no effect: {rows}", stacklevel=2)


# ---------------------------------------------------------------------- configurations


def _env_config(config: BaseModel, mode: Mode, name: str | None, from_yaml: dict[str, Any], flags: dict[str, Any]) -> Any:
    defaults = config.model_dump()
    if mode == "process":
        defaults |= {"ensure_scores_are_not_same": False, "include_messages": True}
        defaults["data_path_to_save_groups"] = defaults.get("data_path_to_save_groups") or f"data/{name or 'groups'}.jsonl"
    section = _section(from_yaml.get(ENV_NAMESPACE), ENV_NAMESPACE)
    _warn_unknown(section, type(config).model_fields, f"The YAML file's `{ENV_NAMESPACE}`")
    return _validated(type(config), merge_dicts(defaults, section, _within(flags, ENV_PREFIX)), ENV_PREFIX)


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


def _validated(model: Any, values: dict[str, Any], prefix: str) -> Any:
    """Build ``model``; errors name the setting and never its value, which may be a key."""
    try:
        return model(**values)
    except ValidationError as error:
        rows = ((".".join(map(str, row["loc"])), row["msg"]) for row in error.errors())
        lines = [f"  {prefix}{name}: {message}" if name else f"  {message}" for name, message in rows]
        raise usage_error("\n".join([f"{model.__name__} has invalid settings:", *lines])) from None


# ---------------------------------------------------------------------- secrets


def without_secrets(model: BaseModel, keys: Collection[str] = (), **choice: Any) -> dict[str, Any]:
    """Return a configuration as plain data, without fields named like secrets and without the given ``keys``.

    ``choice`` says which fields, as for ``model_dump``.
    """
    secrets = frozenset(key for key in keys if len(key) >= SHORTEST_KEY)
    return typing.cast("dict[str, Any]", _stripped(model.model_dump(mode="json", **choice), secrets))


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
