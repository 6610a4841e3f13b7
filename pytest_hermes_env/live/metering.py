"""Meters live calls: what each one used, how long it may take, and whether one more is allowed.

Every try counts, including the client's own retries. A call that takes long says so, and a limit ends it. When a limit is reached
nothing is sent, and the refusal is remembered: the agent loop swallows the exceptions of a server, so the test fails once more at its
end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from pytest_hermes_env.errors import BudgetSpent, CallTimedOut, LiveModeError
from pytest_hermes_env.live.limits import Spending, Spent, Usage
from pytest_hermes_env.live.prices import Price
from pytest_hermes_env.live.report import progress_line, waiting_line

Answer = TypeVar("Answer")

ERRORS = 400
REMINDER_S = 10.0
"""How long a call waits before it says so, and says so again."""


@dataclass(kw_only=True)
class Meter:
    """Counts the calls of one test.

    ``extra`` is added to every request body for the run's server, for providers that report the cost only on request. ``model`` is the
    run's, ``prices`` has its price and those of other models, which an environment's own clients may ask. ``tell`` gets a line for each
    answered call, and for one that waits. ``server`` is the model and its host, for texts; ``limit_s`` is the limit of one call in
    seconds, None means no limit.
    """

    spending: Spending
    test: str
    model: str = ""
    prices: Mapping[str, Price] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    tell: Callable[[str], None] = lambda _: None
    server: str = "the model"
    limit_s: float | None = None
    reminder_s: float = REMINDER_S
    refused: int = 0
    refusal: str = ""
    failures: list[str] = field(default_factory=list)
    _rollouts: weakref.WeakKeyDictionary[Any, int] = field(default_factory=weakref.WeakKeyDictionary)
    _begun: int = 0

    def begin(self) -> int:
        """Record a call, and return its number. Raises: a limit is reached → BudgetSpent."""
        with self._remembering():
            return self.spending.begin(self.test)

    def check(self) -> None:
        """Return if one more call is allowed. Raises: a limit is reached → BudgetSpent."""
        with self._remembering():
            self.spending.check()

    @contextlib.contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except BudgetSpent as error:
            self.refused += 1
            self.refusal = str(error)
            raise

    def end(
        self,
        number: int,
        usage: Usage | None,
        *,
        status: int | str,
        seconds: float,
        turn: int,
        asked_model: str = "",
    ) -> None:
        """Record the usage of a call; None means that it failed. ``asked_model`` is the request's, "" if it named none."""
        if usage is None:
            self.failures.append(str(status))
        elif usage.usd is None and (price := self.prices.get(asked_model or self.model)):
            usage = price.of(usage)
        self.spending.end(number, usage, seconds=seconds, status=str(status))
        place = f"rollout {self._rollout()}, {f'turn {turn}' if turn else 'a call'}"
        self.tell(progress_line(place, usage, status=status, seconds=seconds, spent=self.spending.total()))

    def spent(self) -> Spent:
        """Return the sum of this test so far."""
        return self.spending.by_test().get(self.test, Spent())

    def verify(self) -> None:
        """Raise the refusal of a call of this test. Raises: BudgetSpent."""
        if self.refused:
            raise BudgetSpent(f"{self.refusal}\n  refused   {self.refused} call{'s' * (self.refused != 1)} of this test")

    def verify_answered(self) -> None:
        """Raise if this test made calls and all of them failed. Raises: LiveModeError."""
        spent = self.spent()
        if spent.calls and spent.calls == spent.failed:
            said = ", ".join(f"{status} ({count})" for status, count in Counter(self.failures).most_common())
            raise LiveModeError(
                "the real server answered no call of this test, so the test says nothing about a model.\n"
                f"  seen      {spent.failed} failed call{'s' * (spent.failed != 1)}: {said}\n"
                "  fix       see the server's messages in the captured log; if the test is about failures:\n"
                "            @pytest.mark.hermes_live(may_fail=True)"
            )

    def _rollout(self) -> int:
        """Return the number of the running task: each rollout of a group has one."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return 0
        if task is None:
            return 0
        if task not in self._rollouts:
            self._begun += 1
            self._rollouts[task] = self._begun
        return self._rollouts[task]


class MeteredCall:
    """One call, counted from here; a context that records an exception as its failure. Raises: a limit is reached → BudgetSpent.

    ``body`` is the request's, which may ask another model than the run's.
    """

    def __init__(self, meter: Meter, body: Any = None) -> None:
        self._meter = meter
        self._turn = _turn(body)
        self._asked_model = str(body.get("model") or "") if isinstance(body, dict) else ""
        self._number, self._began = meter.begin(), time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.end(None, getattr(error, "status", 0) or type(error).__name__)

    async def in_time(self, answer: Awaitable[Answer]) -> Answer:
        """Return the answer; ``tell`` gets a line while it waits. Raises: the limit of one call is reached → CallTimedOut."""
        loop, meter = asyncio.get_running_loop(), self._meter
        began = loop.time()
        reminder: asyncio.TimerHandle

        def remind() -> None:
            nonlocal reminder
            meter.tell(waiting_line(meter.server, loop.time() - began))
            reminder = loop.call_later(meter.reminder_s, remind)

        reminder = loop.call_later(meter.reminder_s, remind)
        try:
            async with asyncio.timeout(meter.limit_s) as clock:
                return await answer
        except TimeoutError:
            if not clock.expired():
                raise
            raise CallTimedOut(
                f"{meter.server} did not answer within {meter.limit_s:g} s (--hermes-call-timeout).\n"
                "  expected  the whole answer\n"
                "  fix       raise --hermes-call-timeout, or see why the server is silent: it may be loading or overloaded"
            ) from None
        finally:
            reminder.cancel()

    def end(self, usage: Usage | None, status: int | str) -> None:
        """Record the usage; None means that the call failed."""
        seconds = time.monotonic() - self._began
        self._meter.end(self._number, usage, status=status, seconds=seconds, turn=self._turn, asked_model=self._asked_model)

    def answered(self, status: int, content: bytes) -> None:
        """Record the usage in an answer, which may be a stream of events."""
        self.end(*outcome_of(status, content))


def outcome_of(status: int, content: bytes) -> tuple[Usage | None, int | str]:
    """Return the usage of an answer, None if it failed, and its status.

    Gateways answer 200 with an error in the body when their provider fails, and proxies answer 200 with a page.
    """
    if status >= ERRORS:
        return None, status
    if (events := _events_of(content)) is not None:
        return events, status
    body = json_or_none(content)
    if body is None:
        return None, f"{status} without JSON"
    if isinstance(body, dict) and body.get("error") and not body.get("choices"):
        return None, f"{status} with an error"
    return usage_of(body), status


def usage_of(body: Any) -> Usage:
    """Return the usage in a body of the chat API, or of ``/generate``, which returns token ids instead of counts.

    The cost is OpenRouter's: ``usage.cost`` in USD, plus the upstream provider's cost if the user's own key for it is used.
    """
    if isinstance(body, list):
        found = [usage_of(one) for one in body]
        return Usage(
            prompt_tokens=_sum([one.prompt_tokens for one in found]),
            completion_tokens=_sum([one.completion_tokens for one in found]),
        )
    if not isinstance(body, dict):
        return Usage()
    said = body.get("usage") or body.get("meta_info")  # SGLang's
    if "prompt_token_ids" in body:  # vLLM's
        said = {"prompt_tokens": len(body["prompt_token_ids"]), "completion_tokens": sum(map(len, body.get("token_ids", ())))}
    if not isinstance(said, dict):
        return Usage()
    return Usage(
        prompt_tokens=_count(said.get("prompt_tokens")),
        completion_tokens=_count(said.get("completion_tokens")),
        usd=_cost(said),
    )


def _events_of(content: bytes) -> Usage | None:
    """Return the usage of a stream of events: of the last chunk that has one. None for any other content."""
    rows = [json_or_none(line.removeprefix(b"data:")) for line in content.splitlines() if line.startswith(b"data:")]
    if not rows:
        return None
    return next((usage_of(row) for row in reversed(rows) if isinstance(row, dict) and row.get("usage")), Usage())


def _cost(said: Mapping[str, Any]) -> float | None:
    usd, details = _amount(said.get("cost")), said.get("cost_details")
    if usd is None or not said.get("is_byok") or not isinstance(details, dict):
        return usd
    return usd + (_amount(details.get("upstream_inference_cost")) or 0.0)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _sum(counts: list[int | None]) -> int | None:
    return None if None in counts or not counts else sum(count for count in counts if count is not None)


def _amount(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _turn(body: Any) -> int:
    """Return the turn of a request: one more than the answers in it. 0 if it offers no tools: a judge's request."""
    if not isinstance(body, dict) or not body.get("tools"):
        return 0
    messages = body.get("messages")
    rows: list[Any] = messages if isinstance(messages, list) else []
    return 1 + len([row for row in rows if isinstance(row, dict) and row.get("role") == "assistant"])


def json_or_none(content: Any) -> Any:
    """Return the value of a JSON text; None for anything else."""
    try:
        return json.loads(content)
    except (TypeError, ValueError):
        return None
