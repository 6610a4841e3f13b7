"""What an environment keeps is pictured before and after, and the two are compared."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace

from pytest_hermes_env.rollout.buffers import growth, snapshot


@dataclass
class Tally:
    """A record of metrics."""

    rewards: list[float] = field(default_factory=list)
    turns: int = 0


def test_growth_is_told_by_place() -> None:
    """Lengths and numbers are followed into mappings and records; texts, and what a series holds, are no sizes."""
    env = SimpleNamespace(
        steps=1, best=0.5, done=False, last="a", seen={1}, recent=deque([1.0], maxlen=1), tally=Tally(), by={}
    )
    before = snapshot(env)
    env.steps, env.best, env.done, env.last = 3, 0.25, True, "22"
    env.seen |= {2}
    env.recent.append(7.0)
    env.tally.rewards += [1.0, 0.0]
    env.tally.turns = 4
    env.by["terminal"] = [1.0]

    assert growth(before, snapshot(env)) == {
        ("steps",): 2.0,
        ("best",): -0.25,
        ("seen", "len()"): 1.0,
        ("tally", "'rewards'", "len()"): 2.0,
        ("tally", "'turns'"): 4.0,
        ("by", "len()"): 1.0,
        ("by", "'terminal'", "len()"): 1.0,
    }


def test_only_atropos_and_the_layer_s_link_are_left_out() -> None:
    """Whatever an author may call a buffer is seen: a name that is ignored would hide every fault of it."""
    names = ["_counts", "counts", "_run_api", "_buffer", "rewards", "_metrics", "_stats"]

    assert sorted(snapshot(SimpleNamespace(server=1, _hermes_run_api=[1], **{name: [1.0] for name in names}))) == sorted(names)
