"""A fork that carries an environment layer of its own: the shape of the old one, in as few lines as show it."""
