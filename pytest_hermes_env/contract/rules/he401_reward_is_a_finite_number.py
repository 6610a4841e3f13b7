"""HE401 reward-is-a-finite-number
compute_reward returns a finite int or float.

What: the value that comes back from compute_reward is an int or a float that is neither NaN nor infinite. True, False and None are
no numbers here.

Why: one NaN in a group makes the group's mean NaN, and with it every advantage of the group; after one optimiser step the weights are
NaN, and the run is lost from there on. None breaks the arithmetic of the group, whose model calls were already paid for. A bool is a
comparison that was returned in place of a score.

Fix: return a float on every path, also where nothing was found. Guard divisions whose divisor can be 0, and a parsed score with
math.isfinite.

Source: atroposlib 0.4.0, envs/base.py, ScoredDataGroup (scores: list of float); api/server.py, ScoredData.
"""

from __future__ import annotations

from pytest_hermes_env.contract.rule import Rule, Severity

RULE = Rule(id="HE401", name="reward-is-a-finite-number", severity=Severity.ERROR, doc=__doc__)
