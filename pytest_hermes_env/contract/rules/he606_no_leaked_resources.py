"""HE606 no-leaked-resources
After an environment has ended, it leaks nothing: no process, thread, temporary directory or open client.

What: After `setup`, a training group and an evaluation, and after the environment's close method if it has one
(`aclose`, `close`, `shutdown`, `teardown`), no process or thread that the class's own code started is running, no
directory that it created with `tempfile` exists, and no HTTP client that it created is open; then its process ends by itself,
with exit code 0. Resources that the layer
creates for it are the layer's.

Why: Environments run for days, and in test suites of hundreds. A leaked browser, server or directory of 200 MB per
rollout fills the machine; an unclosed client warns in another test; a thread that is not a daemon keeps the process
from ending.

Fix: Create the resource where it is used, in a `with` statement or with a `finally`: `tempfile.TemporaryDirectory()`,
`async with httpx.AsyncClient()`, `process.wait()` after `process.terminate()`. A function that `atexit` calls must return.

Source: atroposlib 0.4.0, `envs/base.py`: `BaseEnv` has no close method, and resources that live as long as the
environment are never released.
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict, finding_in, one_per_place

SCENARIOS = ("closing",)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what is left after the environment was closed."""
    closing = evidence.scenario("closing")
    if end := evidence.collection.at_exit:
        message = f"after the last scenario, {end.how}"
        return Verdict.failed([evidence.recorded_finding(message, end.place, scenario="exit")])
    if not closing.happened:
        return Verdict.not_exercised(closing.unavailable)
    findings = one_per_place(
        finding_in(
            "closing",
            left.place,
            f"the {left.kind} created here was not released when the environment closed",
            seen=left.name,
        )
        for left in closing.left
    )
    return Verdict.of(findings, "no process, thread, temporary directory or client of its own was left behind")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
