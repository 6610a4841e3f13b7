"""evaluate_items: the agent on every held-out item, with samples, metrics and errors; training does not notice."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import numpy as np
import pytest

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.rollout.agent_rollout import AgentRollout
from environments.rollout.evaluation import run_each
from pytest_hermes_env.inference import call, fail, hang, say, turn, unoffered
from pytest_hermes_env.play.advice import advice_for
from pytest_hermes_env.play.journal import Place

MEANS = {
    "eval/mean_reward": 1.0,
    "eval/pass_rate": 1.0,
    "eval/mean_turns": 1.0,
    "eval/finished_rate": 1.0,
    "eval/mean_tool_errors": 0.0,
}
NO_MODEL = "http://127.0.0.1:9/v1"


class Env(HermesAgentBaseEnv):
    """Items are texts; some name the step that fails."""

    async def setup(self) -> None:
        self.eval_items = ["a", "b"]

    async def get_next_item(self) -> Any: ...

    def format_prompt(self, item: Any) -> str:
        if item == "no prompt":
            raise LookupError(item)
        if item == "exit at the prompt":
            raise SystemExit(0)
        return f"item {item}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        if item == "no reward":
            raise LookupError(item)
        if item == "exit":
            raise SystemExit(3)
        return float("nan") if item == "nan" else 1.0

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        await self.evaluate_items()


def run(make_env: Any, act: Any, env_class: type = Env, **settings: Any) -> Any:
    async def scenario() -> Any:
        env = make_env(env_class, **{"enabled_toolsets": ["file"], **settings})
        await env.setup()
        return await act(env)

    return asyncio.run(scenario())


def answer(conversation: Any) -> Any:
    """A model that is down for one of the items."""
    return fail(400, "no model") if conversation.first_user == "item no model" else say("done")


def sample(item: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"item {item}"}, {"role": "assistant", "content": "done"}]
    return {
        "prompt": f"item {item}",
        "score": 1.0,
        "turns": 1,
        "finished": True,
        "tool_errors": 0,
        "messages": messages,
    }


def test_evaluation_is_returned_and_logged(make_env, mock_server, tmp_path):
    """Held-out items at temperature 0, with tools; samples in the order of the items, metrics, times, what was generated how."""
    mock_server.add(answer)

    evaluation = run(
        make_env,
        lambda env: env.evaluate_items(),
        server=mock_server,
        data_dir_to_save_evals=str(tmp_path),
        max_token_length=77,
    )

    written = json.loads((tmp_path / "metrics.json").read_text())
    lines = (tmp_path / "samples.jsonl").read_text().splitlines()
    assert evaluation.samples == [sample("a"), sample("b")] == [json.loads(line) for line in lines]
    assert evaluation.metrics == {"eval/items": 2, "eval/errors": 0, **MEANS} == written["results"]["all"]
    assert written["config_general"]["generation_parameters"] == {"temperature": 0.0, "max_new_tokens": 77}
    assert evaluation.start_time < evaluation.end_time
    requests = [entry.request for entry in mock_server.journal]
    assert [(request["temperature"], bool(request["tools"])) for request in requests] == [(0.0, True)] * 2


def test_misspelt_setting_is_an_error_before_any_item_runs(make_env, cleaned):
    """It is the caller's mistake, not one failure per item."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_turn'"):
        run(make_env, lambda env: env.evaluate_items(max_turn=1), server=NO_MODEL)

    assert cleaned == []


ERRORS = {
    "no prompt": "LookupError: no prompt",
    "no model": "BadRequestError: Error code: 400",
    "no reward": "LookupError: no reward",
    "exit": "StoppedByCode: SystemExit: 3",
    "exit at the prompt": "StoppedByCode: SystemExit: 0",
    "nan": "ValueError: compute_reward must return a finite number, got nan",
}


@pytest.mark.parametrize("failing", ERRORS)
def test_item_that_fails_leaves_the_others_alone(make_env, caplog, cleaned, failing):
    """It is logged, counted, left out of the means, and its sample has the error and what the agent had done."""
    evaluation = run(make_env, lambda env: env.evaluate_items(["a", failing, "b"]), script=answer)

    first, failed, last = evaluation.samples
    assert (first, last) == (sample("a"), sample("b"))
    assert failed["error"].startswith(ERRORS[failing])
    assert (failed["prompt"], failed["score"]) == (None if "prompt" in failing else f"item {failing}", None)
    assert ("messages" in failed) == ("prompt" not in failing)
    assert evaluation.metrics == {"eval/items": 3, "eval/errors": 1, "eval/retries": 1, **MEANS}
    assert caplog.text.count(f"Evaluating an item failed; it is counted in eval/errors. The item: '{failing}'") == 1
    assert len(cleaned) == (2 if "prompt" in failing else 4)


@pytest.mark.parametrize(("retries", "error"), [(0, "LookupError: once"), (1, None)])
def test_item_that_fails_once_is_run_again(make_env, cleaned, retries, error):
    """As a rollout in training is: in a new sandbox, counted, and scored by what it then earned."""

    class Once(Env):
        failures = 0

        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            self.failures += 1
            if self.failures == 1:
                raise LookupError("once")
            return await super().compute_reward(item, result, ctx)

    evaluation = run(make_env, lambda env: env.evaluate_items(["a"]), env_class=Once, script=answer, rollout_retries=retries)

    (found,) = evaluation.samples
    assert found.get("error") == error
    assert evaluation.metrics.get("eval/retries") == (retries or None)
    assert evaluation.metrics["eval/errors"] == 1 - retries
    assert len(set(cleaned)) == 1 + retries


def test_evaluation_of_which_all_fails_is_remembered(make_env):
    """The command line ends with it."""

    async def act(env: Any) -> list[str]:
        told = []
        for items in (["a"], ["a", "no reward"], ["nan", "no reward"]):
            env._failed_evaluation = ""
            await env.evaluate_items(items)
            told.append(env._failed_evaluation)
        return told

    assert run(make_env, act, script=answer) == ["", "", "Each of the 2 items failed, the last one with LookupError: no reward"]


def test_reward_that_must_not_be_repeated_is_not(make_env, cleaned):
    """`reward_errors` decides, as in training."""
    evaluation = run(make_env, lambda env: env.evaluate_items(["no reward"]), script=answer, reward_errors="drop_group")

    assert evaluation.metrics == {"eval/items": 1, "eval/errors": 1}
    assert len(cleaned) == 1


@pytest.mark.parametrize("given", [None, []])
def test_evaluation_of_nothing_is_an_error(make_env, given):
    """Means of nothing would look like a result."""

    async def act(env: Any) -> None:
        env.eval_items = []
        await env.evaluate_items(given)

    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text below
        run(make_env, act, server=NO_MODEL)

    assert str(raised.value) == (
        "There is nothing to evaluate: evaluate_items requires at least one item, and got none. Set self.eval_items in "
        "setup(), override get_eval_items(), or pass items=[...]"
    )


def test_items_under_another_name_are_told(make_env):
    """They are not evaluated; scores of evaluations are no items."""

    async def act(env: Any) -> None:
        env.eval_items, env.eval_scores, env.evaluation_items = None, [1.0], [{"path": "x"}]
        await env.evaluate_items()

    with pytest.raises(
        ValueError, match=r"evaluate_items reads self.eval_items, and the items are in self.evaluation_items$"
    ) as raised:
        run(make_env, act, server=NO_MODEL)

    assert advice_for(raised.value, Place()) == "Call it self.eval_items in `setup()`, not self.evaluation_items."


@pytest.mark.parametrize(("arguments", "most"), [({}, 2), ({"max_concurrent": 3}, 3)])
def test_items_run_side_by_side_up_to_the_limit(make_env, arguments, most):
    """max_eval_workers, or the argument, is how many sandboxes there are at a time."""
    running: list[str] = []
    seen: list[int] = []

    class Counting(Env):
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            running.append(item)
            if len(running) < most:
                await self.full.wait()
            seen.append(len(running))
            self.full.set()
            running.remove(item)
            return 1.0

    async def act(env: Any) -> Any:
        env.full = asyncio.Event()
        return await env.evaluate_items(list("abcdef"), **arguments)

    evaluation = run(make_env, act, env_class=Counting, script=answer, max_eval_workers=2)

    assert max(seen) == most
    assert [sample["prompt"] for sample in evaluation.samples] == [f"item {name}" for name in "abcdef"]


@pytest.mark.hermes_allow_leftovers
def test_cancelled_evaluation_releases_every_sandbox(make_env, cleaned):
    """Every item has ended when the cancellation goes on, also when it comes twice; none that waited begins."""

    async def act(env: Any) -> bool:
        asked = asyncio.Event()
        real = env.server.chat_completion

        async def ask(**request: Any) -> Any:
            asked.set()
            return await real(**request)

        env.server.chat_completion = ask
        task = asyncio.ensure_future(env.evaluate_items(list("abc"), max_concurrent=2))
        await asked.wait()
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        return task.cancelled()

    assert run(make_env, act, script=lambda _: turn(hang(60), say("late")))
    assert len(cleaned) == 2


def test_training_buffers_stay_as_they_were(make_env):
    """Tool errors, broken rewards and token-mode errors of an evaluation are not those of training."""
    script = [unoffered(call("nonsense")), say("done")]

    async def act(env: Any) -> Any:
        env._tool_error_buffer.append("of training")
        evaluation = await env.evaluate_items(["a", "no reward"])
        return evaluation.metrics, env._tool_error_buffer, env._reward_errors, dict(env._counts)

    metrics, *buffers = run(make_env, act, script=script)

    assert metrics["eval/mean_tool_errors"] >= 1
    assert buffers == [["of training"], 0, {}]


def test_score_may_be_a_function_of_the_rollout(make_env, tmp_path):
    """It returns a number or fields of the sample; further metrics and fields are added; the pass mark is chosen."""

    async def score(rollout: AgentRollout) -> dict[str, Any]:
        return {"score": 0.25 if rollout.item == "a" else 0.75, "length": len(rollout.prompt)}

    async def act(env: Any) -> Any:
        return await env.evaluate_items(
            ["a", "b", "no prompt"],
            score=score,
            item_fields=lambda item: {"name": item},
            metrics=lambda samples: {"eval/lengths": sum(sample["length"] for sample in samples)},
            pass_score=0.5,
        )

    evaluation = run(make_env, act, script=answer)

    names = ("name", "score", "length")
    fields = [{name: sample.get(name) for name in names} for sample in evaluation.samples]
    assert fields == [
        {"name": "a", "score": 0.25, "length": 6},
        {"name": "b", "score": 0.75, "length": 6},
        {"name": "no prompt", "score": None, "length": None},
    ]
    assert evaluation.metrics == {
        "eval/items": 3,
        "eval/errors": 1,
        "eval/retries": 1,
        **MEANS,
        "eval/mean_reward": 0.5,
        "eval/pass_rate": 0.5,
        "eval/lengths": 12,
    }


REFUSED = {
    "a prompt": ({"prompt": "x"}, "TypeError: evaluate_items takes no prompt: each item's is that of format_prompt. Override "),
    "text for a limit": (
        {"max_concurrent": "2"},
        "TypeError: max_concurrent (without this argument, the setting max_eval_workers) must be an integer, got str '2'",
    ),
    "no turns": ({"max_turns": 0}, "ValueError: max_turns must be at least 1, got 0: nothing would run"),
    "a fraction of a token": ({"max_tokens": 1.5}, "TypeError: max_tokens must be an integer, got float '1.5'"),
    "an array": ({"max_turns": np.array([1, 2])}, "TypeError: max_turns must be an integer, got ndarray '[1 2]'"),
    "True": ({"max_turns": True}, "TypeError: max_turns must be an integer, got bool 'True'"),
    "text for a temperature": ({"temperature": "hot"}, "TypeError: temperature must be a number, got str 'hot'"),
    "no temperature": ({"temperature": None}, "TypeError: temperature must be a number, got NoneType 'None'"),
    "below zero": ({"temperature": -1}, "ValueError: temperature must be 0 or more, got -1"),
    "NaN": ({"temperature": float("nan")}, "ValueError: temperature must be a finite number, got nan"),
    "a pass score": ({"pass_score": "1"}, "TypeError: pass_score must be a number, got str '1'"),
    "a system prompt": ({"system_prompt": 7}, "TypeError: system_prompt must be text, got int '7'"),
    "an extra body": ({"extra_body": [1]}, "TypeError: extra_body must be a mapping of fields of the request, got list '[1]'"),
    "a number of items": (
        {"items": 7},
        "TypeError: items must be the items to evaluate, as a list or another sequence, got int '7'",
    ),
    "one item": (
        {"items": {"q": "c"}},
        "TypeError: items must be the items to evaluate, as a list or another sequence, got dict",
    ),
    "text": ({"items": "ab"}, "TypeError: items must be the items to evaluate, as a list or another sequence, got str 'ab'"),
}


@pytest.mark.parametrize(("arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_wrong_argument_is_refused_before_any_item_runs(make_env, cleaned, arguments, text):
    """By name, and once; not as a failure of every item."""
    with pytest.raises((TypeError, ValueError)) as raised:
        run(make_env, lambda env: env.evaluate_items(**arguments), server=NO_MODEL)

    assert f"{raised.type.__name__}: {raised.value}".startswith(text)
    assert cleaned == []


SCORES = {
    "None": (None, "ValueError: score must return a number, got NoneType 'None'"),
    "a field without a value": (
        {"score": None},
        "ValueError: score, in its field 'score', must return a number, got NoneType 'None'",
    ),
    "other fields": ({"grade": 1.0}, "ValueError: score must return a field 'score' among its fields, got grade"),
}


@pytest.mark.parametrize(("returned", "text"), SCORES.values(), ids=SCORES)
def test_score_that_is_none_is_named(make_env, returned, text):
    """It is the function that was passed, not compute_reward."""
    evaluation = run(make_env, lambda env: env.evaluate_items(["a"], score=lambda rollout: returned), script=answer)

    assert evaluation.samples[0]["error"] == text


def failing_metrics(samples: Any) -> Any:
    raise ZeroDivisionError("no letters")


METRICS = {
    "raises": (failing_metrics, "ZeroDivisionError: no letters"),
    "returns None": (lambda samples: None, "TypeError: metrics must return a mapping of fields, got NoneType 'None'"),
}


@pytest.mark.parametrize(("metrics", "text"), METRICS.values(), ids=METRICS)
def test_metrics_that_fail_lose_nothing(make_env, tmp_path, metrics, text):
    """What there is has been logged when the error is raised."""
    with pytest.raises(RuntimeError) as raised:
        run(make_env, lambda env: env.evaluate_items(metrics=metrics), script=answer, data_dir_to_save_evals=str(tmp_path))

    assert str(raised.value) == (
        f"The metrics function of evaluate_items failed with {text}. The evaluation of 2 items is finished and was logged, "
        "without its metrics"
    )
    logged = json.loads((tmp_path / "metrics.json").read_text())["results"]["all"]
    assert logged == {"eval/items": 2, "eval/errors": 0, **MEANS}
    assert len((tmp_path / "samples.jsonl").read_text().splitlines()) == 2


class Plain(Env):
    def get_eval_items(self) -> Any:  # type: ignore[override]
        return ("p",)


class Coroutine(Env):
    async def get_eval_items(self) -> Any:
        return iter(["c"])


class Generator(Env):
    async def get_eval_items(self) -> Any:  # type: ignore[override]
        yield "g"


@pytest.mark.parametrize("returned", [None, 5, "abc", {"a": 1}])
def test_held_out_items_that_are_none_are_named(make_env, returned):
    """Each letter of a text, or key of a dict, would be an item."""

    class Wrong(Env):
        def get_eval_items(self) -> Any:  # type: ignore[override]
            return returned

    with pytest.raises(TypeError) as raised:
        run(make_env, lambda env: env.evaluate(), env_class=Wrong, server=NO_MODEL)

    assert str(raised.value) == (
        "get_eval_items() must return the held-out items, as a list or another sequence, got "
        f"{type(returned).__name__} {str(returned)!r}"
    )


@pytest.mark.parametrize(
    ("env_class", "prompts"),
    [(Env, ["item a", "item b"]), (Plain, ["item p"]), (Coroutine, ["item c"]), (Generator, ["item g"])],
)
def test_held_out_items_come_from_get_eval_items(make_env, env_class, prompts):
    """By default self.eval_items; an override may be a plain function."""
    evaluation = run(make_env, lambda env: env.evaluate_items(), env_class=env_class, script=answer)

    assert [sample["prompt"] for sample in evaluation.samples] == prompts


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_shown_on_a_terminal_only(monkeypatch, is_terminal):
    """A log file gets no bar, and no thread outlives it."""
    import threading

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    async def evaluate_item(item: Any) -> Any:
        return {"prompt": item}

    before = set(threading.enumerate())
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    samples = asyncio.run(run_each(["a", "b"], evaluate_item, max_concurrent=1))

    assert samples == [{"prompt": "a"}, {"prompt": "b"}]
    assert ("evaluate: 100%" in screen.getvalue(), "2/2" in screen.getvalue()) == (is_terminal, is_terminal)
    assert set(threading.enumerate()) == before
