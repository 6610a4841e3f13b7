"""WHAT PEOPLE LOOK AT: rollouts and tokens as pages and as text."""
