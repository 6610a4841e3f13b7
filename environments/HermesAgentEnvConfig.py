"""Makes ``from environments import HermesAgentEnvConfig`` work, in a package without an ``__init__.py``: this module becomes the class."""

import sys

from environments.hermes_base_env import HermesAgentEnvConfig

sys.modules[__name__] = HermesAgentEnvConfig  # type: ignore[assignment]
