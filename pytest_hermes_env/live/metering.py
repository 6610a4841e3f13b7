"""Counts live calls where they leave: an httpx transport for the openai client, and what it shares with `/generate`.

Every try counts, also those of the client's own retries. When a limit is reached nothing is sent, and the refusal is kept: the
agent loop swallows what a server raises, so that the test must be failed once more at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx

from pytest_hermes_env.errors import BudgetSpent, LiveModeError
from pytest_hermes_env.live.limits import Spending, Spent, Usage
from pytest_hermes_env.live.prices import Price
from pytest_hermes_env.live.shape_comparison import Answer, differences, mock_answer

__all__ = [
    "EVENTS",
    "Meter",
    "MeteredTransport",
    "Progress",
    "counted_here",
    "is_counted_above",
    "outcome_of",
    "usage_of",
    "usage_of_events",
]

EVENTS = "text/event-stream"
ERRORS = 400


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One answered call, for a line while the rollout runs. ``rollout`` and ``turn`` count from 1; turn 0 offered no tools."""

    test: str
    rollout: int
    turn: int
    status: int | str
    usage: Usage | None
    seconds: float


@dataclass(kw_only=True)
class Meter:
    """Counts the calls of one test. ``is_compared`` compares each answer with the mock's, for the summary.

    ``extra`` is put into every request body, where the provider wants to be asked for the cost. ``price`` is that of the run's
    model, ``prices`` has those of others, which clients of an environment's own may ask.
    """

    spending: Spending
    test: str
    price: Price | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    tell: Callable[[Progress], None] = lambda _: None
    is_compared: bool = False
    refused: int = 0
    refusal: str = ""
    failures: list[str] = field(default_factory=list)
    _rollouts: weakref.WeakKeyDictionary[Any, int] = field(default_factory=weakref.WeakKeyDictionary)
    _begun: int = 0

    def begin(self) -> int:
        """Note a call, and return its number. Raises: a limit is reached → BudgetSpent."""
        with self._remembering():
            return self.spending.begin(self.test)

    def check(self) -> None:
        """Return when one more call may be made. Raises: a limit is reached → BudgetSpent."""
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
        asked_model: str | None = None,
    ) -> None:
        """Note what a call took; None says that it failed. ``asked_model`` is the model where it may be another than the run's."""
        if usage is None:
            self.failures.append(str(status))
        elif usage.usd is None:
            usage = self._priced(usage, self.price if asked_model is None else self.prices.get(asked_model))
        self.spending.end(number, usage, seconds=seconds, status=str(status))
        self.tell(
            Progress(test=self.test, rollout=self._rollout(), turn=turn, status=status, usage=usage, seconds=seconds),
        )

    def spent(self) -> Spent:
        """Return what this test spent so far."""
        return self.spending.by_test().get(self.test, Spent())

    def verify(self) -> None:
        """Raise what a call of this test was refused with. Raises: BudgetSpent."""
        if self.refused:
            raise BudgetSpent(f"{self.refusal}\n  refused   {self.refused} call{'s' * (self.refused != 1)} of this test")

    def verify_answered(self) -> None:
        """Raise when this test made calls and all of them failed. Raises: LiveModeError."""
        spent = self.spent()
        if spent.calls and spent.calls == spent.failed:
            said = ", ".join(f"{status} ({count})" for status, count in Counter(self.failures).most_common())
            raise LiveModeError(
                "the real server answered no call of this test, so that it showed nothing about a model.\n"
                f"  seen      {spent.failed} failed call{'s' * (spent.failed != 1)}: {said}\n"
                "  fix       see the captured log for what the server says; where failures are what the test is about:\n"
                "            @pytest.mark.hermes_live(may_fail=True)"
            )

    @staticmethod
    def _priced(usage: Usage, price: Price | None) -> Usage:
        if price is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return usage
        usd = price.of(usage.prompt_tokens, usage.completion_tokens)
        return Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, usd=usd)

    def _rollout(self) -> int:
        """Return the number of the running task: a group gives each of its rollouts one."""
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


_is_counted: ContextVar[bool] = ContextVar("hermes_env_is_counted", default=False)


def is_counted_above() -> bool:
    """Tell whether what is sent now is counted already, nearer to its client."""
    return _is_counted.get()


@contextlib.contextmanager
def counted_here() -> Iterator[None]:
    """Say that what is sent meanwhile is counted."""
    token = _is_counted.set(True)
    try:
        yield
    finally:
        _is_counted.reset(token)


class MeteredTransport(httpx.AsyncBaseTransport):
    """Counts what passes to ``inner``; only POST requests ask a model.

    ``is_own_client`` tells that the client is not one of the run's: its requests stay as they are, and may ask another model.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, meter: Meter, *, is_own_client: bool = False) -> None:
        self._inner = inner
        self._meter = meter
        self._is_own_client = is_own_client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send, unless a limit is reached. Raises: BudgetSpent."""
        if request.method != "POST":
            return await self._inner.handle_async_request(request)
        body = _json(await request.aread())
        turn = _turn(body)
        if self._meter.extra and isinstance(body, dict) and not self._is_own_client:
            request = _with_body(request, {**self._meter.extra, **body})
        asked_model = str(body.get("model", "")) if self._is_own_client and isinstance(body, dict) else None
        number, began = self._meter.begin(), time.monotonic()

        def end(usage: Usage | None, status: int | str) -> None:
            seconds = time.monotonic() - began
            self._meter.end(number, usage, status=status, seconds=seconds, turn=turn, asked_model=asked_model)

        try:
            with counted_here():
                response = await self._inner.handle_async_request(request)
            if response.headers.get("content-type", "").startswith(EVENTS) and response.status_code < ERRORS:
                response.stream = _Tee(response.stream, lambda said: end(usage_of_events(said), response.status_code))
                return response  # its shape is compared by probes only: tests of environments do not stream
            await _keep_body(response)
        except BaseException as error:
            end(None, type(error).__name__)
            raise
        end(*outcome_of(response.status_code, response.content))
        if self._meter.is_compared and isinstance(body, dict) and not self._is_own_client:
            await compare(self._meter, self._meter.test, str(request.url), body, response)
        return response

    async def aclose(self) -> None:
        """Close the inner transport."""
        await self._inner.aclose()


async def _keep_body(response: httpx.Response) -> None:
    """Read a response, and leave its bytes to whoever reads its stream again, as the recorder of a cassette does."""
    if isinstance(response.stream, httpx.AsyncByteStream) and not response.is_closed:
        raw = b"".join([chunk async for chunk in response.stream])
        await response.stream.aclose()
        response.stream = httpx.ByteStream(raw)
    await response.aread()


class _Tee(httpx.AsyncByteStream):
    """A stream that passes its bytes on, and tells all of them when it is closed."""

    def __init__(self, stream: Any, tell: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._tell: Callable[[bytes], None] | None = tell
        self._seen = bytearray()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._seen += chunk
            yield chunk

    async def aclose(self) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(bytes(self._seen))
        await self._stream.aclose()


async def compare(meter: Meter, source: str, url: str, body: dict[str, Any], response: httpx.Response) -> None:
    """Keep where the answer's shape differs from the mock's."""
    if not url.endswith("/chat/completions"):
        return
    kind = response.headers.get("content-type", "")
    live = Answer(status=response.status_code, media_type=kind, content=response.content)
    meter.spending.remark(differences(await mock_answer(url, body, live), live), source)


def outcome_of(status: int, content: bytes) -> tuple[Usage | None, int | str]:
    """Return what an answer took, None when it is none, and what it was.

    Gateways answer 200 with an error in the body when the provider behind them failed, and proxies 200 with a page.
    """
    if status >= ERRORS:
        return None, status
    body = _json(content)
    if body is None:
        return None, f"{status} without JSON"
    if isinstance(body, dict) and body.get("error") and not body.get("choices"):
        return None, f"{status} with an error"
    return usage_of(body), status


def usage_of(body: Any) -> Usage:
    """Return what a body of the chat API says it took.

    The cost is OpenRouter's: ``usage.cost`` in USD, and for a key of one's own at the upstream provider what that one takes, too.
    """
    said = body.get("usage") if isinstance(body, dict) else None
    if not isinstance(said, dict):
        return Usage()
    return Usage(
        prompt_tokens=_count(said.get("prompt_tokens")),
        completion_tokens=_count(said.get("completion_tokens")),
        usd=_cost(said),
    )


def usage_of_events(said: bytes) -> Usage:
    """Return what the last chunk with a usage says."""
    rows = [_json(line.removeprefix(b"data:").strip()) for line in said.splitlines() if line.startswith(b"data:")]
    found = [usage_of(row) for row in rows if isinstance(row, dict) and row.get("usage")]
    return found[-1] if found else Usage()


def _cost(said: Mapping[str, Any]) -> float | None:
    usd, details = _amount(said.get("cost")), said.get("cost_details")
    if usd is None or not said.get("is_byok") or not isinstance(details, dict):
        return usd
    return usd + (_amount(details.get("upstream_inference_cost")) or 0.0)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _amount(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _turn(body: Any) -> int:
    """Return the turn that a request asks for: one after the answers that it holds. 0 when it offers no tools: a judge's."""
    if not isinstance(body, dict) or not body.get("tools"):
        return 0
    messages = body.get("messages")
    rows: list[Any] = messages if isinstance(messages, list) else []
    return 1 + len([row for row in rows if isinstance(row, dict) and row.get("role") == "assistant"])


def _with_body(request: httpx.Request, body: dict[str, Any]) -> httpx.Request:
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx.Request(request.method, request.url, headers=headers, content=json.dumps(body), extensions=request.extensions)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
