"""HE106 external-server-settings
A server configuration for an external API has `server_type` "openai" and `health_check` False.

What: Where `config_init` names an external API (OpenRouter, OpenAI, another https endpoint), `server_type` is "openai",
which is the default, and `health_check` is False, which is not. Your own servers are exempt: loopback, private
addresses, and endpoints declared as vllm, sglang or trl.

Why: With `health_check` on, Atropos sends a chat completion to an openai-type endpoint every second, and you pay for
it. The vllm type requests `/health`, which an external API does not have, waits forever, and requests tokens from
`/generate`.

Fix: `APIServerConfig(base_url="https://...", server_type="openai", health_check=False, api_key=os.environ.get(...))`.

Source: atroposlib 0.4.0, `envs/server_handling/openai_server.py` and `vllm_server.py`, `check_server_status_task`;
`server_baseline.py`, `APIServerConfig.health_check = True`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.class_record import ServerRecord

_OPENAI = "openai"
_OWN_KINDS = frozenset({"vllm", "sglang", "trl"})
_PROVIDERS = re.compile(
    r"(?:^|\.)(openrouter\.ai|openai\.com|openai\.azure\.com|anthropic\.com|googleapis\.com|together\.(?:ai|xyz)|fireworks\.ai|"
    r"groq\.com|deepseek\.com|mistral\.ai|x\.ai|nousresearch\.com|perplexity\.ai|cohere\.(?:ai|com)|deepinfra\.com|novita\.ai|"
    r"hyperbolic\.xyz|cerebras\.ai|sambanova\.ai|moonshot\.(?:ai|cn)|huggingface\.co|amazonaws\.com|nvidia\.com|replicate\.com)$"
)
_ONE_S_OWN = (".local", ".localhost", ".internal", ".lan", ".home", ".test", ".invalid", ".svc")


def is_external(url: str, kind: object) -> bool:
    """Whether an endpoint is an API of somebody else's."""
    host = _host(url)
    if not host or _is_ones_own(host):
        return False
    if _PROVIDERS.search(host):
        return True
    return kind not in _OWN_KINDS and url.lower().startswith("https://")


def _is_ones_own(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_ONE_S_OWN)
    return address.is_loopback or address.is_private or address.is_unspecified or address.is_link_local


def _host(url: str) -> str:
    try:
        return (urlsplit(url if "://" in url else f"//{url}").hostname or "").lower()
    except ValueError:
        return ""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the server configurations that config_init really returned."""
    servers = evidence.config_init.server_list
    if servers is None or not evidence.config_init.is_pair:
        return Verdict.not_exercised(f"config_init returned no list of servers {evidence.config_init.error}".rstrip(), "HE105")
    faults = list(_seen(servers))
    if not faults:
        return Verdict.passed(f"{len(servers)} server configuration(s) checked")
    return Verdict.failed([evidence.finding("; ".join(faults), "config_init")])


def _seen(servers: Iterable[ServerRecord]) -> Iterable[str]:
    for server in servers:
        url, kind = server.base_url, server.server_type or _OPENAI
        if isinstance(url, str) and is_external(url, kind):
            if server.health_check:
                yield f"health_check is on for {_host(url)}: Atropos would send it a request every second"
            if kind != _OPENAI:
                yield f"server_type is {kind!r} for {_host(url)}, an API that supports only 'openai'"


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, holds_for_base_env=True)
