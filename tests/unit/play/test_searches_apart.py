"""The searches run beside the rest, each in a process of its own; a class of which only one may live is played in one."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env import cases, item_cases, say
from pytest_hermes_env.play.child import Job
from pytest_hermes_env.play.elsewhere import join, searches_of
from pytest_hermes_env.play.evidence_file import VERSION, read_evidence
from pytest_hermes_env.play.player import Played, play_all
from pytest_hermes_env.play.player_process import play_twice
from pytest_hermes_env.play.scenario import CASES, ELSEWHERE, TAMPERING, WRONG_PROGRAMS, Cause, Collection

from . import small_env
from .small_env import SmallEnv

JOB = Job(target="SmallEnv", env_class=SmallEnv, scenarios=("silent", CASES, TAMPERING, WRONG_PROGRAMS))


@pytest.mark.parametrize(
    ("changed", "apart"),
    [
        ({}, [TAMPERING]),
        ({"effort": 2}, [TAMPERING, WRONG_PROGRAMS]),
        ({"scenarios": (TAMPERING,)}, []),
        ({"sandbox": "local"}, []),
    ],
)
def test_what_would_only_be_skipped_gets_no_process(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], apart: list[str]
) -> None:
    """Nor does a search that is all there is to play."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)

    assert [search.scenarios for search in searches_of(dataclasses.replace(JOB, **changed))] == [(name,) for name in apart]


def test_one_processor_plays_all_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to be won."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)

    assert searches_of(JOB) == []


def collected(env_class: type, directory: Path, listener: Any = None) -> Collection:
    """Return what was played here and beside."""
    (played,) = read_evidence(*play_twice(play_all, [dataclasses.replace(JOB, env_class=env_class)], str(directory), listener))
    return played.collection


def test_all_are_in_one_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With one total of what is played in all processes."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    heard: list[Played | None] = []
    found = collected(SmallEnv, tmp_path, heard.append)

    assert {name: str(found.scenarios[name].unavailable or "") for name in ("silent", TAMPERING)} == {
        "silent": "",
        TAMPERING: "no gold is declared that can be played on a training item",
    }
    assert found.cls is not None
    assert {one.total for one in heard if one is not None} == {4}


def test_each_class_has_its_own_record_of_elsewhere(tmp_path: Path) -> None:
    """One that another process can import is played there, and one whose cases a test holds in a fork of this one."""
    held = cases([item_cases(where="*", gold=lambda item: [say(f"The word is {item['word']}.")])])
    own = dataclasses.replace(JOB, scenarios=(CASES, ELSEWHERE))
    jobs = [dataclasses.replace(own, target=f"{small_env.__file__}:SmallEnv"), dataclasses.replace(own, cases=held)]

    played = [one for part in play_twice(play_all, jobs, str(tmp_path)) for one in read_evidence(part)]

    found = [{rung.name for rung in one.collection.scenarios[ELSEWHERE].rungs} for one in played]
    assert ["gold" in names for names in found] == [False, True]


@pytest.mark.parametrize(
    ("lines", "refusal", "cause"),
    [
        ([], None, Cause.EARLIER_FAILURE),
        (
            [{"refused": "playing failed: a bug", "type": "PlayerStopped"}],
            ("PlayerStopped", "playing failed: a bug"),
            Cause.EARLIER_FAILURE,
        ),
    ],
)
def test_a_search_that_left_nothing_is_not_taken_for_one_that_found_nothing(
    tmp_path: Path, lines: list[Any], refusal: Any, cause: Cause
) -> None:
    """What its process refused is refused by the run."""
    part, other = tmp_path / "class-0.jsonl", tmp_path / "class-1.jsonl"
    part.write_text(json.dumps({"evidence": VERSION, "target": "env.py"}) + "\n")
    other.write_text("".join(f"{json.dumps(line)}\n" for line in [{"evidence": VERSION, "target": "env.py"}, *lines]))

    join(str(part), str(other), TAMPERING)

    (played,) = read_evidence(str(part))
    unavailable = played.collection.scenarios[TAMPERING].unavailable
    assert unavailable is not None
    assert (played.refusal, unavailable.cause) == (refusal, cause)


class Crowded(SmallEnv):
    """Another process that has it keeps this one from beginning."""

    lock = ""

    async def setup(self) -> None:
        """Take the place, or fail."""
        await super().setup()
        try:
            with open(self.lock, "x", encoding="utf-8") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            owner = Path(self.lock).read_text(encoding="utf-8")
            if owner != str(os.getpid()) and os.path.exists(f"/proc/{owner}"):
                raise OSError("address already in use") from None
            Path(self.lock).write_text(str(os.getpid()), encoding="utf-8")


def test_a_class_of_which_only_one_can_live_is_played_in_one_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whichever of them came first: neither the search nor the rest fails for it."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(Crowded, "lock", str(tmp_path / "taken"))
    found = collected(Crowded, tmp_path)

    assert "no gold" in str(found.scenarios[TAMPERING].unavailable)
    assert found.scenarios["silent"].unavailable is None
