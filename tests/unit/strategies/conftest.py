"""Loads the heavy layers before pytester takes its picture of sys.modules; suites run in this process."""

import environments.terminal_test_env.terminal_test_env
import pytest_hermes_env.inference.server
import pytest_hermes_env.rollout.builder
import pytest_hermes_env.strategies
from environments import agent_loop  # noqa: F401 - atroposlib and hermes-agent, once
