"""Commands for networks: train, evaluate, predict, inspect, export."""
