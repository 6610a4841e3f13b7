"""Every error that this package raises, in one tree. The class names the boundary that broke.

::

    HermesEnvError
    ├── UsageError              a command, option, marker or fixture was used incorrectly
    │   ├── UnknownRule         a rule id that the catalogue does not have
    │   ├── BadSettings         the table [tool.hermes-env] of a pyproject.toml is invalid
    │   ├── BadCases            the cases declared for an environment are invalid
    │   ├── BadTarget           a target is not an environment or cannot be imported
    │   └── StrategyError       a strategy or check_reward has arguments from which nothing can be drawn
    ├── ScriptError             a script for the mock model is impossible
    ├── ResultError             a builder describes a result that no rollout can produce
    ├── RewardProblem           a reward function raised, or returned an invalid reward
    ├── UnexpectedRequest       a double got a request that neither its script nor its routes answer
    ├── LeftoverRoutes          routes of mock_http that got no request
    ├── LeftoverFaults          faults of a fault plan that were never played
    ├── LeftoverTables          datasets of the hub of a test that were not loaded
    ├── LeftoverTurns           turns of a script that no conversation reached
    ├── FailedRewards           rewards that failed in rollouts of a test, which ended without an error
    ├── UnreachableServer       nobody listened at the server that a test named, which ended without an error
    ├── UnexpectedToolCall      a tool was called that the sandbox cannot answer
    ├── LeftoverAnswers         answers of a fake sandbox that no tool call used
    ├── MissingFile             an in-memory machine does not have a file
    ├── NotText                 a file of an in-memory machine was read as text but is not text
    ├── NotAToolResult          a handler of a fake sandbox returned something that no tool returns
    ├── UseAfterCleanup         a tool context, or an environment, was used after its end
    ├── CleanupFailed           a sandbox could not be released
    ├── ServerStartError        the mock server could not start (port in use, ...)
    ├── BadCassette             a recording cannot be read or must not be written
    ├── CassetteMiss            a replay made a request that its cassette does not hold
    ├── LeftoverRecordings      a cassette holds requests or tool calls that the replay did not make
    ├── RewardChanged           a replayed rollout earned a different reward from the recorded one
    ├── RewardsChanged          rescored: rewards of recorded rollouts moved, or cannot be computed again
    ├── UnhealthyRun            health: a check of a recorded run is unhealthy
    ├── RuleViolated            check_rule: an environment violates a rule of the contract
    ├── NotExercised            check_rule: the rule found nothing to judge
    ├── NoBatch                 a trainer double waited for a batch that never came
    ├── BadBatch                a trainer double got a batch that it cannot train on
    ├── LiveModeError           the server of --hermes-live cannot be used: no key, unreachable, refused, unknown model
    │   └── CallTimedOut        a call to it took longer than --hermes-call-timeout
    ├── BudgetSpent             a call was not made because a limit of --hermes-max-* is reached
    ├── NetworkBlocked          a test connected to a host that it may not reach
    ├── PlayerStopped           the process that plays environments ended, by a fault of its own
    ├── EnvironmentSetupError   an environment could not be built for the test
    └── ShadowedModule          a project module hides one of hermes-agent's top-level modules

A message has four parts: what happened, what was expected, what was seen (cut at 200 characters) and the fix.
"""

from __future__ import annotations

SEEN_LIMIT = 200
RAN = "  ran       "
"""Begins the line of a command that was asked for, and is much like one that was scripted and was not."""
ENDED = "  ended     "
"""Begins the line of a scripted turn that ends its conversation, although further turns follow it."""
LONGEST_SECRET = 5_000


class HermesEnvError(Exception):
    """Base of every error of this package. ``parts``: class and text of each problem that it reports, where a double collected them."""

    parts: tuple[tuple[type[HermesEnvError], str], ...] = ()


class UsageError(HermesEnvError):
    """A command, option, marker or fixture was used incorrectly."""


class UnknownRule(UsageError):
    """A rule id was named that the catalogue does not have."""


class BadSettings(UsageError):
    """The table ``[tool.hermes-env]`` of a pyproject.toml is invalid."""


class BadCases(UsageError):
    """The cases declared for an environment cannot be read, or are impossible."""


class BadTarget(UsageError):
    """A target is not an environment class, or its module cannot be imported."""


class StrategyError(UsageError):
    """A strategy or `check_reward` has arguments from which nothing can be drawn."""


class ScriptError(HermesEnvError):
    """A script for the mock model contains an answer that no model could give."""


class ResultError(HermesEnvError):
    """An AgentResult builder describes a result that no rollout can produce."""


class RewardProblem(HermesEnvError):
    """A reward function raised, or returned an invalid reward."""


class Leftovers(HermesEnvError):
    """Something that a test prepared was not used. A failed test does not report it: what failed kept the rest from being used."""


class UnexpectedRequest(HermesEnvError):
    """A mock model or mock_http got a request that neither a script nor a route answers."""


class FailedRewards(Leftovers):
    """``compute_reward`` failed in rollouts of a test that ended without an error: their score 0.0 is not a reward."""


class UnreachableServer(Leftovers):
    """Rollouts of a test that ended without an error could not connect to the server that it named."""


class LeftoverTurns(Leftovers):
    """A script holds turns that no conversation reached."""


class LeftoverFaults(Leftovers):
    """Faults of a fault plan struck no request, tool call or await."""


class LeftoverRoutes(Leftovers):
    """Routes of mock_http that got no request."""


class LeftoverTables(Leftovers):
    """Datasets of the hub of a test that were not loaded."""


class UnexpectedToolCall(HermesEnvError):
    """A tool was called that the sandbox cannot answer."""


class LeftoverAnswers(Leftovers):
    """A fake sandbox holds answers that no tool call used."""


class NotAToolResult(HermesEnvError):
    """A handler of a fake sandbox returned something that is not a tool result."""


class SandboxLost(HermesEnvError):
    """A command made its sandbox unusable: nothing that was done in it can be scored."""


class UseAfterCleanup(HermesEnvError):
    """A tool context was used after its cleanup, or an environment after the end of its test."""


class CleanupFailed(HermesEnvError):
    """A sandbox could not be released."""


class ServerStartError(HermesEnvError):
    """The mock server could not be started."""


class BadCassette(HermesEnvError):
    """A recording cannot be read (damaged, in conflict, of a newer format), or cannot or must not be written."""


class CassetteMiss(HermesEnvError):
    """A replay made a request that its cassette does not hold."""


class LeftoverRecordings(Leftovers):
    """A cassette holds requests or tool calls that the replay did not make."""


class RewardChanged(HermesEnvError):
    """A replayed rollout earned a different reward from the recorded one."""


class RewardsChanged(HermesEnvError):
    """Rewards of recorded rollouts moved, flipped or failed, or cannot be computed again."""


class UnhealthyRun(HermesEnvError):
    """A check of a recorded run is unhealthy."""


class RuleViolated(HermesEnvError):
    """An environment violates a rule of the contract."""


class NotExercised(HermesEnvError):
    """A rule of the contract found nothing to judge: nothing is proved."""


class NoBatch(HermesEnvError):
    """A trainer double timed out waiting for run-api or for a batch."""


class BadBatch(HermesEnvError):
    """A trainer double got a batch that it cannot train on."""


class LiveModeError(HermesEnvError):
    """The real inference server cannot be used."""


class CallTimedOut(LiveModeError):
    """A call to the real inference server took longer than ``--hermes-call-timeout``."""


class BudgetSpent(HermesEnvError):
    """A call to the real inference server was not made because a limit is reached."""


class NetworkBlocked(HermesEnvError, OSError):
    """A test connected to a host that it may not reach. It is an OSError, as on a machine without a network."""

    def __str__(self) -> str:
        return str(self.args[0])


class PlayerStopped(HermesEnvError):
    """The process that plays environments ended, or failed, by a fault of its own."""


class EnvironmentSetupError(HermesEnvError):
    """An environment could not be built on the mock server."""


class ShadowedModule(HermesEnvError):
    """A project module hides one of hermes-agent's own top-level modules."""


class MissingFile(HermesEnvError, KeyError):
    """An in-memory machine does not have a file."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotText(HermesEnvError):
    """A file of an in-memory machine was read as text, but its bytes are not UTF-8."""


def shorten(seen: object, limit: int = SEEN_LIMIT) -> str:
    """Return ``seen`` as one line of at most ``limit`` characters, without secrets, for the "what was seen" part of a message."""
    text = seen if isinstance(seen, str) else repr(seen)
    from pytest_hermes_env.redaction.shown_text import shown  # noqa: PLC0415 - only where a message is made

    text = shown(" ".join(text[: limit + LONGEST_SECRET].split()))  # redacted before it is cut: half a key is still a key
    return text if len(text) <= limit else text[: limit - 1] + "…"


def with_type(value: object) -> str:
    """Return the type and the value, such as ``str '42'``, for the "what was seen" part of a message."""
    return f"{type(value).__name__} {shorten(repr(value))}"
