"""HE704 eval-keeps-the-settings
The agent is evaluated under the settings that it is trained under.

What: While `evaluate` runs, each agent loop gets the configured system prompt as its first message, `max_turns` =
`max_agent_turns`, `max_tokens` = `max_token_length`, and the configured `extra_body`; or, for the numbers, an
evaluation setting of the environment. The reference is what training gets under the same settings.

Why: A model that was trained with a system prompt and 30 turns, and is evaluated without the prompt and with the loop's
default turns, is a different agent: its evaluation drops for no reason that training could fix. Without `extra_body`
the provider chooses routing and prices.

Fix: Use `evaluate_items` or `agent_rollout`, which take these settings from the configuration. Take a limit that is
meant to differ from a setting with "eval" in its name: `evaluate_items(max_turns=self.config.eval_max_turns)`. By hand:
`HermesAgentLoop(..., max_turns=self.config.max_agent_turns, max_tokens=self.config.max_token_length,
extra_body=self.config.extra_body)`, and a system message first when `self.config.system_prompt` is set.

Source: `environments.hermes_base_env`, `agent_rollout`: the settings of training rollouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict, one_per_place
from pytest_hermes_env.play.journal import LoopStarted
from pytest_hermes_env.play.scenario import SETTINGS

SCENARIOS = ("training_with_settings", "evaluate_with_settings")
_WORDS = {"max_turns": ("turn", "step"), "max_tokens": ("token", "length")}
_NUMBERS = {"max_turns": "max_agent_turns", "max_tokens": "max_token_length"}


def dynamic(evidence: Evidence) -> Verdict:
    """Compare what the loops of evaluate() were given with the configuration, and with what training was given."""
    evaluation = evidence.scenario("evaluate_with_settings")
    if not evaluation.happened:
        return Verdict.not_exercised(evaluation.unavailable)
    loops = evaluation.of(LoopStarted)
    if not loops:
        return Verdict.not_exercised("evaluate() ran no agent loop (HE701)", "HE701", "HE705")
    training = evidence.scenario("training_with_settings").of(LoopStarted)
    own = {name: _own_settings(evidence, words) for name, words in _WORDS.items()}
    findings = one_per_place(
        evidence.recorded_finding(
            f"evaluate() runs the agent with other settings than configured: {text}",
            loop.place,
            "evaluate",
            scenario="evaluate_with_settings",
        )
        for loop in loops
        if (text := "; ".join(_differences(loop, training[0] if training else None, own)))
    )
    count = f"{len(loops)} rollout{'' if len(loops) == 1 else 's'}"
    return Verdict.of(findings, f"system prompt, turns, tokens and extra_body reached the agent in {count} of evaluate()")


def _differences(loop: LoopStarted, training: LoopStarted | None, own: dict[str, list[Any]]) -> Iterator[str]:
    prompt = SETTINGS["system_prompt"]
    if prompt not in (loop.system_prompt or "") and (training is None or training.system_prompt != loop.system_prompt):
        yield "the system prompt is not its first message" if loop.system_prompt is None else "it has a different system prompt"
    for name, setting in _NUMBERS.items():
        given = getattr(loop, name)
        allowed = [SETTINGS[setting], *own[name], *([] if training is None else [getattr(training, name)])]
        if given not in allowed:
            yield f"{name} is {given}, and {setting} is {SETTINGS[setting]}"
    if loop.extra_body != SETTINGS["extra_body"] and (training is None or training.extra_body != loop.extra_body):
        yield f"extra_body is {loop.extra_body}"


def _own_settings(evidence: Evidence, words: tuple[str, ...]) -> list[Any]:
    """Return the numbers of this kind that the environment's configuration has for evaluation alone."""
    values = evidence.config_init.values
    return [value for name, value in values.items() if "eval" in name and any(word in name for word in words)]


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
