"""What Acme kept of hermes-agent's former environment layer."""
