"""A mutation score for environments: breaks an environment on purpose, one rule at a time, and asks whether its tests notice."""
