"""HE802 wandb-log-accepts-none
`wandb_log` accepts None, and a call without metrics.

What: `wandb_log(None)` and `wandb_log()` return. In an override the metrics parameter has a default, and is not used
before None is replaced by a dict.

Why: Atropos calls `wandb_log()` without an argument in process mode, and its own default is None. An override that
begins with `metrics["train/x"] = ...` works under `serve` and fails in `process`: after a whole group was generated,
with its API money spent.

Fix: Write `async def wandb_log(self, wandb_metrics=None)`, and on the first line `if wandb_metrics is None:
wandb_metrics = {}`.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnv.wandb_log` (`wandb_metrics: Optional[Dict] = None`) and
`process_manager`.
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict

SCENARIOS = ("wandb_log_none", "wandb_log_without")
CALLS = {"wandb_log_none": "wandb_log(None)", "wandb_log_without": "wandb_log()"}


def dynamic(evidence: Evidence) -> Verdict:
    """Call it with None and without an argument."""
    if not evidence.is_own("wandb_log"):
        return Verdict.not_applicable("wandb_log is not overridden")
    ran = evidence.scenarios(*SCENARIOS)
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    with_metrics = evidence.scenario("wandb_log")
    failing = [run for run in ran if run.error]
    if failing and with_metrics.error:
        return Verdict.not_exercised(f"wandb_log also fails with metrics: {with_metrics.error}", "HE801")
    findings = [
        evidence.finding(f"{CALLS[run.name]} {run.failure}", "wandb_log", place=run.error_place, scenario=run.name)
        for run in failing
    ]
    return Verdict.of(findings[:1], "wandb_log(None) and wandb_log() returned")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS, holds_for_base_env=True)
