"""Every named end of a rollout in chat mode, on vLLM and on SGLang: what is scored, what trains, what is counted.

The table in docs/reference/rollout-ends.md is made of what is observed here.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.loop.end import RolloutEnd, end_of_reply
from pytest_hermes_env.inference import call, fail, garbage, say
from tests.environments.captured_metrics import capturing_wandb

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rollout-ends.md"
MODES = ("openai", "vllm", "sglang")
number: ContextVar[int] = ContextVar("number")
ODD = 1
"""The number of the rollout that ends otherwise; the others answer."""


class Env(HermesAgentBaseEnv):
    """Rollouts are numbered; the reward of the n-th is n, so that no two are equal."""

    breaks: str = ""

    async def setup(self) -> None: ...

    async def get_next_item(self) -> Any:
        return "item"

    async def collect_trajectory(self, item: Any) -> Any:
        self.numbers = getattr(self, "numbers", itertools.count())
        number.set(next(self.numbers))
        return await super().collect_trajectory(item)

    def format_prompt(self, item: Any) -> str:
        self.attempts = [*getattr(self, "attempts", []), number.get()]
        if self.breaks == "prompt" and number.get() == ODD:
            raise LookupError("no prompt")
        if self.breaks == "exit in the prompt" and number.get() == ODD:
            sys.exit(0)
        return f"rollout {number.get()}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.results = {**getattr(self, "results", {}), number.get(): result}
        if self.breaks == "reward" and number.get() == ODD:
            raise LookupError("no verifier")
        if self.breaks == "exit" and number.get() == ODD:
            sys.exit(0)
        if self.breaks == "cancelled" and number.get() == ODD:
            judge = asyncio.ensure_future(asyncio.sleep(60))
            judge.cancel()
            await judge
        return float(number.get())

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


def raw_reply(text: str, reason: Any, mode: str, encode: Callable[[str], list[int]]) -> Any:
    """An answer of a server as it goes over the wire, with any finish reason."""
    ids = encode(text)
    if mode == "openai":
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
        body: Any = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    elif mode == "vllm":
        body = {"text": [text], "token_ids": [ids], "logprobs": [[[{str(i): -0.5}] for i in ids]], "finish_reasons": [reason]}
    else:
        meta = {"output_token_logprobs": [[-0.5, i, None] for i in ids], "finish_reason": reason and {"type": reason}}
        body = {"text": text, "output_ids": ids, "meta_info": meta}
    return garbage(json.dumps(body))


def play(
    make_env: Any, mode: str, odd: Callable[..., Any] | Any = None, *, breaks: str = "", size: int = 3, **fields: Any
) -> Any:
    """Run a group in which one rollout gets ``odd``, a turn or ``(conversation, env) -> turn``.

    Returns (environment, group, metrics); the group is the error's type when `collect_trajectories` raised.
    """

    async def scenario() -> Any:
        def script(conversation: Any) -> Any:
            if odd is None or not conversation.first_user.endswith(str(ODD)):
                return say("done")
            return odd(conversation, env) if callable(odd) else odd

        settings = {"enabled_toolsets": ["todo", "file"], "server_type": mode, "group_size": size, "max_agent_turns": 2}
        env = make_env(Env, script=script, **{**settings, **fields})
        env.breaks = breaks
        try:
            group, _ = await env.collect_trajectories("x")
        except Exception as error:  # noqa: BLE001 - part of what is observed
            group = type(error)
        with capturing_wandb(env) as logged:
            await env.wandb_log()
        return env, group, logged[0]

    return asyncio.run(scenario())


def raw(text: str, reason: Any) -> Callable[..., Any]:
    """A reply with that finish reason."""

    def reply(_conversation: Any, env: Any) -> Any:
        encode = lambda words: env.tokenizer.encode(words, add_special_tokens=False)  # noqa: E731
        return raw_reply(text, reason, env.server.servers[0].config.server_type, encode)

    return reply


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a rollout is brought to an end, and what the table calls that."""

    says: str
    odd: Any = None
    breaks: str = ""


WAYS = {
    RolloutEnd.FINISHED: Way(says="the model answers without a tool call"),
    RolloutEnd.TURNS_USED_UP: Way(says="the model calls tools in its last turn", odd=call("todo")),
    RolloutEnd.CUT_BY_LENGTH: Way(
        says="a reply reaches the limit of tokens",
        odd=lambda talk, env: raw("a long thou", "length")(talk, env) if talk.turn else call("todo"),
    ),
    RolloutEnd.ABORTED_BY_SERVER: Way(
        says="a reply is aborted, or its finish reason is null or unknown", odd=raw("so", "abort")
    ),
    RolloutEnd.MODEL_FAILED: Way(says="the model server raises, or its answer cannot be used", odd=fail(500)),
    RolloutEnd.TOOL_POOL_FAILED: Way(says="no tool can run", odd=call("read_file", path="a"), breaks="tools"),
    RolloutEnd.REWARD_FAILED: Way(says="`compute_reward` raises, or returns no finite number", breaks="reward"),
    RolloutEnd.ENVIRONMENT_FAILED: Way(says="another step of the environment raises", breaks="prompt"),
}


@pytest.fixture
def play_end(make_env: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """``play_end(end, mode, **fields)``: a group in which one rollout ends so."""
    from environments.sandbox import isolation

    open_sandbox = isolation.open_sandbox

    def play_it(end: RolloutEnd, mode: str, **fields: Any) -> Any:
        way = WAYS[end]

        def opened(task_id: str) -> Any:
            if way.breaks == "tools" and number.get() == ODD:
                raise OSError("No space left on device")
            return open_sandbox(task_id)

        monkeypatch.setattr(isolation, "open_sandbox", opened)
        return play(make_env, mode, way.odd, breaks=way.breaks, **fields)

    return play_it


def observed(end: RolloutEnd, mode: str, play_end: Callable[..., Any]) -> dict[str, str]:
    """Return a row of the table, as it is in one mode."""
    env, group, metrics = play_end(end, mode)
    _, masked, masked_metrics = play_end(end, mode, failed_rollouts="mask")
    row = next(n for n, override in enumerate(masked["overrides"]) if override["end"] == end)
    assert mode == "openai" or masked["generation_params"] == {"temperature": 1.0}
    is_out = masked["overrides"][row].get("left_out", False)
    others = [score for n, score in enumerate(masked["scores"]) if n != row]
    assert not is_out or masked["scores"][row] == sum(others) / len(others)
    labels = sum(label != -100 for label in masked["masks"][row])
    assert bool(labels) != masked["overrides"][row].get("set_advantage_to_zero", False)
    dropped = group if isinstance(group, type) else None
    counts = {name: value for name, value in (metrics | masked_metrics).items() if name.startswith("train/") and value}
    counts = {
        name for name in counts if name not in ("train/rollouts_finished", "train/rollouts") or end is RolloutEnd.FINISHED
    }
    counts = {name for name in counts if not name.startswith("train/completion")}
    return {
        "ends so when": WAYS[end].says,
        "runs again": "yes" if env.attempts.count(ODD) > 1 else "no",
        "reward": "not computed"
        if ODD not in getattr(env, "results", {})
        else "failed"
        if end is RolloutEnd.REWARD_FAILED
        else "computed",
        "what trains": "nothing" if not labels else _trained(masked, row),
        "its group": "raises the error" if dropped else "is dropped" if group is None else "is trained",
        "counted in `train/`": ", ".join(f"`{name.removeprefix('train/')}`" for name in sorted(counts)),
    }


def _trained(group: Any, row: int) -> str:
    """Say whether the last reply of a row trains; after it there are only results of calls."""
    replies = [message for message in group["messages"][row] if message["role"] == "assistant"]
    spans = sum(label != -100 and before == -100 for before, label in itertools.pairwise(group["masks"][row]))
    is_chat = group.get("inference_logprobs") is None
    whole = group["masks"][row][-1] != -100 if is_chat else spans == len(replies)
    return "every reply" if whole else "the replies before"


@pytest.mark.hermes_allow_leftovers
@pytest.mark.parametrize("end", RolloutEnd)
def test_table_of_ends(play_end, end):
    """The page says for each end what happens, and it is the same in all modes."""
    rows = [observed(end, mode, play_end) for mode in MODES]

    assert rows[0] == rows[1] == rows[2]
    assert f"| `{end}` | {' | '.join(rows[0].values())} |" in PAGE.read_text(encoding="utf-8").splitlines()


# ---------------------------------------------------------------------- finish reasons


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("stop", None),
        ("tool_calls", None),
        ("STOP", None),
        ({"type": "stop", "matched": 7}, None),
        ("length", RolloutEnd.CUT_BY_LENGTH),
        ("MAX_TOKENS", RolloutEnd.CUT_BY_LENGTH),
        ({"type": "length", "length": 9}, RolloutEnd.CUT_BY_LENGTH),
        ("abort", RolloutEnd.ABORTED_BY_SERVER),
        ({"type": "abort", "message": "out of memory"}, RolloutEnd.ABORTED_BY_SERVER),
        ("content_filter", RolloutEnd.ABORTED_BY_SERVER),
        ("error", RolloutEnd.ABORTED_BY_SERVER),
        ("never heard of", RolloutEnd.ABORTED_BY_SERVER),
        ({}, RolloutEnd.ABORTED_BY_SERVER),
        ("", RolloutEnd.ABORTED_BY_SERVER),
        (None, RolloutEnd.ABORTED_BY_SERVER),
        (object(), None),
    ],
)
def test_finish_reason_is_read(reason, end):
    """In the spelling of every server; what no server writes is a double's."""
    assert end_of_reply(reason) is end


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reason", ["abort", None, "content_filter"])
def test_reply_with_an_unusual_reason_is_not_an_answer(make_env, mode, reason):
    """Also where no tools are offered, where atroposlib itself refuses such a reason."""
    env, group, metrics = play(make_env, mode, raw("so far", reason), rollout_retries=0, max_agent_turns=1)

    assert group is None
    assert metrics["train/rollouts_aborted_by_server"] == 1
    assert ODD not in env.results


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("policy", "trains"), [("mask", False), ("train", True), ("drop", False)])
def test_half_a_tool_call(make_env, mode, policy, trains):
    """It is neither a call nor a natural end; whether it trains is a setting."""
    half = '<tool_call>\n{"name": "todo", "argu'
    env, group, metrics = play(make_env, mode, raw(half, "length"), truncated_turns=policy)

    row = next(n for n, override in enumerate(group["overrides"]) if override["end"] == "cut_by_length")
    result = env.results[ODD]
    assert (result.end, result.finished_naturally, result.turns_used) == (RolloutEnd.CUT_BY_LENGTH, False, 1)
    assert result.messages[-1]["content"].startswith("<tool_call>")
    assert any(label != -100 for label in group["masks"][row]) is trains
    assert group["overrides"][row].get("left_out", False) is (policy == "drop")
    assert metrics["train/rollouts_cut_by_length"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_call_in_a_cut_reply_does_not_run(make_env, mode):
    """It may be the beginning of another one; each call gets a result that says so, and is a tool error."""
    whole = '<tool_call>\n{"name": "todo", "arguments": {}}\n</tool_call> and th'
    env, _, _ = play(make_env, mode, raw(whole, "length"))

    result = env.results[ODD]
    (error,) = result.tool_errors
    assert (error.tool_name, error.error) == ("todo", "Not run: the reply with this call is incomplete (cut_by_length)")
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool"]
    assert json.loads(result.messages[-1]["content"]) == {"error": error.error}


def test_message_of_null_is_a_failed_model(make_env):
    """A choice without a message is not an empty answer."""
    choice = {"index": 0, "message": None, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    _, group, metrics = play(make_env, "openai", garbage(json.dumps(body)), rollout_retries=0)

    assert (group, metrics["train/rollouts_model_failed"]) == (None, 1)


# ---------------------------------------------------------------------- text that cannot be encoded


@pytest.mark.parametrize("place", ["content", "reasoning", "arguments", "escaped arguments", "name"])
def test_lone_surrogate_is_replaced_where_it_comes_in(make_env, place, caplog):
    """The group survives with all its rollouts; the change is logged and counted, and everything can be encoded."""
    half = "a\ud83d b"
    function = {"name": "todo", "arguments": "{}"}
    message: dict[str, Any] = {"role": "assistant", "content": "so"}
    if place == "content":
        message["content"] = half
    elif place == "reasoning":
        message["reasoning_content"] = half
    else:
        function["name"] = half if place == "name" else "todo"
        escaped = json.dumps({"x": half})
        function["arguments"] = {"arguments": json.dumps({"x": half}, ensure_ascii=False), "escaped arguments": escaped}.get(
            place, "{}"
        )
        message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    def odd(conversation: Any, _env: Any) -> Any:
        return garbage(json.dumps(body)) if conversation.turn == 0 else say("done")

    _, group, metrics = play(make_env, "openai", odd)

    json.dumps(group["messages"], ensure_ascii=False).encode()
    assert len(group["scores"]) == 3
    assert metrics["train/texts_made_encodable"] == 1
    assert "is not encodable as UTF-8; its lone surrogates are replaced by U+FFFD" in caplog.text


@pytest.mark.hermes_allow_leftovers
@pytest.mark.parametrize(
    ("breaks", "end"),
    [("exit", "reward_failed"), ("cancelled", "reward_failed"), ("exit in the prompt", "environment_failed")],
)
def test_code_that_would_end_the_process_fails_its_own_rollout(make_env, breaks, end):
    """The others of its group are trained; what it raised does not reach the event loop."""
    _, group, metrics = play(make_env, "openai", breaks=breaks, failed_rollouts="mask", rollout_retries=0)

    assert (len(group["scores"]), metrics[f"train/rollouts_{end}"]) == (3, 1)
    assert [row["scores"] for row in [group]] == [[0.0, group["scores"][ODD], 2.0]]


def test_two_halves_of_a_character_are_joined():
    """Pieces of a stream may split a character; nothing is lost then."""
    from environments.loop.messages import encodable, encodable_arguments

    assert encodable("\ud83d\ude42 \udc80", "A text") == "🙂 \ufffd"
    assert encodable_arguments('{"a": "\\ud83d\\ude42"}', "A text") == '{"a": "\\ud83d\\ude42"}'


@pytest.mark.parametrize("mode", ["vllm", "sglang"])
def test_escaped_surrogate_in_token_mode(make_env, mode):
    """The sampled call stays in its sequence, and the conversation can be encoded."""
    text = '<tool_call>\n{"name": "todo", "arguments": {"x": "\\ud83d"}}\n</tool_call>'

    def odd(conversation: Any, env: Any) -> Any:
        return raw(text, "stop")(conversation, env) if conversation.turn == 0 else say("done")

    _, group, metrics = play(make_env, mode, odd)

    json.dumps(group["messages"], ensure_ascii=False).encode()
    assert (len(group["tokens"]), metrics["train/texts_made_encodable"]) == (3, 1)
    assert "train/split_rollouts" not in metrics


def test_surrogates_of_tools_and_prompts(make_env, monkeypatch):
    """File names and data sets have them, too."""
    from environments import agent_loop

    monkeypatch.setattr(agent_loop, "handle_function_call", lambda *_args, **_kwargs: '{"names": "\udcff"}')
    monkeypatch.setattr(Env, "format_prompt", lambda self, item: f"\udcff rollout {number.get()}")

    _, group, metrics = play(make_env, "vllm", lambda talk, env: say("done") if talk.turn else call("read_file", path="a"))

    json.dumps(group["messages"], ensure_ascii=False).encode()
    assert metrics["train/texts_made_encodable"] == 4
