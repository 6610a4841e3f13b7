"""Judges that are asked anew: what a reward asks a model and no recording holds goes to a real one, within a limit.

Place in the flow: `hermes-env rescore --live` makes a `LiveJudge`, and the judge of `rescoring` asks it last.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.live.limits import Limits, Spending
from pytest_hermes_env.live.metering import usage_of
from pytest_hermes_env.live.providers import NO_KEY, LiveServer, choose_server

TRIES = 3
PAUSE_S = 0.5


@dataclass(frozen=True, kw_only=True)
class LiveJudge:
    """The model that answers, and what it may cost: ``directory`` has the calls of all processes. The key is in the environment alone."""

    provider: str
    model: str = ""
    base_url: str = ""
    key_name: str = ""
    limits: Limits
    directory: str

    def server(self) -> LiveServer:
        """Return the server. Raises: it is not named whole, or its key is missing → UsageError, LiveModeError; no known cost → UsageError."""
        found = choose_server(
            provider=self.provider, model=self.model, base_url=self.base_url, key_name=self.key_name, environ=os.environ
        )
        if not found.model:
            raise UsageError(f"--live: provider {self.provider} requires a model.\n  fix  --model M")
        if self.limits.usd is not None and not found.may_tell_cost:
            raise UsageError(
                f"--max-usd: the cost of a call to {self.provider} is unknown.\n  fix  use --max-calls or --max-tokens instead"
            )
        return found

    def spending(self) -> Spending:
        """Return what was spent so far."""
        return Spending(Path(self.directory, "calls.sqlite"), self.limits)

    def answer(self, method: str, request: dict[str, Any]) -> Any:
        """Return the model's answer to a request of atroposlib's. Raises: a limit is reached → BudgetSpent; openai's errors."""
        import openai  # noqa: PLC0415 - heavy

        server, spending = self.server(), self.spending()
        extra = {"usage": {"include": True}} if server.provider == "openrouter" else {}
        body = {name: value for name, value in request.items() if name not in {"args", "split", "model"}}
        with openai.OpenAI(api_key=server.key or NO_KEY, base_url=server.base_url, max_retries=0) as client:
            ask: Any = client.chat.completions.create if method == "chat_completion" else client.completions.create
            for left in range(TRIES)[::-1]:
                number, began = spending.begin("rescore"), time.monotonic()
                try:
                    found = ask(**body, model=server.model, extra_body=extra)
                except openai.APIError as error:
                    status = getattr(error, "status_code", None)
                    spending.end(number, None, seconds=time.monotonic() - began, status=str(status or type(error).__name__))
                    if not left or (status is not None and status < 500 and status not in {408, 409, 429}):  # noqa: PLR2004
                        raise
                    time.sleep(PAUSE_S)
                    continue
                answered = found.model_dump(mode="json")
                spending.end(number, usage_of(answered), seconds=time.monotonic() - began)
                return answered
        raise AssertionError("the last try returns or raises")
