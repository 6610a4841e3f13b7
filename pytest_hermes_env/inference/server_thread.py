"""Runs an ASGI app with uvicorn in a daemon thread that starts and stops within milliseconds.

uvicorn polls for shutdown every 0.1 s, waits 0.1 s more, and then waits for keep-alive connections to close. That is too slow
for one server per test, so this module replaces uvicorn's main loop and shutdown.
Source: uvicorn 0.54, ``uvicorn.server.Server``; works from 0.30.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
from typing import TYPE_CHECKING

import uvicorn

from pytest_hermes_env.errors import ServerStartError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp

    from pytest_hermes_env.faults.plan import Describe, FaultPlan

BACKLOG = 2048
MAX_PORT = 65535
GRACE_S = 2.0
KEPT_S = 3600
"""Seconds that an idle connection is kept: after uvicorn's five, one closes under a client that a busy machine has kept waiting."""


@contextlib.contextmanager
def serving(app: ASGIApp, host: str, port: int, *, faults: FaultPlan | None, describe: Describe) -> Iterator[int]:
    """Serve an app while the context lasts, with the faults of a plan, if there is one; yields the port.

    ``describe`` tells what the plan matches.
    """
    if faults is None:
        thread = ServerThread(app, host, port)
        refusals: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    else:
        from pytest_hermes_env.faults.wire import breaking, refusing  # noqa: PLC0415 - most tests have no plan

        thread = ServerThread(breaking(app, faults, describe), host, port)
        refusals = refusing(faults, thread.port, describe)
    with refusals:
        thread.start()
        try:
            yield thread.port
        finally:
            thread.stop()


class ServerThread:
    """One server on one address. The constructor binds the port; call `start` and `stop` once each.

    Raises: the address cannot be used → ServerStartError.
    """

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._socket = _listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            ws="none",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            date_header=False,
            timeout_keep_alive=KEPT_S,
            server_header=False,
        )
        self._server = _PromptServer(config)
        self._thread = threading.Thread(target=self._run, name=f"mock-model-{self.port}", daemon=True)
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Start the thread; return once it serves."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise ServerStartError(f"the mock server could not start: {self._failure!r}.") from self._failure

    def stop(self) -> None:
        """Close the listener and all connections, and wait for the thread to end."""
        self._server.stop_from_any_thread()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._server.run_until_stopped(self._socket, self._ready))
        except BaseException as exc:  # noqa: BLE001 -- start() re-raises it in the caller's thread
            self._failure = exc
        finally:
            self._socket.close()
            self._ready.set()


class _PromptServer(uvicorn.Server):
    """uvicorn's server, stopped by an event instead of polling."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()

    async def run_until_stopped(self, listener: socket.socket, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self.config.load()
        # uvicorn's own option also changes the process-wide logger, which other servers in the process use.
        quiet = {"access_log": property(lambda _self: False, lambda _self, _value: None)}
        self.config.http_protocol_class = type("Quiet", (self.config.http_protocol_class,), quiet)
        self.lifespan = self.config.lifespan_class(self.config)
        await self.startup(sockets=[listener])
        ready.set()
        await self._stop.wait()
        await self.shutdown(sockets=[listener])

    def stop_from_any_thread(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        for listener in sockets or ():
            loop.remove_reader(listener)
        # A connection that is being accepted while its server closes is never closed (CPython's Server._attach raises), so wait
        # until they are accepted. Their tasks are the only ones besides this task and the requests' tasks.
        current = {task for task in (asyncio.current_task(),) if task is not None}
        accepting = asyncio.all_tasks() - current - self.server_state.tasks
        if accepting:
            await asyncio.wait(accepting, timeout=GRACE_S)
        # A hanging request ends only when its connection closes.
        while self.server_state.connections:
            for connection in tuple(self.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)
        if self.server_state.tasks:
            await asyncio.wait(tuple(self.server_state.tasks), timeout=GRACE_S)
        for server in self.servers:
            server.close()


def _listen(host: str, port: int) -> socket.socket:
    if not isinstance(port, int) or not 0 <= port <= MAX_PORT:
        raise ServerStartError(f"the mock server cannot listen on port {port!r}: a port is an integer from 0 to 65535.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol left out, as in socket.create_server, asyncio does not set TCP_NODELAY on accepted connections,
    # and every answer waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, UnicodeError) as exc:
        listener.close()
        code, reason = (exc.errno or 0, exc.strerror) if isinstance(exc, OSError) else (0, str(exc))
        fixes = {
            errno.EADDRINUSE: "stop the process that listens there, or use port 0 to pick a free port",
            errno.EACCES: f"use a port from 1024 to {MAX_PORT}, or port 0 to pick a free one",
        }
        fix = fixes.get(code, "use an address of this machine: 127.0.0.1 for this machine alone, 0.0.0.0 for all its networks")
        raise ServerStartError(f"the mock server cannot listen on {host}:{port}: {reason}.\n  fix       {fix}") from exc
    return listener
