"""What both the environment layer and the test kit need, since neither may import the other."""
