"""Every ``--hermes-*`` flag, ini value and marker, as one table."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import pytest

REAL_TOOLS = ("confined", "never")
"""The first one is the default."""
CONFINE = ("required", "off")
"""The first one is the default."""


def _seconds(text: str) -> float:
    """Return a number above 0."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"takes a number of seconds above 0; got {text!r}")
    return seconds


def _factor(text: str) -> int:
    """Return a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"takes a whole number from 1 on; got {text!r}")
    return int(text)


@dataclass(frozen=True)
class Flag:
    """One command-line flag; ``settings`` go to argparse. ``also`` is a second name, omitted if another plugin has it."""

    name: str
    help: str
    settings: dict[str, Any]
    also: str = ""


def _switch(name: str, text: str) -> Flag:
    return Flag(name, text, {"action": "store_true", "default": False})


def _choice(name: str, choices: tuple[str, ...], text: str) -> Flag:
    """Return a flag whose default is the first choice."""
    return Flag(name, text, {"choices": choices, "default": choices[0]})


def _value(name: str, metavar: str, text: str, *, also: str = "") -> Flag:
    return Flag(name, text, {"default": None, "metavar": metavar}, also)


def _list(name: str, metavar: str, text: str) -> Flag:
    return Flag(name, text, {"action": "append", "default": [], "metavar": metavar})


FLAGS = (
    _list(
        "--hermes-env",
        "TARGET",
        "Check an environment against the contract: package.module:Class, path/to/file.py or path/to/file.py:Class. "
        "One test item per rule; may be repeated. Without other arguments, only these items run.",
    ),
    _value(
        "--hermes-base",
        "CLASS",
        "The base class of environments in a fork of the layer that calls it otherwise: AcmeEnv or acme.base:AcmeEnv. A base that is "
        "built like HermesAgentBaseEnv is recognised without it. Also ini hermes_base and HERMES_ENV_BASE.",
    ),
    _list(
        "--hermes-rules",
        "IDS",
        "Only these rules of contract checks, such as HE401,HE5; only the scenarios that they read are played. May be repeated.",
    ),
    _value(
        "--hermes-evidence",
        "FILE",
        "Keep what was played in FILE, compressed and redacted: `hermes-env judge FILE` judges it again without playing.",
    ),
    _value(
        "--hermes-judge",
        "FILE",
        "Judge what --hermes-evidence kept, without playing; as `hermes-env judge FILE` does. Nothing of the environment is imported.",
    ),
    _choice(
        "--hermes-player",
        ("child", "here"),
        "Where contract checks play an environment. child (default): in a process of its own, whatever it does there. here: in "
        "pytest's process, where breakpoint(), --pdb and print (with -s) work and nothing protects the run.",
    ),
    _switch("--hermes-strict", "Findings of severity warning fail too."),
    _list(
        "--hermes-set",
        "NAME=VALUE",
        "A setting of the environment's configuration in contract checks, such as judge_url=http://judge.invalid/v1; VALUE is YAML. It wins over "
        "`settings` of a file of cases. Can be repeated.",
    ),
    _list(
        "--hermes-attack",
        "NAME=VALUE",
        "How the searches of `hermes-env attack` run: item=3 (a training item, from 0), minutes=10 (then they end, and are not judged), "
        "resume=FILE (what was refused is not played again).",
    ),
    Flag(
        "--hermes-effort",
        "How much is played around gold in contract checks: a factor of the number of its neighbours. Default: 1.",
        {"type": _factor, "default": 1, "metavar": "N"},
    ),
    _choice(
        "--hermes-sandbox",
        ("fake", "local"),
        "The sandbox of contract checks. fake (default): an in-memory machine with files and common commands, which starts no "
        "process. local: hermes' own terminal and file tools in a private directory, confined if this machine can do that.",
    ),
    _choice(
        "--hermes-mode",
        ("chat", "token"),
        "How contract checks call the mock model. chat (default): chat completions. token: /generate with exact token ids and "
        "logprobs, as in training; the rules about scored data then compare items with the sampled tokens.",
    ),
    _choice(
        "--hermes-server-type", ("vllm", "sglang"), "The API of /generate with --hermes-mode token: vllm (default) or sglang."
    ),
    Flag(
        "--hermes-confine",
        "Whether commands of a sandbox, and the terminal of a live model, must be confined. required (default): where this machine cannot "
        "confine them, they are refused. off: there they run with your files, processes and network. hermes-env doctor says what this "
        "machine can do. Also ini hermes_confine.",
        {"choices": CONFINE, "default": None},
    ),
    Flag(
        "--hermes-real-tools",
        "When fake sandboxes, also those of contract checks, run real programs for command lines that their in-memory shell does not "
        "know. confined (default): where this machine can confine them. never: nothing real runs. Also ini hermes_real_tools.",
        {"choices": REAL_TOOLS, "default": None},
    ),
    _switch(
        "--hermes-keep-gold",
        "With --hermes-live and --hermes-env: let the model try three items of each environment, twice, within the spending limit, and write what "
        "earned most into a file of cases, as gold.",
    ),
    _switch("--hermes-live", "Run tests marked hermes_live on a real inference server. Requires --provider and its settings."),
    _value(
        "--hermes-provider",
        "NAME",
        "The provider: openrouter, openai, vllm, sglang, atropos or custom. Also ini hermes_live_provider and "
        "HERMES_ENV_PROVIDER; the following options have such names too.",
        also="--provider",
    ),
    _value("--hermes-model", "M", "The model, as the provider names it. Optional if vllm, sglang or atropos serves one model."),
    _value(
        "--hermes-base-url",
        "URL",
        "The server's URL, including /v1. Default: the provider's; http://localhost:8000/v1 for vllm, sglang, atropos.",
    ),
    _value(
        "--hermes-api-key-env",
        "NAME",
        "The environment variable that holds the key. Default: OPENROUTER_API_KEY, OPENAI_API_KEY; none for the others.",
    ),
    _switch("--hermes-unlisted-model", "Accept a model that the server does not list."),
    _value(
        "--hermes-max-calls",
        "N",
        "The maximum number of calls in the whole run, including retries; all xdist workers share the limits.",
    ),
    _value(
        "--hermes-max-tokens",
        "N",
        "The maximum number of prompt and answer tokens in the whole run; the call that exceeds it is the last.",
    ),
    _value(
        "--hermes-max-usd",
        "USD",
        "The maximum cost of the whole run; the call that exceeds it is the last. OpenRouter reports the cost of each call; "
        "those of other providers are known with the extra `prices`, which brings genai-prices, or by --hermes-prices.",
    ),
    _value(
        "--hermes-prices",
        "FILE",
        "Prices: a TOML, JSON or YAML file with input and output in USD per million tokens for each model.",
    ),
    _value(
        "--hermes-call-timeout",
        "SECONDS",
        "The maximum duration of one call to the real server. A call that takes longer is tried again, three times in all, and then "
        "fails with CallTimedOut. Default: the limit of the environment's client.",
    ),
    _list(
        "--hermes-allow-hosts",
        "HOSTS",
        "Comma-separated hosts that tests using this plugin may reach besides this machine: names, *.example.org, or *.",
    ),
    _value(
        "--hermes-tokenizer",
        "T",
        "The tokenizer of a vllm or sglang server's model: a directory, or a name in the hub's cache. Default: the model's name.",
    ),
    _value(
        "--hermes-report-json",
        "FILE",
        "Write the verdict of every rule on every class to FILE, as JSON (hermes-env docs reports).",
    ),
    _value(
        "--hermes-html", "FILE", "Write findings, ladder and ledger to FILE as a page for a browser, which loads nothing else."
    ),
    _value("--hermes-sarif", "FILE", "Write the findings to FILE as SARIF 2.1.0, for code scanning."),
    _value(
        "--hermes-min-exercised",
        "N",
        "Fail if rollouts exercise fewer than N rules of a class. all (default): every rule with a rollout half that applies, "
        "unless it says why it cannot be exercised. Also ini hermes_min_exercised.",
    ),
    Flag(
        "--hermes-record",
        "Record mode of cassettes. none (default): replay only, no network. once: record missing cassettes. new_episodes: add rollouts "
        "and requests that are not recorded yet. rewrite: record all of them again. Also ini hermes_record.",
        {"choices": ("none", "once", "new_episodes", "rewrite"), "default": None},
    ),
    _choice(
        "--hermes-replay-tools",
        ("recorded", "live", "fake"),
        "The source of tool results in a replay. recorded (default): the cassette, no sandbox is needed. live: hermes' own "
        "tools, or the test's sandbox. fake: fake_sandbox.",
    ),
    Flag(
        "--hermes-timeout",
        "Time limit of one contract scenario in seconds (default: 60).",
        {"type": _seconds, "default": 60.0, "metavar": "SECONDS"},
    ),
    _value(
        "--hermes-home",
        "DIR",
        "HERMES_HOME during the test run: a directory, or `keep` for the directory that is set. "
        "Default: a temporary directory, made when hermes is first used, with a HOME for its commands. Also ini hermes_home.",
    ),
)

LIVE_SETTINGS = (
    "model",
    "base_url",
    "api_key_env",
    "tokenizer",
    "max_calls",
    "max_tokens",
    "max_usd",
    "prices",
    "call_timeout",
)
"""Settings of live mode, besides the provider, that are a flag, a variable and an ini value each."""

INI_VALUES: dict[str, str] = {
    "hermes_base": "Like --hermes-base; the flag wins.",
    "hermes_confine": "Like --hermes-confine; the flag wins.",
    "hermes_home": "Like --hermes-home; the flag wins.",
    "hermes_min_exercised": "Like --hermes-min-exercised; the flag wins.",
    "hermes_real_tools": "Like --hermes-real-tools; the flag wins.",
    "hermes_record": "Like --hermes-record; the flag wins.",
    "hermes_live_provider": "Like --provider; the flag and HERMES_ENV_PROVIDER win.",
    **{f"hermes_live_{name}": f"Like --hermes-{name.replace('_', '-')}." for name in LIVE_SETTINGS},
    "hermes_allow_hosts": "Hosts that tests using this plugin may reach, in addition to those of --hermes-allow-hosts.",
}
"""Name -> help; each is a text, by default an empty one."""

MARKERS: tuple[str, ...] = (
    "hermes_allow_leftovers: unused script turns, sandbox answers and HTTP routes, and rewards that fail in rollouts, do not fail this test.",
    "hermes_cassette(name, allow_leftovers=False): replays all requests to models and all tool calls from a cassette, or "
    "records them with --hermes-record.",
    "hermes_live(or_mock=False, may_fail=False): runs only with --hermes-live; make_env uses the real server. With or_mock=True it "
    "also runs without the flag, on the mock model. may_fail=True accepts that the server answers no call at all.",
    "hermes_rollouts(*patterns): files of recorded rollouts, from the root directory; a test with the argument recorded_rollout runs for each.",
    "hermes_allow_hosts(*hosts): hosts that this test may reach besides this machine: names, *.example.org, or *.",
)


def settings_to_play(config: Any) -> dict[str, Any]:
    """Return the settings of --hermes-set by name. Raises: one without a value → pytest.UsageError."""
    return _pairs(config, "--hermes-set", "judge_model=small")


def attack_to_play(config: Any) -> dict[str, Any]:
    """Return the fields of --hermes-attack by name. Raises: one without a value → pytest.UsageError."""
    return _pairs(config, "--hermes-attack", "minutes=10")


def _pairs(config: Any, flag: str, example: str) -> dict[str, Any]:
    pairs = [text.partition("=") for text in config.getoption(flag.strip("-").replace("-", "_"))]
    if not pairs:
        return {}
    import yaml  # noqa: PLC0415 - only where something is set

    if wrong := next((name for name, sign, _ in pairs if not sign or not name.isidentifier()), None):
        raise pytest.UsageError(f"{flag} takes NAME=VALUE, such as {example}; got {wrong!r}")
    return {name: yaml.safe_load(value) for name, _, value in pairs}


def real_tools_of(config: Any) -> Any:
    """Return when sandboxes may run real programs. They check it themselves."""
    use = _chosen(config, "hermes_real_tools", REAL_TOOLS[0])
    return "always" if use == REAL_TOOLS[0] and not requires_confinement(config) else use


def requires_confinement(config: Any) -> bool:
    """Return whether commands are refused that this machine cannot confine. Raises: an unknown ini value → pytest.UsageError."""
    how = _chosen(config, "hermes_confine", CONFINE[0])
    if how not in CONFINE:
        raise pytest.UsageError(f"hermes_confine is {how!r}. Known: {', '.join(CONFINE)}")
    return how == CONFINE[0]


def _chosen(config: Any, name: str, default: str) -> str:
    """Return the flag's value, the ini value or the default."""
    return config.getoption(name) or str(config.getini(name)).strip() or default
