"""Which turn of which conversation a request is."""

from __future__ import annotations

from pytest_hermes_env.inference.conversation import Conversation, ConversationIndex

Messages = list[dict[str, object]]


def user(text: str) -> dict[str, object]:
    """Return a user message."""
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, object]:
    """Return an assistant message."""
    return {"role": "assistant", "content": text}


def turns(*requests: Messages) -> list[tuple[int, int]]:
    """Return (turn, length of the root) of each request, asked in that order."""
    index = ConversationIndex()
    places = [index.locate(request) for request in requests]
    return [(place.turn, place.root_length) for place in places]


def test_turns_count_the_answers_since_the_root() -> None:
    """The first request is turn 0; each assistant message after it is one turn more."""
    first = [user("q")]
    second = [*first, assistant("a"), user("r")]
    third = [*second, assistant("b"), user("s")]

    assert turns(first, second, third) == [(0, 1), (1, 1), (2, 1)]


def test_few_shot_answers_in_the_prompt_do_not_shift_turns() -> None:
    """Assistant messages that the first request already holds belong to the prompt."""
    prompt = [user("example"), assistant("like this"), user("q")]

    assert turns(prompt, [*prompt, assistant("a"), user("r")]) == [(0, 3), (1, 3)]


def test_a_rollout_that_starts_again_starts_with_the_first_turn() -> None:
    """Rollouts of one item, one after the other or interleaved, each get their own turns."""
    first = [user("q")]
    left, right = [*first, assistant("a"), user("l")], [*first, assistant("b"), user("r")]

    assert turns(first, first, left, right, first, left) == [(0, 1), (0, 1), (1, 1), (1, 1), (0, 1), (1, 1)]


def test_the_order_of_keys_means_nothing() -> None:
    """Two clients that write one message with another order of keys are in one conversation."""
    index = ConversationIndex()
    one = index.locate([{"role": "user", "content": "q"}])
    other = index.locate([{"content": "q", "role": "user"}, assistant("a")])

    assert (other.root, other.turn) == (one.root, 1)


def test_locating_hashes_each_message_once() -> None:
    """The work grows with the number of messages, not with its square."""
    read: list[int] = []

    class Counting(dict[str, object]):
        """A message that counts how often it is read."""

        def items(self) -> object:  # type: ignore[override]  # only counts
            read.append(1)
            return super().items()

    messages: Messages = [Counting(role="user", content=str(number)) for number in range(200)]
    ConversationIndex().locate(messages)

    assert len(read) == len(messages)


def conversation(*messages: dict[str, object]) -> Conversation:
    """Return a conversation of these messages."""
    return Conversation(id="x", turn=0, messages=messages, root_length=1, tools={}, model="m", sampling={})


def test_a_conversation_shows_what_a_script_function_asks_for() -> None:
    """First user message, last message and the tool results since the last answer are at hand."""
    tool: dict[str, object] = {"role": "tool", "content": "old"}
    made = conversation(
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "look "}, {"type": "image_url"}, {"text": "here"}]},
        assistant("a"),
        tool,
        assistant("b"),
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
    )

    seen = (made.first_user, made.last_message, made.tool_results)

    assert seen == ("look here", {"role": "tool", "content": "two"}, ("one", "two"))
