"""The real inference server of a run: presets of known providers, and the user's choice.

Place in the flow: the plugin reads the settings from flags, environment variables and the ini file, `choose_server` turns them into
a `LiveServer`, `preflight` checks that it answers, and ``make_env`` builds environments on its `config`.
"""

from __future__ import annotations

import difflib
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from pytest_hermes_env.errors import LiveModeError, UsageError, shorten
from pytest_hermes_env.redaction.shown_text import environment_redactor, shown

if TYPE_CHECKING:
    from atroposlib.envs.server_handling.server_baseline import APIServerConfig

SHORTEST_KEY = 20
NAME_OF_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NO_KEY = "not-needed"
"""The key for servers that need none: the openai client rejects an empty one."""


@dataclass(frozen=True, kw_only=True)
class LiveServer:
    """A real inference server. ``key_name`` is the variable with its key; no text shows the key.

    ``is_checked`` tells whether ``/health`` is requested once before any test, ``lists_its_model`` whether the server has one model
    and lists it, so that the user need not name it, ``may_tell_cost`` whether its answers may report their cost.
    """

    provider: str
    base_url: str = ""
    model: str = ""
    server_type: str = "openai"
    key_name: str = ""
    key: str = field(default="", repr=False, compare=False)
    tokenizer: str = ""
    is_checked: bool = False
    lists_its_model: bool = False
    may_tell_cost: bool = False
    token_path: str = ""
    """Where the server is asked for tokens, once that is known."""

    @property
    def host(self) -> str:
        """The host, without a port."""
        return urlsplit(self.base_url).hostname or ""

    def hosts(self) -> set[str]:
        """Return the hosts that a request to this server connects to: its own, and its proxy's."""
        return {host for host in (self.host, urlsplit(self.proxy or "").hostname) if host}

    @property
    def proxy(self) -> str | None:
        """The proxy from the environment; httpx looks it up only for clients without a transport."""
        if urllib.request.proxy_bypass(self.host):
            return None
        proxies = urllib.request.getproxies()
        return proxies.get(urlsplit(self.base_url).scheme) or proxies.get("all")

    @property
    def root(self) -> str:
        """The URL below which ``/health`` and ``/generate`` are: the base URL without ``/v1``."""
        return self.base_url.removesuffix("/v1")

    def config(self) -> APIServerConfig:
        """Return the configuration of atroposlib's client.

        Its health check is off even if ``/health`` was checked before the tests: atroposlib repeats it every second, for a server
        of type openai with a chat completion, which costs money.
        """
        from atroposlib.envs.server_handling.server_baseline import APIServerConfig  # noqa: PLC0415 - heavy
        from pydantic import Field  # noqa: PLC0415

        class LiveServerConfig(APIServerConfig):  # type: ignore[misc]
            """Hides the key, which its base shows in every traceback."""

            api_key: str | None = Field(default="", repr=False)
            token_path: str = ""

        return LiveServerConfig(
            base_url=self.base_url,
            model_name=self.model,
            api_key=self.key or NO_KEY,
            server_type=self.server_type,
            tokenizer_name=self.tokenizer or "none",
            health_check=False,
            token_path=self.token_path,
        )

    def without_key(self, text: str) -> str:
        """Return a text without the key."""
        return environment_redactor({self.key_name: self.key}).text(text)

    def short(self) -> str:
        """Return the model and its host."""
        return shown(f"{self.model or 'the model'} at {self.host}")

    def describe(self) -> str:
        """Return a short description."""
        return shown(f"{self.model or 'its model'} at {self.base_url} ({self.provider})")


LOCAL = "http://localhost:8000/v1"
PRESETS: Mapping[str, LiveServer] = {
    preset.provider: preset
    for preset in (
        LiveServer(
            provider="openrouter", base_url="https://openrouter.ai/api/v1", key_name="OPENROUTER_API_KEY", may_tell_cost=True
        ),
        LiveServer(provider="openai", base_url="https://api.openai.com/v1", key_name="OPENAI_API_KEY"),
        LiveServer(provider="vllm", server_type="vllm", base_url=LOCAL, is_checked=True, lists_its_model=True),
        LiveServer(provider="sglang", server_type="sglang", base_url=LOCAL, is_checked=True, lists_its_model=True),
        LiveServer(provider="atropos", base_url=LOCAL, lists_its_model=True),
        LiveServer(provider="custom", may_tell_cost=True),
    )
}

SETUPS = """\
  OpenRouter              --provider openrouter --hermes-model anthropic/claude-sonnet-4.5     key in OPENROUTER_API_KEY
  self-hosted vLLM        --provider vllm [--hermes-base-url http://localhost:8000/v1]         no key (sglang: the same)
  another OpenAI-         --provider custom --hermes-base-url https://host/v1 --hermes-model M [--hermes-api-key-env NAME]
    compatible API          (OpenAI itself: --provider openai --hermes-model M, key in OPENAI_API_KEY)
  local Atropos server    --provider atropos [--hermes-base-url http://localhost:8000/v1]      no key"""


def choose_server(
    *,
    provider: str = "",
    model: str = "",
    base_url: str = "",
    key_name: str = "",
    tokenizer: str = "",
    environ: Mapping[str, str],
) -> LiveServer:
    """Return the chosen server. An empty setting means the preset's. The key is read from ``environ``.

    Raises: no provider or an unknown one, a missing model or base URL, an invalid base URL → UsageError. The variable with the
    key is not set → LiveModeError.
    """
    preset = _preset(provider)
    url = _checked_url(base_url or preset.base_url, provider)
    if not model and not preset.lists_its_model:
        raise UsageError(_incomplete(f"provider {provider} requires a model", "--hermes-model M"))
    key_name = key_name or preset.key_name
    if key_name and key_name not in environ and _looks_like_a_key(key_name):
        raise UsageError(
            f"--hermes-api-key-env must be the name of an environment variable, not a value of {len(key_name)} characters.\n"
            "  expected  letters, digits and _, such as OPENROUTER_API_KEY; never the key itself, which reports would show\n"
            "  fix       export MY_KEY=..., and --hermes-api-key-env MY_KEY; a key typed here is in the shell's history"
        )
    key = environ.get(key_name, "").strip() if key_name else ""
    if key_name and not key:
        raise LiveModeError(
            f"the key for {provider} is missing: the environment variable {key_name} is {_state(environ, key_name)}.\n"
            f"  expected  a key for {url}\n"
            f"  fix       export {key_name}=..., or name the variable that holds it: --hermes-api-key-env NAME"
        )
    return replace(preset, base_url=url, model=model, key_name=key_name, key=key, tokenizer=tokenizer)


def _preset(provider: str) -> LiveServer:
    if not provider:
        raise UsageError(_incomplete("no provider was chosen", "--provider and what it needs"))
    if provider not in PRESETS:
        nearest = difflib.get_close_matches(provider, PRESETS, n=1)
        hint = f" Nearest: {nearest[0]}." if nearest else ""
        raise UsageError(_incomplete(f"there is no provider {shorten(repr(provider))}.{hint}", f"one of {', '.join(PRESETS)}"))
    return PRESETS[provider]


def _checked_url(url: str, provider: str) -> str:
    if not url:
        raise UsageError(_incomplete(f"provider {provider} requires a base URL", "--hermes-base-url URL"))
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"--hermes-live: {shorten(repr(url))} is not a base URL.\n"
            "  expected  http:// or https://, a host, and the path that contains /chat/completions, usually /v1"
        )
    if parts.username or parts.password or parts.query:
        bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        raise UsageError(
            f"--hermes-live: the base URL of {parts.hostname} contains a user, a password or a query, which reports would show.\n"
            f"  expected  {bare}\n"
            "  fix       put the key into an environment variable and name the variable: --hermes-api-key-env NAME"
        )
    return url.rstrip("/").removesuffix("/chat/completions")


def _looks_like_a_key(text: str) -> bool:
    is_mixed = any(letter.islower() for letter in text) and any(letter.isdigit() for letter in text)
    return not NAME_OF_VARIABLE.fullmatch(text) or (is_mixed and len(text) >= SHORTEST_KEY)


def _state(environ: Mapping[str, str], name: str) -> str:
    return "empty" if name in environ else "not set"


def _incomplete(happened: str, expected: str) -> str:
    return (
        f"--hermes-live: {happened.rstrip('.')}.\n"
        f"  expected  {expected}; there is no default, since calls cost money\n"
        "  fix       use one of these setups:\n\n"
        f"{SETUPS}\n\n"
        "            The ini values hermes_live_provider, hermes_live_model, ... and the variables HERMES_ENV_PROVIDER,\n"
        "            HERMES_ENV_MODEL, ... do the same; flags win, then variables."
    )
