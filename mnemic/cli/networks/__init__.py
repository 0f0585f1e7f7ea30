"""Commands about networks: train, evaluate, predict, inspect, export, and published tables."""
