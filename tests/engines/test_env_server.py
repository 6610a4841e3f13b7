"""verifiers' env server over TCP with rollout services behind it: load, exact tokens, cancellation."""

from __future__ import annotations

import struct

from pytest_hermes_env.inference import MockServer

TARGET = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"


def test_twenty_episodes_use_both_services(start, episodes, results_of, gold):
    services = [start(TARGET, "--concurrency", "4"), start(TARGET, "--concurrency", "4")]

    with MockServer(gold) as server:
        results = results_of(episodes(services, endpoint=server.base_url, tasks=5, episodes=20))

    counts = [service.counts() for service in services]
    assert [(result["reward"], result["errors"]) for result in results] == [(1.0, [])] * 20
    assert sum(count["finished"] for count in counts) == 20
    assert all(count["finished"] >= 8 for count in counts), counts
    assert [service.open_sandboxes() for service in services] == [[], []]


# ---------------------------------------------------------------------- tokens


def single(value: float) -> float:
    """Return a number with the precision of a trainer's: engines may keep logprobs in four bytes."""
    return struct.unpack("f", struct.pack("f", value))[0]


def test_the_training_client_gets_exactly_the_sampled_tokens(start, episodes, results_of, training):
    sampler, plan = training

    results = results_of(episodes([start(TARGET)], tasks=4, episodes=8, **plan))

    assert [(result["reward"], result["errors"]) for result in results] == [(1.0, [])] * 8
    last_turns = {tuple(prompt + tokens) for prompt, tokens, _ in sampler.turns}
    sampled = {tuple(logprobs): tokens for _, tokens, logprobs in sampler.turns}
    seen: list[tuple[float, ...]] = []
    for result in results:
        (branch,) = result["branches"]
        assert tuple(branch["token_ids"]) in last_turns
        trained = [
            (token, value)
            for token, is_own, value in zip(branch["token_ids"], branch["sampled_mask"], branch["logprobs"], strict=True)
            if is_own
        ]
        place = 0
        for logprobs, tokens in sampled.items():
            if [(token, single(value)) for token, value in trained[place : place + len(tokens)]] == [
                (token, single(value)) for token, value in zip(tokens, logprobs, strict=True)
            ]:
                seen.append(logprobs)
                place += len(tokens)
        assert place == len(trained)
    assert sorted(seen) == sorted(sampled)


# ---------------------------------------------------------------------- episodes that do not end


def test_cancelled_episodes_leave_no_sandbox(start, episodes, results_of, gold, held, until):
    service = start(held)

    with MockServer(gold) as server:
        process = episodes([service], endpoint=server.base_url, tasks=3, episodes=3, cancels=True)
        until(lambda: server.request_count == 6)
        opened = service.open_sandboxes()
        process.stdin.write("cancel\n")
        process.stdin.flush()
        until(lambda: service.load() == 0)
        assert results_of(process) == []

    assert len(opened) >= 3
    assert service.counts() == {"cancelled": 3}
    assert service.open_sandboxes() == []
