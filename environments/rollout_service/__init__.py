"""Serves an environment class as rollouts over HTTP, for training engines that cannot share its Python process."""
