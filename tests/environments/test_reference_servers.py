"""Token mode on servers in the shape of `vllm serve`, SGLang and Atropos' server, with a language model that the test computes, too."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from atroposlib.envs.server_handling.server_baseline import APIServerConfig

from environments.tokens import exact_tokens, server_check
from environments.tokens.exact_tokens import ModelServerGone
from environments.tokens.server_check import ModelServerError
from pytest_hermes_env.play.builder import shared_tokenizer
from tests.environments.plain_env import PlainEnv
from tests.reference.servers import END, MODEL, Reference, serving

SHAPES = ["vllm", "sglang", "atropos"]
CALL = '<tool_call>\n{"name": "todo", "arguments": {}}\n</tool_call>'
PLAN = [f"<think>\nLook twice.\n</think>\n{CALL}\n{CALL}", f"Once more.\n{CALL}", "All done, as far as I can see."]


def reference(shape: str, **settings: Any) -> Reference:
    return Reference(shape=shape, tokenizer_dir=shared_tokenizer("chatml"), plan=PLAN, **settings)


def built(make_env: Any, url: str, *, server_type: str = "vllm", key: str = "k", model: str = MODEL, **fields: Any) -> Any:
    config = APIServerConfig(
        base_url=url,
        model_name=model,
        api_key=key,
        server_type=server_type,
        tokenizer_name=shared_tokenizer("chatml"),
        health_check=False,
    )
    return make_env(
        PlainEnv, server=config, **{"enabled_toolsets": ["todo"], "group_size": 2, "max_token_length": 200, **fields}
    )


def group_of(make_env: Any, url: str, **fields: Any) -> tuple[Any, Any]:
    """Check the server as ``serve`` does, run one group, and return it as it is sent, with the environment."""

    async def scenario() -> tuple[Any, Any]:
        env = built(make_env, url, **fields)
        await env.check_model_servers("serve")
        group, _ = await env.collect_trajectories("x")
        sent: list[Any] = []

        async def keep(groups: Any) -> None:
            sent.append(groups)

        env._send_scored_data_to_api = keep
        env.config.ensure_scores_are_not_same = False
        env.max_token_len = 32768
        await env.handle_send_to_api(group, "x")
        return env, sent[0]

    return asyncio.run(scenario())


def spans_of(row: dict[str, Any]) -> list[tuple[int, int]]:
    """Start and end of each run of labels."""
    labelled = [mask != -100 for mask in row["masks"]] + [False]
    starts = [place for place, one in enumerate(labelled) if one and not (place and labelled[place - 1])]
    return [(start, labelled.index(False, start)) for start in starts]


def ratios_of(served: Reference, row: dict[str, Any], temperature: float) -> np.ndarray:
    """The importance ratios in a trainer that computes its own logprobs of the same model."""
    places = [place for place, mask in enumerate(row["masks"]) if mask != -100]
    own = [served.model.logprobs(row["tokens"][:place], temperature)[row["tokens"][place]] for place in places]
    return np.exp(np.array(own) - np.array([row["inference_logprobs"][place] for place in places]))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("server_type", ["vllm", "sglang"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_exact(make_env, shape, server_type, temperature):
    """Tokens, masks and logprobs are those that were sampled, whatever type is configured; the importance ratio is 1."""
    served = reference(shape)

    with serving(served) as url:
        env, group = group_of(make_env, url, server_type=server_type, agent_temperature=temperature)

    rows = [{name: group[name][number] for name in ("tokens", "masks", "inference_logprobs")} for number in range(2)]
    for row in rows:
        spans = spans_of(row)
        assert [env.tokenizer.decode(row["tokens"][start:end]) for start, end in spans] == [said + END for said in PLAN]
        assert [row["masks"][start:end] for start, end in spans] == [row["tokens"][start:end] for start, end in spans]
        assert {own for own, mask in zip(row["inference_logprobs"], row["masks"], strict=True) if mask == -100} == {1.0}
        np.testing.assert_allclose(ratios_of(served, row, temperature), 1, atol=1e-6)
        assert [len(message.get("tool_calls") or []) for message in group["messages"][0]].count(2) == 1
    assert group["group_overrides"]["logprobs"] == "processed"


@pytest.mark.parametrize("shape", SHAPES)
def test_cut_turn_is_exact(make_env, shape):
    """The reply that reached the limit is trained on only if the configuration says so; its rollout ends there."""
    served = reference(shape)

    with serving(served) as url:
        env, group = group_of(
            make_env, url, server_type="sglang" if shape == "sglang" else "vllm", max_token_length=5, truncated_turns="train"
        )

    row = {name: group[name][0] for name in ("tokens", "masks", "inference_logprobs")}
    ((start, end),) = spans_of(row)
    assert (end - start, PLAN[0].startswith(env.tokenizer.decode(row["tokens"][start:end]))) == (5, True)
    np.testing.assert_allclose(ratios_of(served, row, 1.0), 1, atol=1e-6)
    assert group["overrides"][0]["end"] == "cut_by_length"


# ---------------------------------------------------------------------- what is found out at start


def checked(make_env: Any, served: Reference, mode: str = "serve", **fields: Any) -> str:
    """What the trainer is told after the check."""

    async def scenario(url: str) -> str:
        env = built(make_env, url, **fields)
        await env.check_model_servers(mode)
        return env._logprobs

    with serving(served) as url:
        return asyncio.run(scenario(url))


NAMES = {
    "vllm": "vllm serve 0.33.0, /v1/completions",
    "sglang": "SGLang, /generate",
    "atropos": "Atropos' vllm_api_server, /generate",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_server_is_named_in_one_line(make_env, shape, capfd):
    """With the kind of its logprobs; no turn of the plan is used."""
    checked(make_env, reference(shape))

    (line,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("model server")]
    assert f": {NAMES[shape]}; processed logprobs, after temperature" in line


@pytest.mark.parametrize("shape", SHAPES)
def test_raw_logprobs_are_refused_at_another_temperature(make_env, shape):
    """At 1 they are those of the sampled distribution; elsewhere only by a setting."""
    with pytest.raises(ModelServerError, match="raw logprobs") as error:
        checked(make_env, reference(shape, logprobs="raw"), agent_temperature=0.7)

    assert ("SGLANG_RETURN_ORIGINAL_LOGPROB" if shape == "sglang" else "--logprobs-mode processed_logprobs") in str(error.value)
    assert "--env.allow_raw_logprobs true" in str(error.value)
    assert checked(make_env, reference(shape, logprobs="raw")) == "raw"
    assert checked(make_env, reference(shape, logprobs="raw"), agent_temperature=0.7, allow_raw_logprobs=True) == "raw"
    assert checked(make_env, reference(shape, logprobs="raw"), mode="evaluate", agent_temperature=0.7) == ""


@pytest.mark.parametrize("shape", SHAPES)
def test_raw_logprobs_are_refused_with_penalties(make_env, shape):
    """They are those before penalties."""
    with pytest.raises(ModelServerError, match=r"repetition_penalty 1\.1"):
        checked(make_env, reference(shape, logprobs="raw"), extra_body={"repetition_penalty": 1.1})


@pytest.mark.parametrize(
    ("kind", "said"),
    [("log2", "are not natural"), ("log10", "are not natural"), ("argmax", "are not those of the sampled tokens")],
)
@pytest.mark.parametrize("shape", ["vllm", "sglang"])
def test_logprobs_of_something_else_are_refused(make_env, shape, kind, said):
    """Of another base, or of another token."""
    with pytest.raises(ModelServerError, match=said):
        checked(make_env, reference(shape, logprobs=kind))


# ---------------------------------------------------------------------- servers on which no rollout can succeed


@pytest.mark.parametrize(
    ("settings", "fields", "seen", "fix"),
    [
        ({"key": "right"}, {"key": "sk-wrong-1234"}, "401 Unauthorized", "--openai.api_key"),
        (
            {},
            {"model": "other"},
            "404 The model `other` does not exist.",
            f"--openai.model_name with a model that it serves: {MODEL}",
        ),
        ({"gives_ids": False}, {}, "returned a text without its token_ids", "0.10.2 or later"),
        ({"refuses_with": 500}, {}, "500 the engine is out of order", "correct --openai.base_url"),
    ],
    ids=["key", "model", "no ids", "broken"],
)
def test_server_that_cannot_serve(make_env, settings, fields, seen, fix):
    """The cause, and what to do; never the key."""
    with pytest.raises(ModelServerError) as error:
        checked(make_env, reference("vllm", **settings), **fields)

    text = str(error.value)
    assert (seen in text, fix in text, "sk-wrong" in text) == (True, True, False), text


def test_server_that_returns_few_logprobs(make_env):
    """It is asked for those of the sampled tokens alone."""
    served = reference("vllm", max_logprobs=0, spread=6)

    assert checked(make_env, served) == "processed"
    assert [body["logprobs"] for path, body in served.requests if path == "/v1/completions"] == [20, 5, 1, 0, 0]


def test_server_of_which_nothing_tells(make_env, capfd):
    """Flat distributions, and no logprobs but those of the sampled tokens: it says so, and what would tell."""
    served = reference("vllm", max_logprobs=0, spread=0.1)

    assert checked(make_env, served, agent_temperature=0.7) == "unknown"

    assert [body["logprobs"] for path, body in served.requests if path == "/v1/completions"] == [20, 5, 1, 0, 0, 0, 0]
    (line,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("model server")]
    assert line.endswith(
        "; logprobs that may be raw or processed: its answers at different temperatures do not tell. To be sure, start it with "
        "--logprobs-mode processed_logprobs (vLLM's default is raw_logprobs), or let it return 20 logprobs for each token"
    )


def test_questions_cut_nothing(make_env):
    """A server's defaults of sampling, such as those of a model's generation_config.json, do not reach the check."""
    served = reference("vllm")
    checked(make_env, served)

    asked = [body for path, body in served.requests if path == "/v1/completions"]
    names = ("top_p", "top_k", "min_p", "repetition_penalty")
    assert [[body[name] for name in names] for body in asked] == [[1, -1, 0, 1]] * 2


QUESTIONS = 8
"""Answers to a question of the check."""


@pytest.mark.parametrize("shape", ["vllm", "sglang", "atropos"])
def test_rollouts_are_sampled_from_the_whole_distribution(make_env, shape):
    """Defaults of the server do not reach them either; what their author set does."""
    served = reference(shape)
    with serving(served) as url:
        server_type = "sglang" if shape == "sglang" else "vllm"
        group_of(make_env, url, server_type=server_type, extra_body={"top_k": 40})

    bodies = [body.get("sampling_params", body) for _, body in served.requests if body]
    asked = [body for body in bodies if "top_p" in body and body.get("n") != QUESTIONS]
    names = ("top_p", "top_k", "min_p", "repetition_penalty")
    assert asked
    assert {tuple(body[name] for name in names) for body in asked} == {(1, 40, 0, 1)}


def test_server_that_is_restarted_is_waited_for(make_env):
    """The turn that met the closed port is asked again; nothing is lost."""
    served = reference("vllm")

    async def scenario() -> Any:
        with serving(served) as url:
            env = built(make_env, url, rollout_retries=0)
            await env.check_model_servers("serve")
        port = int(url.split(":")[2].split("/")[0])
        (server,) = env.server.servers
        looks = 0

        async def is_up() -> bool:
            nonlocal looks
            looks += 1
            return looks > 2 and await type(server).is_up(server)

        server.is_up = is_up
        rollouts = asyncio.ensure_future(env.collect_trajectories("x"))
        while looks < 2:
            await asyncio.sleep(0)
        with serving(served, port):
            return await rollouts

    group, _ = asyncio.run(scenario())

    assert [json.dumps(messages).count("All done") for messages in group["messages"]] == [1, 1]


def test_server_that_is_paused_is_waited_for(make_env, monkeypatch, caplog):
    """It answers 503, says that it is well, and may say how long; one that no run waits for is asked no more."""
    monkeypatch.setattr(exact_tokens, "PAUSE_S", 0.0)
    refused = SimpleNamespace(
        status=503, headers={"Retry-After": "0"}, reason="paused", request_info=SimpleNamespace(real_url="/")
    )

    async def scenario() -> Any:
        with serving(reference("vllm")) as url:
            env = built(make_env, url, rollout_retries=0, group_size=1)
            await env.check_model_servers("serve")
            (server,) = env.server.servers
            asked = 0

            async def send(method: str, url: str, body: Any, timeout_s: float) -> Any:
                nonlocal asked
                asked += method == "POST"
                is_refused = method == "POST" and asked in {2, 3}
                return (refused, b"{}") if is_refused else await type(server)._send(server, method, url, body, timeout_s)

            server._send = send
            waited = (await env.collect_trajectories("x"))[0]
            asked, server.is_waited_for = 0, False
            return waited, (await env.collect_trajectories("x"))[0]

    waited, given_up = asyncio.run(scenario())

    assert [json.dumps(messages).count("All done") for messages in waited["messages"]] == [1]
    assert "All done" not in json.dumps(given_up["messages"])
    assert caplog.text.count("(status 503); it is waited for, at most 600 s (model_server_timeout)") == 1


def test_server_that_starts_late_is_waited_for(make_env, capfd):
    """For `START_S` seconds, and it is said once."""
    served = reference("vllm")

    async def scenario() -> str:
        with serving(served) as url:
            env = built(make_env, url)
        checking = asyncio.ensure_future(env.check_model_servers("serve"))
        while "waiting for it" not in capfd.readouterr().out:
            await asyncio.sleep(0.01)
        with serving(served, int(url.split(":")[2].split("/")[0])):
            await checking
        return env._logprobs

    assert asyncio.run(scenario()) == "processed"


def test_server_that_never_starts_ends_the_run(make_env, monkeypatch):
    """The address is named."""
    monkeypatch.setattr(server_check, "START_S", 0.0)
    with serving(reference("vllm")) as url:
        pass

    with pytest.raises(ModelServerError, match="does not answer") as error:
        asyncio.run(built(make_env, url).check_model_servers("serve"))

    assert url in str(error.value)


def test_server_that_does_not_come_back_ends_the_run(make_env):
    """After ``model_server_timeout`` seconds; each further request ends at once."""

    async def scenario() -> None:
        with serving(reference("vllm")) as url:
            env = built(make_env, url, rollout_retries=0, model_server_timeout=0.0)
            await env.check_model_servers("serve")
        with pytest.raises(ModelServerGone):
            await env.collect_trajectories("x")
        await env.get_status()

    with pytest.raises(ModelServerError, match="has not come back"):
        asyncio.run(scenario())


def test_server_that_comes_back_with_raw_logprobs_ends_the_run(make_env, monkeypatch):
    """It is asked once more when it is back; nothing that it samples then is trained."""
    monkeypatch.setattr(exact_tokens, "PAUSE_S", 0.01)

    async def scenario() -> Any:
        with serving(reference("vllm")) as url:
            env = built(make_env, url, rollout_retries=0, agent_temperature=0.7)
            await env.check_model_servers("serve")
            first, _ = await env.collect_trajectories("x")
        waiting = asyncio.ensure_future(env.collect_trajectories("x"))
        await asyncio.sleep(0.05)
        with serving(reference("vllm", logprobs="raw"), int(url.split(":")[2].split("/")[0])):
            second = (await asyncio.gather(waiting, return_exceptions=True))[0]
            again = (await asyncio.gather(env.collect_trajectories("x"), return_exceptions=True))[0]  # as a repeated request
        return first, [second, again], env

    first, later, env = asyncio.run(scenario())

    assert len(first["scores"]) == 2
    for one in later:
        assert isinstance(one, Exception) or "All done" not in json.dumps(one[0]["messages"])
    with pytest.raises(ModelServerError, match="raw logprobs"):
        asyncio.run(env.get_status())


def test_server_that_begins_to_refuse_ends_the_run_after_a_while(monkeypatch):
    """A restart behind a proxy looks alike at first; an answer in between begins anew."""
    watch = server_check.ModelWatch()
    refused = exact_tokens.TokenModeError("401 invalid key")

    def groups(count: int) -> None:
        for _ in range(count):
            watch.failed(refused)
            watch.group_ended()
        watch.check()

    watch.answered()
    groups(5)
    monkeypatch.setattr(server_check, "START_S", 0.0)
    watch.answered()
    groups(2)
    watch.answered()
    groups(2)
    with pytest.raises(ModelServerError, match=r"Each of the last 3 groups failed(?s:.*)invalid key"):
        groups(1)
