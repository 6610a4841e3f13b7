"""A fork with its own environment layer: a minimal version of the old one."""
