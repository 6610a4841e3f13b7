"""HE606 no-leaked-resources
After an environment has ended, nothing of what it made is left: no process, thread, temporary directory or open client.

What: after setup, a training group and an evaluation, and after its own close method where it has one (aclose, close,
shutdown, teardown), no process or thread that the class's own code began is still running, no directory that it made
with tempfile is still there, and no HTTP client that it made is open. What the layer makes for it is the layer's.

Why: environments run for days and in test suites of hundreds. A browser, a server or a directory of 200 MB per rollout
that nobody removes fills the machine; an unclosed client warns in somebody else's test; a thread that is not a daemon
keeps the process from ending at all.

Fix: make it where it is used, in a with statement or with a finally: tempfile.TemporaryDirectory(), async with
httpx.AsyncClient(), process.wait() after process.terminate().

Source: atroposlib 0.4.0, envs/base.py: BaseEnv has no close, so what lives as long as the environment is never released.
"""

from __future__ import annotations

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Finding, Rule, Severity, Verdict, judged, not_exercised

SCENARIOS = ("closing",)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what is left after the environment was closed."""
    closing = evidence.scenario("closing")
    if not closing.happened:
        return not_exercised(closing.unavailable)
    findings = {
        (left.place.path, left.place.line): Finding(
            message=f"the {left.kind} made here is still there after the environment has ended",
            path=left.place.path,
            line=left.place.line,
            seen=left.name,
            scenario="closing",
        )
        for left in reversed(closing.left)
    }
    return judged(list(findings.values())[::-1], "no process, thread, temporary directory or client of its own was left")


RULE = Rule(
    id="HE606",
    name="no-leaked-resources",
    severity=Severity.ERROR,
    doc=__doc__,
    dynamic=dynamic,
    scenarios=SCENARIOS,
    former_names=("nothing-is-left",),
)
