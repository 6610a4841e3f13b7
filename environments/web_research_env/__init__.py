"""WebResearchEnv under the path at which it was a module: ``environments.web_research_env``."""

from environments.web_research_env.web_research_env import WebResearchEnv, WebResearchEnvConfig

__all__ = ["WebResearchEnv", "WebResearchEnvConfig"]
