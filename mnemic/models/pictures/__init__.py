"""Networks that see pictures and read words."""
