"""Conversations in token mode: through atroposlib's real ManagedServer, from the scripts of chat mode."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from pytest_hermes_env.errors import ScriptError
from pytest_hermes_env.inference import (
    TEMPLATES,
    Conversation,
    Exchange,
    MockServer,
    Script,
    TurnLike,
    call,
    sampled,
    say,
    think,
    turn,
)

Connect = Callable[..., Any]
KINDS = ("vllm", "sglang")
START = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."})
SCRIPT: list[TurnLike] = [
    turn(think("Two looks."), say("Let me see."), call("terminal", command="ls é"), call("read_file", path="a\n1.10")),
    turn(think("One more."), call("terminal", command="pwd")),
    turn(think("Enough."), say("Done.")),
]
RESULTS = (('{"output": "a.txt", "exit_code": 0}', "text of a"), ('{"output": "/", "exit_code": 0}',), ())


@dataclass
class RawText:
    """A translator that leaves text as it is: what a parser makes of it is not what is tested here."""

    ends: tuple[str, ...]
    raw: list[str] = field(default_factory=list)

    def parse_model_output(self, raw_text: str, tool_choice: object = None, tools: object = None) -> tuple[str, None, str]:
        """Return the text without the token that ends it, and no calls."""
        for end in self.ends:
            raw_text = raw_text.removesuffix(end)
        return raw_text, None, "stop"

    def convert_messages_for_template(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages as they are."""
        return messages


def managed(server: Any, name: str, *, protect_thoughts: bool = True) -> Any:
    """Return atroposlib's ManagedServer on a server class."""
    from atroposlib.envs.server_handling.managed_server import ManagedServer

    made = ManagedServer(server, tokenizer=server.tokenizer, tool_parser="raw", preserve_think_blocks=not protect_thoughts)
    made._translator = RawText(ends=(TEMPLATES[name].end, TEMPLATES[name].end_of_calls))
    return made


async def converse(server: Any, tools: list[dict[str, object]], first: str = "Look.", **fields: Any) -> None:
    """Ask for three turns, telling the results of the calls in between."""
    messages: list[dict[str, Any]] = [START[0], {"role": "user", "content": first}]
    for results in RESULTS:
        answer = await server.chat_completion(messages=messages, tools=tools, n=1, max_tokens=999, **fields)
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})
        messages.extend({"role": "tool", "tool_call_id": "call00000", "name": "x", "content": result} for result in results)


def sampled_ids(exchange: Exchange) -> tuple[list[int], list[float]]:
    """Return ids and logprobs of an answer, whichever kind of server gave it."""
    response: Any = exchange.response
    if "meta_info" in response:
        pairs = [(token, own) for own, token, _ in response["meta_info"]["output_token_logprobs"]]
    else:
        pairs = [(int(token), own) for place in response["logprobs"][0] for token, own in place[0].items()]
    return [token for token, _ in pairs], [own for _, own in pairs]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in TEMPLATES if name != "deepseek_r1"])
def test_a_rollout_is_one_node_of_what_was_sampled(connect: Connect, tools: Any, name: str, kind: str) -> None:
    """Three turns with two parallel calls and think blocks train exactly the sampled ids, with their logprobs.

    Thoughts are shown to templates that write a think block of their own. DeepSeek R1's opens the first answer's thought and
    never shows it again: atroposlib's server splits there.
    """
    with MockServer(SCRIPT, template=name) as mock:
        server = managed(connect(mock, kind), name, protect_thoughts=name not in SHOWN)
        asyncio.run(converse(server, tools))
        mock.verify()
        answers = [sampled_ids(exchange) for exchange in mock.journal]

    nodes = server.get_state()["nodes"]
    trained = [
        (token, own) for node in nodes for token, own in zip(node.masked_tokens, node.logprobs, strict=True) if token != -100
    ]

    assert (len(nodes), trained) == (1, [pair for ids, odds in answers for pair in zip(ids, odds, strict=True)])


@pytest.mark.parametrize(("name", "number"), [("kimi", "functions.terminal:2"), ("mistral", '"id": "call00002"')])
def test_calls_are_numbered_through_the_conversation(connect: Connect, tools: Any, name: str, number: str) -> None:
    """The third call of a conversation has the third number, where the format numbers them."""
    with MockServer(SCRIPT, template=name) as mock:
        asyncio.run(converse(managed(connect(mock, "vllm"), name), tools))
        text = mock.journal[1].response["text"][0]  # type: ignore[index, call-overload]

    assert number in text


SHOWN = {"glm", "glm47", "qwen3_5"}
SPLITS = {"deepseek": (1, 2), "glm": (3, 1), "qwen3": (1, 1)}


@pytest.mark.parametrize("name", SPLITS)
def test_hiding_thoughts_from_the_template_splits_some_and_saves_others(connect: Connect, tools: Any, name: str) -> None:
    """Nodes with think blocks hidden from the template, and shown to it: no setting is right for every family."""
    nodes = []
    for protect_thoughts in (True, False):
        with MockServer(SCRIPT, template=name) as mock:
            server = managed(connect(mock, "vllm"), name, protect_thoughts=protect_thoughts)
            asyncio.run(converse(server, tools))
            nodes.append(len(server.get_state()["nodes"]))

    assert tuple(nodes) == SPLITS[name]


@pytest.mark.parametrize(
    "odd", [sampled(drift=3), sampled(end=False), sampled(broken_utf8=True), sampled(wrong_id=True)], ids=str
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_conversation_goes_on_after_odd_tokens(connect: Connect, tools: Any, kind: str, odd: Any) -> None:
    """Ids that their text does not encode to come back in the next prompt, and the conversation is still found."""
    with MockServer([turn(*SCRIPT[0].steps, odd), *SCRIPT[1:]], template="chatml") as mock:  # type: ignore[union-attr]
        server = managed(connect(mock, kind), "chatml")
        asyncio.run(converse(server, tools))
        mock.verify()
        first, _ = sampled_ids(mock.journal[0])
        second: Any = mock.journal[1].request

    prompt = second["prompt"]["prompt_token_ids"] if kind == "vllm" else second["input_ids"]
    text = server.tokenizer.decode(first)

    assert ([exchange.turn for exchange in mock.journal], " ".join(map(str, first)) in " ".join(map(str, prompt))) == (
        [0, 1, 2],
        True,
    )
    assert (server.tokenizer.encode(text) == first) is (odd == sampled(end=False))


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_function_sees_the_conversation_of_chat_mode(connect: Connect, tools: Any, name: str) -> None:
    """Messages, reasoning, calls with their ids, results and tools are found in the tokens, as chat mode would give them."""
    seen: list[Conversation] = []

    def policy(conversation: Conversation) -> TurnLike:
        seen.append(conversation)
        return SCRIPT[conversation.turn]

    with MockServer(policy, template=name) as mock:
        asyncio.run(converse(managed(connect(mock, "vllm"), name, protect_thoughts=name not in SHOWN), tools))
        mock.verify()
    last = seen[-1]
    calls = [[one["function"]["name"] for one in message.get("tool_calls", [])] for message in last.messages]  # type: ignore[attr-defined]
    ids = [one["id"] for message in last.messages for one in message.get("tool_calls", [])]  # type: ignore[attr-defined]
    told = [message["tool_call_id"] for message in last.messages if message["role"] == "tool"]

    assert [(one.id, one.turn, one.root_length, one.first_user, one.tool_results) for one in seen] == [
        (last.id, 0, 2, "Look.", ()),
        (last.id, 1, 2, "Look.", RESULTS[0]),
        (last.id, 2, 2, "Look.", RESULTS[1]),
    ]
    assert [(message["role"], message.get("content"), message.get("reasoning_content")) for message in last.messages] == [
        ("system", "Be brief.", None),
        ("user", "Look.", None),
        ("assistant", "Let me see.", "Two looks."),
        ("tool", RESULTS[0][0], None),
        ("tool", RESULTS[0][1], None),
        ("assistant", None, "One more."),
        ("tool", RESULTS[1][0], None),
    ]
    assert (calls[2], calls[5], ids, len(set(ids))) == (["terminal", "read_file"], ["terminal"], told, 3)
    assert {tool: list(schema["properties"]) for tool, schema in last.tools.items()} == {  # type: ignore[call-overload]
        "terminal": ["command", "timeout"],
        "read_file": ["path"],
    }


@pytest.mark.parametrize("name", TEMPLATES)
def test_rollouts_of_a_group_do_not_take_each_others_turns(connect: Connect, tools: Any, name: str) -> None:
    """Eight identical rollouts and eight of another item at the same time each get all their turns, in order."""
    other = [turn(call("terminal", command="other")), turn(call("terminal", command="again")), say("Other.")]
    with MockServer([Script(other, when="Other"), Script(SCRIPT)], template=name) as mock:
        server = connect(mock, "sglang")

        async def group() -> None:
            firsts = ["Look.", "Other."] * 8
            await asyncio.gather(*(converse(managed(server, name), tools, first) for first in firsts))

        asyncio.run(group())
        mock.verify()
        turns = sorted((exchange.script or "", exchange.turn or 0) for exchange in mock.journal)

    assert turns == sorted((script, number) for script in ("script 1", "script 2") for number in range(3) for _ in range(8))


def test_thoughts_that_a_template_strips_later_do_not_shift_turns() -> None:
    """An answer of the prompt loses its think block when a user speaks again: the conversation is still the same."""
    user, answer, result = "<|im_start|>user\nhi<|im_end|>\n", "A<|im_end|>\n", "<|im_start|>tool\nr<|im_end|>\n"
    opening = "<|im_start|>assistant\n"
    first = f"{user}{opening}<think>\nx\n</think>\n\n{answer}{result}{opening}"
    second = f"{user}{opening}{answer}{result}{opening}B<|im_end|>\n{user}{opening}"
    with MockServer(["B", "C"], template="qwen3") as mock:
        said = [httpx.post(f"{mock.url}/generate", json={"prompt": prompt}).json()["text"] for prompt in (first, second)]
        mock.verify()

    assert said == [["B"], ["C"]]


def test_a_cut_answer_stays_text(connect: Connect) -> None:
    """What was cut is kept as it was sampled, and the next turn follows."""
    with MockServer([turn("The terminal now", sampled(max_tokens=2)), "end"], template="chatml") as mock:
        server = managed(connect(mock, "vllm"), "chatml")

        async def talk() -> str:
            first = await server.chat_completion(messages=[START[1]])
            cut = first.choices[0].message.content
            await server.chat_completion(
                messages=[START[1], {"role": "assistant", "content": cut}, {"role": "user", "content": "?"}]
            )
            return f"{cut}|{first.choices[0].finish_reason}"

        cut = asyncio.run(talk())
        mock.verify()
        last = mock.journal[1].conversation

    assert last is not None
    assert (cut, last.messages[1]) == ("The terminal|length", {"role": "assistant", "content": "The terminal"})


def test_a_judge_answers_prompts_without_tools(connect: Connect, tools: Any) -> None:
    """A question without tools in its prompt is for the judge, as in chat mode."""
    with MockServer(SCRIPT, judge="0.5", template="chatml") as mock:
        server = managed(connect(mock, "vllm"), "chatml")

        async def talk() -> str:
            await converse(server, tools)
            grade = await server.chat_completion(messages=[{"role": "user", "content": "Grade this."}])
            return str(grade.choices[0].message.content)

        grade = asyncio.run(talk())
        mock.verify()

    assert (grade, [exchange.kind for exchange in mock.journal]) == ("0.5", ["generate"] * 3 + ["judge"])


def test_drift_that_cannot_be_fails_like_other_mistakes_of_the_script() -> None:
    """What cannot be sampled is told at the request and again in verify."""
    with MockServer([turn("é", sampled(drift=5))], template="chatml") as mock:
        answer = httpx.post(f"{mock.url}/generate", json={"prompt": "x"})
        with pytest.raises(ScriptError, match=r"sampled\(drift=5\) splits 5 tokens"):
            mock.verify()

    assert answer.status_code == 400


def test_reset_forgets_what_was_said() -> None:
    """After a reset the same answer in a prompt is a stranger's: it stays text."""
    first = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    second = f"{first}<think>\nhm\n</think>\nA<|im_end|>\n{first}"
    seen: list[object] = []

    def policy(conversation: Conversation) -> TurnLike:
        seen.append(conversation.messages[1:2])
        return turn(think("hm"), say("A"))

    with MockServer(policy, template="chatml") as mock:
        for prompt in (first, second):
            httpx.post(f"{mock.url}/generate", json={"prompt": prompt})
        mock.reset()
        httpx.post(f"{mock.url}/generate", json={"prompt": second})

    assert seen == [
        (),
        ({"role": "assistant", "content": "A", "reasoning_content": "hm"},),
        ({"role": "assistant", "content": "<think>\nhm\n</think>\nA"},),
    ]


def test_token_mode_can_be_turned_on_later() -> None:
    """A server of chat mode learns a template, and keeps its scripts."""
    with MockServer(["A"]) as mock:
        before = mock.template
        answer = httpx.post(f"{mock.speak_tokens(template='kimi').url}/generate", json={"prompt": "x"}).json()
        mock.verify()

    assert (before, mock.template, answer["text"]) == (None, "kimi", ["A"])


CHAT_ONLY = """
import sys
from pytest_hermes_env.inference import MockServer, call, sampled, say, turn
with MockServer([turn(say("x"), sampled(end=False))], allow_leftovers=True) as mock:
    print(sorted({"tokenizers", "transformers", "jinja2"} & set(sys.modules)))
    mock.speak_tokens(template="chatml")
    print(sorted({"tokenizers", "transformers", "jinja2"} & set(sys.modules)))
"""


def test_only_token_mode_loads_a_tokenizer() -> None:
    """A server of chat mode loads none, and token mode needs the small package only, without transformers."""
    printed = subprocess.run([sys.executable, "-c", CHAT_ONLY], check=True, capture_output=True, text=True).stdout

    assert printed.splitlines() == ["[]", "['tokenizers']"]
