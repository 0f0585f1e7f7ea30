"""Distillation: objectives by which a network learns from trained ones."""
