"""What the in-memory shell is made of: source → tokens → tree → run."""
