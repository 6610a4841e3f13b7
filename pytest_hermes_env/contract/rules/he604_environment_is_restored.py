"""HE604 environment-is-restored
`os.environ` and the working directory are restored.

What: Variables that the class's own code sets in `os.environ`, and the directory that it changes to with `os.chdir`,
are restored before the call of the class ends: in `setup`, in training groups and in evaluations, also those that fail
or are cancelled. HE110 covers changes while the module is imported.

Why: Both belong to the process, and a process runs many rollouts, and often several environments. A leaked variable
changes the behaviour of hermes' tools, a tokenizer or wandb for all others; after a chdir, every relative path names
another file. Such runs differ by the order in which rollouts ended.

Fix: Set a tool's variables in its command (`env VAR=x cmd`) and pass its directory as a path. Where the process
itself must change, restore both in a `finally`.

Source: Python's `os.environ` and `os.chdir` are process-wide; `environments.sandbox.isolation` gives each rollout its own
directory.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict, finding_in, one_per_place
from pytest_hermes_env.play.journal import SurroundingChanged
from pytest_hermes_env.play.scenario import CASES, Scenario

SCENARIOS = (
    "setup",
    "happy",
    "reward_raises",
    "cancelled_in_reward",
    "evaluate",
    "evaluate_reward_raises",
    "evaluate_cancelled",
    "wandb_log",
)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what was set and not put back."""
    ran = [*evidence.scenarios(*SCENARIOS), *evidence.played_cases]
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    findings = one_per_place(
        finding_in(scenario.name, change.place, _message(change))
        for scenario in ran
        for change in (*scenario.unrestored, *_set_again(scenario), *_stayed(scenario))
    )
    return Verdict.of(findings, f"os.environ and the working directory were unchanged after {len(ran)} scenarios")


def _set_again(scenario: Scenario) -> Iterator[SurroundingChanged]:
    """Yield the variables that were set to what they held, which was what another rollout had left there.

    The environment had found them otherwise when it began.
    """
    for change in scenario.of(SurroundingChanged):
        if change.name != "cwd" and change.before == change.after is not None and change.original != change.after:
            yield change


def _stayed(scenario: Scenario) -> list[SurroundingChanged]:
    """Return a change to the directory that this run happens to be in, which nothing undoes: a pair of changes would."""
    moves = [change for change in scenario.of(SurroundingChanged) if change.name == "cwd"]
    return moves[:1] if len(moves) % 2 and all(change.before == change.after for change in moves) else []


def _message(change: SurroundingChanged) -> str:
    if change.name == "cwd":
        where = " (this run is in the same one by chance)" if change.before == change.after else ""
        return f"the working directory is not restored{where}"
    how = "removed" if change.after is None else "set"
    return f"os.environ[{change.name!r}] is not restored after it was {how}"


RULE = Rule(doc=__doc__, severity=Severity.WARNING, dynamic=dynamic, scenarios=(*SCENARIOS, CASES))
