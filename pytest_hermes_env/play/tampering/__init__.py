"""What an agent can leave in its sandbox so that the verifier pays without the work."""
