"""How a class is judged: rules are asked about its source and its evidence, and their verdicts are combined."""
