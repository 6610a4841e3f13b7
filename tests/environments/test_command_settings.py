"""Where settings come from, and that no message repeats a value."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from atroposlib.envs.server_handling.server_baseline import APIServerConfig, ServerBaseline
from pydantic import Field
from pydantic_cli import FailedExecutionException

from environments.command_line.main import main
from environments.command_line.settings import FlagParser, settings_of, without_secrets
from environments.hermes_base_env import HermesAgentEnvConfig

KEY = "sk-secret-0123456789abcdef"


class Config(HermesAgentEnvConfig):
    """A configuration with a field of each kind."""

    judge_api_key: str = Field(default="", description="A secret of the environment's own.")
    margin: float = Field(default=0.0, description="A number that may be negative.")


def environment(returned: Any = None) -> Any:
    default = (Config(group_size=3), [APIServerConfig(model_name="from-init", api_key=KEY, health_check=False)])
    return SimpleNamespace(
        name="mine", __name__="Mine", config_init=lambda: default if returned is None else returned, cli=None
    )


def settings(tmp_path: Any, flags: str = "", yaml: str | None = None, mode: Any = "process", returned: Any = None) -> Any:
    path = None
    if yaml is not None:
        path = str(tmp_path / "c.yaml")
        (tmp_path / "c.yaml").write_text(yaml)
    return settings_of(environment(returned), mode, flags.split(), path)


def refused(act: Any, *arguments: Any, **keywords: Any) -> str:
    """Return the message of a usage error, which never holds the key."""
    with pytest.raises(FailedExecutionException) as error:
        act(*arguments, **keywords)
    assert error.value.exit_code == 2
    assert KEY not in error.value.message
    return error.value.message


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ([], {}),
        (["--env.margin", "1"], {"env.margin": "1"}),
        (["--env.margin=1"], {"env.margin": "1"}),
        (["--env.system_prompt="], {"env.system_prompt": ""}),
        (["--env.system_prompt=x=y"], {"env.system_prompt": "x=y"}),
        (["--env.system_prompt", "be good"], {"env.system_prompt": "be good"}),
        (["--env.margin", "-1"], {"env.margin": "-1"}),
        (["--env.margin", "-1.5"], {"env.margin": "-1.5"}),
        (["--env.margin", "-1e-5"], {"env.margin": "-1e-5"}),
        (["--env.margin", "-.5"], {"env.margin": "-.5"}),
        (["--env.margin", "-inf"], {"env.margin": "-inf"}),
        (["--env.margin", "-Infinity"], {"env.margin": "-Infinity"}),
        (["--env.margin", "-nan"], {"env.margin": "-nan"}),
        (["--env.enabled_toolsets", "x", "y"], {"env.enabled_toolsets": ["x", "y"]}),
        (["--env.enabled_toolsets", "None"], {"env.enabled_toolsets": None}),
        (["--env.system_prompt", "None"], {"env.system_prompt": None}),
        (["--env.margin", "1", "--env.margin", "2"], {"env.margin": "2"}),
        (["--env.system_prompt", "-"], {"env.system_prompt": "-"}),
    ],
)
def test_flags_are_read(arguments, flags):
    """Negative numbers are values, a list takes several, the last flag of a name wins."""
    assert FlagParser(environment()).passed(arguments) == flags


def test_flags_win_over_yaml_over_config_init(tmp_path):
    """Each source is heard where the ones above it are silent."""
    yaml = "env: {max_agent_turns: 5, group_size: 6}\nopenai: {model_name: from-yaml, base_url: http://y/v1}"

    found = settings(tmp_path, "--env.group_size 7 --openai.base_url http://flag/v1", yaml)

    assert (found.env.group_size, found.env.max_agent_turns, found.env.tool_pool_size) == (7, 5, 128)
    assert [(server.base_url, server.model_name, server.api_key) for server in found.servers] == [
        ("http://flag/v1", "from-yaml", KEY)
    ]
    assert type(found.env) is Config


def test_process_keeps_every_group_and_its_messages(tmp_path):
    """process is for data: equal scores are kept, messages written, a file is chosen; all can be changed."""
    found = settings(tmp_path).env
    changed = settings(tmp_path, "--env.include_messages false --env.data_path_to_save_groups x.jsonl").env

    assert (found.ensure_scores_are_not_same, found.include_messages, found.data_path_to_save_groups) == (
        False,
        True,
        "data/mine.jsonl",
    )
    assert (changed.include_messages, changed.data_path_to_save_groups) == (False, "x.jsonl")


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        ("--env.margin -1e-5", "margin", -1e-5),
        ("--env.total_steps -1", "total_steps", -1),
        ("--env.use_wandb false", "use_wandb", False),
        ("--env.enabled_toolsets terminal file", "enabled_toolsets", ["terminal", "file"]),
        ("--env.enabled_toolsets terminal", "enabled_toolsets", ["terminal"]),
        ("--env.enabled_toolsets None", "enabled_toolsets", None),
        ("--env.system_prompt None", "system_prompt", None),
    ],
)
def test_flag_values_become_what_the_field_holds(tmp_path, flags, field, value):
    """Numbers, booleans, lists and None can all be given by a flag."""
    assert getattr(settings(tmp_path, flags).env, field) == value


def test_several_servers_come_from_yaml(tmp_path):
    """A list in YAML is several model servers."""
    found = settings(tmp_path, yaml="openai: [{model_name: a}, {model_name: b}]")

    assert [server.model_name for server in found.servers] == ["a", "b"]


@pytest.mark.parametrize("yaml", [None, "openai: [{model_name: a}, {model_name: b}]"])
def test_flags_cannot_change_several_servers(tmp_path, yaml):
    """It would be unclear which one is meant."""
    servers = [APIServerConfig(model_name="a"), APIServerConfig(model_name="b")]

    message = refused(settings, tmp_path, f"--openai.api_key {KEY}", yaml, returned=(Config(), servers))

    assert message.startswith("--openai.* flags change a single model server, but several are configured")


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ((Config(), ServerBaseline()), "its second value is ServerBaseline, not a filled list. Atropos would ignore it"),
        ((Config(), APIServerConfig(api_key=KEY)), "its second value is APIServerConfig, not a filled list"),
        ((Config(), []), "its second value is list, not a filled list"),
        ((Config(), [{"api_key": KEY}]), "its list holds dict"),
        ((None, [APIServerConfig()]), "its first value is NoneType, not a configuration"),
        (Config(), "it returned Config"),
    ],
)
def test_config_init_that_is_no_pair_of_config_and_list_is_an_error(tmp_path, returned, words):
    """Atropos would hang on localhost:9004 instead."""
    message = refused(settings, tmp_path, returned=returned)

    assert message.startswith("Mine.config_init() must return (config, [APIServerConfig, ...]); ")
    assert words in message


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        (f"openai: {{api_key: {KEY}\nenv: [", "in line 2, column "),
        (f"env: [{KEY}]", "`env` in the YAML file must hold a mapping, not list"),
        (f"openai: {KEY}", "`openai` in the YAML file must hold a mapping, not str"),
        (f"- {KEY}", "must hold a mapping, not list"),
        (f"env: {{group_size: {KEY}}}", "env.group_size: Input should be a valid integer"),
        (f"openai: {{timeout: {KEY}}}", "openai.timeout: Input should be a valid integer"),
    ],
)
def test_yaml_errors_say_where_and_never_what(tmp_path, yaml, words):
    """A broken line may hold a key: its place is said, its text is not."""
    assert words in refused(settings, tmp_path, yaml=yaml)


def test_missing_yaml_file_is_an_error(tmp_path):
    """The path is named."""
    message = refused(settings_of, environment(), "process", [], str(tmp_path / "none.yaml"))

    assert message == f"Cannot read --config {tmp_path}/none.yaml: No such file or directory"


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        (
            "env: {group_sise: 3}",
            r"`env` has unknown fields, which have no effect: 'group_sise' \(did you mean 'group_size'\?\)$",
        ),
        ("env: {zzz: 3, max_turns: 3}", r"effect: 'max_turns' \(did you mean 'max_agent_turns'\?\), 'zzz'$"),
        (f"openai: {{api_keyy: {KEY}}}", r"`openai` has unknown fields, .* 'api_keyy' \(did you mean 'api_key'\?\)$"),
        ("enviroment: {a: 1}", r"The YAML file has unknown fields, which have no effect: 'enviroment'$"),
    ],
)
def test_misspelt_yaml_fields_warn(tmp_path, yaml, words):
    """An unknown field is probably a mistake."""
    with pytest.warns(UserWarning, match=words) as warned:
        settings(tmp_path, yaml=yaml)

    assert KEY not in str(warned[0].message)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--openai.api_keyy", KEY], "There is no setting --openai.api_keyy. Did you mean --openai.api_key"),
        (["--openai.api_ke=" + KEY], "There is no setting --openai.api_ke."),
        (["--env.total_step", "3"], "There is no setting --env.total_step. Did you mean --env.total_steps"),
        ([KEY], "Expected a flag, found a value (not shown)."),
        (["--env.use_wandb=false", KEY], "Expected a flag, found a value"),
        ([f"-{KEY}"], "Expected a flag, found a value"),
        (["--env.enabled_toolsets", "x", "-info"], "Expected a flag, found a value"),
        (["--env.margin", "2", "--env.total_steps", "1", "2", "-3"], "--env.total_steps takes one value and got 3; quote"),
        (["--env.total_steps"], "argument --env.total_steps: expected one argument"),
        (["--env.enabled_toolsets"], "argument --env.enabled_toolsets: expected at least one argument"),
        (["--env.tokenizer_name", "--openai.api_key", KEY], "argument --env.tokenizer_name: expected one argument"),
        (
            ["--openai.api_key", "a", KEY],
            "--openai.api_key takes one value and got 2; quote a value that contains spaces.",
        ),
    ],
)
def test_wrong_arguments_are_named_without_their_values(arguments, words):
    """A misspelt flag is an error, also one that only begins like a real one; what stood behind it is not repeated."""
    message = refused(FlagParser(environment()).passed, arguments)

    assert message.startswith(words)


@pytest.mark.parametrize("arguments", [["--help"], ["process", "--help"]])
def test_help_lists_every_setting_and_shows_no_value_of_config_init(arguments, monkeypatch, capsys):
    """The modes, and each flag with its description and the default of its class."""
    monkeypatch.setattr("sys.argv", ["env.py", *arguments])

    with pytest.raises(SystemExit) as ended:
        main(environment())

    shown = " ".join(capsys.readouterr().out.split())
    assert (ended.value.code, KEY in shown, "from-init" in shown) == (0, False, False)
    assert "{serve,process,evaluate}" in shown
    assert "--env.margin VALUE A number that may be negative. (default: 0.0)" in shown
    assert [name for name in FlagParser(environment()).flags if f"--{name} VALUE" not in shown] == []


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["process", "--env.total_step", "3"], 2, "There is no setting --env.total_step. "),
        ([], 2, "The first word must be one of serve, "),
        ([KEY], 2, "The first word must be one of serve, "),
        (["process"], 0, ""),
    ],
)
def test_the_command_line_ends_with_its_code(arguments, code, error, monkeypatch, capsys):
    """A usage error has no traceback."""
    monkeypatch.setattr("sys.argv", ["env.py", *arguments])
    monkeypatch.setattr("environments.command_line.main._run", lambda cls, mode, settings: print(mode, settings.env.group_size))

    with pytest.raises(SystemExit) as ended:
        main(environment())

    shown = capsys.readouterr()
    assert (ended.value.code, shown.out, KEY in shown.err) == (code, "" if code else "process 3\n", False)
    assert shown.err.startswith(error)


def test_wrong_value_is_named_without_the_value(tmp_path):
    """The setting and what it should be are said, not what it was."""
    message = refused(settings, tmp_path, f"--env.group_size {KEY}")

    assert message == (
        "Config has invalid settings:\n  env.group_size: Input should be a valid integer, unable to parse string as an integer"
    )


def test_secrets_are_left_out_by_name_and_by_value():
    """Fields named like secrets are left out, and whatever equals a key, at any depth."""
    config = Config(
        judge_api_key="other-secret",
        system_prompt="be good",
        extra_body={"headers": {"Authorization": "Bearer x"}, "route": [KEY, "a"], "token": "t"},
        dataset_name=KEY,
    )

    shown = without_secrets(config, [KEY])

    assert {"judge_api_key", "dataset_name"} & set(shown) == set()
    assert (shown["extra_body"], shown["system_prompt"]) == ({"headers": {}, "route": ["a"]}, "be good")
    assert {"tokenizer_name", "max_token_length", "prompt_field"} <= set(shown)


def test_stand_in_for_a_key_hides_nothing():
    """A key of a few letters is a stand-in, and may be the value of another setting."""
    assert without_secrets(Config(), ["local"])["terminal_backend"] == "local"
