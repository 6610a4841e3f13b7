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
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import (
    Call,
    ClassSource,
    External,
    Frame,
    Function,
    Kind,
    data_flow,
    finding_at,
    last_name,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_FETCHES = frozenset({"load_dataset", "snapshot_download", "hf_hub_download", "urlopen", "urlretrieve", "create_connection"})
_HTTP = re.compile(r"(?:requests|httpx)\.(?:get|post|head|request|stream)|nltk\.download|gdown\.\w+")
_READERS = frozenset({"read_csv", "read_json", "read_parquet", "scan_parquet"})
_MAY_FETCH = re.compile(r"download|fetch|(?:load|get)_(?:dataset|data|hub|remote)|from_hub")
_LOCAL = frozenset({"load_from_disk"})
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
    """Look at every call that asks the network, from setup on."""
    start = data_flow(source).method("setup")
    if start is None:
        return Verdict.undecided("there is no setup to read")
    findings: list[Finding] = []
    doubts: list[str] = []
    protected = 0
    for frame in _unprotected(start):
        for call in frame.calls:
            certain = _fetches(call)
            if certain is False:
                continue
            if _is_protected(frame.function, call.node):
                protected += 1
            elif certain:
                message = f"{_name(call)} fails without a network, and nothing catches the error"
                findings.append(finding_at(call.function, call.node, message))
            else:
                doubts.append(f"{_name(call)} on line {call.node.lineno} may use the network, and its code cannot be read")
    if not protected and source.unreadable and source.methods["setup"].owner not in [item.node for item in source.readable]:
        doubts.append("setup cannot be read")
    note = "everything that setup may fetch has a fallback" if protected else "setup fetches nothing without a fallback"
    return Verdict.of_source(findings, note, doubt=next(iter(doubts), ""))


def _unprotected(start: Frame) -> Iterator[Frame]:
    """Yield the frames that setup reaches by calls whose failure nothing catches."""
    seen = {id(start)}
    waiting = [start]
    while waiting:
        frame = waiting.pop()
        yield frame
        for node, target in frame.edges:
            if id(target) not in seen and not _is_protected(frame.function, node):
                seen.add(id(target))
                waiting.append(target)


def _fetches(call: Call) -> bool | None:
    """Whether a call certainly, certainly not, or perhaps (None) asks the network."""
    dotted = next((value.name for value in call.callee if value.kind is Kind.EXTERNAL), "")
    name = call.name or last_name(call.node.func)
    if any(isinstance(value.target, Function) for value in call.callee) or name in _LOCAL:
        return False
    if name in _FETCHES or _HTTP.fullmatch(dotted) or any(_is_fetcher(values) for values in call.arguments):
        return not _is_local_file(call)
    if name in _READERS:
        first = call.node.args[0] if call.node.args else None
        text = first.value if isinstance(first, ast.Constant) else ""
        return isinstance(text, str) and text.startswith(("http", "hf://", "s3://"))
    if dotted and not External(dotted=dotted).is_known and _MAY_FETCH.search(name):
        return None
    return False


def _is_fetcher(values: frozenset[object]) -> bool:
    """Whether an argument is itself such a function: asyncio.to_thread(load_dataset, ...)."""
    return any(getattr(value, "name", "").rpartition(".")[2] in _FETCHES for value in values)


def _is_local_file(call: Call) -> bool:
    """Whether load_dataset reads files of this machine: load_dataset("json", data_files="items.jsonl")."""
    words = {word.arg: word.value for word in call.node.keywords}
    files = words.get("data_files")
    first = call.node.args[0] if call.node.args else None
    kind = first.value if isinstance(first, ast.Constant) else None
    if kind not in {"json", "csv", "parquet", "text", "arrow"} or files is None:
        return False
    return not any(isinstance(part, ast.Constant) and "://" in str(part.value) for part in ast.walk(files))


def _name(call: Call) -> str:
    fetcher = next(
        (value.name for values in call.arguments for value in values if value.name.rpartition(".")[2] in _FETCHES), ""
    )
    return (fetcher.rpartition(".")[2] or call.name or last_name(call.node.func) or "a call") + "()"


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
        return Verdict.not_exercised(f"setup failed before it used the network: {scenario.error}", acceptable_gap=True)
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
