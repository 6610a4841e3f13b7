"""A trainer double: registers at run-api, pulls a batch per step, and checks that it can be trained on.

Place in the flow: the last of the four processes of a training run; ``serve`` of an environment fills the other side of run-api.
``python -m pytest_hermes_env.atropos.trainer --help`` shows how to run it by hand.

Source: atroposlib 0.4.0, ``api/server.py``: an environment can only register after a trainer has registered and asked for a batch.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import sys
import time
import urllib.parse
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_hermes_env.atropos.batch import Row, check_batch
from pytest_hermes_env.errors import BadBatch, HermesEnvError, NoBatch, UsageError, shorten
from pytest_hermes_env.faults.wire import port_or_refusal
from pytest_hermes_env.redaction.shown_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_hermes_env.faults.plan import FaultPlan
    from pytest_hermes_env.types import JsonObject, JsonValue

OK, BROKEN = 0, 1
POLL_S = 0.1
REQUEST_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Step:
    """One training step: its number from 1, the batch as received, and its sequences."""

    number: int
    batch: list[JsonValue]
    rows: tuple[Row, ...]


class Trainer:
    """Checks batches without training on them.

    ``batch_size`` counts sequences; it must be a multiple of the environment's group_size. The environment drops groups with a
    sequence of ``max_token_len`` tokens or more. ``timeout_s`` limits the wait for run-api and for each batch.
    ``allow_placeholders`` accepts the tokens of chat mode; see `check_batch`. ``faults``: a `FaultPlan` that may refuse its
    connections; all other faults of the trainer are played by ``RunApiThread(faults=plan)``.
    Raises: an address without http:// → UsageError.
    """

    def __init__(
        self,
        url: str,
        *,
        steps: int = 3,
        batch_size: int = 2,
        max_token_len: int = 32768,
        allow_placeholders: bool = False,
        timeout_s: float = 120.0,
        faults: FaultPlan | None = None,
    ) -> None:
        if not url.startswith("http://"):
            raise UsageError(f"the address of run-api must begin with http://, seen {shorten(repr(url))}")
        self.url = url.rstrip("/")
        self.steps = steps
        self.batch_size = batch_size
        self.max_token_len = max_token_len
        self.allow_placeholders = allow_placeholders
        self.timeout_s = timeout_s
        self._faults = faults
        self._early: list[JsonValue] | None = None

    def register(self) -> None:
        """Register, and request a batch once, which lets environments register. Waits for a run-api that is still starting.

        Raises: nothing answers → NoBatch.
        """
        end = time.monotonic() + self.timeout_s
        while True:
            try:
                self._introduce()
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise NoBatch(
                        f"no run-api answers at {self.url}: {error.strerror or error}, for {self.timeout_s:g} s.\n"
                        f"  fix       start it: run-api --host 127.0.0.1 --port {urllib.parse.urlsplit(self.url).port}"
                    ) from error
                time.sleep(POLL_S)
        self._early = self._batch()

    def train(self) -> Iterator[Step]:
        """Register, then yield each step as soon as its batch has arrived and passed the checks.

        Raises: no batch in time → NoBatch; a batch that cannot be trained on → BadBatch.
        """
        self.register()
        for number in range(1, self.steps + 1):
            yield self.step_of(number, self.pull(number))

    def pull(self, number: int = 1) -> list[JsonValue]:
        """Return the batch of step ``number`` when it has arrived.

        Raises: no batch in time → NoBatch.
        """
        end = time.monotonic() + self.timeout_s
        while (batch := self.poll()) is None:
            if time.monotonic() > end:
                raise self.no_batch(number)
            time.sleep(POLL_S)
        return batch

    def poll(self) -> list[JsonValue] | None:
        """Return the next batch if it has arrived."""
        batch, self._early = self._early, None
        return self._batch() if batch is None else batch

    def step_of(self, number: int, batch: list[JsonValue]) -> Step:
        """Return a batch as a step. Raises: it cannot be trained on → BadBatch."""
        try:
            rows = check_batch(
                batch,
                batch_size=self.batch_size,
                max_token_len=self.max_token_len,
                allow_placeholders=self.allow_placeholders,
            )
        except BadBatch as error:
            raise BadBatch(f"step {number} of {self.steps}: {error}") from error
        return Step(number=number, batch=batch, rows=rows)

    def no_batch(self, number: int) -> NoBatch:
        """Return the error of a step whose batch did not come in time."""
        return NoBatch(
            f"no batch came within {self.timeout_s:g} s, for step {number} of {self.steps} at {self.url}.\n"
            f"  expected  groups of an environment that add up to {self.batch_size} sequences\n"
            f"  seen      {json.dumps(self._ask('/status'))}\n"
            "  fix       read what `serve` printed: it drops groups whose scores are all the same "
            f"(--env.ensure_scores_are_not_same false), and groups with a sequence of {self.max_token_len} tokens or more"
        )

    def _introduce(self) -> None:
        registration: JsonObject = {
            "wandb_group": "trainer-double",
            "wandb_project": "trainer-double",
            "batch_size": self.batch_size,
            "max_token_len": self.max_token_len,
            "checkpoint_dir": "",
            "save_checkpoint_interval": -1,
            "starting_step": 0,
            "num_steps": self.steps,
        }
        self._request("POST", "/register", registration)

    def _batch(self) -> list[JsonValue] | None:
        """Return a batch if there is one; register again at a run-api that was restarted."""
        answer = self._ask("/batch")
        if isinstance(answer, dict) and answer.get("status") == "error":
            self._introduce()
            answer = self._ask("/batch")
        batch = answer.get("batch") if isinstance(answer, dict) else None
        return batch if isinstance(batch, list) else None

    def _ask(self, path: str) -> JsonValue:
        try:
            return self._request("GET", path)
        except (OSError, http.client.HTTPException) as error:
            raise NoBatch(f"run-api no longer answers at {self.url}: {error}") from error

    def _request(self, method: str, path: str, body: JsonObject | None = None) -> JsonValue:
        where = urllib.parse.urlsplit(self.url)
        data = None if body is None else json.dumps(body)
        with (
            port_or_refusal(self._faults, "trainer", f"{method} {path}", where.port) as port,
            contextlib.closing(http.client.HTTPConnection(where.hostname or "", port, timeout=REQUEST_S)) as connection,
        ):
            connection.request(method, f"{where.path}{path}", data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        try:
            answer = cast("JsonValue", json.loads(text))
        except ValueError:
            answer = None
        if response.status != HTTPStatus.OK or answer is None:
            raise NoBatch(
                f"{method} {self.url}{path} was answered with {response.status}: {shorten(text)}\n"
                "  expected  JSON of run-api, with status 200\n"
                "  fix       look at what listens there, and at what run-api printed"
            )
        return answer


def main(argv: Sequence[str] | None = None) -> int:
    """Pull batches and print a line per step; return 0, or 1 when a batch is missing or bad."""
    parser = argparse.ArgumentParser(prog="python -m pytest_hermes_env.atropos.trainer", description=(main.__doc__ or ""))
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="root of run-api (default: http://127.0.0.1:8000)")
    parser.add_argument("--steps", type=int, default=3, help="batches to pull (default: 3)")
    parser.add_argument("--batch-size", type=int, default=8, metavar="N", help="sequences in a batch (default: 8)")
    parser.add_argument("--max-token-len", type=int, default=32768, metavar="N", help="longest sequence + 1 (default: 32768)")
    parser.add_argument(
        "--placeholders", action="store_true", help="accept the tokens of chat mode, which are not for training"
    )
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="seconds to wait for a batch (default: 120)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write each batch to this file, one JSON line per step")
    args = parser.parse_args(argv)
    try:
        trainer = Trainer(
            args.url,
            steps=args.steps,
            batch_size=args.batch_size,
            max_token_len=args.max_token_len,
            allow_placeholders=args.placeholders,
            timeout_s=args.timeout,
        )
        for step in trainer.train():
            if args.save is not None:
                with args.save.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(step.batch) + "\n")
            print(_line(step, trainer.steps), flush=True)  # noqa: T201 - the output of a command
    except HermesEnvError as error:
        sys.stderr.write(shown(f"{type(error).__name__}: {error}\n"))
        return BROKEN
    return OK


def _line(step: Step, steps: int) -> str:
    tokens = sum(len(row.tokens) for row in step.rows)
    trained = sum(row.trained for row in step.rows)
    scores = sorted(row.score for row in step.rows)
    kind = " (placeholders)" if any(row.has_placeholders for row in step.rows) else ""
    return (
        f"step {step.number} of {steps}: {len(step.rows)} sequences in {len(step.batch)} groups, {tokens} tokens, "
        f"{trained} of them trained{kind}, scores {scores[0]:g} to {scores[-1]:g}"
    )


if __name__ == "__main__":
    sys.exit(main())
