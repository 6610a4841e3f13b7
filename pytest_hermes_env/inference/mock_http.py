"""HTTP doubles for clients that an environment builds itself: judges, search APIs. respx matches and answers, this module verifies.

Place in the flow: the fixture mock_http enters `mocking_http`. Requests of httpx (also those of the openai client) reach the router
where they leave for the network, above cassettes; transports that never do, such as `InProcessTransport`, are not touched.
"""

from __future__ import annotations

import contextlib
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import respx
from respx.models import AllMockedAssertionError, PassThrough

from pytest_hermes_env.errors import HermesEnvError, LeftoverRoutes, UnexpectedRequest, shorten
from pytest_hermes_env.patches import intercept

UNANSWERED = (AllMockedAssertionError, PassThrough, RuntimeError, StopIteration)
"""How respx ends without a response. A RuntimeError is that of a coroutine in which a list of responses ended."""
URL_PARTS = ("method", "scheme", "host", "port", "path")


class MockHttp(respx.MockRouter):
    """A respx router that fails twice: where an unexpected request is sent, and in `verify`, since environments swallow exceptions.

    ``passes`` tells whether a request that no route matches goes on: to this machine, to a host that the test allows, to a cassette.
    """

    def __init__(self, *, passes: Callable[[httpx.Request], bool], allow_leftovers: bool = False) -> None:
        super().__init__(assert_all_called=False, using=None)
        self.passes = passes
        self._allow_leftovers = allow_leftovers
        self._unexpected: Counter[str] = Counter()

    def verify(self) -> None:
        """Raise what went wrong. Raises: an unexpected request → UnexpectedRequest; a route without one → LeftoverRoutes."""
        if self._unexpected:
            times = "\n  seen      {} times, retries included"
            texts = [text + (times.format(count) if count > 1 else "") for text, count in self._unexpected.items()]
            raise UnexpectedRequest("\n\n".join(texts))
        uncalled = [route for route in self.routes if not route.called]
        if uncalled and not self._allow_leftovers:
            raise LeftoverRoutes(
                f"{len(uncalled)} of {len(self.routes)} routes of mock_http got no request.\n"
                "  expected  at least one request for each route\n"
                f"  seen      none for {_listed(uncalled)}\n"
                "  fix       send the request, remove the route, or accept it: @pytest.mark.hermes_allow_leftovers"
            )

    def unexpected(self, request: httpx.Request, cause: Exception) -> HermesEnvError:
        """Remember a request that cannot be answered, and return its error."""
        # without the values of the query, one of which may be a key
        names = [f"{urllib.parse.quote(name)}=***" for name, _ in request.url.params.multi_items()]
        query = f"?{'&'.join(names)}" if names else ""
        url, body = request.url.copy_with(query=None), request.content.decode("utf-8", "replace")
        happened = "no route of mock_http matches a request"
        fix = f'add the route: mock_http.{request.method.lower()}("{url}").respond(json=...)'
        if not isinstance(cause, AllMockedAssertionError):
            happened = "a route of mock_http has no response left for a request"
            fix = "add a response to the list that is its side_effect"
        text = (
            f"{happened}.\n"
            f"  expected  {_listed(self.routes) or 'no request: mock_http has no routes'}\n"
            f"  seen      {shorten(f'{request.method} {url}{query} {body}'.rstrip())}\n"
            f"  fix       {fix}"
        )
        self._unexpected[text] += 1
        return UnexpectedRequest(text)


@contextlib.contextmanager
def mocking_http(router: MockHttp) -> Iterator[None]:
    """Let the router answer the requests of all httpx clients, also of those that exist already, while the context lasts."""

    async def handle_async_request(real: Any, transport: Any, request: httpx.Request) -> Any:
        await request.aread()
        try:
            return await router.async_handler(request)
        except UNANSWERED as error:
            if not _leaves(router, request, error):
                raise router.unexpected(request, error) from None
        return await real(transport, request)

    def handle_request(real: Any, transport: Any, request: httpx.Request) -> Any:
        request.read()
        try:
            return router.handler(request)
        except UNANSWERED as error:
            if not _leaves(router, request, error):
                raise router.unexpected(request, error) from None
        return real(transport, request)

    with (
        intercept("httpx.AsyncHTTPTransport.handle_async_request", handle_async_request),
        intercept("httpx.HTTPTransport.handle_request", handle_request),
    ):
        yield


def _leaves(router: MockHttp, request: httpx.Request, error: Exception) -> bool:
    """Tell whether a request goes on to its real server. Raises: the error of a route's side effect."""
    if isinstance(error, PassThrough):
        return True
    if isinstance(error, AllMockedAssertionError):
        return router.passes(request)
    if isinstance(error, StopIteration) or isinstance(error.__cause__, StopIteration):
        return False
    raise error


def _listed(routes: Any) -> str:
    return "\n            ".join(_described(route) for route in routes)


def _described(route: respx.Route) -> str:
    """Return a route as ``POST https://judge.example/v1/chat/completions``, with its further patterns."""
    patterns = list(route.pattern)
    parts = {each.key: each.value for each in patterns if getattr(each, "key", "") in URL_PARTS and each.lookup.value == "eq"}
    if "host" not in parts:
        return repr(route.pattern)
    port = f":{parts['port']}" if "port" in parts and f"{parts['port']}" not in {"80", "443"} else ""
    url = f"{parts.get('scheme', 'http(s)')}://{parts['host']}{port}{parts.get('path', '')}"
    others = [repr(each) for each in patterns if getattr(each, "key", "") not in parts]
    return " ".join([str(parts.get("method", "any method")), url, *others])
