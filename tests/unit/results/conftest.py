"""Loads the heavy layers before pytester takes its picture of sys.modules; suites run in this process."""

import environments.terminal_test_env.terminal_test_env
import pytest_hermes_env.rollout.builder  # noqa: F401 - atroposlib and hermes-agent, once
