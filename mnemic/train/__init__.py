"""Training: from a recipe to a checkpoint."""
