"""`POST /rollout`: rewards, ends and what reaches the engine."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from pytest_hermes_env.inference import MockServer, call, fail, garbage, say
from pytest_hermes_env.inference.model import MockModel

pytestmark = pytest.mark.hermes_allow_leftovers


def test_a_rollout_returns_its_reward_and_what_happened(served, engine_key):
    def script(conversation: Any) -> Any:
        return call("todo", todos=[]) if conversation.turn == 0 else "done"

    async def test(here: Any, _server: Any) -> Any:
        return (await here.rollout({"n": 1, "reward": 0.75}, api_key=engine_key)).json()

    result = served(test, script=script)

    seconds = result.pop("seconds")
    assert result["metrics"].pop("seconds") == seconds > 0
    messages = result.pop("messages")
    assert result == {
        "reward": 0.75,
        "end": "finished",
        "turns": 2,
        "tool_errors": [],
        "metrics": {"turns": 2, "tool_calls": 1, "tool_errors": 0},
    }
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]


def test_the_engine_s_model_key_and_sampling_reach_its_endpoint(served, engine_key):
    seen: list[Any] = []

    def script(conversation: Any) -> Any:
        seen.append((conversation.model, conversation.sampling))
        return "done"

    async def test(here: Any, _server: Any) -> Any:
        sampling = {"temperature": 0.25, "max_completion_tokens": 77, "top_p": None, "min_p": 0.5}
        return await here.rollout(model="policy-7", sampling=sampling, api_key=engine_key)

    assert served(test, script=script, config={"agent_temperature": 1.0, "max_token_length": 9}).status_code == 200
    (model, sampling), *others = seen
    assert (model, others) == ("policy-7", [])
    assert {name: sampling.get(name) for name in ("temperature", "max_completion_tokens", "top_p", "min_p", "max_tokens")} == {
        "temperature": 0.25,
        "max_completion_tokens": 77,
        "top_p": None,
        "min_p": 0.5,
        "max_tokens": None,
    }


ABORTED = garbage(
    '{"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": '
    '[{"index": 0, "finish_reason": null, "message": {"role": "assistant", "content": "h"}}]}'
)


@pytest.mark.parametrize(
    ("script", "item", "expected"),
    [
        (fail(400, "no"), {"n": 1}, (502, "model_failed")),
        (ABORTED, {"n": 1}, (502, "aborted_by_server")),
        ("done", {"n": 1, "raises": True}, (500, "reward_failed")),
        ("done", {"n": 1, "reward": "nan"}, (500, "reward_failed")),
    ],
)
def test_a_rollout_that_fails_is_an_http_error_that_names_its_end(served, script, item, expected, error_of):
    async def test(here: Any, _server: Any) -> Any:
        return await here.rollout(item), dict(here.service.counts)

    answer, counts = served(test, script=script)

    assert error_of(answer) == expected
    assert "reward" not in answer.json()
    assert counts == {expected[1]: 1}


class OwnRequests:
    """Asks the model itself, and goes on when it fails."""

    async def collect_trajectory(self, item: Any) -> Any:
        try:
            answer = (await self.server.chat_completion(messages=[{"role": "user", "content": "?"}])).choices[0].message.content
        except Exception:  # noqa: BLE001 - the habit that is tried
            answer = ""
        return {"tokens": [1], "masks": [1], "scores": float(bool(answer)), "messages": [{"role": "user", "content": "?"}]}, []


@pytest.mark.parametrize(("script", "expected"), [("hello", 200), (fail(400, "no"), 502)])
def test_a_model_failure_that_an_environment_swallows_is_an_error(served, script, expected):
    async def test(here: Any, _server: Any) -> Any:
        return (await here.rollout()).status_code

    assert served(test, OwnRequests, script=script) == expected


def test_a_rollout_that_takes_too_long_is_cancelled(served, error_of):
    class Waits:
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            await asyncio.Event().wait()
            return 1.0

    async def test(here: Any, _server: Any) -> Any:
        return error_of(await here.rollout()), len(here.service.line.running)

    assert served(test, Waits, rollout_timeout=0.2) == ((504, "rollout_timeout"), 0)


def test_concurrent_rollouts_do_not_mix_their_servers(served):
    """Each conversation ends with the text of its own endpoint."""

    async def test(here: Any, server: Any) -> Any:
        with MockServer(lambda _: say("second"), allow_leftovers=True) as second:
            answers = await asyncio.gather(*(here.rollout(endpoint=one) for one in [server.base_url, second.base_url] * 2))
        return [answer.json()["messages"][-1]["content"] for answer in answers]

    assert served(test, script=lambda _: say("first")) == ["first", "second"] * 2


def test_the_environment_empties_its_buffers_now_and_then(served, monkeypatch):
    monkeypatch.setattr("environments.service.service.ROLLOUTS_PER_LOG", 3)

    async def test(here: Any, _server: Any) -> Any:
        for _ in range(4):
            await here.rollout()
        return here.service.env.rewards

    assert served(test) == [0.5]


def test_a_rollout_that_times_out_delays_no_log(served, monkeypatch):
    """The log comes with the next rollout that ends by itself."""
    monkeypatch.setattr("environments.service.service.ROLLOUTS_PER_LOG", 2)

    class Waits:
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            if item["n"] == 2:
                await asyncio.Event().wait()
            return await super().compute_reward(item, result, ctx)  # type: ignore[misc]

    async def test(here: Any, _server: Any) -> Any:
        for number in (1, 2, 3):
            await here.rollout({"n": number})
        return here.service.env.rewards

    assert served(test, Waits, rollout_timeout=1.0) == []


class ReadsTokens:
    """An environment that looks at the row of a rollout."""

    async def collect_trajectory(self, item: Any) -> Any:
        row, backlog = await super().collect_trajectory(item)
        row["scores"] = float(len(row["tokens"]) > 0)
        return row, backlog


@pytest.mark.parametrize("mixin", [None, ReadsTokens])
def test_a_text_is_made_into_tokens_only_for_who_reads_them(mixin, served, monkeypatch):
    """They would cost a second for each megabyte, and the engine has its own."""

    async def test(here: Any, _server: Any) -> Any:
        encoded: list[str] = []
        encode = here.service.env.tokenizer.encode

        def count(text: str, **how: Any) -> Any:
            encoded.append(text)
            return encode(text, **how)

        monkeypatch.setattr(here.service.env.tokenizer, "encode", count)
        return (await here.rollout()).json()["reward"], bool(encoded)

    assert served(test, mixin) == ((0.5, False) if mixin is None else (1.0, True))


def test_an_error_without_a_text_has_that_of_its_cause(served):
    """httpx raises `ReadError` without one when a connection breaks."""

    class Breaks:
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            raise httpx.ReadError("") from ConnectionResetError("reset by peer")

    class BreaksInSilence:
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            raise httpx.ReadError("")

    async def test(here: Any, _server: Any) -> Any:
        return (await here.rollout()).json()["error"]["message"]

    assert served(test, Breaks) == "ReadError: ConnectionResetError: reset by peer"
    assert served(test, BreaksInSilence) == "ReadError: (without a text)"


def test_no_connection_is_kept_for_the_next_turn(served, monkeypatch):
    """httpcore 1.0 may close one that it keeps under the next request, and the engine would sample that turn twice."""
    respond, seen = MockModel.respond, []

    def noting(self: MockModel, method: str, path: str, data: bytes, headers: Any) -> Any:
        seen.append(headers["connection"])
        return respond(self, method, path, data, headers)

    async def test(here: Any, _server: Any) -> Any:
        return await here.rollout()

    monkeypatch.setattr(MockModel, "respond", noting)
    answer = served(test)

    assert answer.status_code == 200
    assert seen == ["close"]
