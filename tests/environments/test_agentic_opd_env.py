"""AgenticOPDEnv: hints of judges, the teacher's distributions at the student's tokens, and the reward."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from atroposlib.envs.server_handling.server_baseline import APIServerConfig

from environments.agentic_opd_env import AgenticOPDConfig, AgenticOPDEnv
from environments.agentic_opd_env.teacher import (
    TeacherError,
    Turn,
    distribution_of,
    hinted_prompt,
    majority_hints,
    sampled_spans,
    turns_of,
)
from environments.tokens.server_check import ModelServerError
from pytest_hermes_env.inference import Script, call, fail, say
from pytest_hermes_env.play.builder import shared_tokenizer
from tests.reference.servers import MODEL, Reference, serving

ITEM = {"prompt": "Write a function double(n).", "test": "assert double(2) == 4", "entry_point": "double"}
GOOD = "def double(n):\n    return n * 2\n"
WORK = [
    call("terminal", command="cat missing.txt"),
    call("write_file", path="solution.py", content=GOOD),
    say("done"),
]
HINT = "The file missing.txt does not exist; do not read it."
YES = f"It should have known. [HINT_START 0]{HINT}[HINT_END]"
NO = "NONE"
TOP = 3


def judge(question: Any) -> Any:
    """See a better turn where a file was missing."""
    return say(YES if "No such file" in str(question.messages[-1]["content"]) else NO)


class Answers:
    """A server that returns these rows of (id, logprob) pairs."""

    def __init__(self, *rows: list[tuple[int, float]]) -> None:
        self.rows = rows

    async def get_logprobs(self, **_request: Any) -> Any:
        return {
            "prompt_topk_token_ids": [[token for token, _ in row] for row in self.rows],
            "prompt_topk_logprobs": [[logprob for _, logprob in row] for row in self.rows],
        }


class WithoutTeacher(AgenticOPDEnv):
    """On a model server that returns no logprobs of a prompt."""

    async def setup(self) -> None:
        """Replace the request."""
        await super().setup()
        self.server.get_logprobs = Answers([]).get_logprobs


def group_of(
    make_env: Any, *, answers: Any = judge, turns: Any = WORK, env_class: type = AgenticOPDEnv, **settings: Any
) -> tuple[Any, Any]:
    """Run one group; returns the environment and the group."""
    fields = {"server_type": "vllm", "group_size": 2, "distill_topk": TOP, "prm_votes": 3, "dataset_name": None, "eval_size": 2}

    async def scenario() -> Any:
        env = make_env(env_class, script=Script(turns, judge=answers), **{**fields, **settings})
        await env.setup()
        group, _ = await env.collect_trajectories(ITEM)
        return env, group

    return asyncio.run(scenario())


# ---------------------------------------------------------------------- settings


def test_the_namesakes_settings_keep_their_names_and_defaults() -> None:
    """Of the class, which its old path has, and of config_init."""
    config, (server,) = AgenticOPDEnv.config_init()

    expected = {
        "opd_enabled": True,
        "distill_topk": 50,
        "prm_votes": 3,
        "hint_max_next_state_chars": 4000,
        "correctness_weight": 0.7,
        "efficiency_weight": 0.15,
        "tool_usage_weight": 0.15,
        "eval_size": 10,
        "dataset_name": None,
        "enabled_toolsets": ["terminal", "file"],
        "wandb_name": "agentic-opd",
    }
    assert {name: getattr(config, name) for name in expected} == expected
    assert (AgenticOPDEnv.name, type(config), server.server_type) == ("agentic-opd", AgenticOPDConfig, "vllm")


# ---------------------------------------------------------------------- hints


def test_a_turn_has_all_that_came_back_before_the_next() -> None:
    """The results of several calls together; the last reply has no next state."""
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "terminal", "arguments": "{}"}}]},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
        {"role": "assistant", "content": "done"},
    ]

    assert turns_of(messages) == [
        Turn(number=0, reply='{"name": "terminal", "arguments": "{}"}', next_state="one\ntwo"),
        Turn(number=1, reply="done", next_state=""),
    ]
    assert turns_of(messages[:2]) == []


OTHER = "[HINT_START 0]A longer hint, which says far more about the missing file.[HINT_END]"


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([YES, YES, NO], {0: HINT}),
        ([YES, NO, NO], {}),
        ([YES, NO], {}),
        ([YES, "what?", ""], {}),
        ([], {}),
        ([YES], {}),
        ([f"{YES} and {YES}", NO], {}),
        ([YES, f"{YES} [HINT_START 2] {HINT}\n[HINT_END]"], {0: HINT}),
        ([f"[HINT_START 2] {HINT}\n[HINT_END]", f"{YES}[HINT_START 2]{HINT}[HINT_END]"], {2: HINT}),
        (["[HINT_START 0]short[HINT_END]"] * 3, {}),
        (["[HINT_START]which turn is that for?[HINT_END]"] * 3, {}),
        ([f"[HINT_START 0]{HINT}"] * 3, {}),
        ([YES, YES, OTHER], {0: "A longer hint, which says far more about the missing file."}),
    ],
)
def test_a_hint_needs_more_than_half_of_the_judges(answers: list[str], expected: dict[int, str]) -> None:
    """For its own turn, once for each judge; of several hints, the longest says most."""
    assert majority_hints(answers, votes=max(len(answers), 2)) == expected


# ---------------------------------------------------------------------- the teacher


def test_spans_are_the_runs_of_labels() -> None:
    """From and to, also at both ends of the sequence."""
    assert sampled_spans([-100, 1, 2, -100, -100, 3]) == [(1, 3), (5, 6)]
    assert sampled_spans([1, 2]) == [(0, 2)]
    assert sampled_spans([-100]) == []


def test_the_most_likely_tokens_come_first_and_no_more_than_asked_for() -> None:
    """vLLM also returns the token of the prompt, first, where it is not among the most likely."""
    server = Answers([], [(9, -5.0), (1, -0.1), (2, -2.0)])

    found = asyncio.run(distribution_of(server, [7, 9], top_k=2))

    assert (found.ids, found.logprobs) == ([[7, 7], [1, 2]], [[0.0, 0.0], [-0.1, -2.0]])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[], [(1, -0.1)]], "returned 1 tokens at position 1, 2 were asked for"),
        ([[]], "returned logprobs of 1 positions for 2 tokens"),
    ],
)
def test_an_answer_that_is_no_distribution_is_an_error(rows: Any, words: str) -> None:
    """Nothing is filled in."""
    with pytest.raises(TeacherError, match=words):
        asyncio.run(distribution_of(Answers(*rows), [7, 9], top_k=2))


def test_every_token_has_a_distribution_and_hinted_turns_have_the_teachers(make_env: Any) -> None:
    """[sequence][position][top_k]: the model's own distribution, but in the turn whose file was missing."""
    env, group = group_of(make_env)

    ids, logprobs = group["distill_token_ids"], group["distill_logprobs"]
    lengths = [len(row) for row in group["tokens"]]
    assert [len(row) for row in ids] == [len(row) for row in logprobs] == lengths
    assert {len(place) for row in (*ids, *logprobs) for place in row} == {TOP}
    assert dict(env.opd_counts) == {"opd/turns_judged": 4, "opd/hints": 2, "opd/turns_taught": 2}
    for row in range(2):
        (start, stop), *others = sampled_spans(group["masks"][row])
        sampled = group["inference_logprobs"][row]
        own = [place for span in others for place in range(*span)]
        assert [ids[row][place][0] for place in own] == [group["tokens"][row][place] for place in own]
        assert [logprobs[row][place][0] for place in own] == pytest.approx([sampled[place] for place in own])
        assert all(logprobs[row][place][0] != pytest.approx(sampled[place]) for place in range(start, stop))


def test_the_teacher_reads_the_hint_after_the_request_and_then_the_students_tokens(make_env: Any) -> None:
    """The rest of the prompt is as it was sampled: system message, tools, earlier turns."""
    asked: list[list[int]] = []

    class Watched(AgenticOPDEnv):
        async def setup(self) -> None:
            await super().setup()
            original = self.server.get_logprobs

            async def get_logprobs(**request: Any) -> Any:
                asked.append(request["input_ids"])
                return await original(**request)

            self.server.get_logprobs = get_logprobs

    env, group = group_of(make_env, env_class=Watched, group_size=1)

    plain, taught = asked
    (start, stop), *_ = sampled_spans(group["masks"][0])
    request = env.format_prompt(ITEM).strip()
    assert plain == group["tokens"][0]
    assert env.tokenizer.decode(taught) == env.tokenizer.decode(plain[:stop]).replace(request, f"{request}\n\n[hint]\n{HINT}")
    assert taught[len(taught) - (stop - start) :] == plain[start:stop]


def test_the_group_reaches_the_trainer_with_its_distributions(make_env: Any) -> None:
    """Rows of a group stay aligned with them, also where the layer rewrites rows."""
    from environments.trainer.groups import groups_to_send

    _, group = group_of(make_env)
    group["masks"][1] = [-100] * len(group["masks"][1])

    (sent,) = groups_to_send(group, 2, split_rollouts="sample")

    for name in ("distill_token_ids", "distill_logprobs"):
        assert [len(row) for row in sent[name]] == [len(row) for row in sent["tokens"]]


# ---------------------------------------------------------------------- teachers that the test computes, too

SAID = [
    '<tool_call>\n{"name": "terminal", "arguments": {"command": "cat missing.txt"}}\n</tool_call>',
    "done",
]


def referee(shape: str, **settings: Any) -> Reference:
    return Reference(shape=shape, tokenizer_dir=shared_tokenizer("chatml"), plan=SAID, judge=YES, **settings)


async def environment_at(make_env: Any, url: str, **fields: Any) -> Any:
    """An environment on a server, checked as ``serve`` does."""
    config = APIServerConfig(
        base_url=url,
        model_name=MODEL,
        api_key="k",
        server_type=fields.pop("server_type", "vllm"),
        tokenizer_name=shared_tokenizer("chatml"),
        health_check=False,
    )
    settings = {"group_size": 2, "distill_topk": TOP, "prm_votes": 3, "dataset_name": None, "eval_size": 2, **fields}
    env = make_env(AgenticOPDEnv, server=config, **settings)
    await env.setup()
    await env.check_model_servers(fields.pop("mode", "serve"))
    return env


@pytest.mark.parametrize(("shape", "server_type"), [("vllm", "vllm"), ("sglang", "sglang"), ("vllm", "sglang")])
def test_distributions_are_exact_on_stock_servers(make_env: Any, shape: str, server_type: str) -> None:
    """At each position those of the model after the tokens before; in the taught turn, after the hinted prompt and the turn so far."""
    served = referee(shape)

    async def scenario(url: str) -> Any:
        env = await environment_at(make_env, url, server_type=server_type)
        return env, (await env.collect_trajectories(ITEM))[0]

    with serving(served) as url:
        env, group = asyncio.run(scenario(url))

    assert dict(env.opd_counts) == {"opd/turns_judged": 2, "opd/hints": 2, "opd/turns_taught": 2}
    tokens, ids, logprobs = (group[name][0] for name in ("tokens", "distill_token_ids", "distill_logprobs"))
    (start, stop), (last, end) = sampled_spans(group["masks"][0])
    hinted = hinted_prompt(env.tokenizer, tokens[:start], env.format_prompt(ITEM), HINT)
    places = [1, 2, start - 1, stop, last, end - 1, len(tokens) - 1]
    contexts = {place: tokens[:place] for place in places} | {
        place: [*(hinted or []), *tokens[start:place]] for place in range(start, stop)
    }
    for place, context in contexts.items():
        own = served.model.logprobs(context)
        expected = [int(token) for token in np.argsort(-own)[:TOP]]
        assert (place, ids[place]) == (place, expected)
        np.testing.assert_allclose(logprobs[place], own[expected], atol=1e-9)
    assert [len(row) for row in ids] == [TOP] * len(tokens)


@pytest.mark.parametrize(
    ("shape", "settings", "seen"),
    [
        ("vllm", {"max_logprobs": 2}, "Requested prompt logprobs of 3, which is greater than max allowed: 2"),
        ("atropos", {}, "returned no logprobs of the prompt. On-policy distillation needs `vllm serve` or SGLang"),
    ],
)
def test_a_server_that_is_no_teacher_is_found_before_the_run(make_env: Any, shape: str, settings: Any, seen: str) -> None:
    """With what it said, and the ways out; without distillation it serves."""
    with serving(referee(shape, **settings)) as url:
        with pytest.raises(ModelServerError, match=seen) as error:
            asyncio.run(environment_at(make_env, url))
        asyncio.run(environment_at(make_env, url, opd_enabled=False))

    assert "vllm serve --max-logprobs 3" in str(error.value)
    assert "--env.opd_enabled false" in str(error.value)


# ---------------------------------------------------------------------- without distillation


@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        ({"answers": lambda question: say(NO)}, {"opd/turns_judged": 4, "opd/hints": 0}),
        ({"answers": lambda question: fail(400)}, {"opd/turns_judged": 4, "opd/hints": 0, "opd/judge_errors": 2}),
        ({"opd_enabled": False, "answers": None}, {}),
        ({"server_type": "openai", "answers": None}, {}),
        ({"env_class": WithoutTeacher}, {"opd/turns_judged": 4, "opd/hints": 2, "opd/teacher_errors": 1}),
    ],
    ids=["no hint", "no judge", "switched off", "chat mode", "no teacher"],
)
def test_a_group_goes_without_distillation_and_keeps_its_scores(make_env: Any, settings: Any, counts: Any) -> None:
    """Where there is no hint, no judge, no teacher or no exact token; nothing is made up, and all is counted."""
    env, group = group_of(make_env, **settings)

    assert (group.get("distill_token_ids"), group.get("distill_logprobs")) == (None, None)
    assert (len(group["scores"]), dict(env.opd_counts)) == (2, counts)


# ---------------------------------------------------------------------- the reward


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([call("write_file", path="solution.py", content=GOOD), say("done")], 0.7 + 0.15 * (1 - 1 / 15)),
        (WORK, 0.7 + 0.15 * (1 - 2 / 15) + 0.15),
        ([call("terminal", command="true"), say("done")], 0.15),
        ([say("done")], 0.0),
    ],
    ids=["solved", "solved and ran", "ran", "nothing"],
)
def test_the_reward_is_for_passed_tests_few_turns_and_run_code(make_env: Any, turns: Any, expected: float) -> None:
    """Giving up early earns nothing."""
    _, group = group_of(make_env, turns=turns, opd_enabled=False, answers=None, max_agent_turns=15)

    assert group["scores"] == pytest.approx([expected] * 2)
