"""Every error that this package raises, in one tree. The class names the boundary that broke.

::

    HermesEnvError
    ├── UsageError              a command, option, marker or fixture was used wrongly
    │   ├── UnknownRule         a rule id that the catalogue does not have
    │   ├── BadSettings         pyproject.toml says something impossible in [tool.hermes-env]
    │   ├── BadCases            transcripts that an author declares beside an environment make no sense
    │   ├── BadWaiver           a waiver without a reason, or one that waives nothing
    │   ├── BadTarget           what was named is not an environment, or cannot be imported
    │   └── StrategyError       a strategy, or check_reward, was asked for what cannot be drawn
    ├── ScriptError             a script for the mock model says something impossible
    ├── ResultError             a builder was told what no rollout can leave behind
    ├── RewardProblem           a reward function raised, or returned what is no reward
    ├── UnexpectedRequest       a double got a request that neither its script nor its routes answer
    ├── LeftoverRoutes          routes of mock_http that got no request
    ├── LeftoverTurns           turns of a script that nobody asked for
    ├── UnexpectedToolCall      a tool was called that the sandbox cannot answer
    ├── LeftoverAnswers         answers of a fake sandbox that nobody asked for
    ├── MissingFile             a file was looked up in an in-memory machine that does not have it
    ├── NotText                 a file of an in-memory machine was read as text and holds none
    ├── UnknownCommand          an in-memory shell was told a command that it does not have
    ├── UnsupportedSyntax       an in-memory shell was told something that it cannot read
    ├── NotAToolResult          a handler of a fake sandbox gave something that no tool could give
    ├── UseAfterCleanup         a tool context was used although it had been cleaned up
    ├── CleanupFailed           a sandbox could not be released
    ├── ServerStartError        the mock server could not start (port in use, ...)
    ├── BadCassette             a recording cannot be read, or must not be written
    ├── CassetteMiss            a replay was asked for something that its cassette does not hold
    ├── LeftoverRecordings      a cassette holds what nobody asked for
    ├── RewardChanged           a replayed rollout was given another reward than the recorded one
    ├── ContractBreach          check_rule: an environment breaks a law of the contract
    ├── NotExercised            check_rule: a law was neither seen to hold nor to be broken
    ├── NoBatch                 a trainer double waited for a batch that never came
    ├── BadBatch                a trainer double was given a batch that cannot be trained on
    ├── LiveModeError           the real server of --hermes-live cannot be asked: no key, not there, refused, no such model
    ├── BudgetSpent             a call was not made, since a limit of --hermes-max-* is reached
    ├── NetworkBlocked          a test connected to a host that it may not reach
    ├── EnvironmentSetupError   an environment could not be built for the test
    └── ShadowedModule          a project module hides one of hermes-agent's top-level modules

A message says what happened, what was expected, what was seen (cut at 200 characters) and what to do.
"""

from __future__ import annotations

__all__ = [
    "BadBatch",
    "BadCases",
    "BadCassette",
    "BadSettings",
    "BadTarget",
    "BadWaiver",
    "BudgetSpent",
    "CassetteMiss",
    "CleanupFailed",
    "ContractBreach",
    "EnvironmentSetupError",
    "HermesEnvError",
    "LeftoverAnswers",
    "LeftoverRecordings",
    "LeftoverRoutes",
    "LeftoverTurns",
    "LiveModeError",
    "MissingFile",
    "NetworkBlocked",
    "NoBatch",
    "NotAToolResult",
    "NotExercised",
    "NotText",
    "ResultError",
    "RewardChanged",
    "RewardProblem",
    "ScriptError",
    "ServerStartError",
    "ShadowedModule",
    "StrategyError",
    "UnexpectedRequest",
    "UnexpectedToolCall",
    "UnknownCommand",
    "UnknownRule",
    "UnsupportedSyntax",
    "UsageError",
    "UseAfterCleanup",
    "shorten",
]

SEEN_LIMIT = 200


class HermesEnvError(Exception):
    """Base of every error of this package."""


class UsageError(HermesEnvError):
    """A command, option, marker or fixture was used wrongly."""


class UnknownRule(UsageError):
    """A rule id was named that the catalogue does not have."""


class BadSettings(UsageError):
    """The table ``[tool.hermes-env]`` of a pyproject.toml says something that it cannot mean."""


class BadCases(UsageError):
    """What an author declares beside an environment (its cases) cannot be read, or cannot be meant."""


class BadWaiver(UsageError):
    """A waiver has no reason, or waives a rule that passes or does not exist."""


class BadTarget(UsageError):
    """What was named is not an environment class, or its module cannot be imported."""


class StrategyError(UsageError):
    """A strategy or `check_reward` was asked for something that cannot be drawn."""


class ScriptError(HermesEnvError):
    """A script for the mock model says something that no model could say."""


class ResultError(HermesEnvError):
    """An AgentResult builder was told something that no rollout can leave behind."""


class RewardProblem(HermesEnvError):
    """A reward function raised, or returned something that is no reward."""


class UnexpectedRequest(HermesEnvError):
    """A mock model or mock_http got a request that neither a script nor a route answers."""


class LeftoverTurns(HermesEnvError):
    """A script holds turns that no conversation ever asked for."""


class LeftoverRoutes(HermesEnvError):
    """Routes of mock_http that got no request."""


class UnexpectedToolCall(HermesEnvError):
    """A tool was called that the sandbox in force cannot answer."""


class LeftoverAnswers(HermesEnvError):
    """A fake sandbox holds answers that no tool call ever asked for."""


class NotAToolResult(HermesEnvError):
    """A handler of a fake sandbox gave something that is no tool result."""


class UseAfterCleanup(HermesEnvError):
    """A tool context was used although it had been cleaned up."""


class CleanupFailed(HermesEnvError):
    """A sandbox could not be released."""


class ServerStartError(HermesEnvError):
    """The mock server could not be started."""


class BadCassette(HermesEnvError):
    """A recording cannot be read (damaged, in conflict, of a newer format), or cannot or must not be written."""


class CassetteMiss(HermesEnvError):
    """A replay was asked for something that its cassette does not hold."""


class LeftoverRecordings(HermesEnvError):
    """A cassette holds requests or tool calls that nobody made."""


class RewardChanged(HermesEnvError):
    """A replayed rollout was given another reward than the recorded one."""


class ContractBreach(HermesEnvError):
    """An environment breaks a law of the contract."""


class NotExercised(HermesEnvError):
    """A law of the contract was neither seen to hold nor to be broken: nothing is proved."""


class NoBatch(HermesEnvError):
    """A trainer double waited in vain: for run-api, or for a batch of it."""


class BadBatch(HermesEnvError):
    """A trainer double was given a batch that cannot be trained on."""


class LiveModeError(HermesEnvError):
    """The real inference server cannot be asked."""


class BudgetSpent(HermesEnvError):
    """A call to the real inference server was not made, since a limit is reached."""


class NetworkBlocked(HermesEnvError, OSError):
    """A test connected to a host that it may not reach. An OSError, as for a machine without a network."""

    def __str__(self) -> str:
        return str(self.args[0])


class EnvironmentSetupError(HermesEnvError):
    """An environment could not be built on the mock server."""


class ShadowedModule(HermesEnvError):
    """A project module hides one of hermes-agent's own top-level modules."""


class MissingFile(HermesEnvError, KeyError):
    """A file was looked up in an in-memory machine that does not have it."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotText(HermesEnvError):
    """A file of an in-memory machine was read as text, and its bytes are no UTF-8."""


class UnknownCommand(HermesEnvError):
    """An in-memory shell was told a command that is neither its own nor answered. ``words`` as expanded, ``text`` as written."""

    def __init__(self, words: tuple[str, ...], text: str) -> None:
        super().__init__(f"{words[0] if words else text}: command not found")
        self.words = words
        self.text = text


class UnsupportedSyntax(HermesEnvError):
    """An in-memory shell was told something that it cannot read: ``what`` in ``text``."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__(f"{what} in {shorten(text)}")
        self.text = text
        self.what = what


def shorten(seen: object, limit: int = SEEN_LIMIT) -> str:
    """Return ``seen`` as one line of at most ``limit`` characters, for the "what was seen" part of a message."""
    text = seen if isinstance(seen, str) else repr(seen)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
