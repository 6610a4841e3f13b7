"""``python -m environments.web_research_env``: the command line of WebResearchEnv."""

from environments.web_research_env.web_research_env import WebResearchEnv

WebResearchEnv.cli()
