"""Which real inference server a run asks: the presets of the known set-ups, and what the user chose of them.

Place in the flow: the plugin gathers the settings from flags, environment variables and the ini file, `choose_server` turns them
into a `LiveServer`, `preflight` asks that one whether it is there, and ``make_env`` builds environments on its `config`.
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

if TYPE_CHECKING:
    from atroposlib.envs.server_handling.server_baseline import APIServerConfig

__all__ = ["PRESETS", "SET_UPS", "LiveServer", "Preset", "choose_server"]

HIDDEN = "[key]"
SHORTEST_SECRET = 6
"""What is shorter, such as the `x` that stands for no key, is no secret, and would be found in every other word."""
SHORTEST_KEY = 20
NAME_OF_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NO_KEY = "not-needed"
"""What stands for a key where none is needed: the openai client refuses an empty one."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What a provider's name stands for. ``base_url`` and ``key_name`` are empty where only the user can know them.

    ``is_checked`` tells whether ``/health`` is asked, once, before any test. ``lists_its_model`` whether the server has one model
    and tells its name, so that none need be given. ``may_tell_cost`` whether its answers may say what they cost.
    """

    name: str
    server_type: str = "openai"
    base_url: str = ""
    key_name: str = ""
    is_checked: bool = False
    lists_its_model: bool = False
    may_tell_cost: bool = False


LOCAL = "http://localhost:8000/v1"
PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(name="openrouter", base_url="https://openrouter.ai/api/v1", key_name="OPENROUTER_API_KEY", may_tell_cost=True),
        Preset(name="openai", base_url="https://api.openai.com/v1", key_name="OPENAI_API_KEY"),
        Preset(name="vllm", server_type="vllm", base_url=LOCAL, is_checked=True, lists_its_model=True),
        Preset(name="sglang", server_type="sglang", base_url=LOCAL, is_checked=True, lists_its_model=True),
        Preset(name="atropos", base_url=LOCAL, lists_its_model=True),
        Preset(name="custom", may_tell_cost=True),
    )
}

SET_UPS = """\
  OpenRouter              --provider openrouter --hermes-model anthropic/claude-sonnet-4.5     key in OPENROUTER_API_KEY
  self-hosted vLLM        --provider vllm [--hermes-base-url http://localhost:8000/v1]         no key (sglang: the same)
  another OpenAI-         --provider custom --hermes-base-url https://host/v1 --hermes-model M [--hermes-api-key-env NAME]
    compatible API          (OpenAI itself: --provider openai --hermes-model M, key in OPENAI_API_KEY)
  local Atropos server    --provider atropos [--hermes-base-url http://localhost:8000/v1]      no key"""


@dataclass(frozen=True, kw_only=True)
class LiveServer:
    """A real inference server, as the user chose it. ``key_name`` is the variable that holds its key; the key is in no text of it."""

    provider: str
    base_url: str
    model: str
    server_type: str = "openai"
    key_name: str = ""
    key: str = field(default="", repr=False, compare=False)
    tokenizer: str = ""
    is_checked: bool = False
    lists_its_model: bool = False
    may_tell_cost: bool = False

    @property
    def host(self) -> str:
        """The host, without a port."""
        return urlsplit(self.base_url).hostname or ""

    def hosts(self) -> set[str]:
        """Return the hosts that asking this server reaches: its own, and that of the proxy before it."""
        proxy = urllib.request.getproxies()
        through = {urlsplit(proxy[kind]).hostname or "" for kind in (urlsplit(self.base_url).scheme, "all") if kind in proxy}
        return {host for host in (self.host, *through) if host}

    @property
    def root(self) -> str:
        """The URL below which ``/health`` and ``/generate`` are: the base URL without ``/v1``."""
        return self.base_url.removesuffix("/v1")

    def config(self) -> APIServerConfig:
        """Return what atroposlib builds its client from.

        Its health check is off, also where ``/health`` was asked before the tests: atroposlib repeats it every second, and for a
        server of type openai each time with a chat completion that costs money.
        """
        from atroposlib.envs.server_handling.server_baseline import APIServerConfig  # noqa: PLC0415 - heavy
        from pydantic import Field  # noqa: PLC0415

        class LiveServerConfig(APIServerConfig):  # type: ignore[misc]
            """Like its base, whose repr shows the key in every traceback that it stands in."""

            api_key: str | None = Field(default="", repr=False)

        return LiveServerConfig(
            base_url=self.base_url,
            model_name=self.model,
            api_key=self.key or NO_KEY,
            server_type=self.server_type,
            tokenizer_name=self.tokenizer or "none",
            health_check=False,
        )

    def without_key(self, text: str) -> str:
        """Return a text without the key."""
        return text.replace(self.key, HIDDEN) if len(self.key) >= SHORTEST_SECRET else text

    def named(self, model: str) -> LiveServer:
        """Return this server with that model."""
        return replace(self, model=model)

    def describe(self) -> str:
        """Return the choice as part of a line."""
        return f"{self.model or 'its model'} at {self.base_url} ({self.provider})"


def choose_server(
    *,
    provider: str = "",
    model: str = "",
    base_url: str = "",
    key_name: str = "",
    tokenizer: str = "",
    environ: Mapping[str, str],
) -> LiveServer:
    """Return the server that these settings mean; an empty one stands for the preset's. The key is taken out of ``environ``.

    Raises: no or an unknown provider, no model or base URL where none can be known, a base URL that is none → UsageError.
    The variable with the key is not set → LiveModeError.
    """
    preset = _preset(provider)
    url = _checked_url(base_url or preset.base_url, provider)
    if not model and not preset.lists_its_model:
        raise UsageError(_incomplete(f"provider {provider} was chosen, and no model", "--hermes-model M"))
    key_name = key_name or preset.key_name
    if key_name and key_name not in environ and _looks_like_a_key(key_name):
        raise UsageError(
            f"--hermes-api-key-env: what was given is no name of an environment variable ({len(key_name)} characters).\n"
            "  expected  letters, digits and _, such as OPENROUTER_API_KEY; never the key itself, which would end in reports\n"
            "  fix       export MY_KEY=..., and --hermes-api-key-env MY_KEY; a key that was typed here is in the shell's history"
        )
    key = environ.get(key_name, "").strip() if key_name else ""
    if key_name and not key:
        raise LiveModeError(
            f"the key for {provider} is missing: the environment variable {key_name} is {_state(environ, key_name)}.\n"
            f"  expected  a key for {url}\n"
            f"  fix       export {key_name}=..., or name the variable that holds it: --hermes-api-key-env NAME"
        )
    return LiveServer(
        provider=preset.name,
        base_url=url,
        model=model,
        server_type=preset.server_type,
        key_name=key_name,
        key=key,
        tokenizer=tokenizer,
        is_checked=preset.is_checked,
        lists_its_model=preset.lists_its_model,
        may_tell_cost=preset.may_tell_cost,
    )


def _preset(provider: str) -> Preset:
    if not provider:
        raise UsageError(_incomplete("no provider was chosen", "--provider and what it needs"))
    if provider not in PRESETS:
        nearest = difflib.get_close_matches(provider, PRESETS, n=1)
        hint = f" Nearest: {nearest[0]}." if nearest else ""
        raise UsageError(_incomplete(f"there is no provider {shorten(repr(provider))}.{hint}", f"one of {', '.join(PRESETS)}"))
    return PRESETS[provider]


def _checked_url(url: str, provider: str) -> str:
    if not url:
        raise UsageError(_incomplete(f"provider {provider} was chosen, and no base URL", "--hermes-base-url URL"))
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"--hermes-live: {shorten(repr(url))} is no base URL.\n"
            "  expected  http:// or https://, a host, and the path below which /chat/completions is, mostly /v1"
        )
    if parts.username or parts.password or parts.query:
        bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        raise UsageError(
            f"--hermes-live: the base URL of {parts.hostname} carries a user, a password or a query, which would end in reports.\n"
            f"  expected  {bare}\n"
            "  fix       put the key into an environment variable and name that: --hermes-api-key-env NAME"
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
        f"  expected  {expected}; nothing is assumed, since calls cost money\n"
        "  fix       choose one of the set-ups:\n\n"
        f"{SET_UPS}\n\n"
        "            The ini values hermes_live_provider, hermes_live_model, ... and the variables HERMES_ENV_PROVIDER,\n"
        "            HERMES_ENV_MODEL, ... say the same; flags win, then variables."
    )
