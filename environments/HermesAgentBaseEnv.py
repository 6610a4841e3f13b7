"""Makes ``from environments import HermesAgentBaseEnv`` work, in a package without an ``__init__.py``: this module becomes the class."""

import sys

from environments.hermes_base_env import HermesAgentBaseEnv

sys.modules[__name__] = HermesAgentBaseEnv  # type: ignore[assignment]
