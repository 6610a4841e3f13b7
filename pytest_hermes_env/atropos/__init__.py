"""THE SERVICES AROUND IT: retries, clients, the trainer's API, wandb."""
