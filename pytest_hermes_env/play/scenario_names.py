"""The names and settings of scenarios that rules read too. No engine is imported here."""

from __future__ import annotations

from typing import Any

CASES = "cases"
"""The transcripts that the author declares, and four that need no author."""
PROBES = "reward_probes"
"""The reward alone, on results of every form that a rollout can leave."""
ELSEWHERE = "reward_probes_elsewhere"
"""The same in another process."""
SETTINGS: dict[str, Any] = {
    "system_prompt": "You are the keeper of the seventh lighthouse.",
    "max_agent_turns": 11,
    "max_token_length": 1777,
    "extra_body": {"provider": {"order": ["seventh-lighthouse"]}},
}
"""The configuration in the scenarios ``training_with_settings`` and ``evaluate_with_settings``."""
