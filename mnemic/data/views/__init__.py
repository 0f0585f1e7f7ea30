"""Pairs of texts that belong together, for contrastive learning."""
