"""Loads the heavy layers once per worker: suites run in this process and would otherwise import them again for each test."""

import environments.terminal_test_env.terminal_test_env  # noqa: F401 - loads atroposlib and hermes-agent
import pytest_hermes_env.contract.decorator
import pytest_hermes_env.inference.server
import pytest_hermes_env.rollout.builder
import pytest_hermes_env.rollout.driver  # noqa: F401 - loaded before pytester takes its picture of sys.modules
