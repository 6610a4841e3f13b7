"""Every ``--hermes-*`` flag, ini value and marker, as one table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["FLAGS", "INI_VALUES", "MARKERS", "Flag", "IniValue"]


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One command-line flag; ``settings`` go to argparse. ``also`` is a second name, left out where another plugin has it."""

    name: str
    help: str
    also: str = ""
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class IniValue:
    """One value of the ini file."""

    name: str
    help: str
    default: str = ""


FLAGS = (
    Flag(
        name="--hermes-env",
        help="Judge an environment by the contract: package.module:Class, path/to/file.py or path/to/file.py:Class. "
        "One test item per rule; may be given several times. Without other arguments, only these are run.",
        settings={"action": "append", "default": [], "metavar": "TARGET"},
    ),
    Flag(
        name="--hermes-strict",
        help="Breaches of severity warning fail, too.",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-sandbox",
        help="What answers the tools in contract checks. fake (default): an in-memory machine with files and everyday commands, "
        "which starts no process. local: hermes' own terminal and file tools, in a private directory, confined where this "
        "machine can do that.",
        settings={"choices": ("fake", "local"), "default": "fake"},
    ),
    Flag(
        name="--hermes-mode",
        help="How contract checks ask the mock model. chat (default): chat completions. token: /generate with exact token ids and "
        "logprobs, which is how training runs; the rules about scored data then compare items with what was sampled.",
        settings={"choices": ("chat", "token"), "default": "chat"},
    ),
    Flag(
        name="--hermes-server-type",
        help="Whose /generate the mock model speaks with --hermes-mode token: vllm (default) or sglang.",
        settings={"choices": ("vllm", "sglang"), "default": "vllm"},
    ),
    Flag(
        name="--hermes-allow-unconfined",
        help="Let a live model use the local backend of a machine that can confine nothing (no bubblewrap, no user namespaces).",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-live",
        help="Run tests marked hermes_live on a real inference server, which must be named: --provider, and what it needs.",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-provider",
        also="--provider",
        help="Whose server: openrouter, openai, vllm, sglang, atropos or custom. Also ini hermes_live_provider and "
        "HERMES_ENV_PROVIDER; so for each of the following.",
        settings={"default": None, "metavar": "NAME"},
    ),
    Flag(
        name="--hermes-model",
        help="The model, as the provider names it. Needless where vllm, sglang or atropos serve one model.",
        settings={"default": None, "metavar": "M"},
    ),
    Flag(
        name="--hermes-base-url",
        help="Where the server is, /v1 included. Default: the provider's; http://localhost:8000/v1 for vllm, sglang, atropos.",
        settings={"default": None, "metavar": "URL"},
    ),
    Flag(
        name="--hermes-api-key-env",
        help="The environment variable that holds the key. Default: OPENROUTER_API_KEY, OPENAI_API_KEY; none for the others.",
        settings={"default": None, "metavar": "NAME"},
    ),
    Flag(
        name="--hermes-unlisted-model",
        help="Accept a model that the server does not list.",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-max-calls",
        help="How many calls the whole run may make, retries included; all workers of xdist share the limits.",
        settings={"default": None, "metavar": "N"},
    ),
    Flag(
        name="--hermes-max-tokens",
        help="How many tokens of prompts and answers the whole run may take; the call that goes over is the last.",
        settings={"default": None, "metavar": "N"},
    ),
    Flag(
        name="--hermes-max-usd",
        help="How much the whole run may cost; the call that goes over is the last. OpenRouter tells the cost of each call; for "
        "others, --hermes-prices is needed.",
        settings={"default": None, "metavar": "USD"},
    ),
    Flag(
        name="--hermes-prices",
        help="What models cost: a TOML, JSON or YAML file with, for each model, input and output in USD per million tokens.",
        settings={"default": None, "metavar": "FILE"},
    ),
    Flag(
        name="--hermes-compare",
        help="With --hermes-live: report where the answers of the real server and those of the mock model differ in shape.",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-allow-hosts",
        help="Hosts, separated by commas, that tests of this plugin may reach besides this machine: names, *.example.org, or *.",
        settings={"action": "append", "default": [], "metavar": "HOSTS"},
    ),
    Flag(
        name="--hermes-tokenizer",
        help="The tokenizer of a vllm or sglang server's model: a directory, or a name of the hub that is in the cache. "
        "Default: the model's name.",
        settings={"default": None, "metavar": "T"},
    ),
    Flag(
        name="--hermes-report-json",
        help="Write what every rule concluded about every class to FILE, as JSON (docs/reference/reports.md).",
        settings={"default": None, "metavar": "FILE"},
    ),
    Flag(
        name="--hermes-sarif",
        help="Write the findings to FILE as SARIF 2.1.0, for code scanning.",
        settings={"default": None, "metavar": "FILE"},
    ),
    Flag(
        name="--hermes-ledger",
        help="Fail when a class is exercised by fewer rules than FILE, a stored ledger, keeps for it.",
        settings={"default": None, "metavar": "FILE"},
    ),
    Flag(
        name="--hermes-write-ledger",
        help="Store the rules that this run exercised in the FILE of --hermes-ledger, instead of comparing with it.",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-record",
        help="What becomes of cassettes. none (default): they are played, never the network. once: those that are missing are "
        "recorded. new: rollouts and requests that are not on them are added. rewrite: all are recorded anew. "
        "Also ini hermes_record.",
        settings={"choices": ("none", "once", "new", "rewrite"), "default": None},
    ),
    Flag(
        name="--hermes-replay-tools",
        help="What answers tool calls in a replay. recorded (default): the cassette, no sandbox is needed. live: hermes' own tools, "
        "or the sandbox that the test has. fake: fake_sandbox.",
        settings={"choices": ("recorded", "live", "fake"), "default": "recorded"},
    ),
    Flag(
        name="--hermes-timeout",
        help="Seconds that one scenario of the contract may take (default: 60).",
        settings={"type": float, "default": 60.0, "metavar": "SECONDS"},
    ),
    Flag(
        name="--hermes-home",
        help="HERMES_HOME during the test run: a directory, or `keep` for the one that is set. "
        "Default: a temporary directory, also HOME of what hermes starts. The ini value hermes_home does the same.",
        settings={"default": None, "metavar": "DIR"},
    ),
)

INI_VALUES = (
    IniValue(name="hermes_home", help="Like --hermes-home; the flag wins."),
    IniValue(name="hermes_record", help="Like --hermes-record; the flag wins."),
    IniValue(name="hermes_live_provider", help="Like --provider; the flag and HERMES_ENV_PROVIDER win."),
    IniValue(name="hermes_live_model", help="Like --hermes-model."),
    IniValue(name="hermes_live_base_url", help="Like --hermes-base-url."),
    IniValue(name="hermes_live_api_key_env", help="Like --hermes-api-key-env."),
    IniValue(name="hermes_live_tokenizer", help="Like --hermes-tokenizer."),
    IniValue(name="hermes_live_max_calls", help="Like --hermes-max-calls."),
    IniValue(name="hermes_live_max_tokens", help="Like --hermes-max-tokens."),
    IniValue(name="hermes_live_max_usd", help="Like --hermes-max-usd."),
    IniValue(name="hermes_live_prices", help="Like --hermes-prices."),
    IniValue(
        name="hermes_allow_hosts", help="Hosts that tests of this plugin may reach, besides those of --hermes-allow-hosts."
    ),
)

MARKERS: tuple[str, ...] = (
    "hermes_allow_leftovers: turns of a script that nobody asked for do not fail this test.",
    "hermes_cassette(name, allow_leftovers=False): all requests to models, and all tool calls, are played from a cassette, or "
    "recorded with --hermes-record.",
    "hermes_live(or_mock=False, may_fail=False): runs with --hermes-live only, make_env giving the real server. With or_mock=True it runs "
    "without, too, on the mock model. may_fail=True accepts that the server answers no call at all.",
    "hermes_allow_hosts(*hosts): hosts that this test may reach besides this machine: names, *.example.org, or *.",
)
