"""Loads the heavy layers before pytester takes its picture of sys.modules; suites run in this process."""

import environments.terminal_test_env.terminal_test_env  # noqa: F401 - loads atroposlib and hermes-agent
