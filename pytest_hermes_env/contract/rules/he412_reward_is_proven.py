"""HE412 reward-is-proven
Good work was played, and paid, on items spread over the whole data.

What: The author declares `gold`, a transcript that solves the task, in a file of cases next to the environment. It is played as
a real rollout, and earns more than doing nothing. A gold that is a template, or a function of the item, is played on training items spread over all that
`get_next_item` gives: on all where they are few, else on up to 50, or 12 where real programs run. It earns as much, up to
the gap, on each of them; an item on which it earns less, has no reward or fails is named, with the error that `compute_reward` caught itself while it judged gold.

Why: A reward that nobody has ever seen paid is the usual reason for a run that learns nothing: every other check is silent about it, because
bad work rightly earns nothing. A verifier that works for the first items and fails for the others trains on noise.

Fix: `hermes-env init FILE` looks for gold in the fields of the items, plays what it finds, and writes what earned.
`hermes-env init FILE --from ROLLOUTS` takes gold from a file of rollouts or a cassette. `pytest --hermes-live --provider NAME --hermes-env FILE
--hermes-keep-gold` lets a model try, and keeps what earned most. Where good work cannot be written down, waive the rule with the reason.

Source: NeMo Gym and OpenEnv (RFC 008) fail an environment without an oracle, too.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.rules.he102_async_where_awaited import forgotten
from pytest_hermes_env.contract.rules.he413_verifier_stays_in_the_sandbox import host_calls
from pytest_hermes_env.errors import shorten
from pytest_hermes_env.play.cases.values import GOLD, NOTHING
from pytest_hermes_env.play.journal import HostUsed
from pytest_hermes_env.play.scenario import CASES, Cause, Rung
from pytest_hermes_env.source import ClassSource, Function, finding_at, last_name, reach_of

TINY = 1e-9
_OF_OTHERS = frozenset(
    {"stdout", "stderr", "returncode", "return_code", "exitcode", "code", "result", "content", "text", "out", "rc"}
)
"""Keys that results of other libraries have, and none of the terminal's."""
LARGEST = 1_000_000
"""Bytes of a file of cases that is looked for under another name."""
_HAS_GOLD = re.compile(r"^[ -]*gold:", re.MULTILINE)
_NO_CD = re.compile(r"(?:cd: (?:can't cd to )?|cannot change to ')(?P<to>[^\s:']+)(?:: No such file|'|$)")
_CD = re.compile(r"(?<![(\w])cd [^\s-]")
"""A `cd` that holds for the session: of a command, not of a subshell."""
_NOT_THERE = re.compile(r"path='(?P<path>[^']+)'.*not found", re.IGNORECASE)
"""A call of the verifier that found no file."""
MOST_NAMED = 3
"""Items that are named."""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what gold earned on each item."""
    rungs = evidence.rungs
    if not rungs:
        reason = evidence.why_missing(CASES)
        if reason is not None and reason.cause is Cause.NOTHING_TO_TRAIN:  # a benchmark is paid for its work, too
            return Verdict.failed([_without_gold(evidence, [])])
        return Verdict.not_exercised(reason or "no case was played", "HE206", "HE202", "HE511")
    golds = [rung for rung in rungs if rung.name == GOLD and not rung.is_automatic]
    if not golds or all(rung.is_unfilled for rung in golds):
        return Verdict.failed([_without_gold(evidence, golds)])
    if wrong := [rung.problem for rung in golds if rung.problem]:
        return Verdict.not_exercised(f"gold cannot be judged: {wrong[0]}", "HE405")
    played = [rung for rung in golds if not rung.unavailable]
    if not played:
        message = f"gold is declared and was not played: {golds[0].unavailable}"
        return Verdict.failed(
            [_finding(evidence, message, golds[0], fix="Play it as the message says, or declare gold that can be played here.")]
        )
    paid = [rung.reward for rung in played if rung.reward is not None]
    if not paid:
        error = played[0].error
        fix = "Read the error: the rollout or compute_reward raised on good work, which nothing but gold reaches."
        if error.startswith("ScriptError"):
            error, _, known = error.partition(" fix ")[0].partition(" known ")
            known = known.removesuffix("…").rstrip(" ,")
            told = f"; known are {known}" if known else ", which asks for something that the model cannot do here"
            fix = f"Correct the case{told}."
        unpaid = _finding(evidence, f"gold of {played[0].item} got no reward: {error.rstrip('.')}", played[0], fix=fix)
        is_no_number = played[0].error.startswith("compute_reward returned")
        owner = "HE301" if played[0].is_foreign else "HE401" if is_no_number else ""
        return Verdict.failed([dataclasses.replace(unpaid, because_of=owner)])
    idle = [rung.reward for rung in rungs if rung.name == NOTHING and rung.reward is not None and not rung.is_judge_guessed]
    least = max(idle, default=0.0)
    if max(paid) <= least + TINY:
        message = f"gold earned {max(paid):g}, and doing nothing {least:g}: nothing that was played is paid for its work"
        unpaid = _paid_the_wrong_way(evidence, message) if least > max(paid) + TINY else _unpaid(evidence, message, played[0])
        looks_at_host = any(record.of(HostUsed) for record in evidence.played_cases)
        owner = "HE413" if looks_at_host else "HE102" if evidence.source is not None and _forgets(evidence.source) else ""
        return Verdict.failed([dataclasses.replace(unpaid, because_of=owner)])
    found = list(_uneven(evidence, played, max(paid)))
    items, sweep = len({rung.item for rung in played}), evidence.scenario(CASES).sweep
    of = (
        f"{sweep.different}{'' if sweep.is_whole else ' or more'} different training items" if sweep.drawn else "those declared"
    )
    return Verdict.of(found, f"gold earned {min(paid):g} to {max(paid):g} on {items} items, of {of}")


_FIX_OF_GOLD = (
    "Correct the one that is wrong: the gold, if it does not solve the item as compute_reward reads it, else the reward. What the verifier "
    "looked for, and what it ran, stands above."
)


_FIX_OF_CAUGHT = "Correct this line, where the error is none that good work should cause. Else the gold does not solve the item as compute_reward reads it."


def _forgets(source: ClassSource) -> bool:
    """Whether compute_reward, or what it calls, takes a coroutine for its result."""
    own = {"compute_reward", *(one.function.name for one in reach_of(source).calls("compute_reward"))}
    return any(found.message.partition(" calls ")[0] in own for _, found in forgotten(source))


def _paid_the_wrong_way(evidence: Evidence, message: str) -> Finding:
    fix = "compute_reward pays no work more than gold: look for a condition, or two values, the wrong way round."
    return dataclasses.replace(evidence.finding(message, "compute_reward", scenario=CASES), fix=fix)


def _unpaid(evidence: Evidence, message: str, rung: Rung) -> Finding:
    """Return the finding that gold earned nothing, as near to its cause as what was played shows."""
    on_host = host_calls(evidence.source) if evidence.source is not None and not rung.asked else []
    if on_host:
        first = on_host[0]
        found = finding_at(first.function, first.node, message)
        fix = f"Run it in the sandbox by `ctx.terminal`: {first.dotted} runs on the host, where the files of the agent are not."
        return dataclasses.replace(found, scenario=CASES, fix=fix)
    if (refused := _refused_write(evidence)) is not None:
        method, path, error = refused
        reach = reach_of(evidence.source) if evidence.source is not None else None
        writes = [one for one in reach.calls(method) if last_name(one.node.func) == "write_file"] if reach is not None else []
        message += f", where write_file of {method} was refused for {path}: {shorten(error, 160)}"
        found = finding_at(writes[0].function, writes[0].node, message) if writes else evidence.finding(message, method)
        fix = (
            "hermes checks what is written, and `ctx.write_file` returns an 'error' in place of raising: correct the content, or write it by "
            "`ctx.upload_file` or `ctx.terminal`. Raise where the result has an error."
        )
        return dataclasses.replace(found, scenario=CASES, fix=fix)
    if (asked := _wrong_key(evidence.source)) is not None:
        function, node = asked
        found = finding_at(
            function, node, f"{message}, where compute_reward asks a result of ctx.terminal for {ast.unparse(node.args[0])}"
        )
        fix = "It has 'output' and 'exit_code': what it does not have is always the default of get()."
        return dataclasses.replace(found, scenario=CASES, fix=fix)
    missing = [match["path"] for text in (*rung.asked, *rung.reads) if (match := _NOT_THERE.search(text))]
    looked = f"compute_reward looked for {missing[0]}, which is not there, and gold wrote" if missing and rung.work else ""
    fix = f"{looked} {', '.join(rung.work)}: name one file in both." if looked else _FIX_OF_GOLD
    return _finding(evidence, message, rung, fix=_fix_of_call(rung) or fix)


def _refused_write(evidence: Evidence) -> tuple[str, str, str] | None:
    """Return the method, path and error of the first file that the environment itself could not write; None where it could write all."""
    for record in evidence.played_cases:
        has_begun = False
        for one in record.tool_calls:
            has_begun |= one.by_agent
            if one.by_agent or one.name != "write_file":
                continue
            with contextlib.suppress(TypeError, ValueError, AttributeError):
                if error := json.loads(one.result).get("error"):
                    return "compute_reward" if has_begun else "prepare_sandbox", str(one.arguments.get("path")), str(error)
    return None


def _wrong_key(source: ClassSource | None) -> tuple[Function, ast.Call] | None:
    """Return where the reward takes by `get` from a result of the terminal what none has."""
    reach = reach_of(source) if source is not None else None
    for call in reach.calls("compute_reward") if reach is not None else ():
        match call.node:
            case ast.Call(func=ast.Attribute(value=held, attr="get"), args=[ast.Constant(value=str(key)), *_]) if (
                key in _OF_OTHERS
            ):
                values = call.function.values_of(held.id) if isinstance(held, ast.Name) else [held]
                if values and all(isinstance(value, ast.Call) and last_name(value.func) == "terminal" for value in values):
                    return call.function, call.node
    return None


def _fix_of_call(rung: Rung) -> str:
    """Return what to do where a call of gold itself failed, or a `cd` of the verifier; empty where none did."""
    if rung.tool_errors:
        return f"A call of gold failed ({rung.tool_errors[0]}): correct it, or the item that it is made of."
    at, lost = next(((at, match["to"]) for at, text in enumerate(rung.asked) if (match := _NO_CD.search(text))), (0, ""))
    if not any(_CD.search(text) for text in (*rung.transcript, *rung.asked[:at])):
        return ""  # the directory may not be there at all
    holds = "an earlier `cd` still holds in the session, also the agent's own"
    return (
        f"`cd {lost}` failed: {holds}. Write `(cd {lost} && ...)`, in the reward and in gold, or absolute paths."
        if lost
        else ""
    )


def _without_gold(evidence: Evidence, golds: list[Rung]) -> Finding:
    earned = [rung for rung in evidence.rungs if rung.reward is not None]
    tried = ", ".join(dict.fromkeys(f"{rung.name} {rung.reward:g}" for rung in earned)) or "nothing earned a reward"
    own = Path(evidence.cls.place.path)
    file = own.name or "FILE"
    unread = _unread_cases(own)
    rename = f"{unread[0]} is not read: call it {own.stem}.contract.yaml. " if unread else ""
    how = "gold is not filled in" if golds else "no gold is declared"
    return Finding(
        message=f"{how}: this run has seen no good work that was paid",
        path=evidence.at_class()[0],
        line=evidence.at_class()[1],
        scenario=CASES,
        seen=f"without gold, {tried}",
        fix=(
            f"{rename}`hermes-env init {file}` looks for gold in the items and plays it. `hermes-env init {file} --from ROLLOUTS` takes it from a "
            f"file of rollouts. `pytest --hermes-live --provider NAME --hermes-env {file} --hermes-keep-gold` lets a model try. Or waive "
            "HE412 with a reason: hermes-env docs waive"
        ),
    )


def _unread_cases(own: Path) -> list[str]:
    """Return the names of YAML files next to an environment's that have its name and a gold, and that nobody reads."""
    named = re.compile(rf"{re.escape(own.stem)}(?:[._-](?:cases?|contracts?))?\.ya?ml")
    with contextlib.suppress(OSError):
        found = [path for path in sorted(own.parent.iterdir()) if own.stem and named.fullmatch(path.name) and path.is_file()]
        found = [path for path in found if path.name != f"{own.stem}.contract.yaml" and path.stat().st_size < LARGEST]
        return [path.name for path in found if _HAS_GOLD.search(path.read_text(encoding="utf-8", errors="replace"))]
    return []


def _uneven(evidence: Evidence, played: list[Rung], most: float) -> Iterator[Finding]:
    """Yield a finding for items on which gold earns less than elsewhere, or nothing."""
    failed = [rung for rung in played if rung.reward is None]
    less = [rung for rung in played if rung.reward is not None and rung.reward < most - max(evidence.cases.gap, TINY) + TINY]
    for found, what in ((failed, "has no reward"), (less, f"earns less than {most:g}")):
        if found:
            items = ", ".join(dict.fromkeys(rung.item for rung in found[:MOST_NAMED]))
            more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
            first = found[0]
            came = f", because of {first.error}" if first.reward is None else f", as on {first.item}: {first.reward:g}"
            message = f"gold {what} on {len(found)} of {len(played)} items{came}; they are {items}{more}"
            yield _finding(evidence, message, first, fix=_fix_of_call(first) or _FIX_OF_GOLD)


def _finding(evidence: Evidence, message: str, rung: Rung, *, fix: str) -> Finding:
    seen = [f"gold: {' / '.join(rung.transcript)}"] if rung.transcript else []
    seen += [f"failed: {', '.join(rung.tool_errors)}"] if rung.tool_errors else []
    seen += [f"compute_reward called {', '.join(rung.asked)}"] if rung.asked else []
    seen += [f"it read {', '.join(rung.reads)}"] if rung.reads else []
    seen += [f"gold wrote {', '.join(rung.work)}"] if rung.work else []
    path, line = (rung.path, rung.line) if rung.path else evidence.at_method("compute_reward")
    if rung.caught is not None and not rung.error:
        message += f", where compute_reward caught {rung.caught.error}"
        path, line = rung.caught.place.path, rung.caught.place.line
        fix = fix if fix != _FIX_OF_GOLD else _FIX_OF_CAUGHT
    return Finding(message=message, path=path, line=line, scenario=CASES, seen="; ".join(seen), fix=fix)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(CASES,))
