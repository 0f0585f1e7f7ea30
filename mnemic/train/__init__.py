"""Train networks: from a recipe to a checkpoint."""
