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

import ast
import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.class_record import ServerRecord
from pytest_hermes_env.source import (
    UNKNOWN,
    Call,
    ClassSource,
    FromEnvironment,
    calls_in,
    constant_value,
    constructs,
    data_flow,
    finding_at,
    is_handed_on,
    keyword,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

_OPENAI = "openai"
_OWN_KINDS = frozenset({"vllm", "sglang", "trl"})
_PROVIDERS = re.compile(
    r"(?:^|\.)(openrouter\.ai|openai\.com|openai\.azure\.com|anthropic\.com|googleapis\.com|together\.(?:ai|xyz)|fireworks\.ai|"
    r"groq\.com|deepseek\.com|mistral\.ai|x\.ai|nousresearch\.com|perplexity\.ai|cohere\.(?:ai|com)|deepinfra\.com|novita\.ai|"
    r"hyperbolic\.xyz|cerebras\.ai|sambanova\.ai|moonshot\.(?:ai|cn)|huggingface\.co|amazonaws\.com|nvidia\.com|replicate\.com)$"
)
_ONE_S_OWN = (".local", ".localhost", ".internal", ".lan", ".home", ".test", ".invalid", ".svc")


def static(source: ClassSource) -> Verdict:
    """Look at every APIServerConfig that config_init makes."""
    frames = data_flow(source).reached("config_init")
    calls = [call for call in calls_in(frames) if constructs(call, "APIServerConfig")]
    if not calls:
        if source.methods.get("config_init") is None or not frames:
            return Verdict.undecided("there is no config_init to read")
        return Verdict.undecided("no APIServerConfig found in config_init")
    findings: list[Finding] = []
    doubts: list[int] = []
    for call in calls:
        faults, is_open = ([], True) if is_handed_on(call, frames) else _faults(call)
        findings += [finding_at(call.function, call.node, fault) for fault in faults]
        doubts += [call.node.lineno] if is_open and not faults else []
    doubt = f"the server configuration on line {doubts[0]} is computed at run time" if doubts else ""
    return Verdict.of_source(findings, "no external API is configured with a health check or another server_type", doubt=doubt)


def _faults(call: Call) -> tuple[list[str], bool]:
    """Return what is wrong with one configuration, and whether something of it is computed at run time."""
    node = call.node
    given = {name: _value(node, name, call) for name in ("base_url", "server_type", "health_check")}
    given |= _set_later(call)
    spread = any(word.arg is None for word in node.keywords)
    url, kind, checks = given["base_url"], given["server_type"], given["health_check"]
    url = url.default or "" if isinstance(url, FromEnvironment) else url
    kind = kind.default or UNKNOWN if isinstance(kind, FromEnvironment) else kind
    if url is UNKNOWN or spread:
        is_safe = kind in {_OPENAI, None} and checks is False
        return [], not is_safe and kind not in _OWN_KINDS
    if not isinstance(url, str) or not is_external(url, kind):
        return [], False
    faults = []
    if checks is None or checks is True:
        how = "health_check is on" if checks else "health_check is on by default"
        faults.append(f"{how} for {_host(url)}: Atropos would send it a request every second")
    if isinstance(kind, str) and kind != _OPENAI:
        faults.append(f"server_type is {kind!r} for {_host(url)}, an API that supports only 'openai'")
    return faults, UNKNOWN in (kind, checks)


def _value(node: ast.Call, name: str, call: Call) -> object:
    given = keyword(node, name)
    return None if given is None else constant_value(given, call.function.module, call.function)


def _set_later(call: Call) -> dict[str, object]:
    """Return the settings that the same function assigns afterwards: server.health_check = False."""
    found: dict[str, object] = {}
    for node in call.function.own_nodes():
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr in {"health_check", "server_type", "base_url"}:
                    found[target.attr] = constant_value(node.value, call.function.module, call.function)
    return found


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


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, holds_for_base_env=True)
