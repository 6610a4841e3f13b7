"""The pytest plugin: this entry point names its modules, hooks first, then the fixtures of each room.

Importing them loads pytest and the standard library, nothing else: it happens in every pytest run of every project that has this
package installed.
"""

from __future__ import annotations

pytest_plugins = (
    "pytest_hermes_env.plugin.hooks",
    "pytest_hermes_env.plugin.fault_fixtures",
    "pytest_hermes_env.plugin.inference_fixtures",
    "pytest_hermes_env.plugin.sandbox_fixtures",
    "pytest_hermes_env.plugin.cassette_fixtures",
    "pytest_hermes_env.plugin.atropos_fixtures",
    "pytest_hermes_env.plugin.rollout_fixtures",
    "pytest_hermes_env.plugin.record_fixtures",
    "pytest_hermes_env.plugin.contract_fixtures",
)
