"""HE201 setup-works-offline
`setup` falls back to built-in items when its dataset cannot be loaded.

What: Every call in `setup`, or in code that it calls, that downloads a dataset or a file is in a `try` whose `except`
handles the failure and continues. Without a network `setup` still ends with items to train on.

Why: Datasets move, become gated, and hubs have outages. A `setup` that needs the network fails on a compute node
without one, after the model was loaded, and the environment cannot be tested or even started on an offline laptop.

Fix: `try: rows = load_dataset(...) except Exception: logger.warning(...); rows = SAMPLES`.

Source: The guide of upstream's environments: "load a dataset, fall back to built-in samples"; hermes-agent's former
`environments.web_research_env`.
"""

from __future__ import annotations

import ast
import re

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.source import Call, ClassSource, Function, finding_at, last_name, reach_of

_FETCHES = frozenset({"load_dataset", "snapshot_download", "hf_hub_download", "urlopen", "urlretrieve", "create_connection"})
_HTTP = re.compile(r"(?:requests|httpx)\.(?:get|post|head|request|stream)|nltk\.download|gdown\.\w+")
_CATCHES = frozenset(
    {
        "Exception",
        "BaseException",
        "OSError",
        "IOError",
        "EnvironmentError",
        "ConnectionError",
        "RequestException",
        "HTTPError",
        "URLError",
    }
)


def static(source: ClassSource) -> Verdict:
    """Look at every call that asks the network, from setup on.

    It complements the rollouts: these play one configuration, and a data set is often loaded only with another.
    """
    if "setup" not in source.methods:
        return Verdict.undecided("there is no setup to read")
    findings = [
        finding_at(call.function, call.node, f"{_fetcher(call)}() fails without a network, and nothing catches the error")
        for call in reach_of(source).calls_where(lambda call: not _is_protected(call.function, call.node), "setup")
        if _fetcher(call)
    ]
    return Verdict.of_source(findings, "setup fetches nothing without a fallback")


def _fetcher(call: Call) -> str:
    """Return the name of the function that asks the network, also where it is handed to a thread; empty for another call."""
    names = [call.name, *(last_name(item) for item in call.node.args if isinstance(item, (ast.Name, ast.Attribute)))]
    fetchers = [name for name in names if name in _FETCHES]
    is_readable = isinstance(call.target, Function) or _is_local_file(call.node)
    return "" if is_readable else fetchers[0] if fetchers else call.name if _HTTP.fullmatch(call.dotted) else ""


def _is_local_file(call: ast.Call) -> bool:
    """Whether load_dataset reads files of this machine: load_dataset("json", data_files="items.jsonl")."""
    files = next((word.value for word in call.keywords if word.arg == "data_files"), None)
    kind = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if kind not in {"json", "csv", "parquet", "text", "arrow"} or files is None:
        return False
    return not any(isinstance(part, ast.Constant) and "://" in str(part.value) for part in ast.walk(files))


def _is_protected(function: Function, node: ast.AST) -> bool:
    """Whether a failure of ``node`` is caught in this function by a handler that goes on."""
    for child, parent in function.ancestors(node):
        if isinstance(parent, ast.Try) and child in parent.body and any(_goes_on(handler) for handler in parent.handlers):
            return True
        if isinstance(parent, (ast.With, ast.AsyncWith)) and child in parent.body and any(map(_suppresses, parent.items)):
            return True
    return False


def _goes_on(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    catches = any(kind is None or last_name(kind) in _CATCHES for kind in kinds)
    last = handler.body[-1]
    return catches and not isinstance(last, ast.Raise)


def _suppresses(item: ast.withitem) -> bool:
    node = item.context_expr
    return (
        isinstance(node, ast.Call)
        and last_name(node.func) == "suppress"
        and any(last_name(arg) in _CATCHES for arg in node.args)
    )


def dynamic(evidence: Evidence) -> Verdict:
    """Look at how setup ended while no address could be reached."""
    scenario = evidence.scenario("setup_offline")
    if not scenario.happened:
        return Verdict.not_exercised(scenario.unavailable)
    if not scenario.error:
        return Verdict.passed("setup succeeded without a network")
    if not scenario.note:
        return Verdict.not_exercised(f"setup failed before it used the network: {scenario.error}")
    message = f"setup failed without a network: {scenario.error}"
    return Verdict.failed([evidence.finding(message, "setup", seen=scenario.note, scenario="setup_offline")])


RULE = Rule(
    doc=__doc__,
    severity=Severity.WARNING,
    static=static,
    dynamic=dynamic,
    scenarios=("setup_offline",),
    holds_for_base_env=True,
)
