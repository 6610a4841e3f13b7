"""AgenticOPDEnv under the path at which it was a module: ``environments.agentic_opd_env``."""

from environments.agentic_opd_env.agentic_opd_env import AgenticOPDConfig, AgenticOPDEnv

__all__ = ["AgenticOPDConfig", "AgenticOPDEnv"]
