"""HE105 config-init
`config_init` is a classmethod that returns a config and a list of server configs.

What: `config_init` is a classmethod, of the class or of a base, that returns two values, and the second is a list of
`APIServerConfig`.

Why: A single `APIServerConfig` is not an error in Atropos. It takes anything but a list as "find my servers yourself"
and connects to http://localhost:9004 to 9007. The model that you named is never called: the run hangs, or retries until
it gives up, while the rented machines are idle. A class without its own `config_init` gets the same default.

Fix: Return `(env_config, [APIServerConfig(...)])`, with the brackets, from a method under `@classmethod`.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnv.config_init`; `envs/server_handling/server_manager.py`,
`ServerManager.__init__`.
"""

from __future__ import annotations

import dataclasses

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.source import ClassSource, finding_at


def static(source: ClassSource) -> Verdict:
    """Look at how config_init is defined."""
    function = source.methods.get("config_init")
    if function is not None and function.decorators & {"classmethod", "staticmethod"}:
        return Verdict.passed("config_init is a classmethod")
    if function is None or function.decorators - {"abstractmethod", "override"}:
        return Verdict.undecided("what config_init returns is known only when it is called")
    message = "config_init is not a classmethod: Atropos calls it on the class, and its argument `cls` is missing then"
    return Verdict.failed(
        [
            dataclasses.replace(
                finding_at(function, function.node, message), fix="Write `@classmethod` above `def config_init(cls)`."
            )
        ]
    )


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what config_init() really returned."""
    fault = _fault_seen(evidence)
    if not fault:
        given = evidence.config_init
        return Verdict.passed(
            f"config_init() returned {given.config.name} and {len(given.servers or ())} server configuration(s)"
        )
    return Verdict.failed([evidence.finding(fault, "config_init")])


def _fault_seen(evidence: Evidence) -> str:
    given = evidence.config_init
    if given.error:
        return f"config_init() raised {given.error}"
    if not given.is_pair:
        return f"config_init() returned {given.shape.partition(' ')[0]}, not (config, [APIServerConfig, ...])"
    if "BaseEnvConfig" not in given.config.bases:
        return f"the first value of config_init() is {given.config.name}, not a BaseEnvConfig"
    if given.servers is None:
        return (
            f"the second value of config_init() is {given.servers_type}, not a list: Atropos ignores it and waits for "
            "model servers on localhost:9004 to 9007"
        )
    strangers = [server.bases[0] for server in given.servers if "APIServerConfig" not in server.bases]
    if strangers or not given.servers:
        return f"the second value of config_init() must contain only APIServerConfig, but contains {strangers or 'nothing'}"
    return ""


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, holds_for_base_env=True)
