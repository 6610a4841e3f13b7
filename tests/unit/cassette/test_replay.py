"""Recording and replaying without pytest: over a real socket, then without any server."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import openai
import pytest

from pytest_hermes_env import MockServer, fail, say
from pytest_hermes_env.cassette.format import read_tape
from pytest_hermes_env.cassette.matching import Matching
from pytest_hermes_env.cassette.session import recording, replaying
from pytest_hermes_env.cassette.tape import ModelCall
from pytest_hermes_env.errors import BadCassette, CassetteMiss, LeftoverRecordings
from pytest_hermes_env.redaction.secret_search import Search

GONE = "http://127.0.0.1:9/v1"
"""Nobody listens there."""


async def ask(base_url: str, text: str = "six times seven?", *, retries: int = 0, **settings):
    """Ask by the openai client and return all contents."""
    async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=retries, timeout=60.0) as client:
        messages = settings.pop("messages", [{"role": "user", "content": text}])
        answer = await client.chat.completions.create(model="m", messages=messages, **settings)
        return [choice.message.content for choice in answer.choices]


async def stream(base_url: str) -> list[str | None]:
    async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        chunks = await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}], stream=True)
        return [chunk.choices[0].delta.content async for chunk in chunks if chunk.choices]


def test_answers_of_every_kind_are_played_as_they_came(tmp_path: Path) -> None:
    """A plain answer, several choices, a stream with its chunks, and a refused request are the same without the server."""
    path = tmp_path / "cassette.json"

    async def all_of(url: str):
        outcome = [await ask(url), await ask(url, "n", n=3), await stream(url)]
        try:
            await ask(url, "fail")
        except openai.RateLimitError as error:
            outcome.append(error.response.json())
        return outcome

    def policy(conversation):
        return fail(429, "slow down") if conversation.first_user == "fail" else say("a long enough answer: 42")

    with MockServer(policy, allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        recorded = asyncio.run(all_of(server.base_url))
    with replaying(path):
        played = asyncio.run(all_of(GONE))

    assert played == recorded
    assert len(recorded) == 4
    assert len(played[2]) > 1


def test_only_what_differs_is_redacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose exact text was recorded is not searched for secrets, and no other one makes the recordings be searched."""
    path = tmp_path / "cassette.json"
    with MockServer(lambda _: say("yes"), allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        for number in range(20):
            asyncio.run(ask(server.base_url, f"question {number}"))
    searched: list[str] = []
    search = Search.spans
    monkeypatch.setattr(Search, "spans", lambda self, text: searched.append(text) or search(self, text))

    with replaying(path, matching=Matching(ignored=("temperature",))):
        for number in range(19):
            asyncio.run(ask(GONE, f"question {number}"))
        exact = list(searched)
        asyncio.run(ask(GONE, "question 19", temperature=0.5))
        searched_for_ignored = list(searched)
    with pytest.raises(CassetteMiss), replaying(path), pytest.raises(openai.BadRequestError):
        asyncio.run(ask(GONE, "question 20"))

    assert exact == searched_for_ignored == []
    assert {text for text in searched if text.startswith("question")} == {
        "question 20",
        "question 0",
    }  # and the nearest one, which is shown


@pytest.mark.parametrize("client", ["httpx", "aiohttp"])
def test_a_server_that_is_not_there_is_played_as_not_there(tmp_path: Path, client: str) -> None:
    """A refused connection was recorded, so the client meets the same class of error in the replay, and no socket."""
    path = tmp_path / "cassette.json"

    async def is_refused() -> bool:
        try:
            if client == "httpx":
                async with httpx.AsyncClient() as session:
                    await session.post(f"{GONE}/completions", json={"prompt": "x"})
            else:
                async with aiohttp.ClientSession() as session, session.post("http://127.0.0.1:9/generate", json={"a": 1}):
                    pass
        except (httpx.ConnectError, aiohttp.ClientConnectionError):
            return True
        return False

    with recording(path, recorded_from="nobody"):
        recorded = asyncio.run(is_refused())
    with replaying(path):
        played = asyncio.run(is_refused())

    assert recorded
    assert played
    failures = [call.reply.failure for call in read_tape(path).calls if isinstance(call, ModelCall)]
    assert len(failures) == 1
    assert failures[0]


def test_token_ids_over_aiohttp_are_played(tmp_path: Path) -> None:
    """A request to /generate with 13,000 ids finds its answer, and with one id changed it does not, naming the place."""
    path = tmp_path / "cassette.json"
    ids = list(range(13_000))

    async def generate(url: str, ids: list[int]):
        body = {"prompt": {"prompt_token_ids": ids}, "logprobs": 0, "max_tokens": 4}
        async with aiohttp.ClientSession() as session, session.post(url.replace("/v1", "/generate"), json=body) as answer:
            return answer.status, await answer.json()

    with MockServer([say("yes")], template="chatml", allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        recorded = asyncio.run(generate(server.base_url, ids))
    with replaying(path):
        played = asyncio.run(generate(GONE, ids))
    with pytest.raises(CassetteMiss) as miss, replaying(path):
        asyncio.run(generate(GONE, [*ids[:500], 0, *ids[501:]]))

    assert played == recorded
    assert str(miss.value) == (
        "a request is not in the cassette.\n"
        "  where     outside of any rollout (nearest: call 1)\n"
        f"  cassette  {path}\n"
        "  differs   the prompt, token 501: recorded …[498, 499, 500, 501, 502, 503, 504, 505]… of 13,000, "
        "now …[498, 499, 0, 501, 502, 503, 504, 505]… of 13,000\n"
        "  fix       undo the change, or record again: record it again"
    )


def test_equal_requests_get_their_own_answers(tmp_path: Path) -> None:
    """Of equal requests each gets an answer of its own, in recorded order, and one more is a miss, said as such."""
    path = tmp_path / "cassette.json"
    answers = iter("abc")
    with MockServer(lambda _: say(next(answers)), allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        recorded = [asyncio.run(ask(server.base_url)) for _ in range(3)]
    with replaying(path):
        played = [asyncio.run(ask(GONE)) for _ in range(3)]
    with pytest.raises(CassetteMiss) as miss, replaying(path):  # noqa: PT012 - once at the call, once at the end
        for _ in range(3):
            asyncio.run(ask(GONE))
        with pytest.raises(openai.BadRequestError, match="more often than it was recorded"):
            asyncio.run(ask(GONE))

    assert played == recorded == [["a"], ["b"], ["c"]]
    assert str(miss.value) == (
        "POST /chat/completions was repeated more often than it was recorded.\n"
        "  where     outside of any rollout\n"
        f"  expected  3 times, as in {path}\n"
        "  seen      the same call once more: is there a retry, or a second judge question?\n"
        "  fix       undo the change, or record again: record it again"
    )


def test_a_miss_is_not_asked_for_again(tmp_path: Path) -> None:
    """The openai client retries twice by default, but not what is missing: the session is asked once."""
    path = tmp_path / "cassette.json"
    with MockServer([say("42")], allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        asyncio.run(ask(server.base_url))

    with pytest.raises(CassetteMiss), replaying(path, allow_leftovers=True) as session:  # noqa: PT012 - as above
        with pytest.raises(openai.BadRequestError):
            asyncio.run(ask(GONE, "another", retries=2))

        assert len(session.problems) == 1


def test_recordings_that_nobody_asked_for_fail(tmp_path: Path) -> None:
    """What is left over is listed, unless leftovers are allowed."""
    path = tmp_path / "cassette.json"
    with MockServer([say("42")], allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        asyncio.run(ask(server.base_url))

    with replaying(path, allow_leftovers=True):
        pass
    with pytest.raises(LeftoverRecordings) as left, replaying(path):
        pass

    assert str(left.value) == (
        "1 recording of the cassette was not used.\n"
        f"  cassette  {path}\n"
        "  unused    call 1, outside of any rollout: POST /chat/completions\n"
        "  fix       record again: record it again; if this is intended:\n"
        "            @pytest.mark.hermes_cassette(allow_leftovers=True)"
    )


def test_nothing_is_written_when_nothing_was_asked(tmp_path: Path) -> None:
    """A recording of nothing would be a replay that proves nothing."""
    path = tmp_path / "cassette.json"

    with pytest.raises(BadCassette, match="nothing was recorded"), recording(path, recorded_from="nobody"):
        pass

    assert not path.exists()


def test_a_broken_recording_leaves_the_good_one(tmp_path: Path) -> None:
    """Where the block raises, the file holds what it held."""
    path = tmp_path / "cassette.json"
    with MockServer([say("42")], allow_leftovers=True) as server:
        with recording(path, recorded_from="a mock"):
            asyncio.run(ask(server.base_url))
        before = path.read_bytes()
        with pytest.raises(ZeroDivisionError), recording(path, recorded_from="a mock"):  # noqa: PT012 - after a call
            asyncio.run(ask(server.base_url, "another"))
            _ = 1 / 0

    assert path.read_bytes() == before


def conversation(call_id: str, directory: str, port: int) -> list[dict[str, object]]:
    call = {"id": call_id, "type": "function", "function": {"name": "terminal", "arguments": json.dumps({"command": "pwd"})}}
    return [
        {"role": "user", "content": "where?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": f"{directory}/a.py, served at http://127.0.0.1:{port}/"},
    ]


def test_ids_ports_and_directories_of_the_run_do_not_count(tmp_path: Path) -> None:
    """What is new in each run is mapped by position; one character of a result, and a field, count as what they are."""
    path = tmp_path / "cassette.json"
    first = conversation("call_0a1b2c3d", "/tmp/hermes-task-1-x8f_2k1a", 34567)
    other = conversation("call_99999999", "/tmp/hermes-task-2-aaaaaaaa", 41000)
    changed = conversation("call_99999999", "/tmp/hermes-task-2-aaaaaaaa", 41000)
    changed[2]["content"] = str(changed[2]["content"]).replace("a.py", "b.py")
    with MockServer(lambda _: say("here"), allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        asyncio.run(ask(server.base_url, messages=first, temperature=1.0))

    with replaying(path):
        assert asyncio.run(ask(GONE, messages=other, temperature=1.0)) == ["here"]
    with pytest.raises(CassetteMiss) as miss, replaying(path), pytest.raises(openai.BadRequestError):
        asyncio.run(ask(GONE, messages=changed, temperature=0.5))

    assert str(miss.value).split("\n")[3:5] == [
        '  differs   message 3 (result of `terminal`): recorded "<directory 1>/a.py, served at http://<port 1>/", '
        'now "<directory 1>/b.py, served at http://<port 1>/"',
        "            the temperature: recorded 1.0, now 0.5",
    ]


def test_an_answer_names_the_directories_of_today(tmp_path: Path) -> None:
    """Those that the request named; another one stays as it was recorded."""

    def echo(conversation: Any) -> Any:
        return say(f"I wrote {conversation.first_user} and /tmp/hermes-task-9-zz9f_2k1/b.txt")

    path, then, now = tmp_path / "cassette.json", "/tmp/hermes-task-1-x8f_2k1a", "/tmp/hermes-task-2-aaaaaaaa"
    asked = [[{"role": "user", "content": f"{place}/a.txt"}] for place in (then, now)]
    with MockServer(echo, allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        (recorded,) = asyncio.run(ask(server.base_url, messages=asked[0]))
    with replaying(path):
        (replayed,) = asyncio.run(ask(GONE, messages=asked[1]))

    assert (recorded.split(" and ")[0], replayed.split(" and ")[0]) == (f"I wrote {then}/a.txt", f"I wrote {now}/a.txt")
    assert now not in replayed.split(" and ")[1]


def test_fields_may_be_ignored(tmp_path: Path) -> None:
    """What a Matching ignores may change."""
    path = tmp_path / "cassette.json"
    with MockServer(lambda _: say("here"), allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        asyncio.run(ask(server.base_url, seed=1))

    with replaying(path, matching=Matching(ignored=("seed",))):
        assert asyncio.run(ask(GONE, seed=2)) == ["here"]


def test_other_traffic_passes(tmp_path: Path) -> None:
    """What is not for a model reaches its server as always. Under pytest, the network guard refuses other hosts."""
    path = tmp_path / "cassette.json"
    with MockServer(lambda _: say("here"), allow_leftovers=True) as server:
        with recording(path, recorded_from="a mock"):
            asyncio.run(ask(server.base_url))
        with replaying(path, allow_leftovers=True):
            answer = httpx.get(f"{server.url}/status")

    assert answer.status_code == 404


def test_many_at_once_each_find_their_own(tmp_path: Path) -> None:
    """Two hundred concurrent requests in a shuffled order get the answers of their contents."""
    path = tmp_path / "cassette.json"
    order = list(range(200))
    random.Random(7).shuffle(order)

    async def all_of(url: str, numbers: list[int]) -> AsyncIterator[object]:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

            async def one(number: int) -> tuple[int, str | None]:
                message = {"role": "user", "content": f"number {number}"}
                answer = await client.chat.completions.create(model="m", messages=[message])
                return number, answer.choices[0].message.content

            return dict(await asyncio.gather(*(one(number) for number in numbers)))

    def echo(conversation):
        return say(f"you said {conversation.first_user}")

    with MockServer(echo, allow_leftovers=True) as server, recording(path, recorded_from="a mock"):
        asyncio.run(all_of(server.base_url, list(range(200))))
    with replaying(path):
        played = asyncio.run(all_of(GONE, order))

    assert played == {number: f"you said number {number}" for number in range(200)}
