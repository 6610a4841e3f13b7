"""Every ``--hermes-*`` flag, ini value and marker, as one table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["FLAGS", "INI_VALUES", "MARKERS", "Flag", "IniValue"]


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One command-line flag; ``settings`` go to argparse. ``also`` is a second name, omitted if another plugin has it."""

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
        help="Check an environment against the contract: package.module:Class, path/to/file.py or path/to/file.py:Class. "
        "One test item per rule; may be repeated. Without other arguments, only these items run.",
        settings={"action": "append", "default": [], "metavar": "TARGET"},
    ),
    Flag(
        name="--hermes-strict",
        help="Findings of severity warning fail too.",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-sandbox",
        help="The sandbox of contract checks. fake (default): an in-memory machine with files and common commands, "
        "which starts no process. local: hermes' own terminal and file tools in a private directory, confined if this "
        "machine can do that.",
        settings={"choices": ("fake", "local"), "default": "fake"},
    ),
    Flag(
        name="--hermes-mode",
        help="How contract checks call the mock model. chat (default): chat completions. token: /generate with exact token ids and "
        "logprobs, as in training; the rules about scored data then compare items with the sampled tokens.",
        settings={"choices": ("chat", "token"), "default": "chat"},
    ),
    Flag(
        name="--hermes-server-type",
        help="The API of /generate with --hermes-mode token: vllm (default) or sglang.",
        settings={"choices": ("vllm", "sglang"), "default": "vllm"},
    ),
    Flag(
        name="--hermes-allow-unconfined",
        help="Let a live model use the local backend on a machine that cannot confine it (no bubblewrap, no user namespaces).",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-live",
        help="Run tests marked hermes_live on a real inference server. Requires --provider and its settings.",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-provider",
        also="--provider",
        help="The provider: openrouter, openai, vllm, sglang, atropos or custom. Also ini hermes_live_provider and "
        "HERMES_ENV_PROVIDER; the following options have such names too.",
        settings={"default": None, "metavar": "NAME"},
    ),
    Flag(
        name="--hermes-model",
        help="The model, as the provider names it. Optional if vllm, sglang or atropos serves one model.",
        settings={"default": None, "metavar": "M"},
    ),
    Flag(
        name="--hermes-base-url",
        help="The server's URL, including /v1. Default: the provider's; http://localhost:8000/v1 for vllm, sglang, atropos.",
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
        help="The maximum number of calls in the whole run, including retries; all xdist workers share the limits.",
        settings={"default": None, "metavar": "N"},
    ),
    Flag(
        name="--hermes-max-tokens",
        help="The maximum number of prompt and answer tokens in the whole run; the call that exceeds it is the last.",
        settings={"default": None, "metavar": "N"},
    ),
    Flag(
        name="--hermes-max-usd",
        help="The maximum cost of the whole run; the call that exceeds it is the last. OpenRouter reports the cost of each call; "
        "other providers require --hermes-prices.",
        settings={"default": None, "metavar": "USD"},
    ),
    Flag(
        name="--hermes-prices",
        help="Prices: a TOML, JSON or YAML file with input and output in USD per million tokens for each model.",
        settings={"default": None, "metavar": "FILE"},
    ),
    Flag(
        name="--hermes-compare",
        help="With --hermes-live: report where the answers of the real server and of the mock model differ in shape.",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-allow-hosts",
        help="Comma-separated hosts that tests using this plugin may reach besides this machine: names, *.example.org, or *.",
        settings={"action": "append", "default": [], "metavar": "HOSTS"},
    ),
    Flag(
        name="--hermes-tokenizer",
        help="The tokenizer of a vllm or sglang server's model: a directory, or a name in the hub's cache. "
        "Default: the model's name.",
        settings={"default": None, "metavar": "T"},
    ),
    Flag(
        name="--hermes-report-json",
        help="Write the verdict of every rule on every class to FILE, as JSON (docs/reference/reports.md).",
        settings={"default": None, "metavar": "FILE"},
    ),
    Flag(
        name="--hermes-sarif",
        help="Write the findings to FILE as SARIF 2.1.0, for code scanning.",
        settings={"default": None, "metavar": "FILE"},
    ),
    Flag(
        name="--hermes-ledger",
        help="Fail if fewer rules exercise a class than the ledger stored in FILE records for it.",
        settings={"default": None, "metavar": "FILE"},
    ),
    Flag(
        name="--hermes-write-ledger",
        help="Store the rules that this run exercised in the FILE of --hermes-ledger instead of comparing with it.",
        settings={"action": "store_true", "default": False},
    ),
    Flag(
        name="--hermes-record",
        help="Record mode of cassettes. none (default): replay only, no network. once: record missing cassettes. "
        "new: add rollouts and requests that are not recorded yet. rewrite: record all of them again. "
        "Also ini hermes_record.",
        settings={"choices": ("none", "once", "new", "rewrite"), "default": None},
    ),
    Flag(
        name="--hermes-replay-tools",
        help="The source of tool results in a replay. recorded (default): the cassette, no sandbox is needed. live: hermes' own "
        "tools, or the test's sandbox. fake: fake_sandbox.",
        settings={"choices": ("recorded", "live", "fake"), "default": "recorded"},
    ),
    Flag(
        name="--hermes-timeout",
        help="Time limit of one contract scenario in seconds (default: 60).",
        settings={"type": float, "default": 60.0, "metavar": "SECONDS"},
    ),
    Flag(
        name="--hermes-home",
        help="HERMES_HOME during the test run: a directory, or `keep` for the one that is set. "
        "Default: a temporary directory, made when hermes is first used, with a HOME for its commands. Also ini hermes_home.",
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
        name="hermes_allow_hosts",
        help="Hosts that tests using this plugin may reach, in addition to those of --hermes-allow-hosts.",
    ),
)

MARKERS: tuple[str, ...] = (
    "hermes_allow_leftovers: unused script turns, sandbox answers and HTTP routes do not fail this test.",
    "hermes_cassette(name, allow_leftovers=False): replays all requests to models and all tool calls from a cassette, or "
    "records them with --hermes-record.",
    "hermes_live(or_mock=False, may_fail=False): runs only with --hermes-live; make_env uses the real server. With or_mock=True it "
    "also runs without the flag, on the mock model. may_fail=True accepts that the server answers no call at all.",
    "hermes_allow_hosts(*hosts): hosts that this test may reach besides this machine: names, *.example.org, or *.",
)
