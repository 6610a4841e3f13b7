"""`MockServer`: serves a mock model over real HTTP on loopback, in its own thread."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Self

from pytest_hermes_env.errors import ServerStartError, UsageError
from pytest_hermes_env.inference.conversation import JOURNAL_LIMIT
from pytest_hermes_env.inference.model import MockModel
from pytest_hermes_env.inference.script import Judge, ScriptChoice, ScriptLike, as_judge, as_scripts
from pytest_hermes_env.inference.token_engines import ENGINES, MODES, VLLM_VERSION, Engine, LogprobsMode

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pytest_hermes_env.faults.plan import FaultPlan
    from pytest_hermes_env.inference.conversation import Exchange
    from pytest_hermes_env.inference.model import Reply
    from pytest_hermes_env.inference.transport import InProcessTransport


class MockServer:
    """A mock model at `base_url`, for any client of OpenAI's API.

    ``script``: a list of turns, a `Script`, a function of the conversation, or several scripts and functions.
    ``judge``: the answer to requests that offer no tools, for scripts without a judge.
    ``template``, ``tokenizer``, ``family``: any of them enables token mode: the name of a chat template (see
    `pytest_hermes_env.inference.templates.TEMPLATES`), a directory with a tokenizer.json, and the name of the tool-call format
    (default: the template's).
    ``port``: 0 picks a free port.
    ``allow_leftovers``: whether `verify` accepts turns that were not requested; can be set later.
    ``on_exchange``: called with each answered `Exchange`, in the server's thread.
    ``journal_limit``: how many exchanges the journal keeps, the latest ones; None keeps all.
    ``faults``: a `FaultPlan`, whose faults of the model are played on the connections.
    ``engine``: the server that it is like in token mode: "vllm" (`vllm serve`), "sglang", "atropos", or "any" of them.
    ``logprobs_mode``: "raw_logprobs" or "processed_logprobs"; the default is the engine's: raw, but processed for SGLang.
    ``version``: that of vLLM, such as "0.31.0", which the answers of ``/inference/v1/generate`` and the missing endpoints are of.

    Use it as a context manager, or with `start` and `stop`. Leaving the context stops the server and does not verify.
    """

    def __init__(
        self,
        script: ScriptLike | None = None,
        *,
        judge: Judge | None = None,
        model: str = "mock-model",
        template: str | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        family: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        allow_leftovers: bool = False,
        on_exchange: Callable[[Exchange], None] | None = None,
        journal_limit: int | None = JOURNAL_LIMIT,
        faults: FaultPlan | None = None,
        engine: Engine = "any",
        logprobs_mode: LogprobsMode | None = None,
        version: str = VLLM_VERSION,
    ) -> None:
        scripts = ScriptChoice(as_scripts(script), as_judge(judge))
        for name, value, known in (("engine", engine, ENGINES), ("logprobs_mode", logprobs_mode, (None, *MODES))):
            if value not in known:
                raise UsageError(f"MockServer has no {name} {value!r}.\n  expected  one of {', '.join(map(str, known))}")
        if not re.fullmatch(r"\d+(\.\d+)*", version):
            raise UsageError(f"MockServer has no version {version!r}.\n  expected  numbers, such as {VLLM_VERSION}")
        self._model = MockModel(
            scripts,
            name=model,
            on_exchange=on_exchange,
            journal_limit=journal_limit,
            engine=engine,
            logprobs_mode=logprobs_mode,
            version=version,
        )
        if (template, tokenizer, family) != (None, None, None):
            self.speak_tokens(template=template, tokenizer=tokenizer, family=family)
        self._address = (host, port)
        self._faults = faults
        self._running = contextlib.ExitStack()
        self._is_running = False
        self._port: int | None = None
        self.allow_leftovers = allow_leftovers

    def start(self) -> Self:
        """Start listening; return once requests are served. Does nothing if already started.

        Raises: the address cannot be used → ServerStartError.
        """
        if not self._is_running:
            from pytest_hermes_env.inference.server_thread import serving  # noqa: PLC0415 -- uvicorn takes 60 ms
            from pytest_hermes_env.inference.transport import build_app  # noqa: PLC0415 -- httpx takes 100 ms

            served = serving(build_app(self._model), *self._address, faults=self._faults, describe=self._model.described)
            self._port = self._running.enter_context(served)
            self._is_running = True
        return self

    def stop(self) -> None:
        """Close all connections, including those whose answer hangs, and end the thread. Does nothing if not started."""
        self._is_running = False
        self._running.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def model(self) -> str:
        """The name of the served model."""
        return self._model.name

    @property
    def template(self) -> str | None:
        """The name of the chat template in token mode; None if the server only supports chat mode."""
        return None if self._model.tokens is None else self._model.tokens.sampler.template.name

    @property
    def port(self) -> int:
        """The port; still known after `stop`.

        Raises: never started → ServerStartError.
        """
        if self._port is None:
            raise ServerStartError(
                "the mock server has no port yet, because it was not started.\n"
                "  fix       use `with MockServer(...) as server:`, or call server.start()"
            )
        return self._port

    @property
    def url(self) -> str:
        """The root URL of the server, without a trailing slash."""
        host = self._address[0]
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def base_url(self) -> str:
        """The ``base_url`` for clients: the root URL and ``/v1``."""
        return f"{self.url}/v1"

    @property
    def transport(self) -> InProcessTransport:
        """An httpx transport to the same model without a socket: ``httpx.AsyncClient(transport=...)``.

        It works whether or not the server is started. Pass `pytest_hermes_env.inference.transport.IN_PROCESS_URL` as
        ``base_url``. Raises: the server has a fault plan → UsageError.
        """
        if self._faults is not None:
            raise UsageError(
                "a model without a connection cannot play the faults of a plan.\n"
                "  fix       leave out in_process=True, or the fault plan"
            )
        from pytest_hermes_env.inference.transport import InProcessTransport  # noqa: PLC0415 -- httpx takes 100 ms

        return InProcessTransport(self._model)

    def respond(self, method: str, path: str, data: bytes, headers: Mapping[str, str]) -> Reply:
        """Return the model's answer to a request that did not come over a connection of this server."""
        reply = self._model.respond(method, path, data, headers)
        self._model.delivered(reply)
        return reply

    def is_at(self, address: str) -> bool:
        """Return whether ``host:port`` is this server's."""
        return self._port is not None and address == self.url.partition("//")[2]

    @property
    def journal(self) -> tuple[Exchange, ...]:
        """The latest requests and answers, up to ``journal_limit``, in the order in which the requests arrived."""
        return self._model.log.kept()

    @property
    def request_count(self) -> int:
        """How many requests arrived, also those that the journal no longer has."""
        return self._model.log.count

    @property
    def problem_count(self) -> int:
        """How many requests were refused, or not covered by a script."""
        return len(self._model.problems())

    def add(self, *scripts: ScriptLike) -> Self:
        """Append scripts; earlier ones are tried first. May be called while the server runs."""
        for script in scripts:
            self._model.scripts.add(as_scripts(script))
        return self

    def speak_tokens(
        self,
        *,
        template: str | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        family: str | None = None,
    ) -> Self:
        """Enable token mode, like the constructor arguments of the same names. Default: the tiny tokenizer with ChatML.

        Raises: an unknown template or family, no such tokenizer, or one that no template fits → UsageError.
        """
        from pytest_hermes_env.inference.sampled_turn import load_sampler  # noqa: PLC0415 -- tokenizers takes 30 ms
        from pytest_hermes_env.inference.token_mode import TokenMode  # noqa: PLC0415 -- chat mode needs no tokenizer

        self._model.tokens = TokenMode(load_sampler(template=template, tokenizer=tokenizer, family=family))
        return self

    def reset(self) -> None:
        """Clear the journal, conversations and problems, and keep the scripts: for a server shared by several tests."""
        self._model.reset()

    def verify(self) -> None:
        """Check that a script covered every request and that every turn was requested.

        Raises: one error that lists all problems, of the class of the first: UnexpectedRequest, ScriptError, or
        LeftoverTurns (unless ``allow_leftovers`` is set).
        """
        self._model.verify(allow_leftovers=self.allow_leftovers)
