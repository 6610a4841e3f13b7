"""What an environment keeps is pictured before and after, and the two are compared."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from threading import Lock
from types import SimpleNamespace

from pytest_hermes_env.play.buffers import changed_parts, copied, growth, picture, snapshot


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


def test_what_differs_is_told_by_part() -> None:
    """Of a record and of a mapping with the same keys; one that has another key differs as a whole."""
    env = SimpleNamespace(steps=1, tally=Tally(), metrics={"train": [0.5], "evaluation": []}, by={}, same=Tally())
    before = snapshot(env)
    env.tally.rewards.append(1.0)
    env.metrics["evaluation"].append(0.5)
    env.by["terminal"] = [1.0]

    assert changed_parts(before, snapshot(env)) == {"tally.rewards", "metrics['evaluation']", "by"}


def test_only_atropos_and_the_layer_s_link_are_left_out() -> None:
    """Whatever an author may call a buffer is seen: a name that is ignored would hide every fault of it."""
    names = ["_counts", "counts", "_run_api", "_buffer", "rewards", "_metrics", "_stats"]

    assert sorted(snapshot(SimpleNamespace(server=1, _hermes_run_api=[1], **{name: [1.0] for name in names}))) == sorted(names)


def test_only_what_a_rollout_keeps_for_itself_is_left_out() -> None:
    """State by a rollout's id is its own; numbers by it are metrics of all."""
    own, other = "3f2b8c1e-0d4a-4c55-9e1b-7a6f5e4d3c2b", "0a1b2c3d-1111-4222-8333-444455556666"

    def seen(kept: object) -> object:
        return picture(kept, of_rollouts=False)

    assert seen({own: {"path": "/a"}}) == seen({other: {"path": "/b"}}) == seen({})
    assert seen({own: 1.0}) != seen({own: 2.0})
    assert seen({own: [1.0, 0.0]}) != seen({})
    assert seen({"train": {"path": "/a"}}) != seen({})


def test_a_copy_shares_nothing_with_its_original_and_keeps_its_shape() -> None:
    """Whatever is changed later is not changed in the copy; what was one object, or holds itself, is that in the copy, too."""
    ids = [1, 2, 3]
    message = {"role": "assistant", "ids": ids, "again": ids, "seen": {1}, "of": {7: [ids]}, "tally": Tally(rewards=[1.0])}
    message["messages"] = [message]

    kept = copied([message])[0]
    ids.append(4)
    message["seen"] |= {2}
    message["tally"].rewards.append(0.0)

    assert (kept["ids"], kept["seen"], kept["tally"]) == ([1, 2, 3], {1}, Tally(rewards=[1.0]))
    assert kept["again"] is kept["ids"] is kept["of"][7][0]
    assert kept["messages"][0] is kept
    assert [*kept] == [*message]


def test_what_cannot_be_copied_is_returned_itself() -> None:
    """A lock in an item must not end a run."""
    item = {"lock": Lock()}

    assert copied(item) is item


class Mute:
    """Has no attributes, and raises when it is asked for its text."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_values_of_other_types_are_pictured_by_their_text() -> None:
    """What is kept of an item may be a decimal number or a date; what says nothing of itself has no picture."""
    assert picture(Decimal("4.50")) == ("value", "Decimal('4.50')")
    assert picture(date(2026, 1, 2)) != picture(date(2026, 1, 3))
    assert picture(Mute()) is None
