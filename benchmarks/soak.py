"""Plays thousands of rollouts among faults, and kills who records: is each one scored as it earned, or not at all, and is nothing left?

``python -m benchmarks soak [ROLLOUTS] [AT_ONCE] [SHARE] [KILLS]``, by default 3000 rollouts, 100 at once, 6 % faults, 60 kills. Ends with
exit code 1 if a sum does not add up. Faults are model requests that are refused, reset, cut, answered with 429, 500 or broken JSON, the
same for the judge that every reward asks, tools that raise or find no space, and groups that are cancelled. Held before and after:
memory, descriptors, threads, processes, temporary directories, sandboxes, tasks. Recordings are killed at any moment, find a full
disk, and are written by two processes at once.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import multiprocessing.util
import os
import random
import resource
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GROUP_SIZE = 4
IGNORED = -100
"""The label of a token that is not trained."""
NO_FILE = -1.0
"""The reward of a rollout whose tool call failed, so that it wrote no file."""
MODEL = ("refused", "reset", "cut", "server_error", "rate_limited", "broken_json")
TOOLS = ("raises", "disk_full", "broken_json")
CANCELLED_SHARE = 0.02
MOST_GROWTH_MB = 96
"""More memory after all rollouts than after the first hundred is a leak. The journal of the mock model keeps 8,192 conversations."""
REFUSED = 3
"""The exit code of a process that could not record."""
WARM = 100
"""Rollouts that go before: they start what lives as long as the process."""


def environment() -> type:
    """Return the environment that the soak plays."""
    from environments.hermes_base_env import HermesAgentBaseEnv

    class SoakEnv(HermesAgentBaseEnv):
        """The reward is what the rollout's own command printed, and a judge repeats it; no two rollouts print the same."""

        name = "soak"

        async def setup(self) -> None:
            """Nothing to load."""

        async def get_next_item(self) -> Any:
            return None

        def format_prompt(self, item: Any) -> str:
            return f"Item {item}."

        async def compute_reward(self, _item: Any, _result: Any, ctx: Any) -> float:
            answer = json.loads(ctx.terminal("cat number.txt")["output"] or str(NO_FILE))
            question = [{"role": "user", "content": f"Judge {answer}"}]
            judged = await self.server.chat_completion(messages=question, n=1)
            return float(judged.choices[0].message.content)

        async def evaluate(self, *args: Any, **kwargs: Any) -> None:
            """Not evaluated."""

    return SoakEnv


def script(conversation: Any) -> Any:
    """Write the item's number into a file, then answer. As the judge, repeat the number."""
    from pytest_hermes_env import call, say

    kind, _, number = conversation.first_user.removesuffix(".").partition(" ")
    if kind == "Judge":
        return say(number)
    return say("done") if conversation.turn else call("terminal", command=f"echo {number} > number.txt")


class Soak:
    """The groups of one soak, and what came of them."""

    def __init__(self, env: Any, plan: Any, *, rollouts: int, at_once: int) -> None:
        self.env, self.plan = env, plan
        self.groups = rollouts // GROUP_SIZE
        self.scores: dict[int, Any] = {}
        self.raised = 0
        self.cancelled = 0
        self._at_once = max(1, at_once // GROUP_SIZE)
        self._dice = random.Random(4)

    async def run(self) -> list[str]:
        """Run all groups, and return the sums that do not add up."""
        free = asyncio.Semaphore(self._at_once)
        await asyncio.gather(*(self._group(item, free) for item in range(self.groups)))
        tasks = len(asyncio.all_tasks()) - 1
        return [*self._wrong(), *([f"{tasks} tasks are left"] if tasks else [])]

    async def _group(self, item: int, free: asyncio.Semaphore) -> None:
        async with free:
            task = asyncio.ensure_future(self.env.collect_trajectories(item))
            if self._dice.random() < CANCELLED_SHARE:
                asyncio.get_running_loop().call_later(self._dice.random() / 2, task.cancel)
            try:
                group, _ = await task
            except asyncio.CancelledError:
                self.cancelled += 1
                return
            except Exception:  # noqa: BLE001 - a rollout raised; Atropos' worker logs it, and the group is counted
                self.raised += 1
                group = None
            self.scores[item] = None if group is None else list(zip(group["scores"], group["masks"], strict=True))

    def _wrong(self) -> Iterator[str]:
        """Yield the sums that do not add up. A cancelled group has up to four rollouts without an end, one that raised up to three."""
        open_ends = GROUP_SIZE * self.cancelled + (GROUP_SIZE - 1) * self.raised
        counts = Counter({name.removeprefix("train/"): number for name, number in self.env._counts.items()})
        struck = Counter(strike.fault.place for strike in self.plan.strikes)
        ends = sum(number for name, number in counts.items() if name.startswith("rollouts_") and name != "rollouts_retried")
        if not 0 <= self.groups * GROUP_SIZE + counts["rollouts_retried"] - ends <= open_ends:
            yield f"{ends} ends of {self.groups * GROUP_SIZE} rollouts and {counts['rollouts_retried']} retries"
        failed = counts["rollouts_model_failed"] + counts["rollouts_reward_failed"]
        if not struck["model"] - open_ends <= failed <= struck["model"] + struck["sandbox"]:
            yield f"{dict(struck)} faults, {failed} rollouts that failed"
        trained = {
            item: rows
            for item, rows in self.scores.items()
            if rows and any(label != IGNORED for _, row in rows for label in row)
        }
        if len(self.scores) - len(trained) != counts["groups_dropped"]:
            yield f"{len(self.scores) - len(trained)} groups are missing, {counts['groups_dropped']} are counted"
        if unearned := {i: rows for i, rows in trained.items() if {score for score, _ in rows} - {float(i), NO_FILE}}:
            yield f"{len(unearned)} groups have scores that they did not earn"
        unscored = sum(score == NO_FILE for rows in trained.values() for score, _ in rows)
        if unscored > struck["sandbox"]:
            yield f"{unscored} rollouts without their file, {struck['sandbox']} faults of tools"
        if len(trained) < self.groups // 2:
            yield f"only {len(trained)} of {self.groups} groups trained"


def held() -> dict[str, float]:
    """Return what this process holds now."""
    from environments.sandbox import isolation

    own = str(os.getpid())
    parents = [_parent(each) for each in os.listdir("/proc") if each.isdecimal()]
    return {
        "memory MB": int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize() / 1e6,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads without the tool pool": sum(not thread.name.startswith("hermes-tool") for thread in threading.enumerate()),
        "processes": parents.count(own),
        "temporary directories": len(os.listdir(tempfile.gettempdir())),
        "sandboxes": len(isolation._sandboxes),
    }


def _parent(process: str) -> str:
    try:
        return Path("/proc", process, "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
    except OSError:  # it is gone
        return ""


def planned(plan: Any, share: float) -> Any:
    """Plan faults of the model, of the judge and of the tools that strike about ``share`` of the rollouts."""
    for kind in MODEL:  # a rollout makes three requests and two tool calls
        plan.on("model", kind, rate=share / len(MODEL) / 4)
    for kind in TOOLS:
        plan.on("sandbox", kind, rate=share / len(TOOLS) / 4, where="number.txt")
    return plan


def play(count: int, at_once: int, share: float) -> tuple[Soak, list[str]]:
    """Play rollouts on a mock model and in-memory sandboxes; return what came of them, and what is wrong."""
    from pytest_hermes_env import FakeSandbox, FaultPlan, ToolSeam
    from pytest_hermes_env.play.builder import EnvironmentBuilder

    plan = planned(FaultPlan(allow_leftovers=True), share)
    with ToolSeam(FakeSandbox(), faults=plan) as seam:
        builder = EnvironmentBuilder(allow_leftovers=True, seam=lambda: seam, faults=plan)
        env = builder.build(environment(), script=script, enabled_toolsets=["terminal"], group_size=GROUP_SIZE)
        soak = Soak(env, plan, rollouts=count, at_once=at_once)
        wrong = asyncio.run(soak.run())
        builder.close()
    gc.collect()
    return soak, wrong


def rollouts(count: int, at_once: int, share: float) -> list[str]:
    """Play the rollouts, and return what is wrong with them and with what they leave."""
    wrong = play(WARM, at_once, share)[1]
    before, started = held(), time.monotonic()
    soak, more = play(count, at_once, share)
    seconds, after = time.monotonic() - started, held()
    struck = Counter(f"{strike.fault.place} {strike.fault.kind}" for strike in soak.plan.strikes)
    print(
        f"{count} rollouts in {seconds:.0f} s ({count / seconds:.0f} per second), {soak.cancelled} groups of {GROUP_SIZE} cancelled"
    )
    print(f"faults: {sum(struck.values())}: {dict(sorted(struck.items()))}")
    print(f"counted: {dict(sorted(soak.env._counts.items()))}")
    wrong += more
    for name, number in before.items():
        print(f"{name}: {number:.0f} before, {after[name]:.0f} after")
        if after[name] > number + (MOST_GROWTH_MB if name == "memory MB" else 0):
            wrong.append(f"{name}: {number:.0f} before, {after[name]:.0f} after")
    return wrong


# ---------------------------------------------------------------------- recordings that end badly


def _record(path: Path, groups: int, most_bytes: int = 0) -> None:
    """Record in this process. It ends with 0 if the cassette was written, with `REFUSED` if an error says why not and names the file."""
    from benchmarks import replay_soak
    from pytest_hermes_env.cassette import session
    from pytest_hermes_env.errors import BadCassette

    save = session.save_tape

    def save_on_full_disk(*given: Any) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
        save(*given)

    replay_soak._be_quiet()
    if most_bytes:
        session.save_tape = save_on_full_disk
    try:
        replay_soak.record(path, groups)
    except BadCassette as error:
        os._exit(REFUSED if str(path) in str(error) else 1)


def _calls(path: Path) -> int:
    """Return the calls of a cassette. Raises: it is not whole → BadCassette."""
    from pytest_hermes_env.cassette.format import read_tape

    return len(read_tape(path).calls)


def recordings(kills: int) -> list[str]:
    """Kill processes that record, at any moment; fill the disk; write twice at once. Return what is wrong."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.replay_soak", "environments.hermes_base_env", "pytest_hermes_env.play.builder"])
    dice, wrong, killed = random.Random(5), list[str](), Counter[str]()

    def start(*given: Any) -> Any:
        process = context.Process(target=_record, args=given)
        process.start()
        return process

    def ended(process: Any) -> int:
        process.join()
        return int(process.exitcode)

    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "soak.json")
        ended(start(path, 1))
        began = time.monotonic()
        ended(start(path, 2))
        whole, known = time.monotonic() - began, {_calls(path)}
        ended(start(path, 3))
        known.add(_calls(path))
        for number in range(kills):
            process = start(path, 2 + number % 2)
            process.join(dice.random() * whole * 1.2)
            killed["while it recorded" if process.is_alive() else "after it had"] += 1
            process.kill()
            process.join()
            if (calls := _calls(path)) not in known:
                wrong.append(f"kill {number + 1} left a cassette of {calls} calls, not {sorted(known)}")
        if ended(start(path, 3)):
            wrong.append("nothing can be recorded after the kills")
        before = path.read_bytes()
        if (code := ended(start(path, 2, len(before) // 3))) != REFUSED:
            wrong.append(f"a full disk ended with {code}, not with an error that names the cassette")
        if path.read_bytes() != before:
            wrong.append("a full disk changed the cassette")
        codes = sorted(map(ended, [start(path, 2), start(path, 3)]))
        if codes not in ([0, 0], [0, REFUSED]) or _calls(path) not in known:
            wrong.append(f"two writers ended with {codes} and a cassette of {_calls(path)} calls")
        if left := sorted(set(os.listdir(place)) - {path.name}):
            wrong.append(f"recordings left {', '.join(left)}")
    print(f"kill -9 during recording: {dict(killed)}; a full disk: refused; two writers: {codes}")
    return wrong


def main(words: list[str]) -> int:
    """Run both parts."""
    given = [float(word) for word in words]
    count, at_once, share, kills = (*given, *(3000, 100, 0.06, 60)[len(given) :])
    logging.disable(logging.CRITICAL)  # thousands of expected errors
    started = time.monotonic()
    multiprocessing.util.get_temp_dir()  # which lives as long as this process
    with tempfile.TemporaryDirectory(prefix="soak-") as place:
        tempfile.tempdir = os.environ["TMPDIR"] = place  # what others leave in the machine's is not ours
        wrong = [*recordings(int(kills)), *rollouts(int(count), int(at_once), share)]
        tempfile.tempdir = None
    print("\n".join(f"WRONG: {text}" for text in wrong) or f"every sum adds up, in {time.monotonic() - started:.0f} s")
    return bool(wrong)
