"""What kind of server an environment is built on: chat mode, or token mode with a chat template and a tool-call format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.errors import EnvironmentSetupError, shorten
from pytest_hermes_env.inference.templates import DEFAULT_TEMPLATE, template_named, template_of_family
from pytest_hermes_env.inference.tool_call_formats import CALL_FORMATS, call_format

CHAT, TOKENS = "openai", ("vllm", "sglang")
PARSER = "tool_call_parser"
THEIRS = "vllm:"
"""Prefix of the parsers that vLLM ships."""


@dataclass(frozen=True, kw_only=True)
class ServerKind:
    """``server_type`` as atroposlib names it; ``template`` and ``family`` as the mock model does."""

    server_type: str
    template: str
    family: str

    @property
    def has_tokens(self) -> bool:
        """Whether rollouts run in token mode."""
        return self.server_type in TOKENS


def choose_kind(
    config: Any, fields: dict[str, Any], *, mode: str | None, server_type: str | None, template: str | None, server: Any
) -> ServerKind:
    """Return the kind of server that the arguments of make_env describe.

    The default template is that of ``server``, or the one whose tool-call format the configured parser reads. The model writes
    the format of the parser that the test names, else the format of the template.

    Raises: an unknown mode or type, or one of the other mode → EnvironmentSetupError; an unknown template or parser → UsageError.
    """
    __tracebackhide__ = True
    if server_type not in {None, CHAT, *TOKENS}:
        raise EnvironmentSetupError(
            f"make_env has no server_type {shorten(repr(server_type))}: the mock model is an 'openai', 'vllm' or 'sglang' server"
        )
    configured = getattr(server, "server_type", None)
    if configured is not None and server_type not in {None, configured}:
        raise EnvironmentSetupError(
            f"make_env was given server_type={server_type!r} and an APIServerConfig of type {configured!r}: name the type once"
        )
    chosen_type = configured or server_type or (TOKENS[0] if mode == "token" else CHAT)
    if mode not in {None, "token" if chosen_type in TOKENS else "chat"}:
        raise EnvironmentSetupError(
            f"make_env was given mode={shorten(repr(mode))} and a server of type {chosen_type!r}: "
            "mode is 'chat', on an 'openai' server, or 'token', on a 'vllm' (default) or 'sglang' server"
        )
    if chosen_type not in TOKENS:
        return ServerKind(server_type=chosen_type, template=template or DEFAULT_TEMPLATE, family="hermes")
    spoken = getattr(server, "template", None)
    if spoken is not None and template not in {None, spoken}:
        raise EnvironmentSetupError(
            f"make_env was given template={template!r} and a MockServer whose template is {spoken!r}: name it once"
        )
    template = template or spoken
    parser = str(fields.get(PARSER, getattr(config, PARSER, "hermes"))).removeprefix(THEIRS)
    if template is None:
        call_format(parser)
        return ServerKind(server_type=chosen_type, template=template_of_family(parser).name, family=parser)
    own = template_named(template).family
    return ServerKind(
        server_type=chosen_type, template=template, family=parser if PARSER in fields and parser in CALL_FORMATS else own
    )
