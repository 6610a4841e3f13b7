"""Makes ``from environments import HermesAgentLoop`` work, in a package without an ``__init__.py``: this module becomes the class."""

import sys

from environments.agent_loop import HermesAgentLoop

sys.modules[__name__] = HermesAgentLoop  # type: ignore[assignment]
