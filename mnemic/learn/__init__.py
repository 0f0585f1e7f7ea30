"""Training, evaluation, checkpoints and tables."""
