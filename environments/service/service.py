"""Runs the rollouts of one environment for clients: one call, one rollout, in a place of the waiting line. Lists its items as plain JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any

import httpx
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from pydantic import BaseModel, ConfigDict, Field, JsonValue, SecretStr, field_validator

from environments.loop.end import RolloutEnd
from environments.rollout.evaluation import held_out_items
from environments.rollout.hosted import RolloutOutcome
from environments.rollout.secret_names import SHORTEST_KEY
from environments.service.identity import PROTOCOL, identity_of
from environments.service.policy_server import CappedTransport, MissingJudge, check_endpoint, policy_manager
from environments.service.waiting_line import Refused, WaitingLine

logger = logging.getLogger(__name__)

ROLLOUTS_PER_LOG = 64
"""Rollouts after which the environment empties the buffers of its metrics, which would grow otherwise."""

engine_key: ContextVar[str] = ContextVar("hermes_engine_key", default="")
"""The engine's key in the task of a request, so that what is logged or answered there can leave it out."""

NOT_SAMPLING = frozenset({"messages", "model", "n", "stream", "stream_options", "tools", "tool_choice"})


class RolloutRequest(BaseModel):
    """What a client asks for."""

    model_config = ConfigDict(extra="forbid")

    item: JsonValue
    """An item of ``/tasks``."""
    endpoint: str
    """Base URL of the engine's chat completions, such as ``http://127.0.0.1:8000/v1``."""
    model: str = Field(min_length=1)
    api_key: SecretStr = SecretStr("none")
    sampling: dict[str, JsonValue] = {}
    """Parameters of each request to the model; they replace those of the environment."""
    protocol: int = PROTOCOL
    identity: dict[str, str] | None = None
    """The environment that the client expects; another one refuses."""

    @field_validator("sampling")
    @classmethod
    def _only_sampling(cls, sampling: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if wrong := sorted(NOT_SAMPLING & set(sampling)):
            raise ValueError(f"{', '.join(wrong)}: not sampling parameters")
        return sampling


class RolloutFailed(Exception):
    """A rollout without a reward. ``code`` names its end."""

    def __init__(self, code: str, message: str, outcome: RolloutOutcome | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.outcome = outcome


class RolloutService:
    """The rollouts of one environment, which must be set up."""

    def __init__(
        self,
        env: Any,
        *,
        line: WaitingLine,
        has_judge: bool,
        endpoint_hosts: Collection[str] = (),
        rollout_timeout: float | None = None,
        max_reply: int = 8 << 20,
        max_conversation: int = 32 << 20,
    ) -> None:
        """``max_reply``, ``max_conversation``: the most bytes of a reply of the engine, and of a request with all messages so far."""
        self.env = env
        self.line = line
        self.tasks = TaskList(env)
        self.identity = identity_of(type(env))
        self.counts: Counter[str] = Counter()
        """Rollouts by end, and those that were cancelled or timed out."""
        self._judge = None if has_judge else MissingJudge()
        self._endpoint_hosts = endpoint_hosts
        self._timeout = rollout_timeout
        self._since_log = 0
        # no proxy, no redirect: the key goes to the endpoint and nowhere else
        transport = CappedTransport(max_reply=max_reply, max_conversation=max_conversation)
        self._http = httpx.AsyncClient(follow_redirects=False, trust_env=False, transport=transport)

    async def close(self) -> None:
        """Close the connections to engines."""
        await self._http.aclose()

    def check(self, asked: RolloutRequest, client: str | None) -> None:
        """Check a request of ``client``, an address. Raises: Refused."""
        if asked.protocol != PROTOCOL:
            raise Refused(409, "other_protocol", f"the client speaks protocol {asked.protocol}, and this service {PROTOCOL}")
        if asked.identity is not None and asked.identity != self.identity:
            own, other = (" ".join(identity.values()) for identity in (self.identity, asked.identity))
            raise Refused(409, "other_environment", f"the client asks for {other}, and this service has {own}")
        check_endpoint(asked.endpoint, client=client, allowed=self._endpoint_hosts)
        self.tasks.check(asked.item)

    async def rollout(self, asked: RolloutRequest) -> dict[str, Any]:
        """Run one rollout and return its result, once its sandbox is released.

        Raises: RolloutFailed when it earned no reward; Refused when it was not started.
        """
        async with self.line.place():
            started = time.monotonic()
            try:
                async with asyncio.timeout(self._timeout):
                    outcome = await self._outcome(asked)
            except TimeoutError:
                self.counts["timed_out"] += 1
                raise RolloutFailed("rollout_timeout", f"the rollout took longer than {self._timeout:g} seconds") from None
            except asyncio.CancelledError:
                self.counts["cancelled"] += 1
                raise
            seconds = time.monotonic() - started
        code = outcome.end.value
        try:
            result = _result_of(outcome, seconds)
        except RolloutFailed as error:
            code = error.code
            raise
        finally:
            self.counts[code] += 1
            await self._log_now_and_then()
        return result

    async def _outcome(self, asked: RolloutRequest) -> RolloutOutcome:
        config = APIServerConfig(
            base_url=asked.endpoint,
            model_name=asked.model,
            api_key=asked.api_key.get_secret_value(),
            server_type="openai",
            health_check=False,
        )
        manager = policy_manager(
            config, http=self._http, sampling=asked.sampling, reasoning=getattr(self.env.server, "reasoning_config", None)
        )
        outcome: RolloutOutcome = await self.env.run_rollout(asked.item, server=manager, judge=self._judge)
        failure = manager.servers[0].failure
        if outcome.reward is not None and failure is not None:  # an environment's own loop went on without the reply
            return RolloutOutcome(end=RolloutEnd.MODEL_FAILED, error=failure, messages=outcome.messages, turns=outcome.turns)
        return outcome

    async def _log_now_and_then(self) -> None:
        self._since_log += 1
        if self._since_log < ROLLOUTS_PER_LOG:
            return
        self._since_log = 0
        try:
            await self.env.wandb_log({})
        except Exception:
            logger.exception("wandb_log of %s failed", type(self.env).__name__)


def without_key(text: str) -> str:
    """Return a text without the key of the current rollout's engine."""
    key = engine_key.get()
    return text.replace(key, "[api_key]") if len(key) >= SHORTEST_KEY else text


def _described(error: BaseException | None) -> str:
    """Return an error's type and text; where it has none, as a connection that broke, also those of what caused it."""
    text = str(error) or (
        _described(cause) if (cause := error and (error.__cause__ or error.__context__)) else "(without a text)"
    )
    return f"{type(error).__name__}: {text}"


def _result_of(outcome: RolloutOutcome, seconds: float) -> dict[str, Any]:
    """Return the body of an answer. Raises: RolloutFailed without a reward, or with messages that are not JSON."""
    if outcome.reward is None:
        raise RolloutFailed(outcome.end.value, without_key(_described(outcome.error)), outcome)
    calls = sum(len(message.get("tool_calls") or ()) for message in outcome.messages)
    result = {
        "reward": outcome.reward,
        "end": outcome.end.value,
        "turns": outcome.turns,
        "messages": outcome.messages,
        "tool_errors": [asdict(error) for error in outcome.tool_errors],
        "metrics": {"turns": outcome.turns, "tool_calls": calls, "tool_errors": len(outcome.tool_errors), "seconds": seconds},
        "seconds": seconds,
    }
    try:
        json.dumps(result, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
        raise RolloutFailed(RolloutEnd.ENVIRONMENT_FAILED, f"the messages cannot be sent as JSON: {error}") from error
    return result


# ---------------------------------------------------------------------- the items

IDLE_DRAWS = 16
"""Draws beyond the number of known items without a new one, after which the training items count as complete."""


def check_json(value: object, what: str = "the item") -> None:
    """Check that JSON gives ``value`` back as it is. Raises: Refused."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(422, "bad_item", f"{what} cannot be written as JSON: {error}") from None
    if json.loads(text) != value:
        raise Refused(
            422, "bad_item", f"JSON would change {what}: it has only lists, and only text as keys; change it in setup()"
        )


class TaskList:
    """The items of an environment, with their prompts.

    Training items are drawn from `get_next_item` once and kept, without repetitions, so that the n-th task stays the same.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._train: list[Any] = []
        self._seen: set[str] = set()
        self._is_complete = False
        self._eval: list[Any] = []
        self._drawing = asyncio.Lock()

    async def load(self) -> None:
        """Load the held-out items and the first training item. Raises: Refused when there is neither."""
        self._eval = await held_out_items(self._env)
        if not await self._draw(1) and not self._eval:
            raise Refused(
                404,
                "no_items",
                f"{type(self._env).__name__} has no items: get_next_item returned None, and nothing is held out",
            )

    async def tasks(self, split: str, count: int | None) -> list[dict[str, Any]]:
        """Return the first ``count`` items of a split with prompt and system prompt; None returns all held-out items.

        Raises: Refused for a training split without ``count``, which may have no end.
        """
        if split == "train" and count is None:
            raise Refused(422, "bad_request", "n is required with split=train, whose items may have no end")
        items = self._eval if split == "eval" else await self._draw(count or 0)
        if not items:
            source = "get_eval_items() returns nothing" if split == "eval" else "get_next_item() returns None"
            raise Refused(404, "no_items", f"{type(self._env).__name__} has no items of split {split}: {source}")
        return [self._task(item) for item in items[:count]]

    def _task(self, item: Any) -> dict[str, Any]:
        check_json(item)
        prompt = self._env.format_prompt(item)
        check_json(prompt, "the prompt")
        return {"item": item, "prompt": prompt, "system_prompt": self._env.config.system_prompt}

    async def _draw(self, count: int) -> list[Any]:
        """Return the first ``count`` distinct training items, or fewer if there are no more."""
        async with self._drawing:
            idle = 0
            while len(self._train) < count and not self._is_complete:
                item = await self._env.get_next_item()
                key = repr(item)
                if item is not None and key not in self._seen:
                    self._seen.add(key)
                    self._train.append(item)
                    idle = 0
                else:
                    idle += 1
                if item is None:  # there is none at the moment
                    break
                self._is_complete = idle > len(self._train) + IDLE_DRAWS
            return self._train[:count]

    def check(self, item: Any) -> None:
        """Check that an item which a client sent has a prompt. Raises: Refused."""
        try:
            self._env.format_prompt(item)
        except Exception as error:
            raise Refused(422, "bad_item", f"format_prompt refuses the item: {type(error).__name__}: {error}") from error
