"""Runs the real app of Atropos' ``run-api`` in a thread of this process, empty at each start.

Place in the flow: between ``serve`` of an environment, in this process or another one, and `pytest_hermes_env.atropos.trainer`.

Source: atroposlib 0.4.0, ``api/server.py``: one app per process, whose ``state`` holds the queue and the environments.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from pytest_hermes_env.inference.server_thread import serving
from pytest_hermes_env.patches import replace

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_hermes_env.faults.plan import FaultPlan

HOST = "127.0.0.1"
OF_THE_TRAINER = frozenset({"/register", "/batch"})
"""The paths that only a trainer requests."""


def _described(path: str, body: bytes) -> tuple[str, str]:
    return "trainer" if path in OF_THE_TRAINER else "run_api", body.decode(errors="replace")


class RunApiThread:
    """The app on a free port of loopback. One at a time in a process: they would share their state.

    ``faults`` is a `FaultPlan`, whose faults of run-api and of the trainer's requests are played on the connections.
    """

    def __init__(self, *, faults: FaultPlan | None = None) -> None:
        self._faults = faults
        self._port = 0
        self._running = ExitStack()

    def start(self) -> Self:
        """Start with an empty state; on the same port as before, if it ran before."""
        from atroposlib.api.server import app  # noqa: PLC0415 - heavy
        from starlette.datastructures import State  # noqa: PLC0415 - heavy

        self._running.enter_context(replace("atroposlib.api.server.app.state", State()))
        self._port = self._running.enter_context(serving(app, HOST, self._port, faults=self._faults, describe=_described))
        return self

    def stop(self) -> None:
        """Close the port; what was not pulled is lost, as when the process ends."""
        self._running.close()

    def restart(self) -> None:
        """Stop, and start again with an empty state: nobody is registered, nothing is queued."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The root of the API, without a trailing slash; the same after a restart."""
        return f"http://{HOST}:{self._port}"

    @property
    def envs(self) -> list[dict[str, Any]]:
        """The registered environments: ``real_name``, ``weight``, ``group_size``, ``registered_id`` and more."""
        return list(self._state("envs"))

    @property
    def queue(self) -> list[dict[str, Any]]:
        """The groups that were received and that no trainer has pulled, oldest first."""
        return [group for batch in self._state("curr_batch") for group in batch] + list(self._state("queue"))

    def _state(self, name: str) -> Any:
        from atroposlib.api.server import app  # noqa: PLC0415 - heavy

        return getattr(app.state, name, ())
