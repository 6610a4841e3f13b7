"""``hermes-env serve-rollouts``: serve the rollouts of an environment to a training engine.

Imported only for this command: the layer loads atroposlib.
"""

from __future__ import annotations

import argparse

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.layer import find_class, service_command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command; ``rest`` of its namespace are the flags of the environment."""
    parser.add_argument("target", metavar="TARGET", help="path/to/env.py:Class or package.module:Class")
    service_command().add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal. Raises: no class, several, or one without run_rollout → UsageError."""
    classes = find_class(options.target)
    if len(classes) != 1:
        raise UsageError(f"{options.target} has several environments; name one: {options.target}:{classes[0].__name__}")
    if not hasattr(classes[0], "run_rollout"):
        raise UsageError(f"{classes[0].__name__} is built on a layer without run_rollout; build it on this distribution's")
    return int(service_command().run(classes[0], options, options.rest))
