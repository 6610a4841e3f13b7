"""Probing a reward: it is called on many results that a rollout could leave, and what comes back is written down.

Place in the flow: the scenario ``reward_probes`` gives its environment to `prober.probe_reward`; rules read the frozen
`record.RewardProbes`. No rollout is run: results are built, and the tool context stands on an in-memory machine.
"""
